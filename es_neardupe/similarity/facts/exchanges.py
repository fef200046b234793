"""Names that change places: ``Smith sued Jones``, ``Jones sued Smith``.

Both texts have the same tokens. Their changes are the two names, or one of them with what is between, which is inserted
on one side of the other name and removed on its other side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from es_neardupe.keys.text import Range
from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.names import is_name
from es_neardupe.similarity.facts.token_changes import Surroundings, TokenChange
from es_neardupe.similarity.facts.token_flags import TokenFlag
from es_neardupe.similarity.facts.tokens import FactTokens, SlotToken

_MAX_TOKENS = 6
"""Tokens of a name, and of what is between two."""
_BEGINS, _CONTENT, _LOWER = TokenFlag.START.value, TokenFlag.CONTENT.value, TokenFlag.LOWER.value


def exchanges(a: FactTokens, b: FactTokens, changes: Sequence[TokenChange]) -> dict[int, TokenChange]:
    """The number of the first of two changes by which names change places -> one change that has both."""
    found = {}
    for k, (one, other) in enumerate(pairwise(changes)):
        whole = TokenChange((one.a[0], other.a[1]), (one.b[0], other.b[1]), min(one.surroundings, other.surroundings))
        if whole.surroundings is not Surroundings.OTHER and _is_exchange(a, b, one, other, whole):
            found[k] = whole
    return found


def _is_exchange(a: FactTokens, b: FactTokens, one: TokenChange, other: TokenChange, whole: TokenChange) -> bool:
    size = whole.a[1] - whole.a[0]
    if size != whole.b[1] - whole.b[0] or size > 3 * _MAX_TOKENS:
        return False
    for first, middle in _divided(one, other):
        last = size - first - middle
        if not 0 < min(first, middle, last) <= max(first, middle, last) <= _MAX_TOKENS:
            continue
        x, between, y = _parts(a, whole.a[0], first, middle, last)
        z, again, w = _parts(b, whole.b[0], last, middle, first)
        if [_keys(part) for part in (x, between, y)] == [_keys(part) for part in (w, again, z)]:
            return _differs(a, b, x, between, y)
    return False


def _divided(one: TokenChange, other: TokenChange) -> Iterator[tuple[int, int]]:
    """Tokens of the first name of a and of what is between the names, as the changes divide them."""
    sizes = [_size(side) for side in (one.a, one.b, other.a, other.b)]
    equal = other.a[0] - one.a[1]
    match sizes:
        case first, last, same, again if first and last and (same, again) == (last, first):
            yield first, equal
        case 0, inserted, removed, 0 if inserted == removed:
            yield from ((equal, middle) for middle in range(1, inserted))
        case removed, 0, 0, inserted if inserted == removed:
            yield from ((removed - middle, middle) for middle in range(1, removed))
        case _:
            return


def _size(characters: Range) -> int:
    return characters[1] - characters[0]


def _parts(text: FactTokens, at: int, *sizes: int) -> list[list[SlotToken]]:
    parts = []
    for size in sizes:
        parts.append(text.part(at, at + size).tokens)
        at += size
    return parts


def _keys(tokens: Sequence[SlotToken]) -> list[str]:
    return [one.key for one in tokens]


def _differs(
    a: FactTokens, b: FactTokens, x: Sequence[SlotToken], between: Sequence[SlotToken], y: Sequence[SlotToken]
) -> bool:
    """Whether two names are in one sentence, and what is between them says more of one than of the other."""
    if any(one.flags & _BEGINS for one in (*between, *y)) or not all(
        any(is_name(one, (a, b)) for one in name) for name in (x, y)
    ):
        return False
    return any(
        one.key in words.DIRECTIONS
        or (one.kind is None and one.flags & _CONTENT and one.flags & _LOWER and one.key not in words.TOGETHER)
        for one in between
    )
