"""What has changed in a text since it was compared with another one, from the places where they differed then."""

from __future__ import annotations

import pytest
from unit_tools import words

from es_neardupe.groups import former
from es_neardupe.groups.former import ChangedReading, changes, places_of

SAME = f"{words(0, 30)} The tank costs $9,500 and holds much water. {words(100, 30)} It opens on May 4 in Louann."
OTHER = SAME.replace("$9,500", "$26,125").replace("Louann", "Camden")


def found(then: str, now: str, same: str = SAME) -> list[tuple[str, str]]:
    """What has changed from ``then`` to ``now``."""
    return [(one.then, one.now) for one in changes(places_of(same, then), same, now)]


def test_what_reads_otherwise() -> None:
    assert found(OTHER, OTHER) == []
    assert found(OTHER, OTHER.replace("$26,125", "$30,000")) == [("$26,125", "$30,000")]
    assert found(OTHER, OTHER.replace("$26,125", "$9,500")) == [("$26,125", "$9,500")]
    assert found(OTHER, OTHER.replace("May 4", "June 5")) == [("May 4", "June 5")]  # both read the same then
    assert found(SAME, SAME.replace("much water", "much")) == [("water", "")]
    assert found(OTHER, OTHER.replace("much water", "much clean water")) == [("", "clean")]


def test_the_words_around() -> None:
    (one,) = changes(places_of(SAME, OTHER), SAME, OTHER.replace("$26,125", "$30,000"))
    assert one == ChangedReading(one.before, "$26,125", "$30,000", one.after)
    assert one.before.endswith("The tank costs ")
    assert one.after.startswith(" and holds much water")
    same, other = (text.replace(" and holds", ", and holds") for text in (SAME, OTHER))
    (one,) = changes(places_of(same, other), same, other.replace("$26,125", "$30,000"))
    assert one.after.startswith(", and holds much water")


def test_places_beyond_the_limits_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(former, "_MAX_PLACES", 1)
    assert not places_of(SAME, OTHER).complete
    assert found(OTHER, OTHER.replace("Camden", "Monroe")) == []
    assert found(OTHER, OTHER.replace("$26,125", "$30,000")) == [("$26,125", "$30,000")]
    monkeypatch.setattr(former, "_MAX_CHARACTERS", 10)
    assert places_of(SAME, OTHER) == ((), False)
