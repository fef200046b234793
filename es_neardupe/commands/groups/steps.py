"""Steps of ``groups``: the members of groups with their shown fields, and the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from es_neardupe import options
from es_neardupe.groups.read import Group
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import ShownFields, read_shown_fields, shown_fields
from es_neardupe.tables import Cell, Table, Tabular


class GroupsReport(list[Group], Tabular):
    """Groups, largest first."""

    def __init__(self, found: Iterable[Group], names: Sequence[str]) -> None:
        """``names``: the fields to show of all members."""
        super().__init__(found)
        self._names = tuple(names)

    def table(self) -> Table:
        """A row for each member of each group, the principal first."""
        columns: dict[str, type] = {"group": str, "size": int, "min_similarity": float}
        columns |= {"diameter": int, "weakest": float, "principal_index": str, "principal_id": str}
        columns |= {"index": str, "id": str, "is_principal": bool, "similarity": float}
        columns |= {f"fields_{name}": str for name in self._names}
        return Table(columns, self._rows())

    def _rows(self) -> Iterator[tuple[Cell, ...]]:
        for one in self:
            known = (None, None) if one.known is None else (one.known.diameter, one.known.weakest)
            head = (one.group, one.size, one.min_similarity, *known, *(one.principal or (None, None)))
            for member in one.members:
                document = (member.index, member.id, member.address == one.principal, member.similarity)
                yield *head, *document, *map(member.fields.get, self._names)


def with_titles(index: Index, found: list[Group], fields: options.TitleFields = ()) -> list[Group]:
    """Some groups of an index with the ``fields`` to show of their principals, not of other members."""
    index = opened(index, groups=True)
    shown = shown_fields(index, fields)
    principals = [replace(one, members=one.members[:1]) for one in found]
    titled = with_fields(index, principals, shown)
    return [replace(one, members=(*head.members, *one.members[1:])) for one, head in zip(found, titled, strict=True)]


def with_fields(index: Index, found: list[Group], shown: ShownFields) -> list[Group]:
    """The groups with shown fields of all their members."""
    values = read_shown_fields(index, shown, [member.reference for one in found for member in one.members])
    return [
        replace(one, members=tuple(replace(two, fields=values.get(two.address, {})) for two in one.members))
        for one in found
    ]
