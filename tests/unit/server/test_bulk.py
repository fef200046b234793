"""Bulk writes, with faults that a server does not produce on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import tenacity
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import FakeClient

from es_neardupe.errors import Blocked, Forbidden, InputError, RequestError, Unreachable
from es_neardupe.records import Action, Outcome
from es_neardupe.server import bulk
from es_neardupe.server.bulk import chunked, pretend, write
from es_neardupe.server.client import to_json
from es_neardupe.server.login.settings import Retries
from es_neardupe.server.pacing import PART_RETRIES, retrying

REFUSED = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}}
UNAVAILABLE = {"status": 503, "error": {"type": "unavailable_shards_exception", "reason": "no primary"}}
NO_MASTER = {"status": 503, "error": {"type": "cluster_block_exception", "reason": "no master"}}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "PART_RETRIES", Retries(wait=0))


def actions(number: int, text: str = "x") -> list[Action]:
    return [Action("index", "i", f"d{k}", {"text": text, "n": k}) for k in range(number)]


def sent(client: FakeClient) -> list[list[str]]:
    """The ids of each request."""
    return [[next(iter(head.values()))["_id"] for head, _ in request] for request in client.bulks]


def sizes(number: int, batch: int) -> list[int]:
    """The sizes of the requests: a quarter of a batch, then twice as many each time, then full ones."""
    found, maximum = [], (batch + 3) // 4
    while number:
        found.append(min(number, maximum))
        number, maximum = number - found[-1], min(2 * maximum, batch)
    return found


@given(st.integers(0, 30), st.integers(1, 7), st.integers(1, 4))
def test_every_action_once_and_in_order(number: int, batch: int, workers: int) -> None:
    client = FakeClient()
    made = actions(number)
    outcomes = list(write(client, iter(made), batch=batch, workers=workers))
    assert outcomes == [Outcome(action, 200) for action in made]
    assert sorted(len(request) for request in client.bulks) == sorted(sizes(number, batch))
    assert sorted(id for request in sent(client) for id in request) == sorted(action.id for action in made)


def test_lines() -> None:
    client = FakeClient()
    made = [
        Action("update", "i", "é", {"doc": {"a": "\ud800"}}, "r", 0, 1),
        Action("create", "i", "2", {"text": "ä"}, pipeline="_none"),
        Action("index", "i", "3", {}),
    ]
    assert all(outcome.done for outcome in write(client, made))
    assert client.bulks == [
        [
            (
                {"update": {"_index": "i", "_id": "é", "routing": "r", "if_seq_no": 0, "if_primary_term": 1}},
                {"doc": {"a": "\ud800"}},
            ),
            ({"create": {"_index": "i", "_id": "2", "pipeline": "_none"}}, {"text": "ä"}),
            ({"index": {"_index": "i", "_id": "3"}}, {}),
        ]
    ]


def test_cut_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is over the limit, except with a single action that is; no action is split."""
    monkeypatch.setattr(bulk, "MAX_BYTES", 1000)
    sizes = [10, 300, 300, 300, 5000, 10, 10, 900, 900, 1]
    made = [Action("index", "i", f"d{k}", {"text": "é" * (size // 2)}) for k, size in enumerate(sizes)]
    client = FakeClient()
    assert [outcome.action for outcome in write(client, made, workers=1)] == made
    for request, size in zip(client.bulks, client.bulk_bytes, strict=True):
        assert size <= 1000 or len(request) == 1
    lengths = [len(to_json({"index": {"_index": "i", "_id": one.id}})) + len(to_json(one.body)) + 2 for one in made]
    assert sum(client.bulk_bytes) == sum(lengths)
    for first, second in zip(client.bulk_bytes, client.bulks[1:], strict=False):
        head, body = second[0]
        assert first + len(to_json(head)) + len(to_json(body)) + 2 > 1000  # no request is sent before it is full


@pytest.mark.parametrize("refusal", [REFUSED, UNAVAILABLE, NO_MASTER])
def test_refused_items_are_sent_again_each_for_itself(refusal: dict[str, Any]) -> None:
    tries: dict[str, int] = {}
    client = FakeClient()

    def answer(op: str, meta: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        tries[meta["_id"]] = tries.get(meta["_id"], 0) + 1
        return refusal if tries[meta["_id"]] <= body["n"] else {"status": 201}

    client.answer = answer
    made = actions(5)  # the k-th is rejected k times
    outcomes = list(write(client, made, workers=1))
    assert outcomes == [Outcome(action, 201) for action in made]
    assert sent(client) == [[f"d{k}" for k in range(first, 5)] for first in range(5)]


def test_refused_for_ever() -> None:
    client = FakeClient()
    client.answer = lambda op, meta, body: REFUSED
    with pytest.raises(RequestError, match=r"keeps rejecting.*continues where it stopped") as caught:
        list(write(client, actions(3), workers=1))
    assert caught.value.status == 429
    *before, (other,) = sent(client)  # a small write shows that the server is overloaded
    assert before == [["d0", "d1", "d2"]] * PART_RETRIES.attempts
    assert other not in ("d0", "d1", "d2")


def rejects(client: FakeClient, ids: set[str], *, writes: bool = True) -> None:
    """Documents are rejected for themselves; other ``writes`` are accepted, and updates of other documents too."""

    def answer(op: str, meta: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        if meta["_id"] in ids or not writes:
            return REFUSED
        return {"status": 404, "error": {"type": "document_missing_exception"}} if op == "update" else {"status": 201}

    client.answer = answer


@pytest.mark.parametrize("number", [1, 5, 40])
@pytest.mark.parametrize("ids", [{"d0"}, {"d0", "d3", "d4"}])
def test_documents_that_are_refused_for_themselves(number: int, ids: set[str]) -> None:
    """They are outcomes with their reason; the run continues."""
    client = FakeClient()
    rejects(client, ids)
    made = actions(number)
    for action, outcome in zip(made, write(client, made, batch=8, workers=2), strict=True):
        assert outcome.action == action
        if action.id in ids:
            assert (outcome.status, outcome.type, outcome.reason) == (429, "es_rejected_execution_exception", "full")
        else:
            assert outcome.done
    most = max(sum(id == one for request in sent(client) for one in request) for id in ids)
    assert most >= PART_RETRIES.attempts


def test_the_test_write_goes_to_the_same_shard_and_changes_nothing() -> None:
    client = FakeClient()
    rejects(client, {"d0"})
    list(write(client, [Action("index", "i", "d0", {}), Action("index", "i", "d1", {})], workers=1))
    ((head, body),) = [line for request in client.bulks for line in request if "update" in line[0]]
    assert (head["update"]["_index"], head["update"]["routing"], body) == ("i", "d0", {"doc": {}})
    assert head["update"]["_id"] not in ("d0", "d1")


def test_an_unavailable_shard_is_no_property_of_a_document() -> None:
    client = FakeClient()
    rejects(client, set())
    accepted = client.answer
    client.answer = lambda op, meta, body: UNAVAILABLE if meta["_id"] == "d2" else accepted(op, meta, body)
    with pytest.raises(RequestError, match="keeps rejecting"):
        list(write(client, actions(5), workers=1))


def test_overload_that_begins_later_ends_the_run() -> None:
    """Accepted documents do not prove that the server still accepts writes."""
    client = FakeClient()
    rejects(client, set())
    outcomes = write(client, actions(100), batch=8, workers=1)
    assert next(outcomes).done
    rejects(client, set(), writes=False)
    with pytest.raises(RequestError, match="keeps rejecting"):
        list(outcomes)


def test_large_documents_are_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that wait for an answer have a limited size in total."""
    monkeypatch.setattr(bulk, "MAX_BYTES", 1000)
    client, taken, most = FakeClient(), 0, 0

    def large() -> Iterator[Action]:
        nonlocal taken, most
        for k in range(20):
            taken += 1
            most = max(most, taken - sum(len(request) for request in client.bulks))
            yield Action("index", "i", f"d{k}", {"text": "x" * 5000})

    assert sum(1 for _ in write(client, large(), workers=2)) == 20
    assert most <= 3


def test_waits_grow_and_differ() -> None:
    wait = retrying(PART_RETRIES).wait
    state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})
    waits = []
    for attempt in range(1, PART_RETRIES.attempts):
        state.attempt_number = attempt
        waits.append([wait(state) for _ in range(200)])
    assert all(0 <= one <= 20 for several in waits for one in several)
    assert len(set(waits[0])) > 100
    assert max(waits[0]) <= 0.5 < max(waits[-1])


@pytest.mark.parametrize(
    ("answer", "flags"),
    [
        ({"status": 200}, (True, False, False)),
        ({"status": 201}, (True, False, False)),
        ({"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "x"}}, (False, True, False)),
        ({"status": 404, "error": {"type": "document_missing_exception", "reason": "x"}}, (False, False, True)),
        ({"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "x"}}, (False, False, False)),
        ({"status": 400, "error": {"type": "strict_dynamic_mapping_exception"}}, (False, False, False)),
    ],
)
def test_outcomes(answer: dict[str, Any], flags: tuple[bool, bool, bool]) -> None:
    client = FakeClient()
    client.answer = lambda op, meta, body: answer if meta["_id"] == "d1" else {"status": 200}
    before, outcome, after = write(client, actions(3))
    assert before.done
    assert after.done
    assert (outcome.done, outcome.conflict, outcome.gone) == flags
    error = answer.get("error", {})
    assert (outcome.status, outcome.type, outcome.reason) == (
        answer["status"],
        error.get("type", ""),
        error.get("reason", ""),
    )
    assert len(client.bulks) == 1


@pytest.mark.parametrize(
    ("type_", "status", "kind", "words"),
    [
        ("cluster_block_exception", 403, Blocked, "Index i is blocked for writing"),
        ("cluster_block_exception", 429, Blocked, "Remove the block"),  # a full disk
        ("security_exception", 403, Forbidden, "may not write to index i"),
    ],
)
def test_fatal_items(type_: str, status: int, kind: type[RequestError], words: str) -> None:
    """They end the run at once, without retries, and report their status."""
    client = FakeClient()
    client.answer = lambda op, meta, body: {"status": status, "error": {"type": type_, "reason": "because"}}
    taken = []

    def endless() -> Iterator[Action]:
        for k in range(10_000):
            taken.append(k)
            yield Action("index", "i", str(k), {})

    with pytest.raises(kind, match=words) as caught:
        list(write(client, endless(), batch=10, workers=2))
    assert (caught.value.status, caught.value.type, caught.value.reason) == (status, type_, "because")
    assert len(taken) < 200
    assert len(client.bulks) < 20


class Gate(FakeClient):
    """Counts requests in flight. None is answered before there were as many at a time as are ``expected``."""

    def __init__(self, expected: int = 1) -> None:
        super().__init__()
        self.expected, self.changed, self.now, self.maximum = expected, threading.Condition(), 0, 0

    def bulk(self, body: bytes, *, params: Any = None, before: Any = None) -> Any:
        with self.changed:
            self.now += 1
            self.maximum = max(self.maximum, self.now)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.maximum >= self.expected, timeout=60)
        answer = super().bulk(body)
        with self.changed:
            self.now -= 1
        return answer


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_are_the_requests_under_way(workers: int) -> None:
    client = Gate(workers)
    made = actions(200)
    assert [outcome.action for outcome in write(client, made, batch=2, workers=workers)] == made
    assert client.maximum == workers


def test_actions_are_taken_only_as_fast_as_they_are_written() -> None:
    """Memory is bounded: only a few batches for each worker are read ahead."""
    client = Gate()
    taken = []

    def noting() -> Iterator[Action]:
        for action in actions(400):
            taken.append(action)
            yield action

    written = 0
    for _ in write(client, noting(), batch=4, workers=2):
        written += 1
        assert len(taken) <= written + 4 * (3 * 2 + 2)
    assert written == 400


def test_closed_early() -> None:
    """Submitted actions may still be written; no more are consumed, and no thread is left."""
    client = Gate()
    taken = []

    def noting() -> Iterator[Action]:
        for action in actions(1000):
            taken.append(action)
            yield action

    before = {*threading.enumerate()}
    outcomes = write(client, noting(), batch=5, workers=2)
    first = next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]  # a generator
    assert first.done
    assert len(taken) < 60
    assert before >= {*threading.enumerate()}  # so nothing can be taken or written any more


def test_errors_of_the_connection_end_the_run() -> None:
    class Dead(FakeClient):
        def bulk(self, body: bytes, *, params: Any = None, before: Any = None) -> Any:
            if len(self.bulks) == 3:
                raise Unreachable("gone")
            return super().bulk(body)

    client = Dead()
    outcomes: list[Outcome] = []
    with pytest.raises(Unreachable, match="gone"):
        outcomes.extend(write(client, actions(100), batch=5, workers=1))
    assert [outcome.action.id for outcome in outcomes] == [f"d{k}" for k in range(2 + 4 + 5)]


def test_errors_of_the_source_end_the_run_after_what_was_sent() -> None:
    def broken() -> Iterator[Action]:
        yield from actions(12)
        raise InputError("line 13")

    client = FakeClient()
    with pytest.raises(InputError, match="line 13"):
        list(write(client, broken(), batch=5, workers=1))
    sent_sizes = [len(request) for request in client.bulks]
    assert sent_sizes == [2, 4, 5][: len(sent_sizes)]  # waiting requests are not sent any more


def test_what_is_no_json_is_refused_before_it_is_sent() -> None:
    client = FakeClient()
    with pytest.raises(InputError, match="JSON"):
        list(write(client, [Action("index", "i", "1", {"x": float("nan")})]))
    assert client.bulks == []


def test_only_what_is_needed_is_asked_of_the_answer() -> None:
    asked = []

    class Asked(FakeClient):
        def bulk(self, body: bytes, *, params: Any = None, before: Any = None) -> Any:
            asked.append(params)
            return super().bulk(body)

    list(write(Asked(), actions(1)))
    assert asked == [{"filter_path": "errors,items.*.status,items.*.error.type,items.*.error.reason"}]


def test_pretend_and_chunked() -> None:
    made = actions(3)
    assert list(pretend(made)) == [Outcome(action, 200) for action in made]
    assert list(chunked(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(chunked([], 3)) == []
    assert json.loads(to_json({"a": 1})) == {"a": 1}
