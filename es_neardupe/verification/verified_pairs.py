"""The pairs of a corpus that match by a criterion: candidates by the keys, compared by their current texts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from es_neardupe.candidates.fingerprints import classes_of
from es_neardupe.candidates.join import candidate_pairs
from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.index.index import Index
from es_neardupe.keys.arrays import Flags
from es_neardupe.options import Linkage
from es_neardupe.progress import Progress, silent
from es_neardupe.records import FingerprintColumns
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.current_texts import CurrentDocuments
from es_neardupe.verification.equal_signs import with_equal_signs
from es_neardupe.verification.on_workers import ComparingWorkers
from es_neardupe.verification.verify import PairMemory, Verified, Verifier


@dataclass(frozen=True)
class AffectedRows:
    """The rows of a corpus whose pairs are verified in one step of an incremental run."""

    inside: Flags
    """Pairs with at least one of these rows are verified; bool of the corpus."""
    memory: PairMemory
    """Similarities of all steps: pairs in it are not read again."""
    earlier: Verifier | None = None
    """Verifier of the step before, whose texts are not read again."""


def verified_pairs(
    index: Index,
    criterion: MatchCriterion,
    corpus: FingerprintColumns,
    *,
    copies: bool | None = None,
    rules: GroupRules = DEFAULT_RULES,
    affected: AffectedRows | None = None,
    limit: MemoryLimit | None = None,
    progress: Progress = silent,
) -> Verified:
    """Join the keys of a corpus, and compare each candidate pair by its current texts, and by the facts that decide.

    ``copies``: whether exact copies are treated as one text; None: if they match. If signs decide, only copies with
    equal signs are. ``rules`` limit which documents may form a pair. With ``affected``, only pairs with at least one of
    these rows are verified. Raises `SettingsError` for more pairs than the ``limit`` allows.
    """
    measure, memory = criterion.measure, None if affected is None else affected.memory
    copies = criterion.copies_match if copies is None else copies
    classes, documents = classes_of(corpus, copies), None
    if copies and criterion.signs_decide:
        documents = CurrentDocuments.of_corpus(index.client, index.settings, corpus)
        classes = with_equal_signs(corpus, classes, documents, progress)

    def check(pairs: int, bucket: int) -> None:
        if limit is not None:
            limit.holding(bucket, documents=len(corpus), **counted_pairs(pairs, rules, memory))

    candidates = candidate_pairs(index, corpus, classes, rules, check)
    corpus = corpus.without_keys()  # most of its memory
    inside = np.ones(len(corpus), np.bool_) if affected is None else affected.inside
    if affected is not None:
        touched = classes.touching(inside)
        candidates = candidates.only(touched[candidates.left] | touched[candidates.right], touched)
    workers = ComparingWorkers.of(index, measure)
    verifier = Verifier(index.client, index.settings, corpus, classes, measure, memory=memory, workers=workers)
    if documents is not None and measure.ignored is None:  # otherwise copies are read again to know which are common
        verifier.documents.adopt_all(documents)
    if affected is not None and affected.earlier is not None:
        verifier.adopt(affected.earlier)
    similarity = verifier.similarities(candidates.left, candidates.right, progress)
    verified = Verified(corpus, classes, candidates, verifier, similarity, inside)
    if not criterion.facts:
        return verified
    left, right, chosen = candidates.left, candidates.right, np.flatnonzero(criterion.matches(similarity))
    differ = np.zeros(len(similarity), np.bool_)
    differ[chosen] = verified.facts(criterion.facts).differ(left[chosen], right[chosen], progress)
    return replace(verified, other_facts=differ)


def counted_pairs(pairs: int, rules: GroupRules, memory: PairMemory | None) -> dict[str, int]:
    """So many candidate pairs, for `MemoryLimit.holding`."""
    if memory is not None:
        return {"remembered_pairs": pairs}
    return {"linked_pairs" if rules.linkage is Linkage.COMPLETE else "candidate_pairs": pairs}
