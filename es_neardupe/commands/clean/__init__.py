"""``clean``: removes the fields, hidden indices and settings of es-neardupe from an index."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.progress import Progress, silent

if TYPE_CHECKING:
    from es_neardupe.commands.clean.report import CleanReport
    from es_neardupe.index.index import Index


CleanDecisions = Annotated[
    bool, typer.Option("--decisions", help="Also delete the decisions of reviewers, which are kept otherwise.")
]


def clean(
    index: Index,
    *,
    workers: options.Workers = 2,
    batch: options.Batch = 500,
    decisions: CleanDecisions = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
    progress: Progress = silent,
) -> CleanReport:
    """Remove keys and groups from all documents, and the settings from the mapping.

    The object field and the copy of the group id are removed from every document, the hidden indices are deleted, and
    the settings are removed from ``_meta``.

    A server with scripts removes the field itself. Without scripts, each document is written back as a whole without
    the field, unless it changed in the meantime; ingest pipelines are bypassed. A sidecar index is deleted; its
    documents lose only their group ids, if these were written. The decisions of reviewers are kept, unless
    ``decisions`` is given: they cannot be made again by a program. Afterwards ``init`` accepts other settings. Of an
    index without settings and without a sidecar index, only the fields that documents have got since are removed; of
    this one, and of one that was deleted, hidden indices that were left are deleted. Another command that runs at the
    same time stops when the settings are removed. A dry run returns its first ``show_requests`` write requests.

    >>> report = news.clean()
    >>> report.documents, report.writes.written
    (9, 9)
    """
    from es_neardupe.commands.clean.report import CleanReport
    from es_neardupe.commands.clean.steps import (
        Cleaning,
        check_callers,
        check_migration,
        delete,
        is_clean,
        is_in_template,
        left_in_mapping,
        of_former,
        opened_with_keys,
        remove_folding,
        remove_pipelines,
        remove_settings,
        without_settings,
    )
    from es_neardupe.groups.decisions import Decisions
    from es_neardupe.index.hidden_indices import HiddenIndex, find
    from es_neardupe.index.on_server.ingest_pipeline import OwnPipelines
    from es_neardupe.index.permissions import check_may_delete, check_sees_all, check_updates
    from es_neardupe.index.runs.tuning import restore_abandoned, tuned_mappings
    from es_neardupe.report_parts import WriteCounts
    from es_neardupe.server.dry_run import DryRunClient

    started = time.monotonic()
    dry_client = DryRunClient(index.client, show_requests, dry_run=dry_run)
    kinds = [kind for kind in HiddenIndex if decisions or kind is not HiddenIndex.DECISIONS]
    if is_clean(index):
        index = without_settings(index)
        former = of_former(index, kinds)
        if not dry_run:
            check_may_delete(index.server, former)
            delete(index.server, *former)
        return CleanReport(
            index=index.name,
            prepared=bool(former),
            documents=0,
            writes=WriteCounts(written=0),
            deleted_indices=(*former,),
            kept_decisions=0,
            unfolded=(),
            deleted_pipelines=(),
            mapped=left_in_mapping(index),
            template=is_in_template(index),
            dry_run=dry_run,
            seconds=time.monotonic() - started,
        )
    check_migration(index)
    index = opened_with_keys(index)
    plain = index.server
    check_sees_all(index, "cleaning")
    sidecars = index.storage.sidecars
    hidden = [name for kind in kinds if (name := find(index, kind)) is not None]
    decided = sum(Decisions(index).totals().values())
    cleaning = Cleaning(index, batch, workers, progress)
    own = OwnPipelines(index)
    check_callers(own)
    deleted: tuple[str, ...] = (*hidden, *sidecars)
    if dry_run:
        deleted_pipelines = remove_pipelines(own, dry_client)
        unfolded = remove_folding(index, dry_client)
        cleaning.dry_run(dry_client)
        delete(dry_client, *sidecars)
    else:
        check_may_delete(plain, [*hidden, *sidecars])
        index.storage.check_writable()
        check_updates(index, "cleaning", whole=cleaning.rewrites_documents)
        restore_abandoned(plain, tuned_mappings(index), progress)
        deleted_pipelines = remove_pipelines(own, plain)  # first: it would make keys again
        unfolded = remove_folding(index, plain)  # first: documents without a group fold into one hit
        cleaning.run()
        if cleaning.writes.left:
            deleted = ()
        else:
            remove_settings(index, kinds)
            cleaning.run()  # what other runs have written meanwhile
    return CleanReport(
        index=index.name,
        prepared=True,
        documents=cleaning.total,
        writes=cleaning.writes,
        deleted_indices=deleted,
        kept_decisions=0 if decisions else decided,
        unfolded=unfolded,
        deleted_pipelines=deleted_pipelines,
        mapped=left_in_mapping(index),
        template=is_in_template(index),
        dry_run=dry_run,
        seconds=time.monotonic() - started,
        requests=dry_client.shown,
    )
