"""Names and other words that replace each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np

from es_neardupe.keys.arrays import U64
from es_neardupe.options import FactKind
from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.opposites import are_contrary, are_opposites, deny_each_other
from es_neardupe.similarity.facts.spelling import differ_in_a_letter, is_variant
from es_neardupe.similarity.facts.token_flags import TokenFlag
from es_neardupe.similarity.facts.tokens import TITLE, FactTokens, Part, SlotToken

_UNCERTAIN, _CONTENT = TokenFlag.UNCERTAIN.value, TokenFlag.CONTENT.value
_BEGINS_A_SENTENCE = TokenFlag.START.value | _UNCERTAIN
_MAX_WORDS = 6
"""Words of a slot."""
_MAX_OTHERS = 1
"""Words besides names."""
_ARTICLES = ("a", "an")
_NEAR = 10
"""Tokens near a name among which there is a contact, so that the name belongs to it."""
_NEAR_CHARACTERS = 60
_CONTACT = re.compile(
    r"\W*(?:for\s+(?:immediate\s+release|more\s+information)\W+)?(?:press\s+|media\s+)?"
    r"(?:contacts?|kontakt|ansprechpartner|tel|telephone|phone|fax|e-?mail)\b|\W*office:",
    re.IGNORECASE,
)
_BYLINE = re.compile(
    r"\W*(?:(?:posted|written|published|updated|reported|verfasst|geschrieben|veröffentlicht|publié|publicado|escrito)"
    r"\s+)?(?:by|von|par|por|di|door|av|af)\b|\W*(?:copyright|\(c\)|©)",
    re.IGNORECASE,
)
"""The beginning of a line about who wrote or published a text."""
_SAYS = re.compile(
    r"(?<!\w)(?!(?:and|und|et|y|e|by|on|at|von|am|um|par|por|di|comments?|views?|shares?)\b)[^\W\d_A-Z][^\W\d_]+|[.!?]\s"
)
"""A word of a sentence, or its end: the name after it is not that of an author."""


def replaced_words(a: Part, b: Part, *, equal_surroundings: bool, has_slips: Callable[[], bool]) -> FactKind | None:
    """Whether names differ, or other words with a meaning, or one denies the other. ``equal_surroundings``: what words
    need that are no names. ``has_slips``: whether words of the texts differ in single letters by mistake, as names then
    may, too."""
    kept = _without_common(a.tokens, b.tokens)
    if not (kept[0] and kept[1]):
        return None
    if kind := _kind_of_contrary(*kept, equal_surroundings=equal_surroundings):
        return kind
    if len(kept[0]) == len(kept[1]) == 1:
        one, other = kept[0][0], kept[1][0]
        if {one.key, other.key} <= words.FUNCTION_WORDS and are_opposites(one.key, other.key):
            return _differing_words(*kept, equal_surroundings=equal_surroundings)  # AND, OR
    if all(side[-1].has_stop for side in kept):  # at the end of a sentence
        for side in kept:
            side[-1] = side[-1]._replace(has_stop=False)
    names, others = _names((a.text, b.text), kept)
    of_names = bool(names[0] and names[1])
    if _are_variants(*kept, of_names=of_names):
        return None
    if of_names and max(len(a), len(b)) <= _MAX_WORDS and max(map(len, others)) <= _MAX_OTHERS:
        names_a, names_b = _without_variants(*names, of_names=True)
        is_letter = len(names_a) == len(names_b) == 1 and differ_in_a_letter(names_a[0].key, names_b[0].key)
        return None if is_letter and has_slips() else _differing_names(a.text, b.text, names_a, names_b)
    return _differing_words(*kept, equal_surroundings=equal_surroundings)


def _kind_of_contrary(a: Sequence[SlotToken], b: Sequence[SlotToken], *, equal_surroundings: bool) -> FactKind | None:
    """The kind of words that are contrary; of two letters, and of two words that deny each other, whatever is around
    them."""
    if equal_surroundings and are_contrary(*("".join(one.key for one in side) for side in (a, b))):
        return FactKind.NEGATION
    if len(a) != 1 or len(b) != 1:
        return None
    if _is_capital(a[0]) and _is_capital(b[0]):
        return FactKind.CODE
    return FactKind.NEGATION if deny_each_other(a[0].key, b[0].key) else None


def _is_capital(token: SlotToken) -> bool:
    """Whether a token is a letter such as that of ``class A``, or of ``Group: A``."""
    return (
        len(token.written) == 1 and token.written.isupper() and token.flags & _BEGINS_A_SENTENCE != _BEGINS_A_SENTENCE
    )


def _differing_words(a: Sequence[SlotToken], b: Sequence[SlotToken], *, equal_surroundings: bool) -> FactKind | None:
    if not equal_surroundings:
        return None
    if any(are_opposites(one.key, other.key) for one in a for other in b):
        return FactKind.WORD
    content = [[one for one in side if one.flags & _CONTENT and one.key not in words.TITLES] for side in (a, b)]
    is_short = max(len(a), len(b)) <= _MAX_WORDS
    return FactKind.WORD if is_short and all(_without_variants(*content, of_names=False)) else None


def is_name(token: SlotToken, texts: Iterable[FactTokens]) -> bool:
    """Whether a word is capitalised, has several letters, is no title of address, and is nowhere in lower case, unless
    it is a function word there: ``US``, ``us``."""
    return (
        token.kind is None
        and len(token.key) > 1
        and token.key not in words.TITLES
        and token.written[0].isupper()
        and bool(token.flags & _CONTENT)
        and (token.key in words.FUNCTION_WORDS or not any(has(text.lower, token.hash) for text in texts))
    )


def has(values: U64, value: np.uint64) -> bool:
    """Whether a sorted array has a value."""
    place = values.searchsorted(value)
    return bool(place < len(values) and values[place] == value)


def _without_common(a: Sequence[SlotToken], b: Sequence[SlotToken]) -> tuple[list[SlotToken], list[SlotToken]]:
    """The words of each side that the other does not have in the slot. Which of the articles
    ``a`` and ``an`` it is depends on the next word."""
    common = Counter(one.key for one in a) & Counter(one.key for one in b)
    sides: tuple[list[SlotToken], list[SlotToken]] = [], []
    for kept, tokens in zip(sides, (a, b), strict=True):
        left = common.copy()
        for one in tokens:
            if left[one.key]:
                left[one.key] -= 1
            elif one.kind is None:
                kept.append(one)
    if all(any(one.written in _ARTICLES for one in kept) for kept in sides):
        for kept in sides:
            kept[:] = [one for one in kept if one.written not in _ARTICLES]
    return sides


def _names(
    texts: tuple[FactTokens, FactTokens], kept: tuple[list[SlotToken], list[SlotToken]]
) -> tuple[list[list[SlotToken]], list[list[SlotToken]]]:
    """The names of each side, and the other words, without titles such as ``Mr``. At the beginning of a sentence, or in
    a title of capitalised words, a word that is capitalised nowhere else is a name if it replaces one, or follows a
    word such as ``in``."""
    names: list[list[SlotToken]] = [[], []]
    others: list[list[SlotToken]] = [[], []]
    uncertain: list[tuple[int, SlotToken]] = []
    for side, text in enumerate(texts):
        for token in kept[side]:
            if token.key in words.TITLES:
                continue
            if not is_name(token, texts):
                others[side].append(token)
            elif (
                not token.flags & _UNCERTAIN
                or len(text) <= TITLE
                or _follows_a_place_word(text, token)
                or any(has(one.inner, token.hash) for one in texts)
            ):
                names[side].append(token)
            else:
                uncertain.append((side, token))
    for side, token in uncertain:
        (names if names[1 - side] else others)[side].append(token)
    return names, others


def _follows_a_place_word(text: FactTokens, token: SlotToken) -> bool:
    """Whether a word of a title is after one such as ``in``: ``Cook in Leeds``."""
    if token.flags & _BEGINS_A_SENTENCE == _BEGINS_A_SENTENCE or not token.number:
        return False
    return text.placed.prepared[slice(*text.spans[token.number - 1].tolist())].lower() in words.BEFORE_PLACES


def _without_variants(
    a: Sequence[SlotToken], b: Sequence[SlotToken], *, of_names: bool
) -> tuple[list[SlotToken], list[SlotToken]]:
    """The words of each side that are no variant of one of the other side."""

    def without(side: Sequence[SlotToken], others: Sequence[SlotToken]) -> list[SlotToken]:
        return [
            one
            for one in side
            if not any(is_variant(_spelled(one), _spelled(other), of_names=of_names) for other in others)
        ]

    return without(a, b), without(b, a)


def _are_variants(a: Sequence[SlotToken], b: Sequence[SlotToken], *, of_names: bool) -> bool:
    """Whether the words of one side are those of the other, together in another spelling or order."""
    spelled = [[_spelled(one) for one in side] for side in (a, b)]
    is_variant_of = any(is_variant(*map(separator.join, spelled), of_names=of_names) for separator in (" ", ""))
    return is_variant_of or _is_compound(a, b) or _is_compound(b, a)


def _is_compound(a: Sequence[SlotToken], b: Sequence[SlotToken]) -> bool:
    """Whether a word consists of those of the other side: ``Holztisch``, ``Tisch Holz``."""
    parts = [one.key for one in b]
    return len(a) == 1 and len(a[0].key) == len("".join(parts)) and all(part in a[0].key for part in parts)


def _spelled(token: SlotToken) -> str:
    """A word, with the full stop after it, by which it may be abbreviated."""
    return f"{token.key}." if token.has_stop else token.key


def _differing_names(
    a: FactTokens, b: FactTokens, names_a: Sequence[SlotToken], names_b: Sequence[SlotToken]
) -> FactKind | None:
    """Names, or those of contacts or stamps; None if all names are elsewhere in the other text, as in a list in another
    order."""
    if not (names_a and names_b):
        return None
    if all(has(b.all_keys, one.hash) for one in names_a) and all(has(a.all_keys, one.hash) for one in names_b):
        return None
    of_contact = chain((_is_in_contact(a, one) for one in names_a), (_is_in_contact(b, one) for one in names_b))
    if any(of_contact):
        return FactKind.CONTACT
    of_stamp = chain((_is_in_stamp(a, one) for one in names_a), (_is_in_stamp(b, one) for one in names_b))
    return FactKind.STAMP if all(of_stamp) else FactKind.NAME


def _is_in_contact(text: FactTokens, token: SlotToken) -> bool:
    """Whether a name is in a line that begins as one of a contact, or near a phone number or an address."""
    line = text.text.rfind("\n", 0, token.start) + 1
    if _CONTACT.match(text.text, line, token.start + 1):
        return True
    near = range(max(token.number - _NEAR, 0), min(token.number + _NEAR, len(text)))
    return any(
        text.marks.get(k) is FactKind.CONTACT and abs(int(text.spans[k, 0]) - token.start) < _NEAR_CHARACTERS
        for k in near
    )


def _is_in_stamp(text: FactTokens, token: SlotToken) -> bool:
    """Whether a name is near a date of publication in a line about that: the line begins as one of the author or of the
    copyright, or a counter, as of comments, follows."""
    line, end = text.text.rfind("\n", 0, token.start) + 1, text.text.find("\n", token.start)
    near = range(max(token.number - _NEAR, 0), min(token.number + _NEAR, len(text)))
    starts = {k: int(text.spans[k, 0]) for k in near if k in text.marks}
    marks = {text.marks[k]: k for k, start in starts.items() if line <= start and (start < end or end < 0)}
    if FactKind.STAMP not in marks:
        return False
    counter, byline = marks.get(FactKind.COUNTER, 0), _BYLINE.match(text.text, line)
    if counter > token.number:
        between = text.text[token.start : starts[counter]]
    elif byline:
        between = text.text[byline.end() : token.start]
    else:
        return False
    return not _SAYS.search(between)
