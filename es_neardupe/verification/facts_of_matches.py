"""Matches whose facts differ: the same form, but about something else. They are no matches if facts decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from es_neardupe.keys.arrays import Flags, Numbers, Positions
from es_neardupe.options import FactKind
from es_neardupe.progress import Progress, silent
from es_neardupe.similarity.facts.agreement import FactsAgree
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.current_texts import OneWithMany, PairComparer
from es_neardupe.verification.verify import Verified

_STAGE = "comparing facts"

Agree = Callable[[int, Positions], Flags]
"""Whether the facts of a class agree with those of others, by their places; bool of their number."""


def with_facts(verified: Verified, criterion: MatchCriterion, progress: Progress = silent) -> Verified:
    """The pairs with those of them that match by their similarity, and differ in the facts that decide."""
    if not criterion.facts:
        return verified
    left, right = verified.candidates.left, verified.candidates.right
    matches = criterion.matches(verified.similarity)
    differ = np.zeros(len(left), np.bool_)
    chosen = np.flatnonzero(matches)
    differ[chosen] = facts_differ(verified, criterion.facts, left[chosen], right[chosen], progress)
    return replace(verified, other_facts=differ)


def facts_differ(
    verified: Verified, kinds: frozenset[FactKind], left: Numbers, right: Numbers, progress: Progress = silent
) -> Flags:
    """Whether the facts of pairs of classes differ; False for exact copies, and for texts that were changed or
    deleted."""
    content, first = verified.corpus.content, verified.classes.first
    differ: Flags = content[first[left]] != content[first[right]]
    others = np.flatnonzero(differ)
    found = _comparer(verified, kinds).compare(left[others], right[others], progress)
    differ[others] = found.similarity[0] == 0
    return differ


def facts_in_cluster(verified: Verified, criterion: MatchCriterion, classes: Positions) -> Agree | None:
    """Compares the facts of some classes with each other, whose texts are held in memory. None if no facts decide."""
    if not criterion.facts:
        return None
    texts = OneWithMany(_comparer(verified, criterion.facts), classes)
    return lambda one, others: texts.similarities(one, others) != 0


def _comparer(verified: Verified, kinds: frozenset[FactKind]) -> PairComparer:
    return PairComparer(verified.verifier.documents, {_STAGE: FactsAgree(kinds=kinds)}, verified.classes)
