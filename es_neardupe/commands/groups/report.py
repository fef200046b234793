"""The report of `groups`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from es_neardupe.groups.read import Group
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
