"""How documents of any index are compared: by features that a request chose, or by a measure of their texts.

What is compared of a document is one array of numbers, so that it can be laid aside and taken up again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from es_neardupe.keys.hashing import U64
from es_neardupe.keys.minhash import estimate_of
from es_neardupe.progress import Progress, silent
from es_neardupe.similarity import formulas
from es_neardupe.similarity.features import Document, FeatureTree, describe, distinct, fields_of, hashes
from es_neardupe.similarity.measure import MEANINGS, SETS, Measure, MeasureName, Prepared, of_pairs

__all__ = ["Comparer", "MeasureComparer", "RatioComparer"]

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]

_EMPTY = np.empty(0, np.uint64)


class Comparer(Protocol):
    """What is needed to validate pairs."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields to read."""

    @property
    def label(self) -> str:
        """The function in the words of the diagnostics."""

    def arrays(self, documents: Sequence[Document]) -> list[U64]:
        """What is compared of each document (uint64[n]); of one does not depend on the others."""

    def scores(self, arrays: Sequence[U64], left: Ints, right: Ints, progress: Progress = silent) -> Floats:
        """The similarity of the pairs ``(arrays[left[k]], arrays[right[k]])``, float64 of their number."""

    def explained(self, similarity: float, sizes: tuple[int, int]) -> str:
        """One sentence on a similarity; ``sizes`` are the lengths of the two arrays."""


@dataclass(frozen=True)
class RatioComparer:
    """Shared features among all distinct features of both. A document without any is like no other."""

    tree: FeatureTree

    @property
    def fields(self) -> tuple[str, ...]:
        """See `Comparer`."""
        return fields_of(self.tree)

    @property
    def label(self) -> str:
        """See `Comparer`."""
        return f"pairwiseSimilarity:featureIntersectionToUnionRatio [{describe(self.tree)}]"

    def arrays(self, documents: Sequence[Document]) -> list[U64]:
        """The distinct features of each, sorted."""
        found = distinct(hashes(self.tree, documents))
        return [found.values[start:end] for start, end in pairwise(found.bounds.tolist())]

    def scores(self, arrays: Sequence[U64], left: Ints, right: Ints, progress: Progress = silent) -> Floats:
        """See `Comparer`. A ratio of whole numbers is rounded as Python rounds ``9 / 10``: so 0.9 is within 0.9."""
        similarity = formulas.resemblances(arrays, left, right)
        some = np.array([len(one) > 0 for one in arrays], np.bool_)
        return np.where(some[left] & some[right], similarity, 0.0)

    def explained(self, similarity: float, sizes: tuple[int, int]) -> str:
        """See `Comparer`: of s = c / (a + b - c), the shared features c are s (a + b) / (1 + s)."""
        both = sum(sizes)
        common = round(similarity * both / (1 + similarity))
        total = both - common
        return (
            f"Documents share {common:,} out of {total:,} distinct feature{'s'[: total != 1]} ({describe(self.tree)})."
        )


@dataclass(frozen=True)
class MeasureComparer:
    """A measure of texts: the values of the fields in this order, one a line."""

    measure: Measure
    fields: tuple[str, ...]

    @property
    def label(self) -> str:
        """See `Comparer`."""
        words = "" if self.measure.name in (MeasureName.BAG, MeasureName.EDIT) else f"w = {self.measure.shingle}; "
        return f"pairwiseSimilarity:{self.measure.label} [{words}texts {_from(self.fields)}]"

    def arrays(self, documents: Sequence[Document]) -> list[U64]:
        """Tokens, features or signature of each: what the measure compares."""
        texts = ["\n".join(value for name in self.fields for value in one.get(name, ())) for one in documents]
        return [_array(self.measure, one) for one in self.measure.prepare(texts)]

    def scores(self, arrays: Sequence[U64], left: Ints, right: Ints, progress: Progress = silent) -> Floats:
        """See `Comparer`. A text without words is like no other."""
        prepared = [_prepared(self.measure, one) for one in arrays]
        some = np.array([len(one) > 0 for one in arrays], np.bool_)
        similarity = np.zeros(len(left))
        both = np.flatnonzero(some[left] & some[right])
        similarity[both] = of_pairs(self.measure, prepared, left[both], right[both], progress)
        return similarity

    def explained(self, similarity: float, sizes: tuple[int, int]) -> str:
        """See `Comparer`; an estimate is said with its interval."""
        meaning = MEANINGS[self.measure.name].partition(":")[0]
        what = f"{self.measure.label} of the texts {_from(self.fields)}: {meaning}"
        interval = self._interval(similarity, 8 * sizes[0]) if self.measure.name is MeasureName.ESTIMATE else ""
        return f"Documents are {similarity:.4f} similar{interval} by {what}."

    @staticmethod
    def _interval(similarity: float, slots: int) -> str:
        """The interval of an estimate, from the number of slots that must have agreed."""
        found = estimate_of(round(slots * (similarity + (1 - similarity) / 256)), slots)
        return f" (95 % interval: {found.low:.4f} to {found.high:.4f})"


def _from(fields: Sequence[str]) -> str:
    return f"from field{'s'[: len(fields) != 1]}: {', '.join(fields)}"


def _array(measure: Measure, one: Prepared) -> U64:
    if measure.name is MeasureName.ESTIMATE:
        return np.frombuffer(one.signature, np.uint64)
    return one.features if measure.name in (*SETS, MeasureName.BAG) else one.tokens


def _prepared(measure: Measure, array: U64) -> Prepared:
    """Writes back what `_array` took apart."""
    if measure.name is MeasureName.ESTIMATE:
        return Prepared(_EMPTY, _EMPTY, array.tobytes())
    if measure.name in (*SETS, MeasureName.BAG):
        return Prepared(_EMPTY, array, b"")
    return Prepared(array, _EMPTY, b"")
