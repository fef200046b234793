"""``es-neardupe pipeline``: keys of new documents, made by the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import show_first
from es_neardupe.cli.output import ExitCode, print_json, print_table, show, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.pipeline import pipeline as library
from es_neardupe.options import DEFAULT_PREFIX, PipelineAction
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.commands.pipeline.report import PipelineReport


_STATES = {
    "none": "no pipeline: documents get their keys by `{enrich}`",
    "stored": "the pipeline is stored, and other pipelines can call it; the index does not use it by itself",
    "default": "documents get their keys by the default pipeline, unless a request names another one",
    "final": "documents get their keys by the final pipeline",
    "partly": "only some of its indices have the pipeline: run `{pipeline} install` with --default or --final again",
    "outdated": "the pipeline is not that of the present settings: run `{pipeline} install`, then `{enrich}`",
    "missing": "an index names a pipeline that does not exist, so the server rejects its documents: if it is one of "
    "es-neardupe, `install` stores it again, and `remove` removes the setting",
}


@with_options_of(library)
def pipeline(
    index: IndexName,
    action: Annotated[
        PipelineAction, typer.Argument(metavar="ACTION", help="show, install, check or remove.")
    ] = PipelineAction.SHOW,
    *,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    `install` first compares the keys that the server makes with those of this program, and stores nothing if they
    differ. Without --default or --final, other pipelines can call the stored one.

    Examples:

      es-neardupe pipeline news install --default

      es-neardupe pipeline news check

      es-neardupe pipeline news remove
    """

    report = library(open_index(index, prefix), action, **given)
    result(report)
    if as_json:
        print_json(report)
    else:
        _show(report)
        show_first(report.requests)
    for name, users in report.kept.items():
        warn(f"Pipeline {name} was not deleted. It is still used by: {', '.join(users)}.")
    if action is PipelineAction.CHECK and (report.different or report.state in ("none", "missing", "outdated")):
        raise typer.Exit(ExitCode.FAILED)


def _show(report: PipelineReport) -> None:
    would_be = "would be " if report.dry_run else ""
    if report.action == PipelineAction.SHOW.value:
        rows = [(name, one.default or "none", one.final or "none") for name, one in report.pipelines.items()]
        print_table(["index", "default pipeline", "final pipeline"], rows)
    if report.different:
        show(
            f"{report.different:,} of {counted(report.texts, 'text')} {'gets' if report.different == 1 else 'get'} "
            f"other keys than by this program: {report.difference}. Remove the pipeline, then run "
            f"`{command('enrich', report.index)} --check`."
        )
    elif report.texts:
        show(f"Pipeline {report.pipeline}: the keys of {counted(report.texts, 'text')} are those of this program.")
    if report.changed:
        show(f"Settings of {', '.join(report.changed)} {would_be}changed.")
    for name in report.deleted:
        show(f"Pipeline {name} {would_be}deleted.")
    if not report.dry_run:
        suggested = {word: command(word, report.index) for word in ("enrich", "pipeline")}
        show(f"{report.index}: {_STATES[report.state].format(**suggested)}.")
