"""Complete linkage with pairs that are no candidates, compared with brute force over all pairs."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from unit_tools import set_resemblance, shingle_set, words
from verifier_tools import texts_by_class, verifier_of

from es_neardupe.candidates.join import find_candidates
from es_neardupe.candidates.who_may_meet import GroupRules, ReadField, Window
from es_neardupe.groups import linked_pairs
from es_neardupe.groups.build import LinkedClasses, link
from es_neardupe.options import Linkage, Matching, MeasureName
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.verify import Verified, Verifier

MINIMUM = 0.7
ONE = Measure(MeasureName.JACCARD, Matching.LITERAL)


def linked(verifier: Verifier, max_bucket: int, window: float | None = None) -> LinkedClasses:
    corpus, classes = verifier.corpus, verifier.classes
    pairs = find_candidates(corpus.keys[classes.first], max_bucket)
    if window is not None:
        days = corpus.days[classes.first]
        pairs = pairs.only(np.abs(days[pairs.left] - days[pairs.right]) <= window)
    similarity = verifier.similarities(pairs.left, pairs.right)
    verified = Verified(corpus, classes, pairs, verifier, similarity, np.ones(len(corpus), np.bool_))
    limit = None if window is None else Window(ReadField("at", date=True), window)
    rules = GroupRules(linkage=Linkage.COMPLETE, max_bucket=max_bucket, window=limit)
    return link(rules, verified, MatchCriterion(verifier.measure, MINIMUM, 1.0, None, None))


class BruteForce:
    """All pairs of classes: which of their texts are linked by matches, and which are no candidates."""

    def __init__(self, found: LinkedClasses, window: float | None = None) -> None:
        verified = found.verified
        candidates, classes = verified.candidates, verified.classes
        days = verified.corpus.days[classes.first].tolist()
        self.size = len(classes)
        self.candidates = set(zip(candidates.left.tolist(), candidates.right.tolist(), strict=True))
        chosen = zip(candidates.left[found.matches].tolist(), candidates.right[found.matches].tolist(), strict=True)
        self.matches = set(chosen)
        self.cluster = list(range(self.size))
        for a, b in self.matches:
            one, other = self.cluster[a], self.cluster[b]
            self.cluster = [one if label == other else label for label in self.cluster]
        self.others = {
            (a, b)
            for a, b in combinations(range(self.size), 2)
            if (a, b) not in self.candidates and self.cluster[a] == self.cluster[b]
        }
        self.allowed = {(a, b) for a, b in self.others if window is None or abs(days[a] - days[b]) <= window}

    def complete(self, similar: Any, open: frozenset[int] = frozenset()) -> tuple[list[int], int]:
        """The principal of each class, and how many of the other pairs decided. ``open``: clusters in which none is
        compared."""
        groups: list[list[int]] = []
        compared: set[tuple[int, int]] = set()

        def matches(a: int, b: int) -> bool:
            if (a, b) in self.matches:
                return True
            if (a, b) not in self.allowed or self.cluster[a] in open:
                return False
            compared.add((a, b))
            return bool(similar(a, b))

        for number in range(self.size):
            for group in groups:
                if all(matches(member, number) for member in group):
                    group.append(number)
                    break
            else:
                groups.append([number])
        return [next(group[0] for group in groups if number in group) for number in range(self.size)], len(compared)


def letters(seed: int, size: int) -> dict[str, str]:
    """Variations of two texts, in up to three words, with exact copies: many share keys, not all are similar."""
    dice = random.Random(seed)
    found = {}
    for row in range(size):
        own = words(1000 * dice.randrange(2), 80).split()
        for _ in range(dice.randint(0, 3)):
            own[dice.randrange(len(own))] = f"x{dice.randint(0, 3)}"
        found[f"d{row:02}"] = " ".join(own)
    return found


def made(seed: int) -> tuple[Verifier, list[str]]:
    texts = letters(seed, 50)
    verifier, _ = verifier_of(texts)
    days = np.array([seed * row % 7 for row in range(len(verifier.corpus))], np.float64)
    verifier.corpus = replace(verifier.corpus, days=days)
    return verifier, texts_by_class(verifier, texts)


@pytest.mark.parametrize("window", [None, 3])
def test_groups_are_those_of_brute_force(window: float | None) -> None:
    """Texts of two clusters, in buckets of at most 2 or 4 texts: the groups, and the number of comparisons."""
    decided, better = [], 0
    for seed in range(12):
        verifier, texts = made(seed)
        max_bucket = 2 + seed % 2 * 2
        found = linked(verifier, max_bucket, window)
        brute = BruteForce(found, window)
        every = [shingle_set(text) for text in texts]
        wanted, compared = brute.complete(lambda a, b, every=every: set_resemblance(every[a], every[b]) >= MINIMUM)
        assert found.principal.tolist() == wanted
        assert (found.others.compared, found.others.open) == (compared, 0)
        for a, b in combinations(range(len(texts)), 2):
            if wanted[a] == wanted[b]:
                assert set_resemblance(every[a], every[b]) >= MINIMUM
        similar = [set_resemblance(every[number], every[one]) for number, one in enumerate(wanted)]
        assert found.similarity.tolist() == pytest.approx(similar)
        decided.append(compared)
        better += len(set(wanted)) < len(set(brute.complete(lambda a, b: False)[0]))
    assert sum(decided) > 150
    assert better > 3


def test_measures_that_compare_one_pair_at_a_time() -> None:
    texts = letters(3, 40)
    verifier, _ = verifier_of(texts, measure=ONE)
    found = linked(verifier, 2)
    prepared = ONE.prepare(texts_by_class(verifier, texts))
    wanted, compared = BruteForce(found).complete(lambda a, b: ONE.score(prepared[a], prepared[b]) >= MINIMUM)
    assert found.principal.tolist() == wanted
    assert found.others.compared == compared > 10


@pytest.mark.parametrize("limit", ["PAIRS_AT_ONCE", "WORDS"])
def test_a_cluster_with_too_many_pairs_stays_open(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """A large and a small cluster of letters: only the small one is compared, the pairs of the other are counted."""
    texts = {f"a{row:02}": f"{words(0, 40)} a{row} {words(40, 40)}" for row in range(40)}
    texts |= {f"b{row:02}": f"{words(500, 40)} b{row} {words(540, 39)}" for row in range(12)}
    verifier, _ = verifier_of(texts)
    whole = linked(verifier, 4)
    assert (np.bincount(whole.principal)[[0, 40]].tolist(), whole.others.open) == ([40, 12], 0)

    monkeypatch.setattr(linked_pairs, limit, {"PAIRS_AT_ONCE": 100, "WORDS": 1200}[limit] // 4 + 1)
    found = linked(verifier_of(texts)[0], 4)
    brute = BruteForce(found)
    assert brute.cluster[0] != brute.cluster[40]
    wanted, compared = brute.complete(lambda a, b: True, frozenset([brute.cluster[0]]))
    assert found.principal.tolist() == wanted
    assert found.others.open == sum(brute.cluster[a] == brute.cluster[0] for a, b in brute.others) > 100
    assert found.others.compared == compared == len(brute.others) - found.others.open
    assert len({*wanted[:40]}) > 1
    assert len({*wanted[40:]}) == 1


def test_texts_that_were_changed_or_deleted() -> None:
    """They are in no group; the others are grouped as if the order of principals had been without them."""
    texts = {f"a{row:02}": f"{words(0, 40)} a{row} {words(40, 40)}" for row in range(30)}
    verifier, _ = verifier_of(texts, {"a00": words(900, 50), "a07": None})
    found = linked(verifier, 3)
    gone = [
        number for number, text in enumerate(texts_by_class(verifier, texts)) if text in (texts["a00"], texts["a07"])
    ]
    rest = np.delete(found.principal, gone)
    assert len(set(rest.tolist())) == 1
    assert not set(rest.tolist()) & set(gone)
    assert found.principal[gone].tolist() == gone
