"""The application that a page belongs to: its address, its index, and who decides there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, quote, urlencode

from es_neardupe.display_text import Located, named
from es_neardupe.groups.decisions import Decision
from es_neardupe.index.index import Index

_PAGES = {
    "/group": frozenset({"id", "start", "reference", "reference_index"}),
    "/compare": frozenset({"a", "a_index", "b", "b_index"}),
    "/document": frozenset({"id", "index"}),
}
"""The pages on which reviewers decide, with what their addresses have."""


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

    @staticmethod
    def form_value(document: Located, content: str) -> str:
        """The value by which a form names a document: ``CONTENT INDEX ID``, with the content hash that the reviewer
        sees. The id is percent-encoded, because browsers send line breaks as others."""
        return f"{content} {document.index} {quote(document.id, errors='replace')}"

    def link(self, path: str, **values: object) -> str:
        """The address of a page. Empty values and None are omitted; a list is repeated."""
        given = {name: value for name, value in values.items() if value not in (None, "", [])}
        return f"{self.root}{path}" + (f"?{urlencode(given, doseq=True, errors='replace')}" if given else "")

    def back_link(self, page: str, group: str, **values: object) -> str:
        """The address of the page that a form was on, which it names by path and query string; otherwise that of the
        group."""
        path, _, query = page.partition("?")
        if path not in _PAGES:
            return self.link("/group", id=group, **values)
        kept = {name: value for name, value in parse_qsl(query, errors="replace") if name in _PAGES[path]}
        return self.link(path, **{**kept, **values})

    def below_root(self, link: str) -> str:
        """The path and query string of a link, without the path below which the application is mounted."""
        return link[len(self.root) :]

    def document_link(self, document: Located) -> str:
        """The address of the page of a document."""
        return self.link("/document", id=document.id, index=document.index)

    def compare_link(self, a: Located, b: Located) -> str:
        """The address of the page of two documents."""
        return self.link("/compare", a=a.id, a_index=a.index, b=b.id, b_index=b.index)
