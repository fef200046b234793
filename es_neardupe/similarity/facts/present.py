"""Kinds of the facts that one text has in some places, whether or not another text differs there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from es_neardupe.keys.text import Range
from es_neardupe.options import FactKind
from es_neardupe.similarity.facts.names import has, is_name
from es_neardupe.similarity.facts.tokens import FactTokens, SlotToken
from es_neardupe.similarity.facts.vocabulary import NEGATIONS


def fact_kinds(text: FactTokens, places: Sequence[Range]) -> list[tuple[FactKind, ...]]:
    """The kinds of the facts in each of some ranges of characters of the original text."""
    starts, ends = text.original_spans.T
    found = []
    for start, end in places:
        first, last = int(np.searchsorted(ends, start, "right")), int(np.searchsorted(starts, end, "left"))
        kinds = {kind for one in text.part(first, max(first, last)).tokens for kind in _kinds(text, one)}
        found.append(tuple(kind for kind in FactKind if kind in kinds))
    return found


def _kinds(text: FactTokens, token: SlotToken) -> Iterator[FactKind]:
    if token.kind:
        yield token.mark or token.kind
    elif token.key in NEGATIONS:
        yield FactKind.NEGATION
    elif is_name(token, [text]) and has(text.inner, token.hash):
        yield FactKind.NAME
