"""Stage: large buckets -> the signatures to choose comparisons by, and the passage that their texts share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe import documents
from es_neardupe.clients import Client
from es_neardupe.errors import CorruptFingerprint
from es_neardupe.fetch import fetch
from es_neardupe.indices import Target
from es_neardupe.passages import beginning, common_passage
from es_neardupe.records import Classes, Corpus

__all__ = ["passages", "read_signatures"]

_LOOKED_AT = 100_000
"""Characters of a text in which common passages are sought."""


def read_signatures(
    client: Client, target: Target, corpus: Corpus, classes: Classes, numbers: NDArray[np.intp]
) -> NDArray[np.uint8]:
    """The stored signatures of classes, uint8[classes, slots]: 128 bytes each, by default as many as their keys have.

    Where a signature cannot be read (any more), it is all zeros: such a text is compared with fewer or other ones.
    """
    slots = target.settings.scheme.permutations
    found = np.zeros((len(numbers), slots), np.uint8)
    references = (corpus.references[classes.members[number][0]] for number in numbers.tolist())
    for place, hit in enumerate(fetch(client, references, [target.fields.signature])):
        signature = b"" if hit is None else _signature(documents.stored_fields(hit.source, target.settings.prefix))
        if len(signature) == slots:
            found[place] = np.frombuffer(signature, np.uint8)
    return found


def _signature(stored: Mapping[str, Any]) -> bytes:
    try:
        return documents.decode_signature(stored)
    except CorruptFingerprint:
        return b""


def passages(
    client: Client, target: Target, corpus: Corpus, classes: Classes, samples: Sequence[Sequence[int]]
) -> list[str]:
    """The beginning of the passage that the present texts of each sample of classes share; "" where there is none.

    Of a long text its first 100,000 characters are looked at.
    """
    found = []
    for sample in samples:
        references = [corpus.references[classes.members[number][0]] for number in sample]
        sources = ({} if hit is None else hit.source for hit in fetch(client, references, target.settings.fields))
        texts = [documents.text_of(one, target.settings.fields)[:_LOOKED_AT] for one in sources]
        found.append(beginning(common_passage(texts)))
    return found
