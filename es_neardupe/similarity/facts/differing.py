"""Facts that differ between two texts of the same form.

A slot is a place where tokens of one text replace tokens of the other, in equal surroundings. Its facts differ if each
text has facts there that cannot be the same. The result for (b, a) is that for (a, b), with the sides exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from es_neardupe.keys.text import Range
from es_neardupe.options import FactKind
from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.compatible import are_compatible, without_compatible
from es_neardupe.similarity.facts.exchanges import exchanges
from es_neardupe.similarity.facts.fact_keys import NUMBER
from es_neardupe.similarity.facts.names import replaced_words
from es_neardupe.similarity.facts.opposites import are_opposites
from es_neardupe.similarity.facts.spelling import (
    differ_in_layout_only,
    digit_groups,
    have_equal_signs,
    is_slip,
    is_variant,
)
from es_neardupe.similarity.facts.titles import are_of_clothes, facts_of_first_lines, facts_of_titles, sizes_of
from es_neardupe.similarity.facts.token_changes import Surroundings, TokenChange, token_changes
from es_neardupe.similarity.facts.token_flags import TokenFlag
from es_neardupe.similarity.facts.tokens import TITLE, FactTokens, Part, SlotToken

_MAX_SLOT = 8
"""Tokens of a slot in each text. More is a rewritten passage, unless all are facts of the same kinds."""
_MAX_NEGATION = 4
"""Tokens of a change by which only a negation comes or goes."""
_MAX_SIZE = 2
"""Tokens of a slot in which S, M, L and the like are sizes."""
_MAX_OTHERS = 2
"""Other words in a slot of facts."""
_MAX_AGAINST_WORDS = 3
"""Tokens of a slot in which a code replaces words."""
_MIN_LETTERS = 3
"""Letters of a word instead of a fact: fewer may abbreviate one, as ``Mi.`` does ``Mittwoch``."""
_MISREAD = 0.6
"""Similarity (Levenshtein 1966) of a spelled-out fact and a misread one, at least."""
_SUFFIXES = frozenset("abcdef")
"""Small letters that make another number of one, unlike that of 1080p."""
_CONTENT = TokenFlag.CONTENT.value
_POSTCODE = re.compile(r"[A-Z]{1,2}-\d{4,5}")
"""With the letters of a country, which need not be written."""
_SEVERAL = re.compile(rf"{NUMBER}(?!1$)[1-9]\d*")
_SIZE_IN_DIGITS = re.compile(rf"{NUMBER}\d{{1,2}}")


@dataclass(frozen=True, slots=True)
class Fact:
    """Facts that differ between two near-copies in one place."""

    kinds: tuple[FactKind, ...]
    a: Range
    """Characters of the original text. An empty range is a position."""
    b: Range
    words_a: str
    """The text of range ``a``."""
    words_b: str


def in_words(facts: Sequence[Fact]) -> str:
    """Facts as text, such as ``amount: $180,000 / $195,000``."""
    return "; ".join(
        f"{', '.join(kind.value for kind in one.kinds)}: {one.words_a or '-'} / {one.words_b or '-'}" for one in facts
    )


@dataclass(frozen=True, slots=True)
class DifferingPlace:
    """A place where two texts differ, whether or not in facts."""

    kinds: tuple[FactKind, ...]
    """Kinds of the facts that differ; none if only other words do."""
    layout: bool
    """Whether the readings differ in spelling or layout only, such as ``13 15 million`` and ``$13.15 million``."""
    a: Range
    """Characters of the original text. An empty range is a position."""
    b: Range


def differing_facts(a: FactTokens, b: FactTokens) -> list[Fact]:
    """The facts that differ, by position in the text that comes first in order; a title first."""
    return [
        Fact(one.kinds, one.a, one.b, _original(a, one.a), _original(b, one.b))
        for one in _differences(a, b, only_facts=True)
    ]


def facts_agree(a: FactTokens, b: FactTokens, kinds: frozenset[FactKind]) -> bool:
    """Whether no facts of these kinds differ: known as soon as some do."""
    return all(kinds.isdisjoint(one.kinds) for one in _differences(a, b, only_facts=True))


def differences(a: FactTokens, b: FactTokens) -> list[DifferingPlace]:
    """All places where the tokens differ, also inserted and removed ones, but no moved passages."""
    return list(_differences(a, b, only_facts=False))


def _differences(a: FactTokens, b: FactTokens, *, only_facts: bool) -> Iterator[DifferingPlace]:
    if codes := a.codes ^ b.codes:
        a, b = a.with_codes_joined(codes), b.with_codes_joined(codes)
    if max(len(a), len(b)) <= TITLE:
        a, b = a.with_packs_divided(b), b.with_packs_divided(a)
    if len(a) == len(b) and np.array_equal(a.keys, b.keys):
        return
    if a.keys.tobytes() > b.keys.tobytes():
        for one in _in_order(b, a, only_facts=only_facts):
            yield DifferingPlace(one.kinds, one.layout, one.b, one.a)
    else:
        yield from _in_order(a, b, only_facts=only_facts)


def _original(text: FactTokens, characters: Range) -> str:
    return text.placed.original[slice(*characters)]


def _in_order(a: FactTokens, b: FactTokens, *, only_facts: bool) -> Iterator[DifferingPlace]:
    if title := _differing_title(a, b):
        yield title
    changes = token_changes(a, b)
    is_title = max(len(a), len(b)) <= TITLE
    exchanged = exchanges(a, b, changes)

    @cache
    def has_slips() -> bool:
        return _has_slips(a, b, changes)

    slots: Iterable[_Slot] = (
        _Slot(a.part(*exchanged[k].a), b.part(*exchanged[k].b), layout=False, kinds={FactKind.NAME})
        if k in exchanged
        else _Slot.of(a.part(*one.a), b.part(*one.b), one.surroundings, has_slips)
        for k, one in enumerate(changes)
        if k - 1 not in exchanged and (is_title or not (only_facts and one.surroundings is Surroundings.OTHER))
    )
    if is_title or title:
        slots = list(slots)
        if is_title and not any(one.kinds for one in slots):
            yield from _facts_of_titles(a, b, slots)
        if title and not any(one.kinds for one in slots if one.a.first < a.title):
            yield from _of_first_lines(a, b)
    for one in slots:
        if one.kinds or not only_facts:
            yield DifferingPlace(
                tuple(kind for kind in FactKind if kind in one.kinds),
                one.layout,
                a.placed.original_range(*one.a.characters),
                b.placed.original_range(*one.b.characters),
            )


class _Slot(NamedTuple):
    """A change, and what differs in it."""

    a: Part
    b: Part
    layout: bool
    kinds: set[FactKind]

    @classmethod
    def of(cls, a: Part, b: Part, surroundings: Surroundings, has_slips: Callable[[], bool]) -> _Slot:
        layout = bool(len(a) and len(b)) and differ_in_layout_only(a.written, b.written)
        kinds = set() if layout or surroundings is Surroundings.OTHER else _kinds(a, b, surroundings, has_slips)
        return cls(a, b, layout, kinds)


def _has_slips(a: FactTokens, b: FactTokens, changes: Sequence[TokenChange]) -> bool:
    """Whether a word that is no name is misspelled in one of the texts."""
    for one in changes:
        parts = a.part(*one.a), b.part(*one.b)
        if all(len(part) == 1 and part.written.islower() for part in parts):
            x, y = (part.written for part in parts)
            if is_slip(x, y) and not are_opposites(x, y):
                return True
    return False


def _kinds(a: Part, b: Part, surroundings: Surroundings, has_slips: Callable[[], bool]) -> set[FactKind]:
    """The kinds of facts that differ in a slot."""
    kinds = {FactKind.NEGATION} if _has_other_negation(a, b) else set()
    if not (len(a) and len(b)):
        return kinds
    if sizes := _sizes(a, b):
        return kinds | {FactKind.UNIT} if sizes[0] != sizes[1] else kinds
    size = max(len(a), len(b))
    facts_a, facts_b = a.facts, b.facts
    others = max(len(a) - len(facts_a), len(b) - len(facts_b))
    if size > _MAX_SLOT and (others or _kinds_in_order(facts_a) != _kinds_in_order(facts_b)):
        return set()
    left_a, left_b = without_compatible(facts_a, facts_b)
    if (
        _kinds_in_order(left_a) != _kinds_in_order(left_b)
        and _have_equal_digits(a.written, b.written)
        and not _are_codes_with_other_letters(left_a, left_b)
    ):
        left_a, left_b = [], []  # 3 17 and $3.17 a gallon
    if bool(left_a) == bool(left_b):
        if left_a:
            if others > _MAX_OTHERS:
                return kinds
            kinds |= _kinds_of_facts(left_a, left_b)
        replaced = replaced_words(
            a, b, equal_surroundings=surroundings is Surroundings.EQUAL and not left_a, has_slips=has_slips
        )
        return kinds | {replaced} if replaced else kinds
    found = _kinds_against_words(a, b, left_a + left_b, others)
    is_word = not (found or kinds) and surroundings is Surroundings.EQUAL and _is_word_against(a, b, others)
    return kinds | found | ({FactKind.WORD} if is_word else set())


def _kinds_against_words(a: Part, b: Part, facts: Sequence[SlotToken], others: int) -> set[FactKind]:
    """The kinds of facts that differ where one text has facts and the other words: type I and type II, IV and IM, or
    a code. ``others``: the number of tokens that are no facts."""
    if kind := _kind_by_words(a, b) or _kind_by_words(b, a):
        return {kind}
    if others > _MAX_OTHERS:
        return set()
    size = max(len(a), len(b))
    if size == 1 and any(map(_is_roman, facts)):
        written = [one.written for part in (a, b) for one in part.tokens]
        if all(one.isupper() for one in written):
            return {FactKind.NUMBER if min(map(len, written)) == 1 else FactKind.NAME}
    if size == 1 and are_opposites(a.written.lower(), b.written.lower()):
        return {FactKind.NUMBER}  # first and last
    has_code = any(one.kind is FactKind.CODE and not one.mark for one in facts)
    return {FactKind.CODE} if has_code and size <= _MAX_AGAINST_WORDS else set()


def _is_word_against(a: Part, b: Part, others: int) -> bool:
    """Whether a word with a meaning is instead of a fact: ``tomorrow`` of ``on Monday``, ``waived`` of ``$5``."""
    facts, plain = (a, b) if a.facts else (b, a)
    if max(len(a), len(b)) > _MAX_AGAINST_WORDS or others > _MAX_OTHERS or plain.facts:
        return False
    if Levenshtein.normalized_similarity(a.written.lower(), b.written.lower()) >= _MISREAD:
        return False  # five, iive
    if any(one.mark for one in facts.facts) or any(one.key in words.BEFORE_CENT for one in plain.tokens):
        return False  # neuf is nine, or new
    return any(
        one.flags & _CONTENT and len(one.key) >= _MIN_LETTERS and not any(map(str.isupper, one.written[1:]))
        for one in plain.tokens
    )


def _kind_by_words(a: Part, b: Part) -> FactKind | None:
    """The kind of a fact in one of two slots that the words of the other stand for or against: ``a tablet`` and ``two
    tablets``, ``free`` and ``$5``, ``per kilo`` and ``per piece``."""
    if _is_one_of_several(a, b):
        return FactKind.NUMBER
    if _is_free(a, b):
        return FactKind.AMOUNT
    return FactKind.UNIT if _is_another_rate(a, b) else None


def _is_one_of_several(a: Part, b: Part) -> bool:
    """Whether a slot has one of what the other has several of: ``a tablet`` and ``two tablets``."""
    if len(a) != len(b):
        return False
    (one, *rest), (number, *others) = a.tokens, b.tokens
    return (
        one.key in words.BEFORE_ONE
        and number.kind is FactKind.NUMBER
        and bool(_SEVERAL.fullmatch(number.key))
        and all(is_variant(x.written, y.written) for x, y in zip(rest, others, strict=True))
    )


def _is_free(a: Part, b: Part) -> bool:
    """Whether one of two slots says ``free of charge`` and the other an amount."""
    return (
        len(a) <= _MAX_AGAINST_WORDS
        and any(one.key in words.FREE for one in a.tokens)
        and [one.kind for one in b.tokens] == [FactKind.AMOUNT]
    )


def _is_another_rate(a: Part, b: Part) -> bool:
    """Whether a slot has a rate with a unit, and the other one without: ``per kilo`` and ``per piece``."""
    if len(a) != 1 or len(b) != 2 or a.tokens[0].kind is not FactKind.UNIT:
        return False
    per, *_ = a.written.lower().split()
    return per in words.PER | words.BEFORE_ONE and b.tokens[0].key == per and b.tokens[1].kind is None


def _is_roman(token: SlotToken) -> bool:
    return token.kind is FactKind.NUMBER and token.written.isalpha() and token.written.isupper()


def _have_equal_digits(one: str, other: str) -> bool:
    return digit_groups(one) == digit_groups(other) != [] and have_equal_signs(one, other)


def _are_codes_with_other_letters(a: Sequence[SlotToken], b: Sequence[SlotToken]) -> bool:
    """Whether a fact of each side has other letters, and one is a code: 91H and 91V, which may be volts, 255 and 255S,
    house 12 and 12a."""
    if len(a) != 1 or len(b) != 1 or FactKind.CODE not in (a[0].kind, b[0].kind):
        return False
    one, other = ("".join(filter(str.isalpha, side[0].written)) for side in (a, b))
    if not (one and other):
        if any(_POSTCODE.fullmatch(side[0].written) for side in (a, b)):
            return False
        return (one + other).isupper() or (one + other) in _SUFFIXES
    one, other = one.casefold(), other.casefold()
    return not (one.startswith(other) or other.startswith(one))


def _kinds_in_order(tokens: Sequence[SlotToken]) -> list[FactKind | None]:
    return [one.kind for one in tokens]


def _kinds_of_facts(a: Sequence[SlotToken], b: Sequence[SlotToken]) -> set[FactKind]:
    """The kinds of facts of which none can be the same: those that both texts have, or else all."""
    if all(one.mark for one in a) or all(one.mark for one in b):
        return {one.mark for one in (*a, *b) if one.mark}
    kinds_a, kinds_b = ({one.kind for one in side if one.kind} for side in (a, b))
    if common := kinds_a & kinds_b:
        return common
    kinds = {kind for pair in zip(a, b, strict=False) for one in pair if (kind := one.kind)}
    if kinds == {FactKind.DATE, FactKind.NUMBER} and all(one.key.startswith(NUMBER) for one in (*a, *b)):
        return {FactKind.NUMBER}  # 2010 is a year or a number
    return kinds


def _has_other_negation(a: Part, b: Part) -> bool:
    """Whether the number of negations is odd in one text only."""
    if max(len(a), len(b)) > _MAX_NEGATION:
        return False
    negations = _negations(a), _negations(b)
    if sum(negations) % 2 == 0 or not (_is_inside(a) or _denies_its_sentence(a, b)):
        return False
    is_known = any(one.key in words.NOT_NEGATED for one in (*a.tokens, *b.tokens))
    return is_known or not (len(a) and len(b) and is_variant(a.written, b.written))


def _negations(part: Part) -> int:
    """The number of negations; ``ne pas`` is one."""
    keys = [one.key for one in part.tokens]
    halves = sum(one == "ne" and not words.NEGATIONS.isdisjoint(keys[k + 1 :]) for k, one in enumerate(keys))
    return sum(one in words.NEGATIONS for one in keys) - halves


def _is_inside(part: Part) -> bool:
    return part.first > 0 and part.end < len(part.text)


def _denies_its_sentence(a: Part, b: Part) -> bool:
    """Whether a change at the beginning, or the end, of both texts is a negation with nothing but function words, in a
    sentence of which the rest is in both: otherwise it is another sentence, or goes on in one text."""
    parts = [part for part in (a, b) if len(part)]
    others = (one for part in parts for one in part.tokens if one.key not in words.NEGATIONS | words.NOT_NEGATED)
    if any(one.flags & _CONTENT for one in others):
        return False
    if not (a.first or b.first):
        return all(part.end < len(part.text) and not _begins_a_sentence(part.text, part.end) for part in parts)
    is_end = a.end == len(a.text) and b.end == len(b.text)
    return is_end and all(part.first and not _begins_a_sentence(part.text, part.first) for part in parts)


def _begins_a_sentence(text: FactTokens, token: int) -> bool:
    return bool(text.flags[token] & TokenFlag.START)


def _sizes(a: Part, b: Part) -> tuple[str, str] | None:
    """The size of clothes of each text, of which one is in letters; the other may be a word, or a number: 38 against
    XL. None if they are no sizes."""
    if max(len(a), len(b)) > _MAX_SIZE:
        return None
    found = [sizes_of(part.text, part.tokens) for part in (a, b)]
    if not any(map(are_of_clothes, found)):
        return None
    one, other = (next(iter(sizes), _digits(part)) for sizes, part in zip(found, (a, b), strict=True))
    return (one, other) if one and other else None


def _digits(part: Part) -> str:
    """The key of the only number, which may be a size; the empty string if there is none."""
    return part.tokens[0].key if len(part) == 1 and _SIZE_IN_DIGITS.fullmatch(part.tokens[0].key) else ""


def _differing_title(a: FactTokens, b: FactTokens) -> DifferingPlace | None:
    """The first lines, if both are titles of a longer text and one has a word or a fact that the other lacks."""
    if not (a.title and b.title):
        return None
    titles = a.part(0, a.title), b.part(0, b.title)
    if any(one.mark for title in titles for one in title.tokens):
        return None  # the line of a stamp or a contact
    for one, other in (titles, titles[::-1]):
        keys, digits = {known.key for known in other.tokens}, "".join(digit_groups(other.written))
        for token in one.tokens:
            if token.key not in keys and not _is_in_title(token, other, digits):
                in_a, in_b = (text.placed.original_range(0, text.text.find("\n")) for text in (a, b))
                return DifferingPlace((FactKind.TITLE,), False, in_a, in_b)
    return None


def _is_in_title(token: SlotToken, title: Part, digits: str) -> bool:
    """Whether a title has a token in another spelling, or need not have it. ``digits``: all of the title's."""
    if token.kind is None:
        return not token.flags & _CONTENT or any(is_variant(token.written, known.written) for known in title.tokens)
    if _is_roman(token) and any(token.written.lower() == known.key for known in title.tokens):
        return True
    own = "".join(digit_groups(token.written))
    return bool(own and own in digits) or any(are_compatible(token, known) for known in title.facts)


def _facts_of_titles(a: FactTokens, b: FactTokens, slots: Sequence[_Slot]) -> Iterator[DifferingPlace]:
    """The first fact that differs in two short texts. Their words have no fixed order: what is left over in both is
    compared, wherever it is."""
    left: tuple[list[SlotToken], list[SlotToken]] = [], []
    for slot in slots:
        if not slot.layout:
            left[0].extend(slot.a.tokens)
            left[1].extend(slot.b.tokens)
    for kind, x, y in facts_of_titles((a, b), left):
        yield DifferingPlace((kind,), False, _place(a, x), _place(b, y))
        return


def _of_first_lines(a: FactTokens, b: FactTokens) -> Iterator[DifferingPlace]:
    """The facts by which products differ in the titles above longer texts."""
    for kind, x, y in facts_of_first_lines((a, b), (a.part(0, a.title).tokens, b.part(0, b.title).tokens)):
        yield DifferingPlace((kind,), False, _place(a, x), _place(b, y))


def _place(text: FactTokens, token: SlotToken | None) -> Range:
    """The place of a token in the original text; without one, the end."""
    if token is None:
        return len(text.placed.original), len(text.placed.original)
    return text.placed.original_range(token.start, token.start + len(token.written))
