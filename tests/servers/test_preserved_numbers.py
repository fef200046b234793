"""Numbers that a partial update would change: all commands leave the values of other fields as they are.

The oracle is the index itself, read without our code: the literals are parsed as decimals.
"""

from __future__ import annotations

import json
import logging
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from elasticsearch import Elasticsearch
from fault_proxy import BULK, Fault, FaultProxy, lost_answer, short_waits
from opensearchpy import OpenSearch
from server_tools import JSON, family, make_index, ours

from es_neardupe import NearDupe, Settings, log_events
from es_neardupe.errors import Conflict, RequestError, Unreachable
from es_neardupe.records import Product
from es_neardupe.server.client import Before, Client, ForwardingClient, path
from es_neardupe.server.connect import connect, wrap
from es_neardupe.server.login.settings import ConnectionSettings, Retries
from es_neardupe.server.numbers import UnheldNumber, loads
from es_neardupe.server.search import refresh

SETTINGS = Settings(("text",))
MAPPING: JSON = {
    "text": {"type": "text"},
    "keyword": {"type": "keyword"},
    "number": {"type": "double"},
    "disabled": {"type": "object", "enabled": False},
}
CHANGED = (
    *("1E400", "-1E400", "1e-400", "0.12345678901234567890123", "1.7976931348623158e308", "2e-324"),
    *("9007199254740993.0", "123456789.123456789", "18446744073709551616.5", "1e400000"),
)
SAME = (
    *("9223372036854775808", "-9223372036854775809", "18446744073709551616", "123456789012345678901234567890"),
    *("1.10", "-0.0", "-0", "1e5", "1E+5", "1e23", "0.1", "0.30000000000000004", "1.7976931348623157e308", "0e400"),
)
LITERALS = (*CHANGED, *SAME)


def source(literal: str, text: str, ours: str = "") -> str:
    """A document with the literal in fields of every kind; only a mapped number must be a finite float."""
    number = "0.12345678901234567890123" if literal in CHANGED else "1.50"
    return (
        f'{{"text":{json.dumps(text)},"keyword":{literal},"unmapped":[{{"deep":[{literal}]}}],'
        f'"disabled":{{"inside":{literal}}},"number":{number}{ours}}}'
    )


def send(client: Client, lines: list[str], **params: str) -> JSON:
    answer: JSON = client.bulk(("\n".join(lines) + "\n").encode(), params={"refresh": "true", **params})
    assert not answer["errors"], answer
    return answer


def fill(client: Client, index: str, literals: tuple[str, ...] = LITERALS, **mapping: Any) -> None:
    """Near-duplicates, each with another literal."""
    make_index(client, index, {**MAPPING, **mapping.pop("properties", {})}, dynamic=False, **mapping)
    lines = []
    for (number, literal), text in zip(enumerate(literals), family(index, len(literals)), strict=True):
        lines += [json.dumps({"index": {"_index": index, "_id": str(number)}}), source(literal, text)]
    send(client, lines)
    NearDupe(index, client).init(SETTINGS)


def values(url: str, index: str) -> dict[str, Any]:
    """The other fields of all documents."""
    refresh_request = urllib.request.Request(f"{url}/{index}/_refresh", method="POST")
    urllib.request.urlopen(refresh_request).close()
    try:
        opened = urllib.request.urlopen(f"{url}/{index}/_search?size=1000&_source_exclude_vectors=false")
    except urllib.error.HTTPError:  # a server that never leaves vectors out
        opened = urllib.request.urlopen(f"{url}/{index}/_search?size=1000")
    with opened as answer:
        found = json.loads(answer.read(), parse_float=Decimal, parse_int=Decimal)["hits"]["hits"]
    assert found
    return {
        hit["_id"]: {name: one for name, one in hit["_source"].items() if not name.startswith("neardupe")}
        for hit in found
    }


def enriched(client: Client, index: str) -> set[str]:
    """The ids of the documents with our fields."""
    return {id for id, stored in ours(client, index).items() if stored}


def wrapped(client: Client, url: str) -> Client:
    """A connection through a client of the user, which reads JSON in its own way."""
    elasticsearch = client.server.product is Product.ELASTICSEARCH
    return wrap(Elasticsearch(url) if elasticsearch else OpenSearch(url))


@pytest.mark.parametrize(
    "scripted",
    [
        pytest.param(False, marks=pytest.mark.product("each")),
        pytest.param(True, marks=pytest.mark.product("opensearch")),
    ],
)
def test_which_numbers_an_update_changes(client: Client, index_name: str, server_url: str, scripted: bool) -> None:
    """The server itself, by partial updates and by scripts: the premise of all that follows."""
    fill(client, index_name)
    before = values(server_url, index_name)
    body: JSON = {"doc": {"text": "changed"}}
    if scripted:
        body = {"script": {"source": "ctx._source.text = 'changed'", "lang": "painless"}}
    try:
        for number in range(len(LITERALS)):
            client.request("POST", path(index_name, "_update", str(number)), body=body)
    except RequestError:
        assert scripted
        pytest.skip("this server has no scripts")
    after = values(server_url, index_name)
    for number, literal in enumerate(LITERALS):
        same = {name: after[str(number)][name] == before[str(number)][name] for name in ("keyword", "disabled")}
        assert set(same.values()) == {literal in SAME}, literal
        assert isinstance(loads(f"[{literal}]")[0], UnheldNumber) is (literal in CHANGED), literal


@pytest.mark.either("connection")
@pytest.mark.parametrize("connection", ["own", "wrapped"])
@pytest.mark.product("each")
def test_no_command_changes_a_value(client: Client, index_name: str, server_url: str, connection: str) -> None:
    """Each command, with its dry run; the reports count the documents that were written as a whole."""
    fill(client, index_name)
    before = values(server_url, index_name)
    one = NearDupe(index_name, client if connection == "own" else wrapped(client, server_url))
    for command in (one.enrich, one.group, lambda **how: one.enrich(all=True, **how), one.clean):
        dry = command(dry_run=True).writes
        done = command().writes
        assert (dry.written, dry.whole, dry.failed) == (done.written, done.whole, 0)
        assert values(server_url, index_name) == before
        if done.written and command != one.clean:
            without = command == one.group  # the principal, which has its fields already
            assert (done.written, done.whole) == (len(LITERALS) - without, len(CHANGED) - without)
    one.init(SETTINGS)
    one.enrich()
    one.group()
    assert one.migrate(threshold=0.6).writes.switched == len(LITERALS)
    assert values(server_url, index_name) == before
    assert one.group(rebuild=True).groups.grouped == len(LITERALS)


def test_values_written_by_others_in_between(client: Client, index_name: str, server_url: str) -> None:
    """An application reads documents, with our fields, and writes them back as a whole with new numbers."""
    fill(client, index_name, SAME)
    one = NearDupe(index_name, client)
    one.enrich()
    lines = []
    for (id, stored), text in zip(ours(client, index_name).items(), family(index_name, len(SAME)), strict=True):
        copied = f',"neardupe":{json.dumps(stored)}'
        lines += [json.dumps({"index": {"_index": index_name, "_id": id}}), source("1E400", text, copied)]
    send(client, lines)
    before = values(server_url, index_name)
    writes = one.group().writes
    assert writes.written == writes.whole == len(SAME) - 1  # all but the principal
    assert values(server_url, index_name) == before


def test_a_copy_of_an_index(client: Client, index_name: str, server_url: str) -> None:
    """The marks of the documents are not valid in another index, even if the versions are the same."""
    fill(client, index_name, SAME)
    NearDupe(index_name, client).enrich()
    copy = f"{index_name}-copy"
    make_index(client, copy, MAPPING, dynamic=False)
    NearDupe(copy, client).init(SETTINGS)
    for _ in range(2):  # the versions are 2, as those of the enriched documents
        lines = []
        for (id, stored), text in zip(ours(client, index_name).items(), family(index_name, len(SAME)), strict=True):
            copied = f',"neardupe":{json.dumps(stored)}'
            lines += [json.dumps({"index": {"_index": copy, "_id": id}}), source("1E400", text, copied)]
        send(client, lines)
    before = values(server_url, copy)
    assert NearDupe(copy, client).group().writes.whole == len(SAME) - 1  # all but the principal
    assert values(server_url, copy) == before


class Counting(ForwardingClient):
    """Counts the documents that are read as a whole by their ids, and can stop answering."""

    def __init__(self, client: Client, lives: float = float("inf")) -> None:
        super().__init__(client)
        self.whole = 0
        self.lives = lives

    def request(self, method: str, path: str, **options: Any) -> Any:
        body = options.get("body") or {}
        self.whole += sum(one.get("_source") is True for one in body.get("docs", ()))
        if body.get("_source") == {"exclude_vectors": False}:
            self.whole += len(body["query"].get("ids", {}).get("values", ()))
        return self.plain.request(method, path, **options)

    def bulk(self, body: bytes, **options: Any) -> Any:
        self.lives -= 1
        if self.lives < 0:
            raise Unreachable("killed")
        return self.plain.bulk(body, **options)


def test_marked_documents_are_not_read_again(client: Client, index_name: str) -> None:
    """``group`` and ``clean`` read whole documents only without a valid mark."""
    fill(client, index_name, ("1.50",) * 40)
    counting = Counting(client)
    one = NearDupe(index_name, counting)
    one.enrich()
    assert one.group(dry_run=True).writes.written == 39  # all but the principal
    assert counting.whole == 0
    client.request("POST", path(index_name, "_update", "1"), params={"refresh": True}, body={"doc": {"other": 1}})
    assert one.group().writes.written == 39
    assert counting.whole == 1
    assert one.clean().writes.written == 40
    assert counting.whole in (1, 41)  # all of them on a server without scripts


def test_killed_at_any_write(client: Client, index_name: str, server_url: str) -> None:
    fill(client, index_name)
    before = values(server_url, index_name)
    commands: list[Callable[[NearDupe], Any]] = [
        lambda one: one.enrich(batch=4, workers=1),
        lambda one: one.group(batch=4, workers=1),
        lambda one: one.clean(batch=4, workers=1),
    ]
    kills = 0
    for command in commands:
        for lives in range(1, 30):
            try:
                command(NearDupe(index_name, Counting(client, lives)))
                break
            except Unreachable:
                kills += 1
                assert values(server_url, index_name) == before
    assert kills > 8
    assert values(server_url, index_name) == before
    assert not enriched(client, index_name)


def with_final_pipeline(client: Client, index: str) -> None:
    """A final pipeline of the index, which some servers cannot run, but all can name."""
    client.request("PUT", path("_ingest", "pipeline", f"{index}-final"), body={"processors": []})
    client.request("PUT", path(index, "_settings"), body={"index.final_pipeline": f"{index}-final"})


@pytest.mark.product("each")
def test_a_final_pipeline(client: Client, index_name: str, server_url: str) -> None:
    """It would run on a document that is written as a whole: such documents are left, counted, and written later."""
    fill(client, index_name)
    with_final_pipeline(client, index_name)
    before = values(server_url, index_name)
    one = NearDupe(index_name, client)
    ways: list[dict[str, Any]] = [{"dry_run": True}, {}]
    for how in ways:
        writes = one.enrich(**how).writes
        assert (writes.written, writes.whole, writes.failed) == (len(SAME), 0, len(CHANGED))
        assert writes.left == len(CHANGED)
        (reason,) = writes.failures
        assert re.search(
            rf"its final pipeline '{index_name}-final' would process them, for example document '\d+'$", reason
        )
    assert enriched(client, index_name) == {str(number) for number in range(len(CHANGED), len(LITERALS))}
    assert values(server_url, index_name) == before
    client.request("PUT", path(index_name, "_settings"), body={"index.final_pipeline": None})
    writes = one.enrich().writes
    assert (writes.written, writes.whole) == (len(CHANGED), len(CHANGED))
    with_final_pipeline(client, index_name)
    failed = one.group().writes
    assert (failed.failed, failed.written) == (len(CHANGED) - 1, len(SAME))  # all but the principal
    cleaned = one.clean().writes
    assert cleaned.failed >= len(CHANGED)
    assert cleaned.written + cleaned.failed == len(LITERALS)
    assert values(server_url, index_name) == before
    client.request("PUT", path(index_name, "_settings"), body={"index.final_pipeline": None})
    assert not one.clean().writes.left
    assert values(server_url, index_name) == before


@pytest.mark.product("elasticsearch")
def test_vectors_that_the_source_does_not_show(client: Client, index_name: str, server_url: str) -> None:
    """Elasticsearch leaves vectors out of the source that it returns: a document written back would lose them."""
    vector: JSON = {"vector": {"type": "dense_vector", "dims": 2, "index": False}}
    try:
        make_index(client, index_name, {**MAPPING, **vector}, dynamic=False)
    except RequestError:
        pytest.skip("this server has no dense vectors")
    for (id, literal), text in zip((("0", "1E400"), ("1", "1.50")), family("vectors", 2), strict=True):
        send(
            client,
            [
                json.dumps({"index": {"_index": index_name, "_id": id}}),
                source(literal, text, ',"vector":[0.25,0.5]'),
            ],
        )

    def vectors() -> list[Any]:
        return [[float(part) for part in one["vector"]] for one in values(server_url, index_name).values()]

    assert vectors() == [[0.25, 0.5]] * 2
    before = values(server_url, index_name)
    one = NearDupe(index_name, client)
    one.init(SETTINGS)
    for command, written in ((one.enrich, 2), (one.group, 1), (one.clean, 2)):  # the principal has its group fields
        writes = command().writes
        assert (writes.written, writes.failed) == (written, 0)
        assert vectors() == [[0.25, 0.5]] * 2
        assert values(server_url, index_name) == before


def test_group_ids_of_a_sidecar(client: Client, index_name: str, server_url: str) -> None:
    """With ``--write-group``, documents of the user are written."""
    make_index(client, index_name, MAPPING, dynamic=False)
    lines = []
    for (number, literal), text in zip(enumerate(LITERALS), family(index_name, len(LITERALS)), strict=True):
        lines += [json.dumps({"index": {"_index": index_name, "_id": str(number)}}), source(literal, text)]
    send(client, lines)
    before = values(server_url, index_name)
    one = NearDupe(index_name, client)
    one.init(SETTINGS, sidecar=True, write_group=True)
    assert one.enrich().writes.written == len(LITERALS)
    mirrored = one.group().writes.mirrored
    assert mirrored is not None
    assert not mirrored.left
    assert not mirrored.failed
    assert len({stored["group"] for stored in ours(client, index_name).values()}) == 1
    assert values(server_url, index_name) == before
    assert one.clean().writes.written == len(LITERALS)
    assert values(server_url, index_name) == before


def test_group_ids_that_cannot_be_written(server_cli: Cli, client: Client, index_name: str, server_url: str) -> None:
    """The report and its dry run count them with the reason, and they are written later."""
    fill(client, index_name)
    one = NearDupe(index_name, client)
    one.clean()
    one.init(SETTINGS, sidecar=True, write_group=True)
    with_final_pipeline(client, index_name)
    before = values(server_url, index_name)
    written = one.enrich().writes.mirrored
    assert written is not None
    assert (written.written, written.left, written.failed, len(written.failures)) == (len(SAME), 0, len(CHANGED), 1)
    dry = one.enrich(dry_run=True).writes.mirrored
    assert dry == one.enrich().writes.mirrored
    assert dry is not None
    assert (dry.written, dry.failed) == (0, len(CHANGED))
    done = server_cli("enrich", index_name)
    assert done.code == 1
    assert "would process them, for example document" in done.err
    assert f"{len(CHANGED)} documents were not written: resolve the reasons above" in done.err
    assert values(server_url, index_name) == before
    client.request("PUT", path(index_name, "_settings"), body={"index.final_pipeline": None})
    written = one.enrich().writes.mirrored
    assert written is not None
    assert (written.written, written.left, written.failed) == (len(CHANGED), 0, 0)
    assert values(server_url, index_name) == before


def test_changed_between_reading_and_writing(client: Client, index_name: str, server_url: str) -> None:
    """A document that is written as a whole is read again after a conflict."""
    fill(client, index_name, ("1E400", "1.50"))

    class Meddling(ForwardingClient):
        todo = True

        def bulk(self, body: bytes, **options: Any) -> Any:
            if self.todo:
                self.todo = False
                other = source("0.98765432109876543210", "another text of five words or more, by the application")
                send(client, [json.dumps({"index": {"_index": index_name, "_id": "0"}}), other])
            return self.plain.bulk(body, **options)

    writes = NearDupe(index_name, Meddling(client)).enrich().writes
    assert (writes.written, writes.whole, writes.conflicts) == (2, 1, 0)
    refresh(client, index_name)
    assert values(server_url, index_name)["0"]["keyword"] == Decimal("0.98765432109876543210")
    assert enriched(client, index_name) == {"0", "1"}


@pytest.mark.parametrize("blocked", [False, True])
def test_dry_runs_count_as_the_runs_do(client: Client, index_name: str, server_url: str, blocked: bool) -> None:
    """Each command on documents with and without such numbers, and with keys and without."""
    fill(client, index_name)
    one = NearDupe(index_name, client)
    one.enrich(query={"ids": {"values": [str(number) for number in range(0, len(LITERALS), 2)]}})
    if blocked:
        with_final_pipeline(client, index_name)
    before = values(server_url, index_name)
    commands: tuple[Callable[..., Any], ...] = (
        lambda **how: one.enrich(all=True, **how).writes,
        lambda **how: one.group(**how).writes,
        lambda **how: one.clean(**how).writes,
    )
    for command in commands:
        dry, done = command(dry_run=True), command()
        assert dry == done
        assert bool(done.failed) == bool(done.failures) == blocked
        assert values(server_url, index_name) == before


@pytest.mark.parametrize("blocked", [False, True])
def test_dry_runs_of_a_migration(client: Client, index_name: str, server_url: str, blocked: bool) -> None:
    """They count the documents of the next step, and those that the run cannot write."""
    fill(client, index_name)
    one = NearDupe(index_name, client)
    one.enrich()
    before = values(server_url, index_name)

    if blocked:
        with_final_pipeline(client, index_name)
        dry, done = one.migrate(threshold=0.6, dry_run=True).writes, one.migrate(threshold=0.6).writes
        assert dry == done
        assert (done.enriched, done.left, len(done.failures)) == (len(SAME), len(CHANGED), 1)
        client.request("PUT", path(index_name, "_settings"), body={"index.final_pipeline": None})
    missing = len(CHANGED) if blocked else len(LITERALS)
    steps: list[tuple[dict[str, Any], str, int]]
    steps = [({"prepare": True}, "enriched", missing), ({}, "switched", len(LITERALS))]
    for how, step, number in steps:
        dry, done = one.migrate(threshold=0.6, dry_run=True, **how).writes, one.migrate(threshold=0.6, **how).writes
        assert getattr(dry, step) == getattr(done, step) == number
    assert values(server_url, index_name) == before


@pytest.fixture
def through(proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client that reaches the server through the proxy, with short waits before retries."""
    short_waits(monkeypatch)
    opened = connect(ConnectionSettings(proxy.url, retries=Retries(attempts=6, wait=0.01), timeout=20))
    yield opened
    opened.close()


@pytest.mark.product("each")
def test_whole_documents_with_a_lost_answer(
    client: Client, proxy: FaultProxy, through: Client, index_name: str, server_url: str
) -> None:
    """They are counted as whole documents, as in an undisturbed run."""
    fill(client, index_name)
    before = values(server_url, index_name)
    one = NearDupe(index_name, through)
    commands: list[Callable[[NearDupe], Any]] = [NearDupe.enrich, NearDupe.group, NearDupe.clean]
    for command in commands:
        fault = Fault(lost_answer, BULK, each=True)
        proxy.set(fault)
        writes = command(one).writes
        assert fault.met
        without = command == NearDupe.group  # the principal has its group fields
        assert (writes.written, writes.left) == (len(LITERALS) - without, 0)
        without_scripts = command == NearDupe.clean and writes.whole == len(LITERALS)
        assert writes.whole == len(CHANGED) - without or without_scripts
        assert values(server_url, index_name) == before
    assert not enriched(client, index_name)


class Meddling(ForwardingClient):
    """Calls a function before the first bulk request of documents, or after the check that precedes it."""

    def __init__(self, client: Client, meddle: Callable[[], None], *, late: bool) -> None:
        super().__init__(client)
        self.todo, self.late = [meddle], late

    def request(self, method: str, path: str, **options: Any) -> Any:
        return self.plain.request(method, path, **options)

    def pages(self, index: str, body: Any, **options: Any) -> Any:
        yield from self.plain.pages(index, body, **options)
        while self.todo and not self.late:
            self.todo.pop()()

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        def meddling() -> None:
            if before is not None:
                before()
            while self.todo:
                self.todo.pop()()

        return self.plain.bulk(body, params=params, before=meddling)


@pytest.mark.parametrize("late", [False, True])
def test_a_final_pipeline_that_is_added_during_a_run(
    client: Client, index_name: str, server_url: str, late: bool
) -> None:
    """The run stops before it writes; in the moment after the check, it reports that the pipeline may have run."""
    fill(client, index_name)
    before = values(server_url, index_name)
    meddling = Meddling(client, lambda: with_final_pipeline(client, index_name), late=late)
    with pytest.raises(Conflict, match=rf"got the final pipeline '{index_name}-final' during this run. It may have"):
        NearDupe(index_name, meddling).enrich()
    if late:
        assert enriched(client, index_name)
    else:
        assert not enriched(client, index_name)
        assert values(server_url, index_name) == before
        assert NearDupe(index_name, client).enrich().writes.failed == len(CHANGED)


def test_a_log_names_each_document_that_was_not_written(
    client: Client, index_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(client, index_name)
    with_final_pipeline(client, index_name)
    with caplog.at_level(logging.WARNING, "es_neardupe"):
        NearDupe(index_name, client).enrich()
    events = map(log_events.fields_of, caplog.records)
    assert sorted(fields["id"] for event, fields in events if event == "not_written") == sorted(
        str(number) for number in range(len(CHANGED))
    )


def raw_sources(url: str, index: str) -> bytes:
    """A search, as the server answers it."""
    urllib.request.urlopen(urllib.request.Request(f"{url}/{index}/_refresh", method="POST")).close()
    with urllib.request.urlopen(f"{url}/{index}/_search?size=1000") as answer:
        return bytes(answer.read())


@pytest.mark.parametrize("replace", [False, True])
def test_numbers_of_loaded_files(
    client: Client, index_name: str, server_url: str, tmp_path: Path, replace: bool
) -> None:
    """They arrive with their literals, in fields of every kind, also if a field is renamed."""
    make_index(client, index_name, MAPPING, dynamic=False)
    NearDupe(index_name, client).init(SETTINGS)
    file = tmp_path / "a.jsonl"
    lines = [source(literal, text) for literal, text in zip(LITERALS, family(index_name, len(LITERALS)), strict=True)]
    renamed = (line.replace('{"text":', f'{{"_id":{id},"content":') for id, line in enumerate(lines))
    file.write_text("\n".join(renamed))
    one = NearDupe(index_name, client)
    for _ in range(1 + replace):
        assert one.load([str(file)], text_field="content", replace=replace).writes.written == len(LITERALS)
    found = raw_sources(server_url, index_name)
    for literal in LITERALS:
        expected = "0" if literal == "-0" else literal
        assert f'"unmapped":[{{"deep":[{expected}]}}],"disabled":{{"inside":{expected}}}'.encode() in found
    assert one.enrich(check=True).writes.unchanged == len(LITERALS)


def test_loaded_documents_with_a_lost_answer(
    client: Client, proxy: FaultProxy, through: Client, index_name: str, tmp_path: Path
) -> None:
    make_index(client, index_name, MAPPING, dynamic=False)
    NearDupe(index_name, client).init(SETTINGS)
    file = tmp_path / "a.jsonl"
    file.write_text(
        "\n".join(source(literal, text) for literal, text in zip(LITERALS, family(1, len(LITERALS)), strict=True))
    )
    fault = Fault(lost_answer, BULK)
    proxy.set(fault)
    report = NearDupe(index_name, through).load([str(file)])
    assert (fault.met, report.writes.written, report.scope.existing) == (1, len(LITERALS), 0)
