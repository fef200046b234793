"""``init``: adds the mapping and the chosen settings to an index. Writes no document."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import NotFound

if TYPE_CHECKING:
    from es_neardupe.commands.init.report import InitReport
    from es_neardupe.index.index import Index
    from es_neardupe.index.settings import Settings


ThresholdMeasure = Annotated[
    str | None,
    options.one_of(
        options.names_of(options.BY_LENGTHS),
        "--measure",
        help=f"Measure of the threshold: choose bands for it from the lengths of texts. {options.JACCARD}",
        show_default="resemblance",
    ),
]
Create = Annotated[bool, typer.Option("--create", help="Create the index if it does not exist.")]
Template = Annotated[
    bool, typer.Option("--template", help="Print a component template for future indices; write nothing.")
]
VersionsOption = Annotated[
    options.Versions | None,
    typer.Option(
        "--versions",
        help="Who sets the versions of documents: the server (internal), or the system that they come from (external).",
        show_default="internal, unless documents show the other",
    ),
]
Sidecar = Annotated[
    bool, typer.Option("--sidecar", help="Store keys and groups in a separate index; leave yours unchanged.")
]
WriteGroup = Annotated[
    bool, typer.Option("--write-group", help="With `sidecar`: write only the group ids into your documents.")
]


def init(
    index: Index,
    settings: Settings,
    *,
    measure: ThresholdMeasure = None,
    sample_keys: options.SampleKeys = None,
    versions: VersionsOption = None,
    create: Create = False,
    template: Template = False,
    sidecar: Sidecar = False,
    write_group: WriteGroup = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
) -> InitReport:
    """Prepare an index: choose the keys and add fields for them to the mapping. Changes no document.

    The ``neardupe`` fields and the settings are added to the mapping of the index, alias or pattern.

    ``create`` creates a missing index, with a text mapping for the fields. ``sample_keys`` chooses ``sample_mod`` by
    the lengths of the existing texts, unless the index has a ``sample_mod`` already.

    ``measure``: that of the threshold in the settings, ``jaccard`` or ``containment-longer``. Bands and the stored
    threshold, a resemblance, are then chosen by the lengths of random texts, or of `default_lengths` if there are none;
    an index that has bands already keeps them.

    ``sidecar`` stores keys and groups
    in a separate index and leaves this one unchanged, except for the group id with ``write_group``.

    ``template`` returns a component template that gives later indices the fields from the start, even if no index
    exists yet. Like ``dry_run``, it writes nothing. A dry run returns its first ``show_requests`` write requests.

    ``versions``: who sets the versions of documents, by default the stored value, else ``internal``; then
    `IndexUnusable` is raised if documents have versions that the server has not given them. With ``external``,
    documents are written as a whole, with the version that they have (`es_neardupe.index.storage.field_writes`).

    ``settings.group_field``: a keyword field at the top level of the documents, which gets a copy of their group id. It
    can be added later; the next `enrich` then writes it.

    Running ``init`` again with the same settings changes nothing. Raises `SchemeMismatch` if the index has other
    settings, `MappingConflict`, `IndexUnusable`, `NotFound` or `Blocked`, before anything is written.

    >>> report = news.init(Settings(fields=("title", "body"), threshold=0.8), create=True)
    >>> report.bands, report.rows, round(report.detection, 4)
    (16, 6, 0.9923)
    """
    from es_neardupe.commands.init.steps import (
        ByTexts,
        check_options,
        component_template,
        init_inline,
        init_missing,
        init_sidecars,
        with_versions,
    )
    from es_neardupe.index.handle import UnpreparedIndex
    from es_neardupe.index.hidden_indices import check_not_hidden
    from es_neardupe.index.permissions import check_takes_ids
    from es_neardupe.index.runs.tuning import restore_abandoned, tuned_mappings
    from es_neardupe.index.storage.sidecar.indices import check_inline
    from es_neardupe.index.target import check_gc_deletes, check_new_name, result_window
    from es_neardupe.server.dry_run import DryRunClient
    from es_neardupe.similarity.measure import named_measure

    by_texts = ByTexts(None if measure is None else named_measure(measure, options.BY_LENGTHS), sample_keys)
    check_options(index, settings, by_texts, sidecar=sidecar, write_group=write_group, exists=not (create or template))
    client, name = index.server, index.name
    dry_client = DryRunClient(client, show_requests, dry_run=dry_run)
    dry_run = dry_run or template
    writer = dry_client if dry_run else client
    try:
        metadata = index.definitions.metadata()
    except NotFound:
        if not (create or template):
            raise
        check_new_name(name, pattern=template)
        metadata = None
    if metadata is None:
        settings = replace(settings, versions=versions or settings.versions)
        missing = UnpreparedIndex(name, writer, {}, settings)
        report = init_missing(missing, by_texts, template=template, dry_run=dry_run)
        if not dry_run:
            check_takes_ids(client, [name])
    else:
        check_not_hidden(metadata.mappings)
        check_takes_ids(client, list(metadata.mappings))
        if not dry_run:
            restore_abandoned(client, tuned_mappings(index))
            metadata = index.definitions.metadata()
        window = result_window(metadata.states.values())
        unprepared = UnpreparedIndex(name, writer, metadata.with_source_modes, settings, window)
        if write_group or not sidecar:
            unprepared = with_versions(unprepared, versions)
            settings = unprepared.settings
            if settings.versions is options.Versions.EXTERNAL:
                check_gc_deletes(metadata.states)
        if sidecar:
            report = init_sidecars(unprepared, metadata, by_texts, write_group=write_group, dry_run=dry_run)
        else:
            check_inline(client, metadata.mappings, settings.prefix)
            report = init_inline(unprepared, metadata, by_texts, dry_run=dry_run)
    if template:
        report = replace(report, prepared=(), template=component_template(report.chosen(settings)))
    return replace(report, requests=dry_client.shown)
