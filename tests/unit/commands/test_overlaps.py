"""Text blocks shared by two texts: their positions in the original texts, and the marked HTML."""

from __future__ import annotations

import html
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import in_seconds, words

from es_neardupe.commands.duplicates.results import overlaps
from es_neardupe.display_text import shown
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.keys.text import tokenize

MARK = re.compile(r'<mark class="overlap" data-block="(\d+)">(.*?)</mark>', re.DOTALL)

WORDS = st.lists(
    st.sampled_from(["a", "B", "b", "Ça", "don't", "日本", "<b>", "&amp;", '"', "\x00", "\u202e"]), max_size=30
)
PROSE = WORDS.map(" ".join)
ANY = st.text(st.characters(exclude_categories=()) | st.sampled_from("<>&\"' \r\n{}%"), max_size=60)


@given(PROSE | ANY, PROSE | ANY, st.integers(1, 4))
def test_blocks_hold_the_same_words(a: str, b: str, minimum: int) -> None:
    """In a and in b: at least the minimum number, unless the texts are identical; blocks do not overlap."""
    found = overlaps(a, b, minimum)
    for block in found.blocks:
        in_a, in_b = (tokenize(text[slice(*place)]) for text, place in ((a, block.a), (b, block.b)))
        assert in_a == in_b
        assert len(in_a) == block.words
        assert block.words >= minimum or tokenize(a) == tokenize(b)
    for places in ([one.a for one in found.blocks], [one.b for one in found.blocks]):
        ordered = sorted(places)
        assert all(one[1] <= other[0] for one, other in pairwise(ordered))
    assert found.words == sum(one.words for one in found.blocks)
    assert [one.a for one in found.blocks] == sorted(one.a for one in found.blocks)


@given(PROSE | ANY, PROSE | ANY, st.integers(1, 4))
def test_html_is_the_text_with_the_blocks_marked(a: str, b: str, minimum: int) -> None:
    found = overlaps(a, b, minimum)
    for text, marked, places in (
        (a, found.html_a, [one.a for one in found.blocks]),
        (b, found.html_b, [one.b for one in found.blocks]),
    ):
        plain = MARK.sub(r"\2", marked)
        assert html.unescape(plain) == shown(text)
        assert not set("<>\"'") & set(plain)
        numbers = {int(number): html.unescape(content) for number, content in MARK.findall(marked)}
        assert numbers == {n: shown(text[slice(*place)]) for n, place in enumerate(places, 1)}


@given(PROSE, PROSE, st.integers(1, 4))
def test_no_block_is_missed(a: str, b: str, minimum: int) -> None:
    """Each run of equal words of the minimum length touches a block in a or in b."""
    found = overlaps(a, b, minimum)
    runs = [
        {tuple(tokenize(text)[k : k + minimum]) for k in range(len(tokenize(text)) - minimum + 1)} for text in (a, b)
    ]
    assert bool(found.blocks) == bool(runs[0] & runs[1]) or tokenize(a) == tokenize(b)


def test_example() -> None:
    found = overlaps("Lucy had a gray cat.", "I know that LUCY had a gray cat!", min_words=3)
    assert [(one.a, one.b, one.words) for one in found.blocks] == [((0, 19), (12, 31), 5)]
    assert found.html_b == 'I know that <mark class="overlap" data-block="1">LUCY had a gray cat</mark>!'


def test_numbers_follow_a() -> None:
    one, other = words(0, 8), words(20, 8)
    found = overlaps(f"{one} here {other}", f"{other} there {one}")
    assert found.html_a == f"{_mark(1, one)} here {_mark(2, other)}"
    assert found.html_b == f"{_mark(2, other)} there {_mark(1, one)}"
    assert found.words == 16


def _mark(number: int, text: str) -> str:
    return f'<mark class="overlap" data-block="{number}">{text}</mark>'


def test_nothing_of_a_text_becomes_markup() -> None:
    nasty = "</mark><script>alert('1 & 2')</script>\x00 <img src=x onerror=\"alert(3)\">"
    found = overlaps(f"{nasty} {words(0, 6)}", f"{words(0, 6)} {nasty}", min_words=2)
    assert len(found.blocks) == 2
    for marked in (found.html_a, found.html_b):
        assert set(re.findall(r"<[^>]*>", marked)) == {
            '<mark class="overlap" data-block="1">', '<mark class="overlap" data-block="2">', "</mark>"
        }  # fmt: skip
        assert "\ufffd" in marked
        assert "\x00" not in marked


def test_short_texts() -> None:
    assert overlaps("", "").blocks == ()
    assert overlaps("Hello, world", "hello WORLD").words == 2, "the same words are one block, however few"
    assert overlaps("hello world", "hello moon").blocks == ()


def test_bad_input() -> None:
    with pytest.raises(SettingsError, match="at least 1 word, not 0"):
        overlaps("a", "b", 0)
    with pytest.raises(InputError, match="too large to compare"):
        overlaps("a" * 10_000_001, "b")


def test_long_texts_in_seconds() -> None:
    base = [f"w{k * 7919 % 100_003}" for k in range(100_000)]
    other = [f"new{k}" if k % 100 == 50 else word for k, word in enumerate(base)]
    with in_seconds(20):
        found = overlaps(" ".join(base), " ".join(other))
    assert len(found.blocks) == 1001
    assert found.words == 99_000
