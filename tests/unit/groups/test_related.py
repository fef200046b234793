"""Groups that are related to one: only those that still exist."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from es_neardupe.groups import related


def test_groups_that_have_ended_are_not_related(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = {"a": SimpleNamespace(groups=("a", "b")), "c": None}
    records = {"d": SimpleNamespace(ended=None), "e": SimpleNamespace(ended="2024-05-01T00:00:00Z")}
    monkeypatch.setattr(related, "Registry", lambda index: SimpleNamespace(clusters=lambda ids: clusters))
    monkeypatch.setattr(related, "same_form", lambda index, group: {"b", "d", "e", "alone"})
    monkeypatch.setattr(related, "known_records", lambda index, ids: {id: records[id] for id in records if id in ids})
    index: Any = None  # what reads it is replaced
    assert related.linked_groups(index, "a") == (("b",), ("d",))
