"""The heaviest differences of groups that are kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from es_neardupe.groups import heaviest
from es_neardupe.groups.heaviest import UNKNOWN, HeaviestDifference, HeaviestDifferences
from es_neardupe.records import Address


def test_only_some_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair of texts is compared once, until those that are kept would be too many."""
    compared: list[Any] = []

    def known(address: Address) -> Any:
        return SimpleNamespace(address=address, content=f"content of {address.id}", words=10)

    def difference(index: Any, *texts: Any) -> HeaviestDifference:
        compared.append(texts)
        return HeaviestDifference(UNKNOWN)

    monkeypatch.setattr(heaviest, "_KEPT", 3)
    monkeypatch.setattr(
        heaviest, "_least_similar", lambda index, ids: {id: known(Address("i", f"m{id}")) for id in ids}
    )
    monkeypatch.setattr(heaviest, "_stored", lambda index, addresses: {one: known(one) for one in addresses})
    monkeypatch.setattr(heaviest, "_texts", lambda index, addresses: {})
    monkeypatch.setattr(heaviest, "_compared", difference)
    groups: list[Any] = [SimpleNamespace(group=f"{k}", texts=2, principal=Address("i", f"p{k}")) for k in range(6)]
    differences = HeaviestDifferences()
    index: Any = None  # what reads it is replaced
    for some, number in ((groups[:2], 2), (groups[:3], 3), (groups[:3], 3), (groups[3:], 6), (groups[3:], 6)):
        assert differences.of(index, some).keys() == {one.group for one in some}
        assert len(compared) == number
        assert len(differences._kept) <= 3
