"""Inline and sidecar storage give the same groups, registries and reports after any changes of documents.

What a run read, and what a run of ``group`` wrote, differs: a sidecar index has no change feed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from server_tools import change, delete_all, hits, living, make_index, new_name, put, words
from sidecar_tools import PROPERTIES, document, plain_report

from es_neardupe import NearDupe
from es_neardupe.index.settings import Settings
from es_neardupe.server.client import Client, path

Step = tuple[str, Any]

Text = tuple[int, str] | str

_IDS = [f"d{number}" for number in range(9)]

_CHANGED = {"": 0, "slightly": 1, "more": 3, "much": 20}
"""Number of words that are replaced in the text of a family."""

_TEXTS: st.SearchStrategy[Text] = st.one_of(
    st.tuples(st.integers(0, 2), st.sampled_from(["", *_CHANGED])),
    st.sampled_from(["", "two words", "1 2 3 4 5 6 7"]),
)
"""Three families of near-duplicates, with copies; and texts without keys, short ones and numbers."""


def _written(text: Text) -> str:
    if isinstance(text, str):
        return text
    family, changed = text
    parts = words(family, 60)
    for number in range(_CHANGED[changed]):
        parts[number * 3] = f"{changed}{number}"
    return " ".join(parts)


def _steps() -> st.SearchStrategy[Step]:
    ids = st.sampled_from(_IDS)
    return st.one_of(
        st.tuples(st.just("put"), st.dictionaries(ids, _TEXTS, min_size=1, max_size=5)),
        st.tuples(st.just("change"), st.tuples(ids, _TEXTS)),
        st.tuples(st.just("retitle"), ids),
        st.tuples(st.just("delete"), ids),
        st.tuples(st.just("enrich"), st.sampled_from([{}, {"all": True}, {"query": {"term": {"source": "a"}}}])),
        st.tuples(st.just("group"), st.sampled_from([{}, {"evidence": True}, {"rebuild": True}])),
    )


_LIFE: list[Step] = [
    ("put", {id: (number % 3, ["", "slightly", "much"][number // 3]) for number, id in enumerate(_IDS)}),
    ("enrich", {}),
    ("group", {}),
    ("change", ("d0", (1, "more"))),
    ("retitle", "d4"),
    ("delete", "d1"),
    ("group", {}),
    ("put", {"d1": (2, ""), "d2": "two words"}),
    ("enrich", {}),
    ("group", {"evidence": True}),
]


@settings(
    max_examples=1,  # after the explicit one
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(history=st.lists(_steps(), min_size=6, max_size=14))
@example(history=_LIFE)
def test_any_history_gives_the_same(client: Client, history: list[Step]) -> None:
    name = new_name()  # of both, one after the other: group ids depend on it
    inline, sidecar = (_observed(client, name, history, sidecar=one) for one in (False, True))
    for (step, one), (_, other) in zip(inline, sidecar, strict=True):
        assert one == other, step


def _observed(client: Client, name: str, history: list[Step], *, sidecar: bool) -> list[tuple[str, Any]]:
    """The visible state of an index after all these changes of documents."""
    try:
        make_index(client, name, PROPERTIES)
        NearDupe(name, client).init(Settings(("text",), sample_mod=2), sidecar=sidecar)
        life = _Life(client, name, sidecar)
        life.put({"d0": (0, ""), "d1": (0, "slightly")})
        for step, what in history:
            getattr(life, step)(what)
        life.put({"d9": (0, "slightly"), "d10": (1, "slightly")})  # the audit takes two
        life.enrich({})
        life.group({})
        life.read()
        return life.observed
    finally:
        delete_all(client, name)


class _Life:
    """Changes of the documents of an index, and its visible state."""

    def __init__(self, client: Client, name: str, sidecar: bool) -> None:
        self.client, self.name = client, name
        self.stored = f"{name}-neardupe-sidecar" if sidecar else name
        self.index = NearDupe(name, client)
        self.there: set[str] = set()
        self.deleted: set[str] = set()
        """Documents deleted since the last `enrich`, which removes them from a sidecar index."""
        self.observed: list[tuple[str, Any]] = []

    def _see(self, what: str, seen: Any) -> None:
        self.observed.append((what, plain_report(seen)))

    def put(self, texts: dict[str, Text]) -> None:
        """New documents, and other texts of known ones. None is written whole before `enrich` has noticed that the
        earlier one with its id is gone: inline it would have lost its group, and in a sidecar index still have it."""
        if not self.deleted.isdisjoint(texts):
            self.enrich({})
        for id in sorted(self.there & texts.keys()):
            self.change((id, texts[id]))
        if new := {id: document(id, _written(text)) for id, text in texts.items() if id not in self.there}:
            put(self.client, self.name, new)
        self.there |= texts.keys()

    def change(self, what: tuple[str, Text]) -> None:
        id, text = what
        if id in self.there:
            change(self.client, self.name, id, {"text": _written(text)})

    def retitle(self, id: str) -> None:
        if id in self.there:
            change(self.client, self.name, id, {"title": "another title"})

    def delete(self, id: str) -> None:
        if id in self.there:
            self.client.request("DELETE", path(self.name, "_doc", id), params={"refresh": True})
            self.there.discard(id)
            self.deleted.add(id)

    def enrich(self, options: dict[str, Any]) -> None:
        report = self.index.enrich(check=True, **options)
        self._see("enrich", replace(report, removed=0, scope=replace(report.scope, changed=0)))
        self.deleted.clear()

    def group(self, options: dict[str, Any]) -> None:
        if self.deleted:
            self.enrich({})
        report = self.index.group(check=True, **options)
        groups = replace(report.groups, looked_at=None)  # type: ignore[arg-type]  # not compared
        self._see("group", [report.scope.documents, groups])
        sources = {hit["_id"]: hit["_source"].get("neardupe", {}) for hit in hits(self.client, self.stored)}
        names = ("group", "principal", "similarity")
        self._see("groups", {id: [sources.get(id, {}).get(name) for name in names] for id in self.there})
        self._see("registry", living(self.client, self.name))

    def read(self) -> None:
        """The state according to the commands that read."""
        everything = {"query": {"match_all": {}}, "sort": ["url"]}
        self._see("stats", self.index.stats())
        self._see("groups", self.index.groups())
        self._see("audit", self.index.audit(sample=20))
        self._see("search", self.index.search(everything, size=20, expand=True))
        for id in sorted(self.there)[:2]:
            self._see(f"similar to {id}", self.index.similar(id=id, min=0.1))
