"""The heaviest differences of groups that are kept."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from es_neardupe.errors import NotFound
from es_neardupe.groups import heaviest
from es_neardupe.groups.heaviest import COPIES, UNKNOWN, HeaviestDifference, HeaviestDifferences
from es_neardupe.records import Address
from es_neardupe.similarity.weighed_places import WORDS


def groups_of(number: int) -> list[Any]:
    return [SimpleNamespace(group=f"{k}", texts=2, principal=Address("i", f"p{k}")) for k in range(number)]


INDEX: Any = None
"""What reads it is replaced."""


@pytest.fixture
def stored_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group has a principal and another text."""

    def known(address: Address) -> Any:
        return SimpleNamespace(address=address, content=f"content of {address.id}", words=10)

    monkeypatch.setattr(
        heaviest, "_least_similar", lambda index, ids: {id: known(Address("i", f"m{id}")) for id in ids}
    )
    monkeypatch.setattr(heaviest, "_stored", lambda index, addresses: {one: known(one) for one in addresses})
    monkeypatch.setattr(heaviest, "_texts", lambda index, addresses: {})


def test_only_some_are_kept(monkeypatch: pytest.MonkeyPatch, stored_texts: None) -> None:
    """Each pair of texts is compared once, until those that are kept would be too many."""
    compared: list[Any] = []

    def difference(index: Any, *texts: Any) -> HeaviestDifference:
        compared.append(texts)
        return HeaviestDifference(UNKNOWN)

    monkeypatch.setattr(heaviest, "_KEPT", 3)
    monkeypatch.setattr(heaviest, "_compared", difference)
    groups, differences = groups_of(6), HeaviestDifferences()
    for some, number in ((groups[:2], 2), (groups[:3], 3), (groups[:3], 3), (groups[3:], 6), (groups[3:], 6)):
        assert differences.of(INDEX, some).keys() == {one.group for one in some}
        assert len(compared) == number
        assert len(differences._kept) <= 3


def test_patience_ends_before_all_are_compared(monkeypatch: pytest.MonkeyPatch, stored_texts: None) -> None:
    """The others are compared in the background, each once, however often they are asked for."""
    compared: list[Any] = []
    goes_on, stopped = Event(), Event()

    def difference(index: Any, *texts: Any) -> HeaviestDifference:
        if len(compared) == 5:
            stopped.set()
            assert goes_on.wait(60)
        compared.append(texts)
        return HeaviestDifference(WORDS)

    monkeypatch.setattr(heaviest, "_compared", difference)
    groups, differences = [*groups_of(50), SimpleNamespace(group="copies", texts=1)], HeaviestDifferences()
    assert differences.known_after(INDEX, groups, 0).keys() <= {*map(str, range(5)), "copies"}
    assert stopped.wait(60)
    assert differences.known_after(INDEX, groups, 0).keys() == {*map(str, range(5)), "copies"}
    goes_on.set()
    found = differences.known_after(INDEX, groups, 60)
    assert {group: one.kind for group, one in found.items()} == dict.fromkeys(map(str, range(50)), WORDS) | {
        "copies": COPIES
    }
    assert len(compared) == 50


def test_an_error_of_the_background_is_raised(monkeypatch: pytest.MonkeyPatch, stored_texts: None) -> None:
    def fails(*of: Any) -> Any:
        raise NotFound("The index is gone.", status=404)

    monkeypatch.setattr(heaviest, "_texts", fails)
    with pytest.raises(NotFound):
        HeaviestDifferences().known_after(INDEX, groups_of(2), 60)
