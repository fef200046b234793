"""What an audit finds: how many of the true pairs an index can find, with intervals, and where the others were lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from es_neardupe.records import Address

__all__ = [
    "AuditReport",
    "BandsAdvice",
    "Denied",
    "Loss",
    "Lost",
    "Missed",
    "Part",
    "Recall",
    "addressed",
    "effective",
    "recalled",
]

_Z = 1.959963984540054
"""97.5 % of a normal distribution lie below it."""


class Loss(str, Enum):
    """Why the index does not find a pair. Of several reasons the first one counts."""

    UNPROCESSED = "unprocessed"
    """A document has no fingerprint of the index's scheme."""
    TOO_LARGE = "too_large"
    """A document was longer than ``max_chars``."""
    FAILED = "failed"
    """A document had no readable text when it was fingerprinted."""
    CORRUPT = "corrupt"
    """The stored fingerprint of a document cannot be read, or its keys are not those of its text."""
    STALE = "stale"
    """A document has another text than the one that was fingerprinted."""
    BUCKET = "bucket"
    """They share enough keys, but more texts do than the bucket limit lets be compared."""
    BANDS = "bands"
    """They share no key, or fewer than the scheme asks for: chance, which the detection probability describes."""


@dataclass(frozen=True)
class Recall:
    """The share of true pairs that the index finds, with its 95 % interval; all three are None without any pair."""

    pairs: int
    found: int
    recall: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Part:
    """The recall among the pairs of one kind."""

    name: str
    recall: Recall


@dataclass(frozen=True)
class Missed:
    """A pair that the index does not find."""

    a: Mapping[str, str]
    """``index`` and ``id``."""
    b: Mapping[str, str]
    similarity: float


@dataclass(frozen=True)
class Lost:
    """The pairs lost for one reason, with some of them."""

    reason: Loss
    pairs: int
    examples: tuple[Missed, ...]


@dataclass(frozen=True)
class Denied:
    """A pair and the similarity that verification, or a stored group, claims, where the texts have another one."""

    a: Mapping[str, str]
    """``index`` and ``id``."""
    b: Mapping[str, str]
    claimed: float
    actual: float


@dataclass(frozen=True)
class BandsAdvice:
    """Bands that would find the wanted share of just these pairs."""

    bands: int
    rows: int
    shingle: int
    permutations: int
    """As in the index."""
    detection: float
    """To ask of ``init``: at the least similarity."""
    expected: float
    """Share of the true pairs that they find on average."""


@dataclass(frozen=True)
class AuditReport:
    """``recall.pairs = recall.found + sum of the pairs in lost``; so do the pairs of ``lengths`` and of ``scripts``."""

    index: str
    indices: tuple[str, ...]
    """Concrete indices that were read."""
    scheme: str
    min: float
    """Pairs are true from this exact resemblance on."""
    max_bucket: int
    seed: int
    documents: int
    """In the index, with or without keys."""
    sampled: int
    """Documents compared with all others."""
    recall: Recall
    """Of the pairs of a document of the sample and any other of the index."""
    within: Recall
    """Of those, the pairs with both documents in the sample."""
    promised: float
    """Probability that the bands find a pair exactly ``min`` similar."""
    expected: float | None
    """Share of just these pairs that the bands find on average; None without pairs."""
    lengths: tuple[Part, ...]
    """By the number of tokens of the shorter document."""
    scripts: tuple[Part, ...]
    """By the script that most letters of the shorter document have."""
    lost: tuple[Lost, ...]
    """Every reason, in the order in which they are looked for."""
    claims: int
    """Pairs of texts from ``min`` on that verification finds among the candidates of the sample."""
    members: int | None
    """Documents of the sample stored as at least ``min`` similar to their principal; None unless the last run of
    ``group`` went by the resemblance."""
    denied: int
    """Of both, those that comparing the texts denies."""
    precision: float | None
    """``1 - denied / (claims + members)``: anything but 1 is an error of the program. None where both are 0."""
    wrong: tuple[Denied, ...]
    """Some of the denied pairs."""
    advice: BandsAdvice | None
    """Given where pairs were lost by the bands and fewer are found than was promised."""
    seconds: float = field(compare=False)


def addressed(one: Address, other: Address) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Two documents as a report names them, in the order of their addresses."""
    a, b = ({"index": index, "id": id} for index, id in sorted((one, other)))
    return a, b


def effective(degrees: NDArray[np.int64]) -> float:
    """The number of independent pairs that say as much as the pairs of these documents.

    ``degrees``: pairs of each document of the sample. Pairs of one document are not independent; here they are taken
    to be found or lost all together (Kish 1965, with full correlation), which makes the interval rather too wide.
    """
    squares = float((degrees.astype(np.float64) ** 2).sum())
    return float(degrees.sum()) ** 2 / squares if squares else 0.0


def recalled(pairs: int, found: int, independent: float, *, whole: bool) -> Recall:
    """The share with the interval of Wilson 1927 for so many ``independent`` pairs, at most ``pairs``.

    ``whole``: the sample is all there is, and nothing is estimated.
    """
    if not pairs:
        return Recall(0, 0, None, None, None)
    share = found / pairs
    if whole:
        return Recall(pairs, found, share, share, share)
    size = min(max(independent, 1.0), float(pairs))
    middle = (share + _Z**2 / (2 * size)) / (1 + _Z**2 / size)
    half = _Z * sqrt(share * (1 - share) / size + _Z**2 / (4 * size**2)) / (1 + _Z**2 / size)
    return Recall(pairs, found, share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))
