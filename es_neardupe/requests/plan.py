"""What a request asks for, after it was read and checked: plain records without references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.alignment import DEFAULT_LEAST, Matching
from es_neardupe.feature_trees import FeatureTree, fields_of

__all__ = [
    "RATIO",
    "ContentPlan",
    "DuplicatesPlan",
    "OverlapsPlan",
    "RequestPlan",
    "SchemeKeys",
    "StagePlan",
    "Validation",
]

RATIO = "featureIntersectionToUnionRatio"
"""The measure of chosen features: shared ones among all of both documents."""


@dataclass(frozen=True)
class SchemeKeys:
    """Group by the keys that an enriched index has stored, instead of by features of the texts."""


@dataclass(frozen=True)
class Validation:
    """What is computed of each candidate pair, and the range that passes; both ends belong to it."""

    measure: str
    """`RATIO` or the name of a `MeasureName`."""
    features: FeatureTree | None
    """For `RATIO`; None for the measures of texts."""
    fields: tuple[str, ...]
    """For the measures of texts: the fields whose values are the text, joined in this order. Else empty."""
    matching: Matching
    """For jaccard and the containments."""
    ngram: int
    """Words in an n-gram of the measure bag."""
    shingle: int
    """Words in a shingle, and the least number of words in a common passage."""
    min: float
    max: float


@dataclass(frozen=True)
class DuplicatesPlan:
    """Find the pairs of documents in scope that share a feature and pass the validation."""

    name: str
    query: Mapping[str, Any] | None
    """The scope in the query DSL of the server; None: all documents."""
    grouping: FeatureTree | SchemeKeys
    max_group: int
    """A feature that more documents share makes no candidates: it is skipped, counted and listed."""
    validation: Validation
    explanations: bool
    """Whether each pair says in words how its similarity came about; always for an estimate, with its interval."""
    across_indices: bool = False
    """Only pairs of documents in two different indices; the others are out of scope, and counted as that."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are compared, then the others that make candidates; those of stored keys are none of them."""
        validation, grouping = self.validation, self.grouping
        compared = fields_of(validation.features) if validation.features is not None else validation.fields
        grouped = () if isinstance(grouping, SchemeKeys) else fields_of(grouping)
        return tuple(dict.fromkeys((*compared, *grouped)))


@dataclass(frozen=True)
class ContentPlan:
    """Read fields of every document in the pairs of a stage."""

    name: str
    pairs: str
    """The name of the stage."""
    fields: Mapping[str, int | None]
    """Name -> the most characters of each value; None: all."""
    limit: int | None
    """The most documents, in the order of their best pairs; None: all."""


@dataclass(frozen=True)
class OverlapsPlan:
    """Find the text blocks that the documents of each pair of a stage have in common."""

    name: str
    pairs: str
    """The name of the stage."""
    fields: tuple[str, ...]
    """The fields whose values are the text, joined in this order."""
    min_words: int = DEFAULT_LEAST
    """Words from which on a common run counts."""
    limit: int | None = None
    """The most pairs, the most similar ones first; None: all."""


StagePlan = DuplicatesPlan | ContentPlan | OverlapsPlan


@dataclass(frozen=True)
class RequestPlan:
    """A whole request."""

    stages: tuple[StagePlan, ...]
    """In the order in which they can be run: those that find pairs first, else as in the file."""
