"""Keys of new documents: bulk actions, and records of `load`. No server."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from elasticsearch.helpers.actions import expand_action
from elasticsearch.serializer import JsonSerializer
from hypothesis import given
from hypothesis import strategies as st
from opensearchpy.helpers.actions import expand_action as expand_for_opensearch
from opensearchpy.serializer import JSONSerializer
from unit_tools import AT, SETTINGS, FakeClient, index_of

from es_neardupe.commands.load.records import LoadOptions, LoadRun, load_records
from es_neardupe.commands.load.report import LoadReport
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.incoming import writes
from es_neardupe.incoming.writes import fingerprinted_actions, of_their_own
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import encode, group_of, own_group
from es_neardupe.index.target import IndexTarget
from es_neardupe.index.updates import fingerprint_documents, fingerprint_fields, is_current
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.readers.files import FileRecord, Problem
from es_neardupe.records import Hit

TEXT = "one two three four five six"
AS_GIVEN = LoadOptions()
TWO = Settings(("title", "page.body"), prefix="nd")


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("incoming.writes", "commands.load.records"):
        monkeypatch.setattr(f"es_neardupe.{module}.timestamp", lambda: AT)


def ours(text: str, settings: Settings = SETTINGS, group: str | None = None) -> dict[str, Any]:
    """The neardupe fields of a text, without those that are null."""
    (fingerprint,) = fingerprints([text], settings.scheme)
    fields = {name: value for name, value in encode(fingerprint, AT).items() if value is not None}
    return fields | ({"group": group, "principal": True, "similarity": 1.0} if group else {})


def one(action: dict[str, Any], settings: Settings = SETTINGS, **options: Any) -> dict[str, Any]:
    before = copy.deepcopy(action)
    (made,) = fingerprinted_actions([action], settings, **options)
    assert action == before
    return made


G = own_group("i", "1")


@pytest.mark.parametrize(
    ("action", "document"),
    [
        ({"_index": "i", "_id": "1", "text": TEXT}, {"text": TEXT, "neardupe": ours(TEXT, group=G)}),
        ({"_index": "i", "_id": 1, "_source": {"text": TEXT}}, {"text": TEXT, "neardupe": ours(TEXT, group=G)}),
        (
            {"_op_type": "create", "_index": "i", "_id": "1", "text": TEXT, "routing": "r"},
            {"text": TEXT, "neardupe": ours(TEXT, group=G)},
        ),
        ({"_index": "i", "_id": "1"}, {"neardupe": ours("", group=G)}),
        ({"_index": "i", "_id": "1", "text": "short"}, {"text": "short", "neardupe": ours("short", group=G)}),
        (
            {"_index": "i", "_id": "1", "text": TEXT, "doc": {"a": 1}},  # a field named doc
            {"text": TEXT, "doc": {"a": 1}, "neardupe": ours(TEXT, group=G)},
        ),
        (
            {"_index": "i", "_id": "1", "_source": {"text": TEXT, "doc": {"a": 1}}},
            {"text": TEXT, "doc": {"a": 1}, "neardupe": ours(TEXT, group=G)},
        ),
        (
            {"_index": "i", "_id": "1", "text": TEXT, "neardupe": {"group": "old", "scheme": "v0"}},
            {"text": TEXT, "neardupe": ours(TEXT, group=G)},
        ),
    ],
)
def test_whole_documents(action: dict[str, Any], document: dict[str, Any]) -> None:
    """The drivers' helpers turn an action into the same document with the neardupe fields."""
    made = one(action)
    for expand in (expand_action, expand_for_opensearch):
        head, body = expand(made)
        assert head == expand(action)[0]
        assert body == document


def test_whole_documents_of_an_index_named_apart() -> None:
    assert one({"_id": "1", "text": TEXT}, index="i")["neardupe"]["group"] == G
    assert one({"_index": "j", "_id": "1", "text": TEXT}, index="i")["neardupe"]["group"] == own_group("j", "1")


def test_documents_whose_id_the_server_chooses() -> None:
    """They get a random group id: no two actions have the same."""
    made = [one(action) for action in ({"_index": "i", "text": TEXT}, {"_id": "1", "text": TEXT})]
    groups = [action["neardupe"]["group"] for action in made]
    assert [action["neardupe"] for action in made] == [ours(TEXT, group=group) for group in groups]
    assert [group_of({"group": group}) for group in groups] == groups
    assert len({*groups, G}) == 3


def test_documents_whose_group_id_is_in_use() -> None:
    """They wait for ``group``: the documents of that group must not get a second principal."""
    actions = [{"_index": "i", "_id": id, "text": TEXT} for id in "12"]
    first, other = fingerprinted_actions(actions, SETTINGS, choose_groups=of_their_own({G}.intersection))
    assert first["neardupe"] == ours(TEXT) | {"group": G}
    assert other["neardupe"] == ours(TEXT, group=own_group("i", "2"))


WAITS = {"numeric": None, "principal": None, "similarity": None}


@pytest.mark.parametrize(
    ("document", "added"),
    [
        ({"title": "a", "page": {"body": "b"}}, ours("a\nb", TWO) | WAITS),
        ({"page.body": "b", "title": "a"}, ours("a\nb", TWO) | WAITS),
        ({"title": None, "page": {"body": "b"}, "n": 1}, ours("b", TWO) | WAITS),
        ({"title": "a"}, {"scheme": None}),
        ({"page": {"body": None}}, {"scheme": None}),
        ({"n": 1}, None),
        ({"page": {"n": 1}}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_updates(document: dict[str, Any], added: dict[str, Any] | None, inside: bool) -> None:
    """All fields: new keys, and the group stays. Some: the old keys are marked as stale. None: no change."""
    action: dict[str, Any] = {"_op_type": "update", "_index": "i", "_id": "1"}
    action |= {"_source": {"doc": document}} if inside else {"doc": document, "retry_on_conflict": 3}
    made = one(action, TWO)
    for expand in (expand_action, expand_for_opensearch):
        head, body = expand(made)
        before, plain = expand(action)
        assert head == before
        assert isinstance(plain, dict)
        assert body == {**plain, "doc": document | ({} if added is None else {"nd": added})}


@pytest.mark.parametrize(
    "action",
    [
        {"_op_type": "delete", "_index": "i", "_id": "1"},
        {"_op_type": "update", "_index": "i", "_id": "1", "script": {"source": "ctx._source.n++"}},
        {"_op_type": "update", "_index": "i", "_id": "1", "script": "x", "upsert": {"text": TEXT}},
        {"_op_type": "update", "_index": "i", "_id": "1", "doc": None},
    ],
)
def test_other_actions_pass(action: dict[str, Any]) -> None:
    assert one(action) == action


def test_order_and_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[dict[str, Any]] = [
        {"_id": "a", "text": TEXT},
        {"_op_type": "delete", "_id": "b"},
        {"_op_type": "update", "_id": "c", "doc": {"text": "x " + TEXT}},
        {"_id": "d", "_source": {"text": {"no": "text"}}},
        {"_op_type": "create", "text": ""},
        {"_id": "e", "text": TEXT * 9},
    ]
    actions = [{**kinds[(k * 5 + k // 7) % 6], "n": k} for k in range(50)]
    monkeypatch.setattr("es_neardupe.index.updates.random_group", lambda: "r" * 16)
    whole = list(fingerprinted_actions(iter(actions), SETTINGS, index="i", max_chars=100))
    assert [action["n"] for action in whole] == list(range(50))
    for size in (1, 2, 7, 50):
        monkeypatch.setattr(writes, "_CHUNK", size)
        assert list(fingerprinted_actions(iter(actions), SETTINGS, index="i", max_chars=100)) == whole
    by_id = {action.get("_id"): action for action in whole}
    assert by_id["a"]["neardupe"]["state"] == "signed"
    assert by_id["e"]["neardupe"]["state"] == "too_large"


def test_it_is_a_stream() -> None:
    """At most one chunk is read before the first action is returned."""
    taken = []

    def endless() -> Any:
        while True:
            taken.append(1)
            yield {"_id": str(len(taken)), "text": TEXT}

    made = fingerprinted_actions(endless(), SETTINGS, index="i")
    next(made)
    assert len(taken) == writes._CHUNK


TEXTS = st.sampled_from([TEXT, TEXT.upper(), "short", "", "漢字 かな", {"no": "text"}, None, 5, ["a b c", "d e f"]])


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_enrich_finds_nothing_to_do(texts: list[Any]) -> None:
    """Documents are indexed with the fields that ``enrich`` would write, except those that are null."""
    actions = [{"_id": str(k), "text": text} for k, text in enumerate(texts)]
    for action, made in zip(actions, fingerprinted_actions(actions, SETTINGS, index="i"), strict=True):
        plain = Hit("i", action["_id"], None, 1, 1, {"text": action["text"]})
        (document,) = fingerprint_documents([[plain]], SETTINGS, 10_000, in_use=lambda ids: ())
        enriched = fingerprint_fields(document, SETTINGS, AT)
        at_once = made["neardupe"]
        assert {name: value for name, value in enriched.items() if value is not None} | {"at": 0} == at_once | {"at": 0}
        indexed = Hit("i", action["_id"], None, 1, 1, {"text": action["text"], "neardupe": at_once})
        (again,) = fingerprint_documents([[indexed]], SETTINGS, 10_000)
        assert is_current(again, SETTINGS)


# -- load --------------------------------------------------------------------------------------------------------------


def load(
    records: Sequence[FileRecord | Problem],
    settings: Settings = SETTINGS,
    how: LoadOptions = AS_GIVEN,
    **run: Any,
) -> tuple[LoadReport, FakeClient, list[Problem]]:
    client, found = FakeClient(), list[Problem]()
    target = IndexTarget("i", ("i",), settings, 10_000)
    report = load_records(index_of(client, target), records, how, LoadRun(on_problem=found.append, **run))
    assert (
        report.scope.read
        == report.writes.written
        + report.scope.existing
        + report.scope.bad
        + report.scope.duplicates
        + report.writes.refused
    )
    return report, client, found


def written(client: FakeClient) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [pair for request in client.bulks for pair in request]


def test_load() -> None:
    records: list[FileRecord | Problem] = [
        FileRecord("f:1", "1", {"id": 1, "text": TEXT}),
        Problem("f:2", "invalid JSON"),
        FileRecord("f:3", "1", {"text": "again"}),
        FileRecord("f:4", None, {"text": None}),
        FileRecord("f:5", "5", {"other": "x"}),
        FileRecord("stdin:6", None, {"text": "x"}, place_is_id=False),
    ]
    report, client, found = load(records)
    assert (report.scope.read, report.writes.written, report.scope.bad, report.scope.duplicates) == (6, 2, 3, 1)
    assert report.writes.states == {"signed": 1, "empty": 1}
    assert [(one.place, one.why.split(":")[0]) for one in found] == [
        ("f:2", "invalid JSON"),
        ("f:3", "duplicate id '1'"),
        ("f:5", "no field 'text'"),
        ("stdin:6", "no field 'id'"),
    ]
    assert found[2].why.endswith("(has 'other')")
    assert written(client) == [
        (
            {"create": {"_index": "i", "_id": "1"}},
            {"id": 1, "text": TEXT, "neardupe": ours(TEXT, group=own_group("i", "1"))},
        ),
        (
            {"create": {"_index": "i", "_id": "f:4"}},
            {"text": None, "neardupe": ours("", group=own_group("i", "f:4"))},
        ),
    ]
    assert next(iter(written(load(records, how=LoadOptions(replace=True))[1])[0][0])) == "index"


@pytest.mark.parametrize("action", [5, "text", None, ("index", {})])
def test_actions_are_dicts(action: Any) -> None:
    with pytest.raises(SettingsError, match="An action must be a dict, as for the bulk helpers of the clients, not"):
        list(fingerprinted_actions([{"_id": "1", "text": TEXT}, action], SETTINGS, index="i"))


@pytest.mark.parametrize("serializer", [JsonSerializer(), JSONSerializer()])
@pytest.mark.parametrize(
    "value",
    [
        (TEXT, "seven"),
        (TEXT, (1, 2.5)),
        Decimal("1.50"),
        datetime(2026, 1, 2, 3, 4),
        date(2026, 1, 2),
        UUID(int=5),
        np.int64(5),
        np.float32(0.5),
        np.array([1, 2]),
        [date(2026, 1, 2), TEXT],
    ],
)
def test_values_that_the_drivers_serialise(value: Any, serializer: Any) -> None:
    """The keys are those of the document that is stored, also of a field in an object and in a tuple of objects."""
    for field, document in {
        "text": {"text": value},
        "page.body": {"page": {"body": value}},
        "pages.body": {"pages": ({"body": value}, {"body": TEXT})},
    }.items():
        settings = Settings((field,))
        stored = json.loads(serializer.dumps(document))
        actions = [{"_id": "1", **source} for source in (document, stored)]
        made, again = (action["neardupe"] for action in fingerprinted_actions(actions, settings, index="i"))
        assert made == again
        assert made["state"] != "failed"


def test_load_equals_fingerprinted() -> None:
    texts = [TEXT, "short", "", {"no": "text"}, "x" * 101]
    records = [FileRecord(f"f:{k}", str(k), {"text": text}) for k, text in enumerate(texts)]
    _, client, _ = load(records, how=LoadOptions(max_chars=100))
    actions = [{"_id": str(k), "text": text} for k, text in enumerate(texts)]
    made = fingerprinted_actions(actions, SETTINGS, index="i", max_chars=100)
    assert [body["neardupe"] for _, body in written(client)] == [action["neardupe"] for action in made]


@pytest.mark.parametrize(
    ("source", "loaded"),
    [
        ({"body": "b"}, {"page": {"body": "b"}}),
        ({"body": "b", "page": {"n": 1}}, {"page": {"n": 1, "body": "b"}}),
        ({"body": "b", "page": None}, {"page": {"body": "b"}}),
        ({"body": "b", "page": {"body": "there"}}, None),
        ({"body": "b", "page": "text"}, None),
        ({"body": "b", "page": [1]}, None),
        ({"text": "b"}, None),
    ],
)
def test_text_field_goes_to_a_dotted_field(source: dict[str, Any], loaded: dict[str, Any] | None) -> None:
    """An existing value is not overwritten, and the record is not changed."""
    before = copy.deepcopy(source)
    report, client, found = load(
        [FileRecord("f:1", "1", source)], Settings(("page.body",)), LoadOptions(text_field="body")
    )
    assert source == before
    if loaded is None:
        assert (report.scope.bad, len(found), client.bulks) == (1, 1, [])
    else:
        ((_, body),) = written(client)
        assert {name: value for name, value in body.items() if name != "neardupe"} == loaded
        assert body["neardupe"]["state"] == "short"


def test_strict_stops() -> None:
    with pytest.raises(InputError, match=r"f:2: invalid JSON\."):
        load([FileRecord("f:1", "1", {"text": "x"}), Problem("f:2", "invalid JSON")], strict=True)
    with pytest.raises(InputError, match="duplicate id"):
        load([FileRecord("f:1", "1", {"text": "x"}), FileRecord("f:2", "1", {"text": "x"})], strict=True)


def test_dry_run_and_refusals() -> None:
    report, client, _ = load([FileRecord("f:1", "1", {"text": TEXT})], dry_run=True)
    assert (report.writes.written, report.writes.states, client.bulks) == (1, {"signed": 1}, [])
    answers: dict[str, dict[str, Any]] = {
        "1": {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "x"}},
        "2": {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "bad"}},
        "3": {"status": 201},
    }
    client = FakeClient()
    client.answer = lambda op, meta, body: answers[meta["_id"]]
    records = [FileRecord(f"f:{k}", str(k), {"text": TEXT}) for k in (1, 2, 3)]
    report = load_records(index_of(client, IndexTarget("i", ("i",), SETTINGS, 10000)), records)
    assert (report.scope.read, report.scope.existing, report.writes.refused, report.writes.written) == (3, 1, 1, 1)
    assert report.writes.refusals == ("mapper_parsing_exception: bad",)
    with pytest.raises(InputError, match="resolves to 2 indices"):
        load_records(index_of(client, IndexTarget("i*", ("i1", "i2"), SETTINGS, 10000)), records)


@pytest.mark.parametrize("op", ["index", "create", "update"])
@pytest.mark.parametrize(
    "value", [{"nd": "mine"}, {"nd": {"note": 1}}, {"nd.note": 1}, {"story": ["x", "y"]}, {"story": "S1"}]
)
def test_values_of_an_application_stay(value: dict[str, Any], op: str) -> None:
    document = {"text": TEXT, **value}
    action = {"_op_type": op, "_index": "i", "_id": "1"} | ({"doc": document} if op == "update" else document)
    assert one(action, Settings(("text",), prefix="nd", group_field="story")) == action


@pytest.mark.parametrize("op", ["index", "create", "update"])
@pytest.mark.parametrize("text", ["text", "title"])
def test_dotted_names_become_an_object(op: str, text: str) -> None:
    """With two values of the group id, the server does not collapse."""
    documents = [{text: TEXT, "n": 1, **more} for more in ({"neardupe.group": "g", "neardupe.tokens": 6}, {})]
    actions = [
        {"_op_type": op, "_index": "i", "_id": "1", **({"doc": one} if op == "update" else {"_source": one})}
        for one in documents
    ]
    flat, plain = (one(action, Settings(("text", "title"))) for action in actions)
    assert flat == plain
