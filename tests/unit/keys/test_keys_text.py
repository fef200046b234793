"""Tokens, and the frozen Unicode table against Unicode itself."""

from __future__ import annotations

import json
import re
import unicodedata
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.keys.text import spans, tokenize
from es_neardupe.keys.unicode import LOWER, SINGLE, WORD, build, table


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_tokens_are_those_of_a_regular_expression(text: str) -> None:
    assert tokenize(text) == re.findall(r"\w+", text.lower())


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, WORLD_2!", ["hello", "world_2"]),
        ("don't", ["don", "t"]),
        ("İstanbul", ["istanbul"]),
        ("ΣΊΣΥΦΟΣ", ["σίσυφοσ"]),  # no final sigma: no code point looks at its neighbours
        ("Cafe\u0301", ["cafe\u0301"]),  # marks stay, nothing is composed
        ("नमस्ते", ["नमस्ते"]),
        ("x東y", ["x", "東", "y"]),
        ("タワー", ["タ", "ワ", "ー"]),
        ("น้ำ", ["น", "้", "ำ"]),
        ("a\0b\ud800c", ["a", "b", "c"]),
        ("\u212a\u2126ẞȺ", ["kωßⱥ"]),
        ("x\u0378y", ["x", "y"]),  # unassigned
        ("\U0003fffdx", ["\U0003fffd", "x"]),  # unassigned, but of the Han planes
        ("", []),
        (" .\n", []),
    ],
)
def test_examples(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def test_spans_stand_in_the_original() -> None:
    source = "İ, ẞx 東京!"
    assert [source[start:end] for start, end in spans(source).tolist()] == ["İ", "ẞx", "東", "京"]
    assert spans("").shape == (0, 2)


def test_the_table_agrees_with_unicode() -> None:
    """For code points that the running Python has like Unicode 14, and unassigned ones."""
    entries = table().tolist()
    for point in range(0x110000):
        character = chr(point)
        category = unicodedata.category(character)
        is_word = bool(entries[point] & WORD)
        if 0x20000 <= point <= 0x3FFFD:
            assert entries[point] & SINGLE
        elif category == "Cn":
            assert not is_word or unicodedata.unidata_version < "14"
        elif category[0] in "LNM" or character == "_":
            # A word character that is missing here was assigned after Unicode 14.
            assert is_word or unicodedata.unidata_version > "14.0.0", hex(point)
        else:
            assert not is_word, hex(point)
        if is_word and category != "Cn":
            lower = chr(entries[point] & LOWER)
            assert lower == (character.lower() if len(character.lower()) == 1 else "i"), hex(point)


def test_single_characters_are_word_characters_of_spaceless_scripts() -> None:
    entries = table()
    single = np.flatnonzero(entries & SINGLE)
    assert (entries[single] & WORD).all()
    scripts = "CJK IDEOGRAPHIC HIRAGANA KATAKANA HALFWIDTH THAI LAO KHMER MYANMAR HANGZHOU HENTAIGANA KATAKANA-HIRAGANA"
    known = {*scripts.split(), "VERTICAL", "MASU", "COMBINING", "OLD", "VIETNAMESE"}
    names = {unicodedata.name(chr(p), "CJK").split()[0].split("-")[0] for p in single.tolist()}
    assert names <= known
    for character in "東々〇あゝアヽーｱﾞゟヿㇰไ๑ກກຳក្ကꩡꧠ":
        assert entries[ord(character)] & SINGLE, character
    for character in "aéЖא한ㄅ꒐ཀ・、〮":
        assert not entries[ord(character)] & SINGLE, character


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="another version of Unicode")
def test_the_file_is_what_the_recipe_makes() -> None:
    assert json.loads((files("es_neardupe.keys") / "unicode_v1.json").read_text("ascii")) == build()
