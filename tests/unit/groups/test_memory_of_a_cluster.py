"""Memory of ``group`` for one cluster of boilerplate, as the peak of a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest
from peak_memory import measuring

_STEPS = """
import sys
import numpy as np
from unit_tools import SETTINGS, words
from verifier_tools import verifier_of
from es_neardupe.candidates import pair_arrays
from es_neardupe.candidates.join import find_candidates
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.groups import linkage
from es_neardupe.groups.build import link
from es_neardupe.groups.linkage import bridges, inner_pairs, judge
from es_neardupe.keys.fingerprint import signatures
from es_neardupe.candidates import spill_to_disk
from es_neardupe.verification import current_texts
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.verify import PairMemory, Verified

for module, name in ((pair_arrays, "BLOCK"), (current_texts, "_BLOCK"), (spill_to_disk, "HELD")):
    setattr(module, name, 100_000)
linkage.MAX_CLASSES = 100
footer = words(0, 100)


def made(size):
    texts = {f"{k:05}": f"{words(10 * k, 8, 'own')} {footer}" for k in range(size)}
    verifier, _ = verifier_of(texts)
    slots = np.concatenate([signatures([one], SETTINGS.scheme) for one in texts.values()])
    ids = [int(verifier.corpus.references[rows[0]][1]) for rows in verifier.classes]
    return verifier, slots, np.array(ids), verifier.corpus.keys[verifier.classes.first]


def linked_pairs(size, verifier, slots, ids, keys):
    pairs = find_candidates(keys, 200, lambda rows: slots[ids[rows]])
    if sys.argv[1] == "remembered":  # as in an incremental run, which takes several steps
        verifier.memory = PairMemory()
        verifier.similarities(pairs.left, pairs.right)
    similarity = verifier.similarities(pairs.left, pairs.right)
    verified = Verified(verifier.corpus, verifier.classes, pairs, verifier, similarity, np.ones(size, np.bool_))
    linked = link(GroupRules(), verified, MatchCriterion(verifier.measure, 0.8, 1.0, None, None))
    groups = [np.flatnonzero(linked.principal == one) for one in np.unique(linked.principal).tolist()]
    more = inner_pairs(groups, pairs.left, pairs.right, size)
    every = (pairs.left, pairs.right, similarity)
    assert sum(one.below for one in judge(groups, every, documents=np.ones(size, np.intp), minimum=0.8)) == 0
    assert min(one.weakest for one in bridges(groups, *every, linked.matches, size=size)) >= 0.8
    assert linked.matches.mean() > 0.5 and pairs.skipped + len(pairs) <= size * (size - 1) // 2
    verifier.memory = None
    return len(pairs)


inputs = [(size, *made(size)) for size in map(int, sys.argv[2:])]
before = peak()
for one in inputs:
    print(linked_pairs(*one), peak() - before)
"""


def _measured(how: str, *sizes: int) -> list[tuple[int, int]]:
    """Candidate pairs of so many texts, the fewest first, and the bytes by which a process has grown when it found,
    compared and linked them."""
    done = subprocess.run(
        [sys.executable, "-c", measuring(_STEPS), how, *map(str, sizes)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [(int(pairs), int(grown)) for pairs, grown in map(str.split, done.stdout.splitlines())]


def test_memory_of_a_cluster() -> None:
    """A cluster is compared in portions: each pair of it takes some 45 bytes at the peak. (It took 140 when they were
    compared at once.)"""
    pytest.importorskip("resource")
    (few, small), (many, large) = _measured("once", 800, 2400)
    assert many - few > 500_000
    assert (large - small) / (many - few) < 60


def test_memory_of_a_cluster_in_an_incremental_run() -> None:
    """The similarity of each pair is remembered, which takes some 190 bytes at the peak. (It took 340.)"""
    pytest.importorskip("resource")
    (few, small), (many, large) = _measured("remembered", 400, 1000)
    assert many - few > 200_000
    assert (large - small) / (many - few) < 250
