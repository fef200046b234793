"""The text of a feature that is known by its hash, found by asking a document that has it; for messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from es_neardupe.feature_sources import sentences
from es_neardupe.feature_trees import (
    Characters,
    Document,
    FeatureTree,
    Flatten,
    Ngrams,
    Sentences,
    Values,
    Words,
    fields_of,
    hashes,
)
from es_neardupe.keys import tokenize

__all__ = ["example"]


def example(tree: FeatureTree, document: Document, hash: int) -> str | None:
    """The text of the first feature of a document that has this hash, None where it has none (any more)."""
    found = np.flatnonzero(hashes(tree, [document]).values == np.uint64(hash))
    if not len(found):
        return None
    values = [value for field in fields_of(tree) for value in document.get(field, ())]
    chosen = next(islice(_texts(tree, values), int(found[0]), None))
    return chosen if isinstance(chosen, str) else _joint(tree).join(chosen)


def _joint(tree: FeatureTree) -> str:
    """What stands between the elements of a composite."""
    if isinstance(tree, Ngrams | Flatten):
        return _joint(tree.source)
    return "" if isinstance(tree, Characters) else " "


def _texts(tree: FeatureTree, values: Sequence[str]) -> Iterator[str | list[str]]:
    """The features in the order of `hashes`, as texts: an atom as one, a composite as a list."""
    if isinstance(tree, Flatten):
        for one in _texts(tree.source, values):
            yield from [one] if isinstance(one, str) else one
    elif isinstance(tree, Ngrams):
        inner = _texts(tree.source, values)
        if isinstance(tree.source, Flatten):
            inner = iter([[one for one in inner if isinstance(one, str)]])
        for one in inner:
            for start in range(max(len(one) - tree.window + 1, len(one) > 0)):
                yield list(one[start : start + tree.window])
    elif isinstance(tree, Values):
        yield from filter(str.strip, values)
    else:
        yield from filter(None, (_parts(tree, value) for value in values))


def _parts(tree: Words | Characters | Sentences, value: str) -> list[str]:
    """The elements of a value."""
    if isinstance(tree, Sentences):
        return [one.strip() for one in sentences(value) if tokenize(one)]
    return tokenize(value) if isinstance(tree, Words) else list(" ".join(tokenize(value)))
