"""An index that is deleted and created again during a run: its documents never keep keys of the former ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fault_proxy import BULK, Fault, FaultProxy, Forward, Request, short_waits
from server_tools import JSON, exists, family, hits, make_index, mapping, ours, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Conflict, IndexReplaced
from es_neardupe.records import Hit
from es_neardupe.server.client import Before, Client, ForwardingClient, Params, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

SETTINGS = Settings(("text",))
NUMBER = 60


class Meddling(ForwardingClient):
    """Does something once, after the first page of documents was read or just before the first bulk request of
    updates."""

    def __init__(self, client: Client, index: str, when: str, meddle: Callable[[], object]) -> None:
        super().__init__(client)
        self.index, self.when, self.todo = index, when, [meddle]

    def _meddle(self, when: str) -> None:
        while when == self.when and self.todo:
            self.todo.pop()()

    def request(
        self, method: str, path: str, *, params: Params | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        return self.plain.request(method, path, params=params, body=body)

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        def meddling() -> None:
            if before is not None:
                before()
            if f'"_index":"{self.index}"'.encode() in body:
                self._meddle("written")

        return self.plain.bulk(body, params=params, before=meddling)

    def pages(self, index: str, body: Mapping[str, Any], **options: Any) -> Iterator[list[Hit]]:
        for page in self.plain.pages(index, body, **options):
            self._meddle("read")
            yield page

    def close(self) -> None:
        self.plain.close()


def fill(client: Client, index: str, texts: list[str]) -> None:
    """Each document has the same sequence number in each index that is filled like this."""
    make_index(client, index, settings={"index": {"number_of_shards": 1}})
    put(client, index, {f"d{number:02}": {"text": text} for number, text in enumerate(texts)})


def replace(client: Client, index: str) -> None:
    """Delete the index, and create it again with the same mapping and other texts under the same ids."""
    before = mapping(client, index)
    properties, meta = before["properties"], before["_meta"]
    client.request("DELETE", path(index))
    make_index(client, index, properties, settings={"index": {"number_of_shards": 1}}, _meta=meta)
    others = [" ".join(words(f"other {number // 2}", 60)) for number in range(NUMBER)]
    put(client, index, {f"d{number:02}": {"text": text} for number, text in enumerate(others)})


def begun(client: Client, index: str) -> None:
    texts = [text for number in range(NUMBER // 2) for text in family((index, number), 2, length=60)]
    fill(client, index, texts)
    NearDupe(index, client).init(SETTINGS)


def expected(client: Client, index: str) -> dict[str, Any]:
    """The content hash of each current text, by a fresh run."""
    other = f"{index}-fresh"
    make_index(client, other)
    put(client, other, {hit["_id"]: {"text": hit["_source"]["text"]} for hit in hits(client, index)})
    NearDupe(other, client).init(SETTINGS)
    NearDupe(other, client).enrich()
    return {id: one["content"] for id, one in ours(client, other).items()}


def check(client: Client, index: str) -> None:
    """The next run repairs all keys, and groups are those of the current texts."""
    NearDupe(index, client).enrich(check=True)
    assert {id: one["content"] for id, one in ours(client, index).items()} == expected(client, index)
    assert NearDupe(index, client).group(check=True).groups.count == NUMBER // 2
    assert NearDupe(index, client).enrich(check=True).writes.written == 0


def state(client: Client, index: str) -> JSON:
    """Mapping and documents, with their versions."""
    documents = {hit["_id"]: (hit["_source"], hit["_version"]) for hit in hits(client, index)}
    return {"mapping": mapping(client, index), "documents": documents}


COMMANDS: dict[str, Callable[[NearDupe], object]] = {
    "enrich": NearDupe.enrich,
    "group": NearDupe.group,
    "migrate": lambda one: one.migrate(threshold=0.5),
    "clean": NearDupe.clean,
}
REPLACED = "was deleted and created again, or restored from a snapshot, during this run.*enrich .* --check"


@pytest.mark.parametrize("command", ["enrich", "migrate", "clean"])
def test_replaced_between_reading_and_writing(command: str, client: Client, index_name: str) -> None:
    """Nothing is written: the index is as it was created."""
    begun(client, index_name)
    if command != "enrich":
        NearDupe(index_name, client).enrich()
    states: list[JSON] = []

    def meddle() -> None:
        replace(client, index_name)
        states.append(state(client, index_name))

    with pytest.raises(IndexReplaced, match=REPLACED):
        COMMANDS[command](NearDupe(index_name, Meddling(client, index_name, "read", meddle)))
    assert [state(client, index_name)] == states
    if command == "enrich":
        check(client, index_name)


@pytest.mark.parametrize("command", ["enrich", "group"])
def test_replaced_after_the_check(command: str, client: Client, index_name: str) -> None:
    """The moment between check and request: documents get values of others, the run reports it, the next one repairs
    it."""
    begun(client, index_name)
    if command != "enrich":
        NearDupe(index_name, client).enrich()
    meddling = Meddling(client, index_name, "written", lambda: replace(client, index_name))
    with pytest.raises(IndexReplaced, match=REPLACED):
        COMMANDS[command](NearDupe(index_name, meddling))
    assert ours(client, index_name)  # the server accepted updates of the former documents
    check(client, index_name)


@pytest.mark.product("each")
def test_deleted_between_reading_and_writing(client: Client, index_name: str) -> None:
    """The server does not create the index again for the updates."""
    begun(client, index_name)
    delete = Meddling(client, index_name, "read", lambda: client.request("DELETE", path(index_name)))
    with pytest.raises(Conflict, match=f"Index {index_name} was deleted during this run"):
        NearDupe(index_name, delete).enrich()
    assert not exists(client, index_name)


def test_deleted_before_a_request_is_sent_again(
    client: Client, proxy: FaultProxy, index_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server does not create the index again for the second attempt."""
    short_waits(monkeypatch)
    begun(client, index_name)

    def deleted(request: Request, forward: Forward) -> None:
        client.request("DELETE", path(index_name))

    proxy.faults = [Fault(deleted, on=BULK)]
    through = connect(ConnectionSettings(url=proxy.url))
    try:
        with pytest.raises(Conflict, match=f"Index {index_name} was deleted during this run"):
            NearDupe(index_name, through).enrich()
    finally:
        through.close()
    assert not exists(client, index_name)


@pytest.mark.product("each")
@pytest.mark.parametrize("command", ["enrich", "load"])
def test_deleted_after_the_check(command: str, client: Client, index_name: str, tmp_path: Path) -> None:
    """The server creates the index again for the request: the message says so, and how to go on."""
    begun(client, index_name)
    file = tmp_path / "more.jsonl"
    file.write_text('{"id": "new", "text": "a new text"}\n')
    news = NearDupe(
        index_name, Meddling(client, index_name, "written", lambda: client.request("DELETE", path(index_name)))
    )
    with pytest.raises(Conflict, match=f"was deleted during this run.*delete it with `DELETE /{index_name}`"):
        news.enrich() if command == "enrich" else news.load(file)
    assert "_meta" not in mapping(client, index_name)  # of an index that the server created
    client.request("DELETE", path(index_name))
    begun(client, index_name)
    assert NearDupe(index_name, client).enrich().writes.written == NUMBER
