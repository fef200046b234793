"""Real pairs near a threshold, with the place where their texts part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from es_neardupe.distributions import Example, nearest
from es_neardupe.keys import spans, token_hashes
from es_neardupe.records import Classes, Reference
from es_neardupe.stages.compared import Compared, Texts

__all__ = ["examples", "excerpts"]

_Pair = tuple[float, int, int]

_MOST = 3
_BEFORE, _WORDS, _CHARS = 3, 15, 120
"""Of an excerpt: words before the first difference, words and characters at most."""


def examples(
    texts: Texts, classes: Classes, compared: Compared, sampled: Iterable[_Pair], threshold: float
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Up to three pairs just above the threshold and three just below, the nearest first.

    They are candidates of the index, or pairs of the sample (similarity and two rows), never exact copies. A document
    is in one example only, unless there are not enough others.
    """
    class_of = np.full(len(texts.corpus), -1, np.intp)
    for number, members in enumerate(classes.members):
        class_of[members] = number
    found: dict[tuple[int, int], _Pair] = {}
    for pair in (*_of_candidates(compared, threshold), *sampled):
        a, b = sorted(class_of[list(pair[1:])].tolist())
        if a != b and pair[0] > 0:
            found.setdefault((a, b), pair)
    pairs = sorted(found.values(), key=lambda pair: (abs(pair[0] - threshold), pair))
    above = _chosen([pair for pair in pairs if pair[0] >= threshold])
    below = _chosen([pair for pair in pairs if pair[0] < threshold])
    read = dict(texts.read(np.unique([row for _, *both in above + below for row in both]).astype(np.intp)))
    named = [tuple(_named(texts.corpus.references, read, side)) for side in (above, below)]
    return named[0], named[1]


def _of_candidates(compared: Compared, threshold: float) -> Iterator[_Pair]:
    there = np.flatnonzero(~np.isnan(compared.similarity))
    for place in there[nearest(compared.similarity[there], threshold)]:
        a, b = compared.first[compared.left[place]], compared.first[compared.right[place]]
        yield float(compared.similarity[place]), int(a), int(b)


def _chosen(pairs: Sequence[_Pair]) -> list[_Pair]:
    """The first ones without a common document, filled up with others."""
    fresh: list[_Pair] = []
    again: list[_Pair] = []
    used: set[int] = set()
    for pair in pairs:
        (fresh if used.isdisjoint(pair[1:]) else again).append(pair)
        used.update(pair[1:])
    return sorted((fresh + again)[:_MOST], key=pairs.index)


def _named(references: Sequence[Reference], texts: dict[int, str], pairs: Sequence[_Pair]) -> Iterator[Example]:
    """A pair whose text vanished just now is left out."""
    for similarity, *both in pairs:
        if all(row in texts for row in both):
            a, b = ({"index": index, "id": id} for index, id, _ in (references[row] for row in both))
            yield Example(similarity, a, b, *excerpts(*(texts[row] for row in both)))


def excerpts(a: str, b: str) -> tuple[str, str]:
    """Some words of each text, from shortly before the first word that differs."""
    one, other = token_hashes([a, b])
    size = min(len(one), len(other))
    different = np.flatnonzero(one[:size] != other[:size])
    place = int(different[0]) if different.size else size
    return _excerpt(a, place), _excerpt(b, place)


def _excerpt(text: str, place: int) -> str:
    tokens = spans(text)
    shown = tokens[max(0, place - _BEFORE) : max(0, place - _BEFORE) + _WORDS]
    if not len(shown):
        return ""
    start, end = int(shown[0, 0]), min(int(shown[-1, 1]), int(shown[0, 0]) + _CHARS)
    before, after = start > tokens[0, 0], end < tokens[-1, 1]
    return "… " * bool(before) + text[start:end] + " …" * bool(after)
