"""``pipeline``: documents get their keys from the server when they are indexed, by an ingest pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.options import PipelineAction
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.commands.pipeline.report import PipelineReport
    from es_neardupe.index.index import Index


DefaultPipeline = Annotated[
    bool, typer.Option("--default", help="Make it the default pipeline of the index, for writes that name no other.")
]
FinalPipeline = Annotated[
    bool, typer.Option("--final", help="Make it the final pipeline of the index, which runs after any other.")
]


def pipeline(
    index: Index,
    action: str = "show",
    *,
    default: DefaultPipeline = False,
    final: FinalPipeline = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
) -> PipelineReport:
    """Let the server make the keys of new documents, by an ingest pipeline.

    ``action``: show, install, check or remove this pipeline.

    ``install`` stores it, after it has compared the keys that it makes with those of Python. With ``default`` or
    ``final`` it also sets it as the default or the final pipeline of the index; otherwise an index keeps the role that
    an outdated pipeline of this program has, or another pipeline can call it. ``check`` compares the keys of the stored
    pipeline. ``remove`` changes the settings of the index, then deletes the pipeline, unless something else uses it.
    Each can be repeated. A dry run returns its first ``show_requests`` write requests.

    Raises `IndexUnusable`, `UnsupportedServer` or `SettingsError` if the pipeline cannot be used: nothing is written.

    >>> news.pipeline(action="install").state
    'stored'
    >>> news.pipeline(action="remove").state
    'none'
    """
    from es_neardupe.commands.pipeline.report import PipelineReport
    from es_neardupe.commands.pipeline.steps import Done, check, install, remove
    from es_neardupe.index.index import opened, opened_inline
    from es_neardupe.index.on_server.ingest_pipeline import OwnPipelines
    from es_neardupe.server.dry_run import DryRunClient

    try:
        wanted = PipelineAction(action)
    except ValueError:
        raise SettingsError(f"Unknown action {action!r}: choose {', '.join(PipelineAction)}.") from None
    if (default or final) and wanted is not PipelineAction.INSTALL:
        raise SettingsError(f"{option('default')} and {option('final')} are options of the action install.")
    if default and final:
        raise SettingsError(f"{option('default')} and {option('final')} are given: omit one of them.")
    dry_client = DryRunClient(index.server, show_requests, dry_run=dry_run)
    writer = dry_client if dry_run else index.server
    installs = wanted is PipelineAction.INSTALL
    index = opened_inline(index, "`pipeline install`", writes=True) if installs else opened(index)
    own = OwnPipelines(index)
    done = Done(own.of_indices)
    if installs:
        done = install(own, writer, default=default, final=final)
    elif wanted is PipelineAction.CHECK:
        done = check(own)
    elif wanted is PipelineAction.REMOVE:
        done = remove(own, writer)
    return PipelineReport(
        index=index.name,
        action=wanted.value,
        scheme=index.scheme_id,
        pipeline=own.name,
        state=own.state(done.pipelines, added=done.stored, removed=done.deleted),
        pipelines=done.pipelines,
        texts=done.texts,
        different=len(done.different),
        difference=str(done.different[0]) if done.different else None,
        changed=done.changed,
        deleted=done.deleted,
        kept=done.kept,
        dry_run=dry_run,
        requests=dry_client.shown,
    )
