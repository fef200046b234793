"""Names that change places: ``Smith sued Jones``, ``Jones sued Smith``. Two changes that follow each other then have
the same tokens, in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.names import is_name
from es_neardupe.similarity.facts.token_changes import Surroundings, TokenChange
from es_neardupe.similarity.facts.token_flags import TokenFlag
from es_neardupe.similarity.facts.tokens import FactTokens, SlotToken

_MAX_TOKENS = 6
"""Tokens of a name, at most."""
_BETWEEN = 10
"""Tokens between two names, at most."""
_BEGINS, _OTHER = TokenFlag.START.value, TokenFlag.CONTENT.value | TokenFlag.LOWER.value
"""Words that are no names, and have a meaning."""


def exchanges(a: FactTokens, b: FactTokens, changes: Sequence[TokenChange]) -> dict[int, TokenChange]:
    """The number of the first of two changes by which names change places -> one change that has both."""
    found = {}
    for k, (one, other) in enumerate(pairwise(changes)):
        whole = TokenChange((one.a[0], other.a[1]), (one.b[0], other.b[1]), min(one.surroundings, other.surroundings))
        if whole.surroundings is Surroundings.OTHER or whole.a[1] - whole.a[0] > 2 * _MAX_TOKENS + _BETWEEN:
            continue
        keys = a.keys[slice(*whole.a)].tolist(), b.keys[slice(*whole.b)].tolist()
        if sorted(keys[0]) != sorted(keys[1]):
            continue
        tokens = a.part(*whole.a).tokens
        if any(_differ(a, b, tokens[:x], tokens[x:y], tokens[y:]) for x, y in _exchanged(*keys)):
            found[k] = whole
    return found


def _exchanged(a: Sequence[int], b: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where the first part of a ends, and the last one begins, if these two are exchanged in b."""
    size = len(a)
    for x in range(1, min(_MAX_TOKENS, size - 2) + 1):
        for last in range(1, min(_MAX_TOKENS, size - x - 1) + 1):
            y = size - last
            if y - x <= _BETWEEN and b == [*a[y:], *a[x:y], *a[:x]]:
                yield x, y


def _differ(
    a: FactTokens, b: FactTokens, x: Sequence[SlotToken], between: Sequence[SlotToken], y: Sequence[SlotToken]
) -> bool:
    """Whether two names are in one sentence, and what is between them says more of one than of the other."""
    are_names = all(any(is_name(one, (a, b)) for one in name) for name in (x, y))
    if not are_names or any(one.flags & _BEGINS for one in (*between, *y)):
        return False
    if between[-1].key in words.WITH or any(one.key in words.TOGETHER for one in between):
        return False
    return any(
        one.kind is not None or one.key in words.DIRECTIONS or (len(one.key) > 1 and one.flags & _OTHER == _OTHER)
        for one in between
    )
