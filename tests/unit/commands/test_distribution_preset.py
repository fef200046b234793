"""The preset that `distribution` recommends: worked examples of its rules."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from es_neardupe.candidates.detection import unsuited_lengths
from es_neardupe.commands.distribution.recommendation import _by_pairs, by_lengths
from es_neardupe.index.settings import Settings
from es_neardupe.options import PRESETS, PRESETS_IN_WORDS, MeasureName
from es_neardupe.similarity.histogram import Histogram

STRICT_SETTINGS = Settings(("text",))
STRICT = STRICT_SETTINGS.scheme


def histogram(**pairs: int) -> Histogram:
    """Pairs of the similarities ``s70`` (0.70 to 0.72), and so on; ``s100`` are equal."""
    counts = [0] * 50
    for name, number in pairs.items():
        if name != "s100":
            counts[int(name[1:]) // 2] = number
    one = pairs.get("s100", 0)
    return Histogram(sum(counts) + one, 0, tuple(counts), one)


@pytest.mark.parametrize(("preset", "words"), [("reader", 19), ("strict", 49)])
def test_one_word_more_or_less(preset: str, words: int) -> None:
    """A changed word in the middle removes as many shingles as it has words, from both texts."""
    resemblance = []
    for length in (words, words - 1):
        text = [str(n) for n in range(length)]
        changed = [*text[: length // 2], "other", *text[length // 2 + 1 :]]
        size = PRESETS[preset]["shingle"]
        one, other = ({tuple(some[k : k + size]) for k in range(length - size + 1)} for some in (text, changed))
        resemblance.append(len(one & other) / len(one | other))
    assert resemblance[1] < PRESETS[preset]["threshold"] <= resemblance[0]
    for length, advised in ((words, {"reader": "reader", "strict": None}), (words - 1, SHORTER)):
        found = by_lengths([length] * 4)
        assert (found and found.preset) == advised[preset]


SHORTER = {"reader": "short", "strict": "reader"}


@pytest.mark.parametrize(
    ("words", "preset"),
    [
        ([], None),
        ([0, 0, 0], None),
        ([18, 200, 200, 200], "short"),  # a quarter of them
        ([18, 200, 200, 200, 200], None),
        ([18, 18, 48, 48, 200, 200, 200, 200, 200], "reader"),
    ],
)
def test_by_the_lengths(words: list[int], preset: str | None) -> None:
    """As `init` does: by the share of short texts."""
    found = by_lengths(words)
    assert (found and found.preset) == preset
    init = unsuited_lengths(STRICT_SETTINGS, Counter(words))
    assert (init and init.preset) == preset


@pytest.mark.parametrize(
    ("pairs", "median", "preset", "share"),
    [
        ({}, 200, "strict", ""),
        ({"s10": 1000, "s40": 1000}, 200, "strict", ""),
        ({"s90": 80, "s100": 20}, 200, "strict", "0%"),
        ({"s70": 40, "s90": 60}, 200, "reader", "43%"),  # the keys find 0.89 of those
        ({"s70": 20, "s90": 80}, 200, "strict", "22%"),
        ({"s90": 4, "s98": 90, "s100": 6}, 800, "supershingles", "96%"),
        ({"s90": 4, "s98": 90, "s100": 6}, 400, "strict", "0%"),
    ],
)
def test_by_the_pairs(pairs: dict[str, int], median: int, preset: str, share: str) -> None:
    advice = _by_pairs(STRICT, histogram(**pairs), median)
    assert advice.preset == preset
    assert re.findall(r"\d+%", advice.reasons)[:1] == [share] * bool(share)


def test_every_preset_is_explained() -> None:
    assert PRESETS_IN_WORDS.keys() == PRESETS.keys()
    for name in ("strict", "reader"):
        shingle, threshold = PRESETS[name]["shingle"], PRESETS[name]["threshold"]
        assert f"{shingle}-word shingles, threshold {threshold}" in PRESETS_IN_WORDS[name]
    assert Settings.chosen(("text",), preset="strict") == Settings(("text",))
    reader = Settings.chosen(("text",), preset="reader")
    assert (reader.shingle, reader.threshold, reader.scheme.bands, reader.scheme.rows) == (3, 0.7, 17, 4)
    assert (reader.measure, reader.min) == (MeasureName.EDIT, 0.71)
    other = Settings.chosen(("text",), preset="reader", measure="jaccard")
    assert (other.shingle, other.measure, other.min) == (3, MeasureName.RESEMBLANCE, None)  # the caller chooses it
