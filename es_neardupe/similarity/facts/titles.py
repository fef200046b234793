"""Facts that differ between two titles: short texts, such as those of products, whose words have no fixed order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts import product_words as products
from es_neardupe.similarity.facts.compatible import are_compatible
from es_neardupe.similarity.facts.fact_keys import NUMBER, ORDINAL
from es_neardupe.similarity.facts.names import has, is_name
from es_neardupe.similarity.facts.opposites import are_opposites
from es_neardupe.similarity.facts.spelling import is_variant
from es_neardupe.similarity.facts.token_flags import TokenFlag
from es_neardupe.similarity.facts.tokens import FactTokens, SlotToken

_MIN_TITLE = 3
"""Words and facts of two titles that differ in one word, wherever it stands."""
_NUMERIC = (FactKind.AMOUNT, FactKind.UNIT, FactKind.DATE, FactKind.NUMBER, FactKind.CODE)
_CONTENT = TokenFlag.CONTENT.value
_MAX_NUMBERED = 3
"""Tokens that number a part of a series."""
_PART_NUMBER = re.compile(rf"(?:{NUMBER}|{ORDINAL})(?:[2-9]|[1-4]\d)")
_NOT_IN_A_SIZE = re.compile(r"[.'’&]")


def facts_of_titles(
    texts: tuple[FactTokens, FactTokens], left: tuple[list[SlotToken], list[SlotToken]]
) -> Iterator[tuple[FactKind, SlotToken | None, SlotToken | None]]:
    """Each kind of which both sides have facts, and none that may be the same, with the first of each side; then words
    by which products differ. ``left``: the tokens of the places where the texts differ."""
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
    yield from _other_sizes(texts, whole)
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
    yield from _numbered(texts, *whole)
    x, y = _other_parts(*map(_parts_of, whole))
    if (x or y) and any(_is_a_noun(one, titles[1]) for one in titles[0]):
        yield FactKind.WORD, x, y
    yield from _other_qualities(*titles)
    yield from _turned(*whole)
    if min(map(len, titles)) >= _MIN_TITLE:
        a, b = _words_of_one(texts, titles)
        if len(a) == len(b) == 1:
            yield FactKind.WORD, a[0], b[0]


def facts_of_first_lines(
    texts: tuple[FactTokens, FactTokens], titles: Sequence[Sequence[SlotToken]]
) -> Iterator[tuple[FactKind, SlotToken, SlotToken]]:
    """The sizes, and words such as colours, that differ between titles above longer texts. Their other words may be
    those of another headline."""
    yield from _other_sizes(texts, titles)
    yield from _other_qualities(*titles)


def _other_sizes(
    texts: tuple[FactTokens, FactTokens], titles: Sequence[Sequence[SlotToken]]
) -> Iterator[tuple[FactKind, SlotToken, SlotToken]]:
    """Sizes of clothes, if the titles have none in common."""
    a, b = (sizes_of(text, title) for text, title in zip(texts, titles, strict=True))
    if a and b and a.keys().isdisjoint(b) and (are_of_clothes(a) or are_of_clothes(b)):
        yield FactKind.UNIT, next(iter(a.values())), next(iter(b.values()))


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


def _numbered(
    texts: tuple[FactTokens, FactTokens], a: Sequence[SlotToken], b: Sequence[SlotToken]
) -> Iterator[tuple[FactKind, SlotToken | None, SlotToken | None]]:
    """The number of a part that ends one of two titles, and is all that the other lacks: ``Iron Giant 2``, ``Part II``,
    ``2nd edition``, but not that of a copy, ``report (2)``."""
    short, long = (a, b) if len(a) < len(b) else (b, a)
    added = long[len(short) :]
    if not 0 < len(added) <= _MAX_NUMBERED or [one.key for one in short] != [one.key for one in long[: len(short)]]:
        return
    others = [one for one in added if one.kind is not FactKind.NUMBER]
    number = next((one for one in added if one.kind is FactKind.NUMBER), None)
    if not number or (texts[0] if long is a else texts[1]).text.startswith("(", number.start - 1):
        return
    if _PART_NUMBER.fullmatch(number.key) and all(one.key in products.NUMBERED for one in others):
        yield (FactKind.NUMBER, None, number) if long is b else (FactKind.NUMBER, number, None)


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


def sizes_of(text: FactTokens, tokens: Iterable[SlotToken]) -> dict[str, SlotToken]:
    """The sizes of clothes among tokens: ``M``, ``medium``, ``XL``, also as ``X-Large``."""
    found = {}
    for one in tokens:
        if not _NOT_IN_A_SIZE.match(text.text, one.start + len(one.written)):
            if one.key in products.SIZES or one.written in products.SIZES_OF_ONE_LETTER:
                found[one.key] = one
            elif one.key in products.SIZES_IN_WORDS:
                found[products.SIZES_IN_WORDS[one.key]] = one
    return found


def are_of_clothes(sizes: Mapping[str, SlotToken]) -> bool:
    """Whether one of some sizes is in letters, or as ``extra large``: what is small alone may be anything."""
    return any(one.key not in products.SIZES_IN_WORDS for one in sizes.values())
