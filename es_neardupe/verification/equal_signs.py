"""Exact copies with equal signs. Copies have equal words, but ``$5`` and ``€5`` are not the same if facts decide."""

from __future__ import annotations

import numpy as np
import xxhash

from es_neardupe.candidates.fingerprints import classes_of
from es_neardupe.progress import Progress, silent
from es_neardupe.records import FingerprintColumns, TextClasses
from es_neardupe.similarity.facts.symbols import signs_of
from es_neardupe.verification.current_texts import CurrentDocuments

_REPORTED = 1000
"""Texts after which the progress is reported."""


def with_equal_signs(
    corpus: FingerprintColumns, classes: TextClasses, documents: CurrentDocuments, progress: Progress = silent
) -> TextClasses:
    """Classes of exact copies whose current texts have equal signs, by reading all copies. Those that were changed or
    deleted stay with the first of their class."""
    rows = classes.in_lists(classes.sizes > 1)
    signs = np.zeros(len(corpus), np.uint64)
    for done, (row, text) in enumerate(documents.texts(rows)):
        signs[row] = _hash(signs_of(text))
        if done % _REPORTED == 0:
            progress("reading copies", done, len(rows))
    first = np.zeros_like(signs)
    first[classes.rows] = signs[classes.repeated(classes.first)]
    lost = documents.changed_or_deleted
    signs[lost] = first[lost]
    return classes if np.array_equal(signs, first) else classes_of(corpus, signs=signs)


def _hash(signs: str) -> int:
    return xxhash.xxh3_64_intdigest(signs.encode("utf-8", "surrogatepass")) if signs else 0
