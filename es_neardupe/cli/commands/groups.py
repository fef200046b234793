"""``es-neardupe groups``: the groups of an index, their history, and which documents to keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName, Output
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import options_for, with_options_of
from es_neardupe.cli.messages import rules_of_last_run
from es_neardupe.cli.output import (
    check_output,
    print_json,
    print_lines,
    print_table,
    progress_bars,
    say,
    show,
    value_cells,
    warn,
    write_output,
)
from es_neardupe.commands.groups import group_history
from es_neardupe.commands.groups import groups as library
from es_neardupe.commands.groups import suggest_keep as advice_of
from es_neardupe.display_text import named, score_text
from es_neardupe.errors import NotFound
from es_neardupe.folders import check_file, replacing
from es_neardupe.json_results import group_json
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.commands.groups.keep import KeepAdvice, SuggestKeepReport
    from es_neardupe.groups.read import Group
    from es_neardupe.groups.registry import GroupRecord
    from es_neardupe.index.index import Index


_TOP = 20
"""Groups in a table without ``--top``."""


@with_options_of(library)
def groups(
    index: IndexName,
    *,
    history: Annotated[
        str | None,
        typer.Option(
            "--history", metavar="ID", help="History of one group: merges, splits, statistics.", show_default=False
        ),
    ] = None,
    suggest_keep: Annotated[
        bool, typer.Option("--suggest-keep", help="Suggest which document to keep in each group. Deletes nothing.")
    ] = False,
    keep_policy: options.KeepPolicy = None,
    bulk: Annotated[
        Path | None,
        typer.Option(
            "--bulk",
            help="With --suggest-keep: write a bulk request that deletes the redundant documents. It is not sent.",
            show_default=False,
        ),
    ] = None,
    output: Output = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Examples:

      es-neardupe groups news --top 10

      es-neardupe groups news --json | jq -r '.members[].id'

      es-neardupe groups news --suggest-keep --keep-policy published:asc

      es-neardupe groups news --suggest-keep --bulk redundant.ndjson
    """
    from es_neardupe.commands.groups.steps import with_titles

    fields, top, group, min_size = given["fields"], given["top"], given["group"], given["min_size"]
    if not suggest_keep:
        for option, value in (("--keep-policy", keep_policy), ("--bulk", bulk)):
            if value is not None:
                raise typer.BadParameter(f"{option} requires --suggest-keep.")
    if suggest_keep and given["related"]:
        raise typer.BadParameter("--suggest-keep is about one group, or about all: leave out --related.")
    if suggest_keep and fields:
        raise typer.BadParameter("--suggest-keep shows no fields: leave out --field.")
    if history is not None:
        if suggest_keep or group is not None or top is not None or output is not None or given["related"]:
            raise typer.BadParameter(
                "--history shows one group: leave out --suggest-keep, --group, --related, --top and --output."
            )
        return _show_history(group_history(open_index(index, prefix), history), as_json)
    _check_files(output, bulk)
    opened = open_index(index, prefix)
    if suggest_keep:
        with progress_bars() as progress:
            advice = advice_of(opened, policy=keep_policy, progress=progress, **options_for(advice_of, given))
        _check_found(advice, index, group, min_size)
        return _give_advice(advice, output, bulk, as_json)
    whole = as_json or output is not None or group is not None
    found = library(opened, **{**given, "fields": fields if whole else None})
    _check_found(found, index, group, min_size)
    if as_json:
        print_lines(group_json(one) for one in found)
    if output is not None:
        write_output(output, found.table())
    elif group is not None and not as_json and not given["related"]:
        _show_group(found[0])
    elif not as_json:
        shown = found if top is not None or group is not None else found[:_TOP]
        _show_all(with_titles(opened, shown, fields) if found else [], len(found), opened, min_size)
    return None


def _show_all(shown: list[Group], number: int, index: Index, min_size: int) -> None:
    """Print the groups shown, of a ``number`` of all."""
    if not number:
        creates = "" if rules_of_last_run(index) else f" `{command('group', index.name)}` creates groups."
        show(f"No group has {min_size} or more documents.{creates}")
        return
    show_groups(shown)
    if len(shown) < number:
        say(
            f"{len(shown):,} of {counted(number, 'group')} {'is' if len(shown) == 1 else 'are'} shown: --top shows "
            f"more, --json all."
        )


def _check_found(found: list[Any], index: str, group: str | None, min_size: int) -> None:
    """Raises `NotFound` if no group has the given id."""
    if group is not None and not found:
        raise NotFound(
            f"Index {index} has no group {group!r} of {min_size} or more documents: `{command('groups', index)}` lists "
            f"the groups.",
            status=404,
            type="group_not_found",
        )


def _show_history(entry: GroupRecord, as_json: bool) -> None:
    if as_json:
        print_json(entry)
        return
    figures = [
        ("documents", entry.size),
        ("  distinct texts", entry.texts),
        ("principal", named(entry.principal, several=True)),
        ("minimum similarity to it", entry.min_similarity),
        ("mean similarity to it", entry.mean_similarity),
        ("pairs of members below the threshold", entry.pairs_below),
        ("  not compared", entry.pairs_not_compared),
        ("grouped by", str(entry.settings or "-")),
    ]
    if entry.weakest is not None:
        figures[-1:-1] = [("maximum steps between two members", entry.diameter), ("weakest bridge", entry.weakest)]
    print_table([f"group {entry.group}", "ended" if entry.ended else ""], figures)
    print_table(["when", "what", "group"], [(one.at, one.event, one.group or "") for one in entry.history])


def _check_files(output: Path | None, bulk: Path | None) -> None:
    """Check that both can be written, before long work."""
    check_output(output)
    if bulk is not None:
        check_file(bulk)


def _give_advice(found: SuggestKeepReport, output: Path | None, bulk: Path | None, as_json: bool) -> None:
    if bulk is not None:
        with replacing(bulk) as file:
            file.writelines(f"{json.dumps(other.delete)}\n" for one in found for other in one.redundant)
        say(f"Wrote {bulk}")
    if as_json:
        print_lines(found)
    if output is not None:
        write_output(output, found.table())
    elif not as_json:
        _show_advice(found)


def _show_advice(found: list[KeepAdvice]) -> None:
    several = len({one.keep.index for one in found} | {other.index for one in found for other in one.redundant}) > 1
    if not found:
        show("No group matches: nothing is redundant.")
        return
    reviewed = any(one.reviewer is not None for one in found)
    rows = [
        (
            one.group,
            named(one.keep, several),
            one.is_principal,
            *([one.reviewer or ""] if reviewed else []),
            "; ".join(named(two, several) for two in one.redundant),
        )
        for one in found
    ]
    print_table(["group", "keep", "is principal", *(["reviewer"] if reviewed else []), "redundant"], rows)
    redundant = sum(len(one.redundant) for one in found)
    say(
        f"{counted(len(found), 'group')}: {counted(len(found), 'document')} to keep, {redundant:,} redundant. Nothing "
        f"was deleted."
    )
    if changed := sum(one.changed for one in found):
        documents = counted(
            changed,
            "document is left out, because its text",
            "documents are left out, because their text",
        )
        warn(f"{documents} is not the one that was grouped, or was deleted.")
    if less := sum(one.less_similar for one in found):
        documents = counted(
            less,
            "document is left out, because it does not match",
            "documents are left out, because they do not match",
        )
        warn(f"{documents} the document to keep.")


def show_groups(found: list[Group], members: int = 5) -> None:
    """Print groups as a table, each with the fields to show of its principal, and with its first members."""
    several = _several(found)
    names = list(dict.fromkeys(name for one in found for name in one.members[0].fields))
    bridges = _bridges(found)
    differing = any(one.other_facts for one in found)
    rows = []
    for one in found:
        everyone = [(named(member, several), member.similarity) for member in one.members]
        principal = "(deleted or hidden)" if one.principal is None else everyone.pop(0)[0]
        fields = {} if one.principal is None else one.members[0].fields
        others = [f"{score_text(similarity)} {name}" for name, similarity in everyone]
        shown = others[:members]
        more = [f"... and {len(others) - len(shown):,} more"] if len(others) > len(shown) else []
        rows.append(
            (
                one.group,
                one.size,
                one.min_similarity,
                *(["yes" if one.other_facts else ""] if differing else []),
                *bridges.get(one.group, ()),
                principal,
                *value_cells(fields, names, 3),
                "; ".join([*shown, *more]),
            )
        )
    heads = ["other facts"] * differing + (["diameter", "weakest bridge"] if bridges else [])
    print_table(["group", "size", "minimum", *heads, "principal", *names, "members, with their similarity to it"], rows)


def _several(found: list[Group]) -> bool:
    """Whether the groups have documents of several indices."""
    return len({member.index for one in found for member in one.members}) > 1


def _bridges(found: list[Group]) -> dict[str, tuple[int | None, float | None]]:
    """Group -> diameter and weakest bridge; empty if no group was linked by chains."""
    known = {one.group: (one.known.diameter, one.known.weakest) if one.known else (None, None) for one in found}
    return known if any(weakest is not None for _, weakest in known.values()) else {}


def _show_group(one: Group) -> None:
    """Print all members of a group as a table."""
    several, names = _several([one]), list(one.members[0].fields)
    rows = [
        (named(member, several), member.similarity, *value_cells(member.fields, names, 2)) for member in one.members
    ]
    heading = f"group {one.group}: {counted(one.size, 'document')}, minimum similarity {score_text(one.min_similarity)}"
    for diameter, weakest in _bridges([one]).values():
        heading += f", diameter {'-' if diameter is None else diameter}"
        heading += f", weakest bridge {'-' if weakest is None else score_text(weakest)}"
    principal = "principal first" if one.principal is not None else "principal deleted or hidden"
    print_table([f"member ({principal})", "similarity to it", *names], rows, title=heading)
