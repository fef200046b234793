"""The store of hidden documents: what it does about lost answers, rejected documents and missing indices. No server."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from typing import Any, cast

import pytest
from unit_tools import FakeClient, index_of

from es_neardupe import Settings
from es_neardupe.errors import Conflict, NotFound
from es_neardupe.index.hidden_indices import HiddenDocuments, HiddenIndex, HiddenStore, StoredDocument
from es_neardupe.index.target import IndexTarget
from es_neardupe.records import Action, Outcome

TARGET = IndexTarget("news", ("news",), Settings(("text",)), 10_000)
NAME = "news-neardupe-groups"


class Recording(FakeClient):
    """A server whose only document is ``stored`` (None: not even its index exists), and that never accepts a version of
    it: another client is always faster, or the answers to writes are lost."""

    def __init__(self, stored: Mapping[str, Any] | None) -> None:
        super().__init__()
        self.stored = stored
        self.sent: list[str] = []
        self.missing = ""
        """The type of the error for what is missing."""

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        self.sent.append(f"{method} {path}")
        if method == "PUT":
            raise Conflict("another version", status=409)
        if method != "POST" and self.stored is None:
            raise NotFound("nothing here", status=404, type=self.missing)
        return {"_source": self.stored, "_seq_no": 3, "_primary_term": 1}

    def bulk(self, body: bytes, *, params: Any = None, before: Any = None) -> Any:
        self.sent.append("bulk")
        return super().bulk(body, params=params)


def test_a_write_whose_answer_was_lost_is_no_conflict() -> None:
    source = {"at": 1.0, "by": ("a", "b")}
    HiddenDocuments(Recording(json.loads(json.dumps(source))), NAME).put("run", source, None)
    for other in ({"at": 2.0}, None):
        with pytest.raises(Conflict):
            HiddenDocuments(Recording(other), NAME).put("run", source, None)


class WithoutVersions(Recording):
    """A server that accepts a write, and does not say which version it made."""

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        if method == "PUT":
            self.stored = body
            return {"_seq_no": 0, "_primary_term": 0}
        return super().request(method, path, params=params, body=body)


def test_the_version_of_a_write_is_read_if_it_is_not_told() -> None:
    written = HiddenDocuments(WithoutVersions(None), NAME).put("run", {"at": 1.0}, None)
    assert written == StoredDocument({"at": 1.0}, 3, 1)


def test_an_index_that_does_not_exist() -> None:
    client = Recording(None)
    store = HiddenStore(index_of(client, TARGET), HiddenIndex.GROUPS)
    assert not store.refreshed()
    assert store.read("run") is None
    store.delete("run")
    documents = f"/{NAME}/_doc/run"
    assert client.sent == [f"GET /{NAME}/_mapping", f"GET {documents}", f"DELETE {documents}"]


def test_a_document_of_an_index_that_must_exist() -> None:
    """The server would create the index for a write."""
    client = Recording(None)
    assert HiddenDocuments(client, NAME).read("lease", existing=True) is None  # only the document is missing
    client.missing = "index_not_found_exception"
    assert HiddenDocuments(client, NAME).read("lease") is None
    with pytest.raises(NotFound):
        HiddenDocuments(client, NAME).read("lease", existing=True)


def test_what_writes_asks_again_whether_there_is_an_index() -> None:
    client = Recording(None)
    index = index_of(client, TARGET)
    assert [HiddenStore(index, HiddenIndex.GROUPS).exists() for _ in range(2)] == [False, False]
    assert client.sent == [f"GET /{NAME}/_mapping"]
    with pytest.raises(Conflict):  # of another client, which was faster
        HiddenStore(index, HiddenIndex.GROUPS).create()
    assert client.sent[1:] == [f"GET /{NAME}/_mapping", f"PUT /{NAME}"]


def test_documents_are_visible_once_all_are_written() -> None:
    client = Recording(None)
    store = HiddenStore(index_of(client, TARGET), HiddenIndex.GROUPS, client)
    actions = [Action("index", NAME, id, {"kind": "group"}) for id in ("a", "b")]
    client.answer = lambda op, meta, body: {"status": 400 if meta["_id"] == "b" else 201}
    outcomes = cast("Generator[Outcome, None, None]", store.write_in_order(actions))
    assert [next(outcomes).done, next(outcomes).done] == [True, False]
    outcomes.close()  # as if an error ended the run here
    assert client.sent == ["bulk"]
    assert len(list(store.write_in_order(actions))) == 2
    assert client.sent == ["bulk", "bulk", f"POST /{NAME}/_refresh"]
