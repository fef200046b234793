"""The place from which a list continues, as requests give it."""

from __future__ import annotations

import pytest

from es_neardupe.errors import SettingsError
from es_neardupe.views.group_pages import read_after


def test_places_of_earlier_pages() -> None:
    assert read_after(None) is read_after("") is None
    assert read_after('[3, "g"]') == [3, "g"]
    assert read_after('[0.8125, "g"]') == [0.8125, "g"]
    assert read_after('["d1", "g"]', by_words=True) == ["d1", "g"]


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "{}",
        "3",
        "[3]",
        '["a", 1]',
        "[3, 4]",
        '[3, "g", 1]',
        '[true, "g"]',
        '[null, "g"]',
        '[NaN, "g"]',
        '[1e999, "g"]',
        f'[{2**63}, "g"]',
        f'[{"9" * 5000}, "g"]',
        "[" * 100_000,
        '["d1", "g"]',
    ],
)
def test_other_values_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="`after` must be the `after` of the previous page, in the same order, not"):
        read_after(text)


def test_a_number_in_an_order_by_words() -> None:
    """A server compares its digits, so the place need not be refused."""
    assert read_after('[3, "g"]', by_words=True) == [3, "g"]
