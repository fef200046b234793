"""``enrich``: gives every document of an index its fingerprint."""

from __future__ import annotations

import re
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.options import DEFAULT_MAX_CHARS, MAX_SLICES, Versions
from es_neardupe.run_options import RUN_DEFAULTS, RunOptions, on_engine, tunable
from es_neardupe.wording import command, option

if TYPE_CHECKING:
    from es_neardupe.index.index import Index
    from es_neardupe.report_parts import EnrichReport


InCluster = Annotated[
    bool,
    typer.Option(
        "--in-cluster", help="Let the server make the keys by a script (OpenSearch, Painless); no text is read."
    ),
]
CheckTexts = Annotated[
    bool, typer.Option("--check", help="Read all documents, not only those written since the last run.")
]
All = Annotated[bool, typer.Option("--all", help="Write the keys of all documents again.")]
NewOnly = Annotated[
    bool,
    typer.Option(
        "--new-only", help="Skip documents with keys where it is unknown which have changed, instead of reading them."
    ),
]
_SLICE = re.compile(r"([0-9]{1,4})/([0-9]{1,4})", re.ASCII)


def _parse_slice(value: Any) -> tuple[int, int]:
    """Number and count of ``3/16``. Raises `BadParameter`."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    if (match := _SLICE.fullmatch(value)) is None:
        raise typer.BadParameter(f"Give NUMBER/COUNT, such as 3/16, not {value!r}.")
    number, of = int(match[1]), int(match[2])
    if (why := _wrong_slice(number, of)) is not None:
        raise typer.BadParameter(why)
    return number, of


def _wrong_slice(number: int, of: int) -> str | None:
    """Why there is no such slice; None if there is one."""
    if not 1 <= of <= MAX_SLICES:
        return f"The number of slices must be from 1 to {MAX_SLICES:,}, not {of:,}."
    if not 1 <= number <= of:
        return f"There is no slice {number:,} of {of:,}: slices are counted from 1."
    return None


Slice = Annotated[
    tuple[int, int] | None,
    typer.Option(
        "--slice",
        metavar="NUMBER/COUNT",
        parser=_parse_slice,
        help="Process one of several parts of the documents, such as 3/16; each part can run on another machine.",
        show_default=False,
    ),
]


@with_defaults(RUN_DEFAULTS)
@tunable
@on_engine
def enrich(
    index: Index,
    *,
    check: CheckTexts = False,
    since: options.Since = None,
    all: All = False,
    new_only: NewOnly = False,
    query: options.Query = None,
    slice: Slice = None,
    max_chars: options.MaxChars = DEFAULT_MAX_CHARS,
    in_cluster: InCluster = False,
    **run: Unpack[RunOptions],
) -> EnrichReport:
    """Add keys to all documents, by partial updates. Can be run again at any time, also after it was killed.

    Documents get a fingerprint if they have none of the index's scheme, or if their text has changed.

    Documents that any client has written since the last run are read (`es_neardupe.index.storage.change_feed`). If it
    is unknown which these are, all documents are read, and the report says why (``scope.reread``). ``new_only`` skips
    those that have a fingerprint instead (``scope.unnoticed``), and so does ``since=(field, date)``, except those whose
    date field is at or after the date. ``check`` reads all documents: fingerprints that no longer match the text are
    renewed. ``all`` writes every fingerprint again.
    ``query`` limits the run to the documents of a query (query DSL), and ``slice=(3, 16)`` to the third of 16 disjoint
    parts of them, so that several machines can work at once. ``slices`` parts are read at a time.
    New indices of a data stream or of an alias with a write index get the fields and settings of the others.
    ``in_cluster``: the server makes the keys itself, by a script, after it was shown to make the same ones; no text is
    read (`es_neardupe.index.on_server.in_cluster`).
    ``tune``: see `tunable`. A dry run returns its first ``show_requests`` write requests. Only the ``neardupe`` fields
    are written. To resume a killed run, start it again.

    >>> report = news.enrich()
    >>> report.scope.documents, report.writes.written
    (9, 9)
    """
    from es_neardupe.candidates.detection import unsuited_lengths
    from es_neardupe.candidates.unprepared import unfit_texts
    from es_neardupe.index.index import opened
    from es_neardupe.index.index_on_workers import enrich_slices
    from es_neardupe.index.mapping import check_range_field
    from es_neardupe.index.on_server.in_cluster import enrich_in_cluster
    from es_neardupe.index.permissions import check_sees_all, check_updates
    from es_neardupe.index.runs.lease import held
    from es_neardupe.index.storage.interface import EnrichRequest, Send
    from es_neardupe.report_parts import EnrichReport, EnrichScope, FingerprintWrites
    from es_neardupe.server.bulk import pretend
    from es_neardupe.server.dry_run import DryRunClient

    workers, batch, progress = run["workers"], run["batch"], run["progress"]
    dry_run, show_requests = run["dry_run"], run["show_requests"]
    started = time.monotonic()
    if slice is not None and (why := _wrong_slice(*slice)) is not None:
        raise SettingsError(why)
    _check_one_of(new_only=new_only, check=check, all=all, since=since is not None)
    if run["engine"] is not None and (slice is not None or show_requests):
        raise SettingsError(
            f"{option('engine')} and {option('slice' if slice else 'show_requests')} are given: omit one of them."
        )
    _check_together(
        in_cluster=in_cluster,
        slice=slice is not None,
        slices=run["slices"] is not None,
        engine=run["engine"] is not None,
        all=all,
        workers=workers != RUN_DEFAULTS["workers"],
        max_chars=max_chars != DEFAULT_MAX_CHARS,
        max_load=index.server.pace.share(1)[1] is not None,
        show_requests=show_requests > 0,
    )
    dry_client = DryRunClient(index.client, show_requests, dry_run=dry_run)
    index = opened(index.through(dry_client) if dry_run else index, adopting=True, writes=not dry_run)
    _check_index(index, new_only=new_only, in_cluster=in_cluster)
    check_sees_all(index, "enriching")
    prepared = index.target.new
    if not dry_run:
        index.storage.check_writable()
        check_updates(index, "enriching")
        index.storage.prepare_rolled_over()
        index = index.with_target(replace(index.target, new=()))
    if since is not None:
        check_range_field(index.documents, since[0])
    send: Send = partial(index.documents.write, batch=batch, workers=1 if dry_run else workers, versions=True)
    if dry_run and not show_requests:
        send = pretend
    request = EnrichRequest(query, check, since, all, max_chars, dry_run, slice, run["slices"], new_only)
    # Whole documents replace what another run has written since they were read, unless it has raised their version.
    alone = index.settings.versions is Versions.EXTERNAL and not (dry_run or index.target.inherits)
    with held(index, "enrich", progress=progress) if alone else nullcontext():
        if in_cluster:
            done = enrich_in_cluster(index, request, batch=batch, progress=progress)
        else:
            on_workers = None if index.engine is None else partial(enrich_slices, index, index.engine, batch, workers)
            done = index.storage.write_fingerprints(request, send, progress, on_workers)
        if not dry_run and (done.tally.counts["read"] or done.tally.counts["removed"]):
            index.documents.refresh()
        mirrored = index.storage.write_group_ids(batch=batch, workers=workers, dry_run=dry_run)
    counted = done.tally.counts
    unprepared, unsuited = unfit_texts(index, 0 if in_cluster else counted["written"])
    return EnrichReport(
        index=index.name,
        scheme=index.scheme_id,
        prepared=prepared,
        scope=EnrichScope(
            documents=done.before["scope"],
            excluded=done.before["everything"] - done.before["scope"],
            skipped=done.before["skipped"],
            current=None if slice is not None else done.current,
            slice=None if slice is None else f"{slice[0]}/{slice[1]}",
            read=counted["read"],
            changed=counted["changed"],
            reread=done.reread,
            unnoticed=done.unnoticed,
        ),
        writes=FingerprintWrites.of(
            done.tally, mirrored=mirrored, states=dict(done.states), numeric=counted["numeric"]
        ),
        removed=counted["removed"],
        unprepared=unprepared,
        unsuited=unsuited_lengths(index.settings, done.lengths) if dry_run and done.lengths else unsuited,
        dry_run=dry_run,
        seconds=time.monotonic() - started,
        requests=dry_client.shown,
    )


def _check_one_of(**given: bool) -> None:
    """Raise `SettingsError` if several of these options are given."""
    names = list(given)
    for place in range(len(names)):
        _check_together(**{name: given[name] for name in names[place:]})


def _check_together(**given: bool) -> None:
    """Raise `SettingsError` if the first of these options is given together with another one."""
    (first, is_given), *others = given.items()
    if is_given and (other := next((name for name, also in others if also), None)):
        raise SettingsError(f"{option(first)} and {option(other)} are given: omit one of them.")


def _check_index(index: Index, *, new_only: bool, in_cluster: bool) -> None:
    """Raise an error for an option that does not suit the storage of the opened index."""
    if new_only and index.storage.sidecars:
        raise SettingsError(
            f"{option('new_only')} has no effect on {index.name}, whose keys are in a sidecar index: its changes are "
            f"known."
        )
    if in_cluster and index.storage.sidecars:
        raise IndexUnusable(
            f"The server cannot make the keys of {index.name}, which are in a sidecar index: run "
            f"`{command('enrich', index.name)}` without --in-cluster."
        )
    if in_cluster and index.settings.versions is Versions.EXTERNAL:
        raise IndexUnusable(
            f"The server would raise the versions of the documents of {index.name}, which another system sets: run "
            f"`{command('enrich', index.name)}` without --in-cluster."
        )
