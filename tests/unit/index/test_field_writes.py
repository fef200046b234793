"""Writes of the fields of documents: partial updates, and whole documents where these would change a number."""

from __future__ import annotations

from typing import Any

import pytest
from unit_tools import SETTINGS, FakeClient

from es_neardupe.index.storage.field_writes import CHECKED, Change, FieldWriter
from es_neardupe.records import Action, Hit
from es_neardupe.server.numbers import loads

UNHELD = b'{"text": "a", "number": 0.12345678901234567890123, "neardupe": {"checked": "old", "content": "c"}}'
HELD = UNHELD.replace(b"0.12345678901234567890123", b"0.1")


class Client(FakeClient):
    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        return {} if path.endswith("/_mapping") else super().request(method, path, params=params, body=body)

    def _found(self, doc: dict[str, Any]) -> dict[str, Any]:
        return super()._found(doc) | {"_version": 3}


def write(document: bytes, seq_no: int = 1) -> Action:
    """The write of a group id to a document that was read with this number; it has the number 1."""
    writer = FieldWriter(Client({("i", "d"): loads(document)}), SETTINGS, {"i": "uuid"})
    hit = Hit("i", "d", None, seq_no, 1, {"neardupe": {"content": "c"}}, version=3)
    (action,) = writer.writes([Change(hit, {"group": "g"})])
    assert (action.seq_no, action.primary_term) == (seq_no, 1)
    return action


def test_a_number_that_a_partial_update_changes_needs_the_whole_document() -> None:
    """It gets no mark, and loses an old one: the next run looks at it again."""
    action = write(UNHELD)
    assert (action.op, action.whole, action.pipeline) == ("index", True, "_none")
    assert action.body == {**loads(UNHELD), "neardupe": {"content": "c", "group": "g"}}


def test_other_documents_are_marked() -> None:
    action = write(HELD)
    assert (action.op, action.whole) == ("update", False)
    assert action.body["doc"]["neardupe"].keys() == {"group", CHECKED}


@pytest.mark.parametrize("document", [HELD, UNHELD])
def test_a_document_that_has_changed_since_it_was_read_gets_a_write_that_is_rejected(document: bytes) -> None:
    action = write(document, seq_no=0)
    assert (action.op, action.whole, action.body) == ("update", False, {"doc": {"neardupe": {}}})
