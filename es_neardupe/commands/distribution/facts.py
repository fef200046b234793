"""What each value of ``--facts`` would separate: of the labelled pairs, or of the candidate pairs of the index."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from es_neardupe.candidates.pair_arrays import blocks
from es_neardupe.commands.distribution.labels import ComparedLabels
from es_neardupe.commands.distribution.report import FactsExample, FactsReport, FactsValue
from es_neardupe.commands.distribution.steps import ComparedCandidates
from es_neardupe.keys.arrays import Flags, Positions
from es_neardupe.options import FactKind
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Address, FingerprintColumns
from es_neardupe.similarity.facts.differing import Fact, differing_facts
from es_neardupe.similarity.facts.kinds import FACT_NAMES, LISTS
from es_neardupe.similarity.facts.tokens import fact_tokens
from es_neardupe.verification.current_texts import CurrentDocuments

Pairs = tuple[Positions, Positions]
"""The rows of both documents of each pair."""

_AT_ONCE = 500
"""Pairs whose texts are in memory."""

_CHARACTERS = 100_000
"""Maximum number of characters of a text."""

_PAIRS, _WORDS = 1000, 100_000
"""Maximum number of candidate pairs that are examined, and of the words of their texts."""

_EXAMPLES, _FACTS = 10, 5
"""Pairs shown for each list, and facts of a pair."""


def facts_of_pairs(
    documents: CurrentDocuments,
    corpus: FingerprintColumns,
    compared: ComparedCandidates,
    labelled: ComparedLabels | None,
    *,
    threshold: float,
    seed: int,
    progress: Progress,
) -> FactsReport:
    """The pairs that reach the threshold by the first measure, and those that each value of ``--facts`` separates: of
    labelled pairs, or without these of a sample of the candidates, with examples."""
    if labelled is not None:
        return _of_labelled(documents, labelled, threshold, progress)
    return _of_candidates(documents, corpus, compared, threshold=threshold, seed=seed, progress=progress)


def _of_labelled(
    documents: CurrentDocuments, labelled: ComparedLabels, threshold: float, progress: Progress
) -> FactsReport:
    reached = labelled.similarity[0] >= threshold
    same = labelled.same[reached]
    kinds = [
        kinds_of(facts) for facts in _facts(documents, (labelled.left[reached], labelled.right[reached]), progress)
    ]
    values = []
    for value in FACT_NAMES:
        apart = separated(kinds, value)
        counts = int(apart.sum()), int((apart & same).sum()), int((apart & ~same).sum())
        values.append(FactsValue(value, *counts, ()))
    return FactsReport(len(same), len(same), int(same.sum()), int((~same).sum()), tuple(values))


def _of_candidates(
    documents: CurrentDocuments,
    corpus: FingerprintColumns,
    compared: ComparedCandidates,
    *,
    threshold: float,
    seed: int,
    progress: Progress,
) -> FactsReport:
    reached = np.flatnonzero(compared.similarity >= threshold)
    drawn = np.random.default_rng(seed).permutation(reached)[:_PAIRS]
    left, right = compared.first[compared.left[drawn]], compared.first[compared.right[drawn]]
    words = np.cumsum(corpus.tokens[left].astype(np.int64) + corpus.tokens[right])
    chosen = (words <= _WORDS) | (np.arange(len(words)) == 0)
    pairs = left[chosen].astype(np.intp), right[chosen].astype(np.intp)
    facts = list(_facts(documents, pairs, progress))
    kinds = [kinds_of(some) for some in facts]
    similarity = compared.similarity[drawn[chosen]].tolist()
    values = []
    shorter: frozenset[FactKind] = frozenset()
    for value, mine in FACT_NAMES.items():
        apart = _differ(kinds, mine)
        examples: list[FactsExample] = []
        if value in LISTS:  # in the order of their lengths
            for number in np.flatnonzero(apart & ~_differ(kinds, shorter))[:_EXAMPLES].tolist():
                a, b = (Address(*documents.references[int(side[number])][:2]) for side in pairs)
                shown = [one for one in facts[number] if not mine.isdisjoint(one.kinds)]
                examples.append(FactsExample(similarity[number], a, b, tuple(shown[:_FACTS])))
            shorter = mine
        values.append(FactsValue(value, int(apart.sum()), None, None, tuple(examples)))
    return FactsReport(len(reached), len(facts), None, None, tuple(values))


def kinds_of(facts: Sequence[Fact]) -> frozenset[FactKind]:
    """The kinds of the facts that differ between two texts."""
    return frozenset(kind for one in facts for kind in one.kinds)


def separated(kinds: Sequence[frozenset[FactKind]], value: str) -> Flags:
    """Whether a value of ``--facts`` separates pairs whose facts of these kinds differ."""
    return _differ(kinds, frozenset[FactKind]().union(*(FACT_NAMES[name] for name in value.split(","))))


def _differ(kinds: Sequence[frozenset[FactKind]], chosen: Collection[FactKind]) -> Flags:
    return np.array([not one.isdisjoint(chosen) for one in kinds], np.bool_)


def _facts(documents: CurrentDocuments, pairs: Pairs, progress: Progress) -> Iterator[list[Fact]]:
    """The facts that differ between both texts of each pair; none for texts that were changed or deleted."""
    some = list(blocks(len(pairs[0]), _AT_ONCE))
    for block in tracked(some, progress, "facts of pairs", len(some), step=1):
        left, right = (side[block] for side in pairs)
        read = documents.texts(np.union1d(left, right))
        tokens = {row: fact_tokens(text[:_CHARACTERS]) for row, text in read}
        for one, other in zip(left.tolist(), right.tolist(), strict=True):
            yield differing_facts(tokens[one], tokens[other]) if {one, other} <= tokens.keys() else []
