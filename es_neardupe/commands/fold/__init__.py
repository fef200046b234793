"""``fold``: ordinary searches of an OpenSearch index return one hit of each group, by a default search pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.options import FoldAction
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.commands.fold.report import FoldReport
    from es_neardupe.index.index import Index


_OVERSAMPLE = 5
"""Hits requested for each hit of a page, by default."""

Oversample = Annotated[
    int,
    typer.Option("--oversample", min=1, max=100, help="Hits requested for each hit of a page, before groups fold."),
]


def fold(
    index: Index,
    action: str = "show",
    *,
    oversample: Oversample = _OVERSAMPLE,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
) -> FoldReport:
    """Fold ordinary searches of an OpenSearch index: one hit of each group, by a default search pipeline.

    ``action``: show, install or remove this pipeline (OpenSearch only).

    ``install`` makes it the default of every index behind the name, so *all* searches that name no other pipeline use
    it, also those of ``_update_by_query``, ``_delete_by_query``, ``_reindex`` and exports, which then skip documents.
    It needs a group field (``init --group-field``) with a value in each document. Running it again, with another
    ``oversample`` too, is safe. A dry run returns its first ``show_requests`` write requests.

    Raises `IndexUnusable` if an index has another default search pipeline, or cannot be folded: nothing is written.

    >>> news.fold().state
    'not folded'
    """
    from es_neardupe.commands.fold.report import FoldReport
    from es_neardupe.commands.fold.steps import checked, counted_documents
    from es_neardupe.index.index import opened
    from es_neardupe.index.on_server import folding
    from es_neardupe.index.permissions import check_sees_all
    from es_neardupe.server.dry_run import DryRunClient

    try:
        wanted = FoldAction(action)
    except ValueError:
        raise SettingsError(f"Unknown action {action!r}: choose {', '.join(FoldAction)}.") from None
    if oversample != _OVERSAMPLE and wanted is not FoldAction.INSTALL:
        raise SettingsError(f"{option('oversample')} is an option of the action install.")
    dry_client = DryRunClient(index.server, show_requests, dry_run=dry_run)
    writer = dry_client if dry_run else index.server
    index = opened(index)
    field = index.settings.group_field
    pipelines = folding.default_pipelines(index)
    documents, without = counted_documents(index)
    changed: tuple[str, ...] = ()
    name = None
    if wanted is FoldAction.INSTALL:
        check_sees_all(index, "folding")
        name = folding.pipeline_name(checked(index, pipelines, without), oversample)
        changed = tuple(one for one, present in pipelines.items() if present != name)
        folding.fold(writer, changed, str(field), oversample)
        folding.unfold(writer, {}, str(field))  # the pipeline of another factor, if there was one
        if not dry_run:  # another run may have deleted it before an index used it
            folding.store_pipeline(writer, str(field), oversample)
    elif wanted is FoldAction.REMOVE and field is not None:
        changed = folding.unfold(writer, pipelines, field)
    after = {one: name if one in changed else present for one, present in pipelines.items()}
    return FoldReport(
        index=index.name,
        action=wanted.value,
        state=folding.state(index, after, stored=name),
        pipelines=pipelines,
        group_field=field,
        pipeline=name,
        changed=changed,
        documents=documents,
        without_group=without,
        dry_run=dry_run,
        requests=dry_client.shown,
    )
