"""The application that a page belongs to: its address, its index, and who decides there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

from es_neardupe.display_text import Located, named
from es_neardupe.groups.decisions import Decision
from es_neardupe.index.index import Index

_OF_A_GROUP = frozenset({"start", "reference", "reference_index"})
"""What the address of a page of a group has besides the group."""


@dataclass(frozen=True)
class Site:
    """The application that a page belongs to."""

    root: str
    """The path below which it is mounted; empty: at the root of the server."""
    index: str
    csrf: str
    """The token that each form that changes something must carry."""
    reviewer: str
    """The name under which decisions are stored."""
    by_login: bool = False
    """The reviewer has logged in, and cannot enter another name or sign out here."""
    several: bool = False
    """Whether the index is an alias or a pattern of several indices, in which documents may have the same ids."""

    def of(self, index: Index) -> Site:
        """The application for an opened index."""
        return replace(self, several=len(index.target.indices) > 1)

    def name(self, document: Located) -> str:
        """The id of a document; with its index, if there are several."""
        return named(document, self.several)

    def names(self, decisions: Sequence[Decision]) -> str:
        """Decisions that were stored together, in a few words; "" for none."""
        if not decisions:
            return ""
        documents = dict.fromkeys(address for one in decisions for address in one.documents)
        names = [self.name(one) for one in documents]
        more = len(names) - 2
        listed = " and ".join(names) if more <= 0 else f"{names[0]}, {names[1]} and {more:,} more"
        return f"{decisions[0].verdict.value}: {listed}"

    def link(self, path: str, **values: object) -> str:
        """The address of a page. Empty values and None are omitted; a list is repeated."""
        given = {name: value for name, value in values.items() if value not in (None, "", [])}
        return f"{self.root}{path}" + (f"?{urlencode(given, doseq=True, errors='replace')}" if given else "")

    def group_link(self, group: str, page: str, **values: object) -> str:
        """The address of the page of a group that has this query string: the same documents, reference and order."""
        kept = {name: value for name, value in parse_qsl(page, errors="replace") if name in _OF_A_GROUP}
        return self.link("/group", **{**kept, "id": group, **values})

    def compare_link(self, a: Located, b: Located) -> str:
        """The address of the page of two documents."""
        return self.link("/compare", a=a.id, a_index=a.index, b=b.id, b_index=b.index)
