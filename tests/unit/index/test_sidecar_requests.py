"""How requests are split between documents and sidecar entries; no server is needed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.errors import Forbidden, NotInitialised, SettingsError
from es_neardupe.index import queries
from es_neardupe.index.index import Index, opened
from es_neardupe.index.mapping import Fields
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.sidecar import queries as sidecar_queries
from es_neardupe.index.storage.sidecar.entries import _taken_over, redirect_bulk
from es_neardupe.index.storage.sidecar.indices import REFERENCE, sidecar_name
from es_neardupe.index.storage.sidecar.queries import (
    FieldLocation,
    change_parts,
    ids_clause,
    location_of,
    mentions,
    relaxed,
    rename_indices,
    split_source,
    uses_entries,
    without_entry,
    without_skipped_relations,
)
from es_neardupe.index.target import IndexTarget
from es_neardupe.records import Address, Hit

P = "neardupe"
FIELDS = Fields(P)
SCOPE = {"term": {"source": "a"}}
KEYS = {"term": {"neardupe.scheme": "v1"}}

Doc = dict[str, Any]
Query = dict[str, Any]

ALL: Query = {"match_all": {}}


@pytest.mark.parametrize(
    ("query", "location"),
    [
        (ALL, FieldLocation.NONE),
        ({"ids": {"values": ["1"]}}, FieldLocation.NONE),
        ({"term": {"_index": "news"}}, FieldLocation.NONE),
        (SCOPE, FieldLocation.DOCUMENTS),
        ({"term": {"tag": "neardupe"}}, FieldLocation.DOCUMENTS),  # a value, not a field
        ({"exists": {"field": "neardupe.group"}}, FieldLocation.ENTRIES),
        ({"query_string": {"query": "body:neardupe"}}, FieldLocation.DOCUMENTS),
        (queries.stale(FIELDS, "v1"), FieldLocation.ENTRIES),
        (queries.stale(FIELDS, "v1", SCOPE), FieldLocation.BOTH),
        (queries.candidates(FIELDS, ["k"], size=1, scope=SCOPE)["query"], FieldLocation.BOTH),
        (queries.sample(queries.fingerprinted(FIELDS, "v1"), 5, 1)["query"], FieldLocation.ENTRIES),
        (queries.others(None, Address("news", "1")), FieldLocation.NONE),
        (queries.others(SCOPE, Address("news", "1")), FieldLocation.DOCUMENTS),
    ],
)
def test_where_the_fields_of_a_query_are(query: Query, location: FieldLocation) -> None:
    assert location_of(query, P) is location


def test_queries_that_cannot_be_split_are_refused() -> None:
    with pytest.raises(SettingsError, match="dis_max"):
        location_of({"dis_max": {"queries": [KEYS, SCOPE]}}, P)
    with pytest.raises(SettingsError, match="75%"):
        without_entry({"bool": {"should": [KEYS, SCOPE], "minimum_should_match": "75%"}}, P)


@pytest.mark.parametrize(
    ("source", "split"),
    [
        (None, ([P], True)),
        (True, ([P], True)),
        (False, (False, False)),
        (["text"], (False, ["text"])),
        (["text", "neardupe.group"], (["neardupe.group"], ["text"])),
        (["neardupe"], (["neardupe"], False)),
        (["neardupery"], (False, ["neardupery"])),
    ],
)
def test_split_source(source: Any, split: Any) -> None:
    assert split_source(source, P) == split


def test_searches_that_use_entries() -> None:
    assert uses_entries({"query": ALL, "aggs": {"x": {"terms": {"field": "neardupe.scheme"}}}}, P)
    assert not uses_entries({"query": SCOPE, "aggs": {"x": {"terms": {"field": "source"}}}}, P)


def test_the_request_for_candidates_in_scope() -> None:
    query = queries.candidates(FIELDS, ["key00001"], size=5, scope=SCOPE)["query"]
    ids = ids_clause([Address("news", "1"), Address("news", "2")], {"news": "news-neardupe-sidecar"})
    made = change_parts(
        query, P, lambda part, _: ids if location_of(part, P) is FieldLocation.DOCUMENTS else dict(part)
    )
    assert made == {
        "bool": {
            "should": [{"constant_score": {"filter": {"term": {"neardupe.bands": "key00001"}}}}],
            "minimum_should_match": 1,
            "filter": [
                {
                    "bool": {
                        "should": [
                            {
                                "bool": {
                                    "filter": [
                                        {"term": {"_index": "news-neardupe-sidecar"}},
                                        {"ids": {"values": ["1", "2"]}},
                                    ]
                                }
                            }
                        ],
                        "minimum_should_match": 1,
                    }
                }
            ],
        }
    }
    assert relaxed(query, P)["bool"]["filter"] == [ALL]
    assert ids_clause([]) == {"match_none": {}}


def test_documents_without_an_entry() -> None:
    assert without_entry(queries.stale(FIELDS, "v1"), P) is True
    assert without_entry(queries.stale(FIELDS, "v1", SCOPE), P) == {"bool": {"filter": [SCOPE], "must_not": []}}
    assert without_entry(queries.fingerprinted(FIELDS, "v1"), P) is False
    assert without_entry(queries.ungrouped(FIELDS, "v1"), P) is False


def test_entries_are_not_searched_for_relations_that_have_none() -> None:
    target = IndexTarget("news", ("news",), Settings(("text",)), 10_000, skipped_relations={"kind": ("answer",)})
    scoped, bare = queries.stale(FIELDS, "v1", target.within(SCOPE)), queries.stale(FIELDS, "v1", target.within())
    assert location_of(without_skipped_relations(bare, target), P) is FieldLocation.ENTRIES
    assert not mentions(without_skipped_relations(scoped, target), "kind")
    assert mentions(without_skipped_relations(scoped, target), "source")


class _SidecarForbidden:
    """A server where a user may read an index, but not its sidecar index."""

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        if path in ("/news", "/news/_mapping"):
            return {"news": {"aliases": {}, "mappings": {}, "settings": {}}}
        assert path == "/news-neardupe-sidecar/_mapping"
        if params:  # unavailable indices are ignored, including forbidden ones
            return {}
        raise Forbidden("no", status=403)


def test_the_error_names_a_sidecar_index_that_may_not_be_read() -> None:
    client: Any = _SidecarForbidden()
    with pytest.raises(NotInitialised, match=r"first\. If it has a sidecar index: .* news-neardupe-sidecar"):
        opened(Index("news", client))


def test_names() -> None:
    assert sidecar_name("news", "neardupe") == "news-neardupe-sidecar"
    assert sidecar_name("news", "Old") == "news-old-sidecar"
    hidden = sidecar_name(".ds-logs-000001", "neardupe")
    assert hidden.startswith("neardupe-sidecar-ds-logs-000001-")
    assert hidden != sidecar_name("ds-logs-000001", "neardupe") == "neardupe-sidecar-ds-logs-000001"
    assert sidecar_name("a日本", "neardupe") == "a-204783b0-neardupe-sidecar"
    query = {"bool": {"filter": [{"term": {"_index": "a"}}], "must_not": [{"terms": {"_index": ["a", "x"]}}]}}
    there = {"bool": {"filter": [{"term": {"_index": "b"}}], "must_not": [{"terms": {"_index": ["b", "x"]}}]}}
    assert rename_indices(query, {"a": "b"}) == there


def test_writes_go_to_the_sidecar_index() -> None:
    lines: list[dict[str, Any]] = [{"update": {"_index": "a", "_id": "\ud800"}}, {"doc": {P: {"group": "g"}}}]
    lines += [{"delete": {"_index": "a", "_id": "2"}}, {"index": {"_index": "other", "_id": "3"}}, {"x": "\n"}]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    made = [json.loads(line) for line in redirect_bulk(body, {"a": "sidecar"}, unmark=True).splitlines()]
    lines[0]["update"]["_index"] = lines[2]["delete"]["_index"] = "sidecar"
    lines[1]["doc"]["@source"] = {"mirrored": False}
    assert made == lines


def _queries() -> st.SearchStrategy[Query]:
    """Queries over entry fields and document fields, nested in all supported ways."""
    leaves = st.sampled_from(
        [
            *({"term": {f"neardupe.{name}": 1}} for name in "ab"),
            *({"term": {name: 1}} for name in "xy"),
            ALL,
            {"match_none": {}},
        ]
    )
    return st.recursive(leaves, _compound, max_leaves=8)


def _compound(inner: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
    some = st.lists(inner, max_size=3)
    bools = st.tuples(some, some, some, st.integers(1, 2)).map(
        lambda parts: {
            "bool": {
                "filter": parts[0],
                "must_not": parts[1],
                **({"should": parts[2], "minimum_should_match": parts[3]} if parts[2] else {}),
            }
        }
    )
    return bools | inner.map(lambda one: {"constant_score": {"filter": one}})


def _matches(query: Query, doc: Doc) -> bool:
    """Whether a document matches, as a server evaluates it; an independent implementation."""
    ((kind, inner),) = query.items()
    if kind == "term":
        ((field, value),) = inner.items()
        return bool(doc.get(field) == value)
    if kind == "constant_score":
        return _matches(inner["filter"], doc)
    if kind == "bool":
        should = sum(_matches(one, doc) for one in inner.get("should", []))
        return (
            all(_matches(one, doc) for one in inner.get("filter", []))
            and not any(_matches(one, doc) for one in inner.get("must_not", []))
            and should >= inner.get("minimum_should_match", 0)
        )
    return kind == "match_all"


_FIELDS = ["neardupe.a", "neardupe.b", "x", "y"]
_DOCS = [{field: 1 for bit, field in enumerate(_FIELDS) if number >> bit & 1} for number in range(16)]


@given(_queries())
def test_a_split_query_matches_the_same_documents(query: Query) -> None:
    def answered(part: Query, doc: Doc) -> Query:
        """The index answers with ids: this document is among them or not."""
        if location_of(part, P) is not FieldLocation.DOCUMENTS:
            return part
        return ALL if _matches(part, doc) else {"match_none": {}}

    rest, bare = relaxed(query, P), without_entry(query, P)
    for doc in _DOCS:
        made = change_parts(query, P, lambda part, _, doc=doc: answered(dict(part), doc))  # type: ignore[misc]  # mypy infers no type
        assert _matches(made, {k: v for k, v in doc.items() if k.startswith(P)}) == _matches(query, doc)
        assert _matches(rest, doc) or not _matches(query, doc)
        if not any(field.startswith(P) for field in doc):
            assert (bare if isinstance(bare, bool) else _matches(bare, doc)) == _matches(query, doc)


def test_one_id_more_than_the_maximum_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it is noticed that there are too many."""
    addresses = [Address("i", f"{number}") for number in range(9)]
    monkeypatch.setattr(sidecar_queries, "MAX_IDS", 3)
    monkeypatch.setattr(sidecar_queries, "addresses_of", lambda documents, query: iter(addresses))
    documents: Any = None  # what reads them is replaced
    assert list(sidecar_queries._first(documents, ALL)) == addresses[:4]


@pytest.mark.parametrize(
    ("group", "seq_no", "mirrored"), [("g", 5, True), ("g", 4, False), ("another", 5, False), (None, None, False)]
)
def test_an_entry_that_is_taken_over_stays_mirrored_in_the_same_version(
    group: str | None, seq_no: int | None, mirrored: bool
) -> None:
    reference = {"index": "i", "id": "d", "seq_no": 5, "primary_term": 1, "mirrored": False}
    hit = Hit("sidecar", "d", None, 1, 1, {"old": {"group": "g"}, REFERENCE: reference})
    before: Doc = {"new": {"group": group}, REFERENCE: {**reference, "seq_no": seq_no, "mirrored": True}}
    found = _taken_over(hit, "old", before if group else {}, "new")
    assert found == {"new": {"group": "g"}, REFERENCE: {**reference, "mirrored": mirrored}}
    assert _taken_over(replace(hit, source={"old": {"group": "g"}}), "old", before, "new") is None
