"""Facts that differ between two texts of the same form.

A slot is a place where tokens of one text replace tokens of the other, in equal surroundings. Its facts differ if each
text has facts there that cannot be the same. The result for (b, a) is that for (a, b), with the sides exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from es_neardupe.keys.text import Range
from es_neardupe.options import FactKind
from es_neardupe.similarity.facts import product_words as products
from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.dates import are_equal_times, may_be_day, may_be_hour
from es_neardupe.similarity.facts.names import has, is_name, replaced_words
from es_neardupe.similarity.facts.opposites import are_opposites
from es_neardupe.similarity.facts.spelling import differ_in_layout_only, digit_groups, have_equal_signs, is_variant
from es_neardupe.similarity.facts.token_changes import Surroundings, token_changes
from es_neardupe.similarity.facts.token_flags import TokenFlag
from es_neardupe.similarity.facts.tokens import TITLE, FactTokens, Part, SlotToken

_MAX_SLOT = 8
"""Tokens of a slot in each text. More is a rewritten passage, unless all are facts of the same kinds."""
_MAX_NEGATION = 4
"""Tokens of a change by which only a negation comes or goes."""
_MAX_SIZE = 2
"""Tokens of a slot in which S, M, L and the like are sizes."""
_MIN_TITLE = 3
"""Words and facts of two titles that differ in one word, wherever it stands."""
_MAX_OTHERS = 2
"""Other words in a slot of facts."""
_MAX_AGAINST_WORDS = 3
"""Tokens of a slot in which a code replaces words."""
_NUMERIC = (FactKind.AMOUNT, FactKind.UNIT, FactKind.DATE, FactKind.NUMBER, FactKind.CODE)
_SUFFIXES = frozenset("abcdef")
"""Small letters that make another number of one, unlike that of 1080p."""
_CONTENT = TokenFlag.CONTENT.value
_POSTCODE = re.compile(r"[A-Z]{1,2}-\d{4,5}")
"""With the letters of a country, which need not be written."""
_SIZE_IN_DIGITS = re.compile(r"n:\d{1,2}")
_NOT_IN_A_SIZE = re.compile(r"[.'’&]")


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
    slots: Iterable[_Slot] = (
        _Slot.of(a.part(*one.a), b.part(*one.b), one.surroundings)
        for one in changes
        if is_title or not (only_facts and one.surroundings is Surroundings.OTHER)
    )
    if is_title:
        slots = list(slots)
        if not any(one.kinds for one in slots):
            yield from _facts_of_titles(a, b, slots)
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
    def of(cls, a: Part, b: Part, surroundings: Surroundings) -> _Slot:
        layout = bool(len(a) and len(b)) and differ_in_layout_only(a.written, b.written)
        kinds = set() if layout or surroundings is Surroundings.OTHER else _kinds(a, b, surroundings)
        return cls(a, b, layout, kinds)


def _kinds(a: Part, b: Part, surroundings: Surroundings) -> set[FactKind]:
    """The kinds of facts that differ in a slot."""
    kinds = {FactKind.NEGATION} if _has_other_negation(a, b) else set()
    if not (len(a) and len(b)):
        return kinds
    if _are_other_sizes(a, b):
        return kinds | {FactKind.UNIT}
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
        replaced = replaced_words(a, b, equal_surroundings=surroundings is Surroundings.EQUAL and not left_a)
        return kinds | {replaced} if replaced else kinds
    return kinds | _kinds_against_words(a, b, left_a + left_b) if others <= _MAX_OTHERS else kinds


def _kinds_against_words(a: Part, b: Part, facts: Sequence[SlotToken]) -> set[FactKind]:
    """The kinds of facts that differ where one text has facts and the other words: type I and type II, IV and IM, or
    a code."""
    size = max(len(a), len(b))
    if size == 1 and any(map(_is_roman, facts)):
        written = [one.written for part in (a, b) for one in part.tokens]
        if all(one.isupper() for one in written):
            return {FactKind.NUMBER if min(map(len, written)) == 1 else FactKind.NAME}
    if size == 1 and are_opposites(a.written.lower(), b.written.lower()):
        return {FactKind.NUMBER}  # first and last
    has_code = any(one.kind is FactKind.CODE and not one.mark for one in facts)
    return {FactKind.CODE} if has_code and size <= _MAX_AGAINST_WORDS else set()


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
    if kinds == {FactKind.DATE, FactKind.NUMBER} and all(one.key[:2] == "n:" for one in (*a, *b)):
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


def _are_other_sizes(a: Part, b: Part) -> bool:
    """Whether both texts have a size of clothes, and not the same; one of them may be a number, as 38 against XL."""
    if max(len(a), len(b)) > _MAX_SIZE:
        return False
    one, other = _size(a), _size(b)
    return bool(one and other) and one != other and not one[:2] == other[:2] == "n:"


def _size(part: Part) -> str:
    """The size in letters, or else the only number; the empty string if there is none."""
    in_letters = (one.key for one in part.tokens if _is_size(part.text, one))
    number = part.tokens[0].key if len(part) == 1 and _SIZE_IN_DIGITS.fullmatch(part.tokens[0].key) else ""
    return next(in_letters, number)


def _is_size(text: FactTokens, token: SlotToken) -> bool:
    end = token.start + len(token.written)
    return token.written in products.SIZES and not _NOT_IN_A_SIZE.match(text.text, end)


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
    for kind, x, y in _left_over((a, b), left):
        yield DifferingPlace((kind,), False, _place(a, x), _place(b, y))
        return


def _place(text: FactTokens, token: SlotToken | None) -> Range:
    """The place of a token in the original text; without one, the end."""
    if token is None:
        return len(text.placed.original), len(text.placed.original)
    return text.placed.original_range(token.start, token.start + len(token.written))


def _left_over(
    texts: tuple[FactTokens, FactTokens], left: tuple[list[SlotToken], list[SlotToken]]
) -> Iterator[tuple[FactKind, SlotToken | None, SlotToken | None]]:
    """Each kind of which both sides have facts, and none that may be the same, with the first of each side; then words
    by which products differ."""
    facts = [[one for one in side if one.kind and not one.mark] for side in left]
    facts = [
        [one for one in side if not _is_of_another_kind(one, other)]
        for side, other in zip(facts, reversed(facts), strict=True)
    ]
    for kind in _NUMERIC:
        a, b = ([one for one in side if one.kind is kind] for side in facts)
        if a and b and not any(are_compatible(x, y) for x in a for y in b):
            yield kind, a[0], b[0]
    whole = [text.part(0, len(text)).tokens for text in texts]
    a, b = ([one for one in side if _is_size(text, one)] for text, side in zip(texts, whole, strict=True))
    if a and b and {one.key for one in a}.isdisjoint(one.key for one in b):
        yield FactKind.UNIT, a[0], b[0]
    a, b = (
        [one for one in side if is_name(one, texts) and not _is_a_call(text, one)]
        for text, side in zip(texts, left, strict=True)
    )
    if a and b and not any(is_variant(x.key, y.key) for x in a for y in b):
        yield FactKind.NAME, a[0], b[0]
    x, y = (
        next((one for one in side if _is_edition(one) and not has(other.all_keys, one.hash)), None)
        for side, other in zip(left, reversed(texts), strict=True)
    )
    if x or y:
        yield FactKind.NAME, x, y
    titles = [[one for one in tokens if one.kind or one.flags & _CONTENT] for tokens in whole]
    x, y = (next((one for one in title if one.key in products.CONDITIONS), None) for title in titles)
    if bool(x) != bool(y):
        yield FactKind.WORD, x, y
    x, y = _other_parts(*map(_parts_of, whole))
    if (x or y) and any(_is_a_noun(one, titles[1]) for one in titles[0]):
        yield FactKind.WORD, x, y
    yield from _other_qualities(*titles)
    yield from _turned(*whole)
    if min(map(len, titles)) >= _MIN_TITLE:
        a, b = _words_of_one(texts, titles)
        if len(a) == len(b) == 1:
            yield FactKind.WORD, a[0], b[0]


def _is_of_another_kind(one: SlotToken, others: Iterable[SlotToken]) -> bool:
    """Whether a fact may be one of another kind: of 5-10 €, one title may give the currency to the first amount."""
    return any(other.kind is not one.kind and are_compatible(one, other) for other in others)


def _words_of_one(
    texts: tuple[FactTokens, FactTokens], titles: Sequence[Sequence[SlotToken]]
) -> Iterator[list[SlotToken]]:
    """The words of each title of which the other has no variant."""
    words_of_one = [
        [one for one in title if one.kind is None and len(one.key) > 1 and not has(other.all_keys, one.hash)]
        for title, other in zip(titles, reversed(texts), strict=True)
    ]
    for side, other in zip(words_of_one, reversed(words_of_one), strict=True):
        yield [one for one in side if not any(_may_be_same(one.key, known.key) for known in other)]


def _parts_of(title: Sequence[SlotToken]) -> dict[str, SlotToken]:
    """The flavours of a product, and the parts, unless they come with it: ``drill with charger``."""
    found = {}
    for k, one in enumerate(title):
        comes_with_it = k > 0 and title[k - 1].key in products.BEFORE_ADDITIONS
        if one.key in products.FLAVOURS:
            found[products.FLAVOURS[one.key]] = one
        elif one.key in products.PARTS and not comes_with_it:
            found[products.PARTS[one.key]] = one
    return found


def _other_parts(a: Mapping[str, SlotToken], b: Mapping[str, SlotToken]) -> tuple[SlotToken | None, SlotToken | None]:
    """A part or a flavour that one title has and the other lacks."""
    x, y = (next((one for part, one in side.items() if part not in other), None) for side, other in ((a, b), (b, a)))
    return x, y


def _is_a_noun(token: SlotToken, other: Sequence[SlotToken]) -> bool:
    """Whether a word is in another title, too, and in lower case in one of them: what the product is, and no brand."""
    if token.kind or any(token.key in its for its in (products.PARTS, products.FLAVOURS, products.QUALITIES)):
        return False
    same = next((one for one in other if one.key == token.key), None)
    return same is not None and len(token.key) > 1 and (token.written.islower() or same.written.islower())


def _other_qualities(a: Sequence[SlotToken], b: Sequence[SlotToken]) -> Iterator[tuple[FactKind, SlotToken, SlotToken]]:
    """Words such as colours of which each title has one that the other lacks."""
    both: list[dict[str, dict[str, SlotToken]]] = [{}, {}]
    for found, side in zip(both, (a, b), strict=True):
        for one in side:
            if known := products.QUALITIES.get(one.key):
                found.setdefault(known[0], {}).update(dict.fromkeys(known[1], one))
    for quality, x in both[0].items():
        y = both[1].get(quality, x)
        if (only_x := x.keys() - y.keys()) and (only_y := y.keys() - x.keys()):
            yield FactKind.WORD, min(x[value] for value in only_x), min(y[value] for value in only_y)


def _turned(a: Sequence[SlotToken], b: Sequence[SlotToken]) -> Iterator[tuple[FactKind, SlotToken, SlotToken]]:
    """Words that change places around one such as ``to``: ``HDMI to VGA``, ``VGA to HDMI``."""
    ends = [
        {(x.key, z.key): x for x, y, z in zip(side, side[1:], side[2:], strict=False) if y.key in products.BETWEEN_ENDS}
        for side in (a, b)
    ]
    for (x, z), token in ends[0].items():
        if x != z and (other := ends[1].get((z, x))):
            yield FactKind.WORD, token, other


def _is_edition(token: SlotToken) -> bool:
    return token.key in products.EDITIONS and token.written[0].isupper()


def _may_be_same(one: str, other: str) -> bool:
    """Whether two words of titles are variants, contain each other (Holz and Holztisch), or may be one colour or the
    like."""
    qualities = [products.QUALITIES.get(word, ("", frozenset()))[1] for word in (one, other)]
    is_part = (one in other or other in one) and not are_opposites(one, other)
    return is_part or is_variant(one, other) or not qualities[0].isdisjoint(qualities[1])


def _is_a_call(text: FactTokens, token: SlotToken) -> bool:
    """Whether a word is one such as ``New!``."""
    return text.text.startswith("!", token.start + len(token.written))


def without_compatible(a: Sequence[SlotToken], b: Sequence[SlotToken]) -> tuple[list[SlotToken], list[SlotToken]]:
    """The facts that are left if each fact of a cancels the first one of b that may be the same."""
    left_a, left_b = [], list(b)
    for one in a:
        same = next((k for k, other in enumerate(left_b) if are_compatible(one, other)), None)
        if same is None:
            left_a.append(one)
        else:
            del left_b[same]
    return left_a, left_b


def are_compatible(one: SlotToken, other: SlotToken) -> bool:
    """Whether two facts may be the same: equal values, dates with unknown parts, an amount without its currency."""
    if one.key == other.key:
        return True
    if ":(" in one.key or ":(" in other.key:
        return any(are_compatible(x, y) for x in _readings(one) for y in _readings(other))
    x, y = _as_date(one, other), _as_date(other, one)
    if x[:2] == y[:2] == "d:" and "-" in x and "-" in y:
        return _are_compatible_dates(x[2:].split("-"), y[2:].split("-"))
    is_time = "d:t" in (one.key[:3], other.key[:3])
    if is_time or one.key.rpartition(":")[2] != other.key.rpartition(":")[2]:
        return _may_be(one, other) or _may_be(other, one)
    kinds = {one.kind, other.kind}
    if FactKind.NUMBER not in kinds:
        return kinds == {FactKind.AMOUNT} and "¢" in one.key + other.key  # cents of any currency
    is_ordinal = "o" in (one.key[0], other.key[0])
    return not is_ordinal and kinds != {FactKind.UNIT, FactKind.NUMBER}


def _readings(token: SlotToken) -> list[SlotToken]:
    """A fact, or both readings of ``($50)``: an amount in brackets, and a negative one."""
    if ":(" not in token.key:
        return [token]
    return [token._replace(key=token.key.replace(":(", sign)) for sign in (":", ":-")]


def _may_be(one: SlotToken, other: SlotToken) -> bool:
    """Whether a fact is another notation of one of another form: a share, a time of day, or a decade."""
    if one.key[:3] == "d:t":
        return are_equal_times(one.key, other.key) or may_be_hour(one.key, other.key, other.written)
    if one.key[:2] == "d:" and "-" in one.key and other.kind is FactKind.NUMBER:
        return may_be_day(one.key, other.written)
    if one.key[:3] == "d:*" and one.key[-1] == "s":
        return other.key[:2] == "d:" and other.key[-3:] == one.key[-3:]
    return _is_share(one.key, other.key)


def _is_share(key: str, other: str) -> bool:
    """Whether a fraction is a share in percent: a quarter and 25 %, two thirds and 67 %."""
    if key[:4] != "n:0." or other[:2] != "%:" or not other[2:].isdigit():
        return False
    return round(100 * float(key[2:])) == int(other[2:])


def _as_date(one: SlotToken, other: SlotToken) -> str:
    """The key of a fact; of a year next to a date, as a date of which only the year is known."""
    is_year = one.kind is FactKind.DATE and one.key[:2] == "n:" and other.key[:2] == "d:"
    return f"d:{one.key[2:]}-*-*" if is_year else one.key


def _are_compatible_dates(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two dates agree in what is known of both. Of two parts instead of three, the second is ``?day/month`` in
    any order."""
    if len(one) == len(other):
        return all(x == y or "*" in (x, y) for x, y in zip(one, other, strict=True))
    long, short = (one, other) if len(one) == 3 else (other, one)
    same_year = short[0] == long[0] or "*" in (short[0], long[0])
    return same_year and set(long[1:]) == set(short[1].removeprefix("?").split("/"))
