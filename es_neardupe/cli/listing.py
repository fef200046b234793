"""The command that lists what `group` wrote: groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from es_neardupe.cli.options import AsJson, IndexName, Prefix, connected
from es_neardupe.cli.output import named, print_lines, print_table, show
from es_neardupe.clients import Client
from es_neardupe.pipeline import groups as groups_
from es_neardupe.pipeline.groups import Group
from es_neardupe.settings import DEFAULT_PREFIX

__all__ = ["register", "show_groups"]


def groups(
    client: Client,
    index: IndexName,
    *,
    min_size: Annotated[int, typer.Option(min=2, help="Least number of documents.")] = 2,
    top: Annotated[int | None, typer.Option(min=1, help="Groups shown, largest first.", show_default="all")] = None,
    group: Annotated[str | None, typer.Option("--group", help="One group by its id.", show_default=False)] = None,
    prefix: Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
) -> None:
    """List the groups of two or more documents, largest first.

    Examples:

      es-neardupe groups news --top 10

      es-neardupe groups news --json | jq -r '.members[].id'
    """
    found = groups_(client, index, min_size=min_size, top=top, group=group, prefix=prefix)
    if as_json:
        print_lines(_group_lines(found))
    elif found:
        show_groups(found, members=5 if group is None else None)
    elif group is not None:
        show(f"There is no group {group!r} of {min_size} or more documents.")
    else:
        show(f"There is no group of {min_size} or more documents. `es-neardupe group {index}` makes them.")


def show_groups(found: list[Group], members: int | None = 5) -> None:
    """Print groups as a table, each with its first members."""
    several = len({member.index for one in found for member in one.members}) > 1
    rows = []
    for one in found:
        everyone = [(named(member.address, several), member.similarity) for member in one.members]
        principal = "(deleted)" if one.principal is None else everyone.pop(0)[0]
        others = [f"{similarity:.4f} {name}" for name, similarity in everyone]
        shown = others[:members]
        more = [f"... and {len(others) - len(shown):,} more"] if len(others) > len(shown) else []
        rows.append((one.group, one.size, one.min_similarity, principal, "; ".join([*shown, *more])))
    print_table(["group", "size", "minimum", "principal", "members, with their similarity to it"], rows)


def _group_lines(found: list[Group]) -> Iterator[dict[str, Any]]:
    """Groups as the documented JSON; members name their index only where several indices are involved."""
    indices = {member.index for one in found for member in one.members}
    for one in found:
        members = [
            {"id": member.id, "similarity": member.similarity} | ({"index": member.index} if len(indices) > 1 else {})
            for member in one.members
        ]
        line = {
            "group": one.group,
            "principal": one.principal,
            "size": one.size,
            "min_similarity": one.min_similarity,
            "members": members,
        }
        if len(indices) > 1 and one.principal is not None:
            line["principal_index"] = one.members[0].index
        yield line


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connected(groups))
