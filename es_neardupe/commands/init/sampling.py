"""``init --sample-keys``: from the keys that are wanted in a document to the modulus that gives so many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.index import queries
from es_neardupe.index.document_text import text_of
from es_neardupe.index.random_samples import random_hits
from es_neardupe.index.settings import Settings
from es_neardupe.keys.scheme import MAX_SAMPLE_MOD
from es_neardupe.keys.shingles import features, token_hashes
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client
from es_neardupe.server.search import fetch, refresh

__all__ = ["Sampling", "choose_sampling"]

Ints = NDArray[np.int64]

_SAMPLE = 500
_FETCH = 50


@dataclass(frozen=True)
class Sampling:
    """The modulus and why it was chosen."""

    sample_mod: int
    wanted: int
    """Keys that the mean document should have."""
    documents: int
    """Random documents with words that were read."""
    mean_words: float
    mean_shingles: float
    """Different ones."""
    without: float
    """Expected share of these documents that get no sampled key: `contained` cannot find them."""


def choose_sampling(
    client: Client, index: str, settings: Settings, wanted: int, scope: Mapping[str, Any] | None = None
) -> Sampling:
    """The modulus with which a document (of the scope) of the mean number of shingles has ``wanted`` sampled keys.

    Raises `SettingsError` for ``wanted`` below 1, and `IndexUnusable` for an index in which no document has words.
    """
    if wanted < 1:
        raise SettingsError(f"`sample_keys` must be 1 or more, not {wanted}.")
    words, shingles = _lengths(client, index, settings, queries.matching(scope))
    if not len(shingles):
        raise IndexUnusable(
            f"Index {index} has no document with words in {', '.join(settings.fields)} that would tell how long its "
            f"texts are: give `sample_mod` instead of `sample_keys`."
        )
    mod = min(max(round(float(shingles.mean()) / wanted), 1), MAX_SAMPLE_MOD)
    without = float(((1 - 1 / mod) ** shingles).mean())
    return Sampling(mod, wanted, len(shingles), float(words.mean()), float(shingles.mean()), without)


def _lengths(client: Client, index: str, settings: Settings, scope: Mapping[str, Any]) -> tuple[Ints, Ints]:
    """Words and different shingles of random documents that have any: two arrays of the same length."""
    refresh(client, index)
    references = [hit.reference for hit in random_hits(client, index, scope, _SAMPLE, source=False)]
    words, shingles = [], []
    for chunk in chunked(references, _FETCH):
        hits = [hit for hit in fetch(client, chunk, settings.fields) if hit is not None]
        texts = [text_of(hit.source, settings.fields) for hit in hits]
        words += [len(one) for one in token_hashes(texts)]
        shingles += [len(one) for one in features(texts, settings.shingle)]
    some = np.array(shingles, np.int64) > 0
    return np.array(words, np.int64)[some], np.array(shingles, np.int64)[some]
