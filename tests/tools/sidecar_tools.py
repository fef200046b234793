"""Two indices with the same documents: one with inline storage, the other with a sidecar index."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from server_tools import JSON, change, family, hits, make_index, put, versions, words

from es_neardupe import NearDupe
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import own_group
from es_neardupe.server.client import Client, path

PROPERTIES = {
    "title": {"type": "text"},
    "text": {"type": "text"},
    "url": {"type": "keyword"},
    "date": {"type": "date"},
    "source": {"type": "keyword"},
}
_NEVER_THE_SAME = {
    "seconds",
    "at",
    "created",
    "updated",
    "sidecars",
    "bytes_per_document",
    "_grouping",
    "seq_no",
    "primary_term",
}
ROUTED = {"routing": "one"}


def texts(seed: object, number: int) -> dict[str, JSON]:
    """Documents in families of near-duplicates, exact copies, short and empty ones."""
    rng = random.Random(str(seed))
    found: dict[str, JSON] = {}
    while len(found) < number:
        size = rng.choice([1, 1, 2, 3, 5])
        some = family((seed, len(found)), size, length=80, edits=rng.choice([1, 2, 4]))
        some += [some[0]] * rng.choice([0, 0, 1]) + rng.choice([[], [], [""], ["two words"]])
        for text in some:
            id = f"d{len(found):03}"
            found[id] = document(id, text)
    return found


def document(id: str, text: str) -> JSON:
    day = sum(map(ord, id)) % 27 + 1
    name = {"title": f"Text {id}", "url": f"http://example.org/{id}", "source": "ab"[day % 2]}
    return {**name, "text": text, "date": f"2024-05-{day:02}"}


class Both:
    """The two indices, changed and processed in the same way."""

    def __init__(self, client: Client, name: str, **more: Any) -> None:
        self.client = client
        self.inline, self.sidecar = f"{name}-in", f"{name}-si"
        self.ids: set[str] = set()
        for index in self.names:
            make_index(client, index, PROPERTIES, **more)

    @property
    def names(self) -> tuple[str, str]:
        return self.inline, self.sidecar

    def init(self, *, write_group: bool = False, **settings: Any) -> None:
        chosen = Settings(("text",), **settings)
        NearDupe(self.inline, self.client).init(chosen)
        NearDupe(self.sidecar, self.client).init(chosen, sidecar=True, write_group=write_group)

    def put(self, documents: Mapping[str, JSON]) -> None:
        self.ids |= documents.keys()
        for index in self.names:
            put(self.client, index, documents)

    def change(self, id: str, doc: JSON) -> None:
        for index in self.names:
            change(self.client, index, id, doc)

    def delete(self, id: str) -> None:
        for index in self.names:
            self.client.request("DELETE", path(index, "_doc", id), params={"refresh": True})

    def run(self, command: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, Any]:
        """The output of a command for each, with the same names of indices and groups."""
        one, other = (self.same(command(NearDupe(index, self.client), *arguments, **options)) for index in self.names)
        return one, other

    def same(self, report: Any) -> Any:
        """A report without the parts that must differ: names of indices, ids of groups (hashes of these), times."""
        text = json.dumps(_plain(report), sort_keys=True, default=str)
        for id in self.ids:
            for index in self.names:
                text = text.replace(own_group(index, id), f"group of {id}")
        for index in self.names:
            text = text.replace(index, "INDEX")
        return _in_order(json.loads(text))

    def groups(self, index: str) -> dict[str, tuple[tuple[str, int], bool, float]]:
        """The grouping of each document, read without our code."""
        founders = {own_group(index, id, k): (id, k) for id in self.ids for k in range(3)}
        name = index if index == self.inline else f"{index}-neardupe-sidecar"
        stored = {hit["_id"]: hit["_source"]["neardupe"] for hit in hits(self.client, name)}
        return {
            id: (founders[one["group"]], one["principal"], round(one["similarity"], 6)) for id, one in stored.items()
        }


def plain_report(value: Any) -> Any:
    """A report as JSON without times and names of sidecar indices, with sorted lists."""
    return _in_order(_plain(value))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (field.name for field in dataclasses.fields(value))
        return {name: _plain(getattr(value, name)) for name in fields if name not in _NEVER_THE_SAME}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _in_order(value: Any) -> Any:
    """Sort all lists: equal entries are reported in the order of group ids."""
    if isinstance(value, dict):
        return {key: _in_order(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted(map(_in_order, value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def random_changes(both: Both, rng: random.Random, documents: dict[str, JSON], fresh: Iterable[str]) -> None:
    """New documents, changed texts, changes of other fields, and deletions; ``documents`` is updated too."""
    made = {id: document(id, rng.choice([one["text"] for one in documents.values()])) for id in fresh}
    for id, one in made.items():
        if rng.random() < 0.5:
            one["text"] += " " + " ".join(words(id, rng.choice([1, 3, 30])))
    both.put(made)
    for id in rng.sample(sorted(documents), 6):
        kind = rng.choice(["text", "text", "elsewhere", "deleted", "deleted"])
        if kind == "deleted":
            both.delete(id)
            del documents[id]
        else:
            doc = {"text": rng.choice([one["text"] for one in documents.values()])} if kind == "text" else {}
            doc |= {"title": f"changed {rng.random()}"}
            both.change(id, doc)
            documents[id] = {**documents[id], **doc}
    documents |= made


def untouched(client: Client, index: str, before: Any) -> None:
    """The index is unchanged: its documents, their versions, and the mapping."""
    assert state(client, index) == before


def state(client: Client, index: str) -> tuple[Any, Any, Any]:
    found = client.request("GET", path(index, "_mapping"))
    return versions(client, index), {hit["_id"]: hit["_source"] for hit in hits(client, index)}, found
