"""Flags of the tokens of a text: beginnings of sentences, function words, capitals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntFlag

import numpy as np

from es_neardupe.keys.arrays import Octets
from es_neardupe.similarity import batch
from es_neardupe.similarity.facts.reader import Tokens
from es_neardupe.similarity.facts.vocabulary import ABBREVIATED_TITLES, BEFORE_NAMES, FUNCTION_WORDS, PIECES

_SENTENCE_END = re.compile(r"[.!?…:;•\n\t]|--")
_AFTER_ABBREVIATION = re.compile(r"\.(?:-|[ \u00a0]+)")
"""Between a title or an initial and the next word: ``Mr. Schmidt``, ``J. Schmidt``, ``Dipl.-Ing.``"""
_AFTER_LABEL = re.compile(r":[ \t\u00a0]+")
"""Between a label and its value, such as ``Customer: Maier``: capitals are not those of a sentence."""
_IN_NAME = re.compile(rf"[ \u00a0]+|{_AFTER_ABBREVIATION.pattern}")
"""Between two words of a name."""
_MAX_ACRONYM = 3
"""Letters of an acronym that is spelled like a function word. Longer ones are emphasised: ``MUST``, ``SHALL``."""
_MAX_NAME = 3
"""Words of a name in a title of capitalised words. More are a headline."""


class TokenFlag(IntFlag):
    """What a token is, besides its kind."""

    START = 1
    """It begins a sentence or a line."""
    CONTENT = 2
    """A word that is no function word, also if it is spelled like one: ``US``, ``WHO``, ``Mr Will``."""
    LOWER = 4
    """A word in lower case."""
    UNCERTAIN = 8
    """A word that is capitalised for its place: at the beginning of a sentence, or in a title of such words."""
    INNER = 16
    """A word that is capitalised elsewhere, and not in capitals throughout."""
    CAPITALS = 32
    """A word of several letters in capitals."""


_START, _CONTENT, _LOWER, _UNCERTAIN, _INNER, _CAPITALS = (flag.value for flag in TokenFlag)


def flags_of(text: str, tokens: Tokens, title: int) -> Octets:
    """uint8[tokens]: the `TokenFlag` of each token. ``title``: number of tokens of the title."""
    flags = np.zeros(len(tokens), np.uint8)
    if batch.kernel:
        codes = text.encode("utf-32-le", "surrogatepass")
        batch.kernel.flags(
            codes, tokens.keys, tokens.starts, tokens.ends, tokens.kinds, FUNCTION_WORDS, ABBREVIATED_TITLES, flags
        )
    else:
        flags[:] = list(_found(text, tokens))
    if names := _names_like_function_words(tokens, flags):
        flags[names] |= _CONTENT
    first = flags[:title]
    if 2 * np.count_nonzero((first & _CONTENT != 0) & (first & _LOWER == 0)) > title:
        upper = first & _LOWER == 0
        upper[_addressed(text, tokens, first)] = False
        first[upper] = first[upper] & ~np.uint8(_INNER) | _UNCERTAIN
    return flags


def _names_like_function_words(tokens: Tokens, flags: Octets) -> list[int]:
    """The names that are spelled like function words: acronyms, and capitalised words after a title of address."""
    keys, kinds = tokens.keys, tokens.kinds
    inside = np.flatnonzero(flags & (_CONTENT | _LOWER | _START) == 0).tolist()
    found = [k for k in inside if keys[k - 1] in ABBREVIATED_TITLES and k not in kinds]
    in_capitals = np.flatnonzero(flags & (_CAPITALS | _CONTENT) == _CAPITALS).tolist()
    acronyms = [k for k in in_capitals if len(keys[k]) <= _MAX_ACRONYM and keys[k] not in PIECES]
    if acronyms:  # none in a text, or a sentence, that is in capitals
        capitals = flags & _CAPITALS != 0
        small = (flags & (_LOWER | _UNCERTAIN | _INNER) != 0) & ~capitals
        sentence = np.cumsum(flags & _START != 0)
        loud = np.bincount(sentence, capitals) > np.maximum(np.bincount(sentence, small), 1)
        if capitals.sum() <= max(small.sum(), 1):
            found += [k for k in acronyms if not loud[sentence[k]]]
    return found


def _addressed(text: str, tokens: Tokens, title: Octets) -> list[int]:
    """The words of a title that are names: those after a label, a greeting or a title of address. In a headline,
    such as ``Sen. Smith Introduces New Bill``, it is one word. ``title``: the flags of its tokens."""

    def between(k: int) -> str:
        return text[tokens.ends[k - 1] : tokens.starts[k]]

    found: list[int] = []
    has_label = ":" in text[: tokens.ends[len(title) - 1]]
    for first in range(1, len(title)):
        is_in_name = tokens.keys[first - 1] in BEFORE_NAMES and _IN_NAME.fullmatch(between(first))
        if not (is_in_name or (has_label and _AFTER_LABEL.fullmatch(between(first)))):
            continue
        end = first
        while end < len(title) and not title[end] & _LOWER and end not in tokens.kinds:
            end += 1
            if end < len(title) and not _IN_NAME.fullmatch(between(end)):
                break
        is_name = end - first <= _MAX_NAME and all(title[first:end] & _CONTENT)
        found.extend(range(first, end) if is_name else [first])
    return found


def _found(text: str, tokens: Tokens) -> Iterator[int]:
    """The flags of each token, without regard to titles."""
    before = 0
    is_abbreviated = False
    for k, (key, start, end) in enumerate(zip(tokens.keys, tokens.starts, tokens.ends, strict=True)):
        between = text[before:start]
        begins = not k or (len(between) > 1 and _SENTENCE_END.search(between) is not None)
        if is_abbreviated and _AFTER_ABBREVIATION.fullmatch(between):
            begins = False
        flags = _START if begins else 0
        if k not in tokens.kinds:
            flags |= 0 if key in FUNCTION_WORDS else _CONTENT
            is_in_capitals = end - start > 1 and text[start:end].isupper()
            flags |= _CAPITALS if is_in_capitals else 0
            if text[start].islower():
                flags |= _LOWER
            elif begins and not (k and _AFTER_LABEL.fullmatch(between)):
                flags |= _UNCERTAIN
            elif not is_in_capitals:
                flags |= _INNER
        yield flags
        before = end
        # a single capital that begins a sentence is the letter of a list
        is_initial = end - start == 1 and text[start].isupper() and not flags & _UNCERTAIN
        is_abbreviated = k not in tokens.kinds and (is_initial or key in ABBREVIATED_TITLES)
