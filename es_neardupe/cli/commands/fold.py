"""``es-neardupe fold``: one hit of each group in ordinary searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import show_first
from es_neardupe.cli.output import ask, print_json, print_table, say, show, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.fold import fold as library
from es_neardupe.options import DEFAULT_PREFIX, FoldAction
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.commands.fold.report import FoldReport


_READERS = """\
This changes what every reader of the index gets, unless its request has the parameter search_pipeline=_none:
- _update_by_query, _delete_by_query and _reindex process only one document of each group, without an error.
- _reindex has no such parameter: remove the pipeline before.
- Exports by scroll or point in time miss documents, without an error.
- hits.total and aggregations still count all documents; `from` counts documents too, so groups appear on several pages.
- A page can have fewer hits than `size`: only the first {oversample} x `size` hits are folded.
- A page beyond the result window ({oversample} x `size` over index.max_result_window) is rejected.
- A search that returns its hits without {field} (by _source or stored_fields) gets one hit only.
- A search with its own `collapse` is rejected; with search_pipeline=_none, its inner hits are still folded."""

_STATES = {
    "folded": "folded: searches return one hit of each group",
    "not folded": "not folded",
    "unused": "not folded, but its search pipeline is stored: run `{fold} install` or `{fold} remove`",
    "partly": "only some of its indices are folded: run `{fold} install` again",
    "missing": "an index names a search pipeline that does not exist, so searches fail: if it is one of es-neardupe, "
    "`install` stores it again, and `remove` removes the setting",
    "other": "an index has a default search pipeline that is not of es-neardupe",
    "unsupported": "not folded: this server has no pipelines that fold; docs/collapse.md has requests that collapse",
}


@with_options_of(library)
def fold(
    index: IndexName,
    action: Annotated[FoldAction, typer.Argument(metavar="ACTION", help="show, install or remove.")] = FoldAction.SHOW,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    `install` asks for confirmation, because it changes what every reader of the index gets.

    Examples:

      es-neardupe fold news

      es-neardupe fold news install --oversample 10

      es-neardupe fold news remove
    """

    opened = open_index(index, prefix)
    installs = action is FoldAction.INSTALL
    if installs and not (yes or given["dry_run"]):
        preview = library(opened, action, oversample=given["oversample"], dry_run=True)
        if preview.changed:
            _say_readers(preview, given["oversample"])
            ask(f"Fold all searches of {index}?", abort=True)
    report = library(opened, action, **given)
    result(report)
    if as_json:
        print_json(report)
        return
    _show(report)
    show_first(report.requests)
    if installs and (yes or given["dry_run"]) and report.changed:
        _say_readers(report, given["oversample"])


def _say_readers(report: FoldReport, oversample: int) -> None:
    for line in _READERS.format(oversample=oversample, field=report.group_field).splitlines():
        say(line)


def _show(report: FoldReport) -> None:
    done = "would be " if report.dry_run else ""
    if report.changed:
        kind = "set" if report.action == FoldAction.INSTALL.value else "removed"
        show(f"Default search pipeline of {', '.join(report.changed)} {done}{kind}.")
    elif report.action == FoldAction.SHOW.value:
        print_table(["index", "default search pipeline"], [(n, p or "none") for n, p in report.pipelines.items()])
    else:
        show("Nothing to do.")
    if not report.dry_run:
        show(f"{report.index}: {_STATES[report.state].format(fold=command('fold', report.index))}.")
    if report.state in ("folded", "partly") and report.without_group:
        warn(
            f"{report.without_group:,} of {counted(report.documents, 'document')} "
            f"{'has' if report.without_group == 1 else 'have'} no value in {report.group_field}: one hit stands for "
            f"all of them. Run `{command('enrich', report.index)}`."
        )
