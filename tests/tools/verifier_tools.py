"""Verifiers of indices in memory, with random texts."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import numpy as np
from unit_tools import SETTINGS, FakeClient, hits, words

from es_neardupe.candidates.fingerprints import classes_of, read_corpus
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.verify import Verifier


def verifier_of(
    texts: dict[str, str], present: dict[str, str | None] | None = None, measure: Measure | None = None
) -> tuple[Verifier, FakeClient]:
    """A verifier of an index with these texts, some of which were changed or, if None, deleted afterwards."""
    found = hits(texts)
    sources: dict[tuple[str, str], dict[str, Any]] = {hit.address: dict(hit.source) for hit in found}
    for id, text in (present or {}).items():
        if text is None:
            del sources["i", id]
        else:
            sources["i", id]["text"] = text
    client = FakeClient(sources)
    corpus = read_corpus([found], "neardupe", SETTINGS.scheme.bands)
    measure = measure or Measure()
    return Verifier(client, SETTINGS, corpus, classes_of(corpus, measure.copies_are_equal), measure), client


def all_pairs(size: int) -> tuple[Any, Any]:
    pairs = list(combinations(range(size), 2))
    return np.array([a for a, _ in pairs], np.intp), np.array([b for _, b in pairs], np.intp)


def texts_of(dice: random.Random, size: int) -> dict[str, str]:
    """Variations of a few texts, with exact copies."""
    cores = [words(100 * k, 30).split() for k in range(3)]
    made = {}
    for number in range(size):
        own = list(dice.choice(cores))
        for _ in range(dice.randint(0, 3)):
            own[dice.randrange(len(own))] = f"x{dice.randint(0, 3)}"
        made[f"d{number:02}"] = " ".join(own[: dice.choice([30, 30, 20])])
    return made


def texts_by_class(verifier: Verifier, texts: dict[str, str]) -> list[str]:
    return [texts[verifier.corpus.references[int(rows[0])][1]] for rows in verifier.classes]
