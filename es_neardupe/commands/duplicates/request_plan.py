"""Plan of a request, read and checked: plain records without references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.commands.duplicates import request_model
from es_neardupe.commands.duplicates.request_json import Step, invalid, listed, shown
from es_neardupe.options import Matching, MeasureName
from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS
from es_neardupe.similarity.features import (
    Characters,
    FeatureTree,
    Flatten,
    Leaf,
    Ngrams,
    Sentences,
    Values,
    Words,
    fields_of,
)

__all__ = [
    "RATIO",
    "ContentPlan",
    "DuplicatesPlan",
    "OverlapsPlan",
    "RequestPlan",
    "SchemeKeys",
    "StagePlan",
    "Validation",
    "plan_of",
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
    min_words: int = DEFAULT_MIN_WORDS
    """Words from which on a common run counts."""
    limit: int | None = None
    """The most pairs, the most similar ones first; None: all."""


StagePlan = DuplicatesPlan | ContentPlan | OverlapsPlan


@dataclass(frozen=True)
class RequestPlan:
    """A whole request."""

    stages: tuple[StagePlan, ...]
    """In the order in which they can be run: those that find pairs first, else as in the file."""


_DEEPEST = 20
"""Sources in each other. Two or three are of use."""

_LEAVES: dict[str, type[Leaf]] = {
    "featureSource:values": Values,
    "featureSource:words": Words,
    "featureSource:characters": Characters,
    "featureSource:sentences": Sentences,
}


@dataclass(frozen=True)
class RequestPlace:
    """A place in the request, and the components that led there."""

    path: tuple[Step, ...]
    trail: tuple[str, ...] = ()

    def at(self, *steps: Step) -> RequestPlace:
        """The place below."""
        return RequestPlace((*self.path, *steps), self.trail)


def plan_of(request: request_model.Request) -> RequestPlan:
    """The plan of a request. Raises `SettingsError` with the JSON path of what cannot be resolved."""
    resolver = _Resolver(request)
    for name, component in request.components.items():  # also those that nothing uses
        resolver.component(component, RequestPlace(("components", name), (name,)))
    stages = [resolver.stage(name, stage) for name, stage in request.stages.items()]
    return RequestPlan(tuple(sorted(stages, key=lambda one: not isinstance(one, DuplicatesPlan))))


class _Resolver:
    """The components of one request."""

    def __init__(self, request: request_model.Request) -> None:
        self.components = request.components
        self.stages = request.stages

    def component(self, one: Any, place: RequestPlace) -> None:
        """Follow what is inside a component."""
        family = one.type.partition(":")[0]
        by_family: dict[str, Callable[[Any, RequestPlace], object]] = {
            "fields": self.fields,
            "featureSource": self.features,
            "pairwiseSimilarity": self.similarity,
            "query": self.query,
            "contentFields": self.content_fields,
        }
        by_family[family](one, place)

    def stage(self, name: str, stage: Any) -> StagePlan:
        """One stage as a record."""
        place = RequestPlace(("stages", name))
        if isinstance(stage, request_model.Duplicates):
            return self._duplicates(name, stage, place)
        if isinstance(stage, request_model.Content):
            pairs = self._pairs(stage.documents.document_pairs, place.at("documents", "documentPairs"))
            fields = self.content_fields(stage.fields, place.at("fields"))
            return ContentPlan(name, pairs, fields, _limit(stage.limit))
        pairs = self._pairs(stage.document_pairs, place.at("documentPairs"))
        fields_ = self.fields(stage.fields, place.at("fields"))
        return OverlapsPlan(name, pairs, fields_, stage.min_words, _limit(stage.limit))

    def _duplicates(self, name: str, stage: request_model.Duplicates, place: RequestPlace) -> DuplicatesPlan:
        grouping, pairing = stage.hash_grouping.features, stage.hash_grouping.pairing
        at = place.at("hashGrouping", "features")
        validation = self._validation(stage.validation, place.at("validation"))
        estimated = validation.measure == MeasureName.ESTIMATE.value  # always with its interval
        return DuplicatesPlan(
            name=name,
            query=self.query(stage.query, place.at("query")),
            grouping=SchemeKeys() if isinstance(grouping, str) else self.features(grouping, at),
            max_group=pairing.max_hash_group_size,
            validation=validation,
            explanations=stage.output.explanations or estimated,
            across_indices=pairing.across_indices,
        )

    def _validation(self, given: request_model.ValidationRange, place: RequestPlace) -> Validation:
        if given.min > given.max:
            raise invalid(place.at("min").path, f"is {given.min:g}; allowed: at most the max, which is {given.max:g}.")
        one = self.similarity(given.pairwise_similarity, place.at("pairwiseSimilarity"))
        return Validation(**one, min=float(given.min), max=float(given.max))

    def similarity(self, given: Any, place: RequestPlace) -> dict[str, Any]:
        """The measure with what it takes: the fields of `Validation` without the range."""
        one, place = self._followed(given, place)
        measure = one.type.partition(":")[2]
        ratio = measure == RATIO
        return {
            "measure": measure,
            "features": self.features(one.features, place.at("features")) if ratio else None,
            "fields": () if ratio else self.fields(one.fields, place.at("fields")),
            "matching": Matching(getattr(one, "matching", "literal")),
            "ngram": getattr(one, "ngram", 1),
            "shingle": getattr(one, "shingle", DEFAULT_MIN_WORDS),
        }

    def fields(self, given: Any, place: RequestPlace) -> tuple[str, ...]:
        """The names of fields."""
        return tuple(self._followed(given, place)[0].fields)

    def content_fields(self, given: Any, place: RequestPlace) -> dict[str, int | None]:
        """The names of fields, each with the most characters of a value."""
        one, _ = self._followed(given, place)
        return {name: field.max_value_length for name, field in one.fields.items()}

    def features(self, given: Any, place: RequestPlace, depth: int = 1) -> FeatureTree:
        """A source of features with all that it is made of."""
        if depth > _DEEPEST:
            raise invalid(place.path, f"is the source of a source, and so on, more than {_DEEPEST} times.")
        one, place = self._followed(given, place)
        if isinstance(one, request_model.FeatureLeaf):
            return _LEAVES[one.type](self.fields(one.fields, place.at("fields")))
        source = self.features(one.source, place.at("source"), depth + 1)
        if isinstance(one, request_model.FeatureFlatten):
            return Flatten(source)
        if isinstance(source, Values):
            raise invalid(
                place.at("source").path,
                "is featureSource:values, which have no parts to make n-grams of; allowed: words, characters, "
                "sentences, n-grams, and what featureSource:flatten makes.",
            )
        return Ngrams(one.window, source)

    def query(self, given: Any, place: RequestPlace) -> Mapping[str, Any] | None:
        """The scope as the server takes it."""
        if isinstance(given, dict):
            if set(given) != {"query"}:
                return given
            if not isinstance(given["query"], dict) or not given["query"]:
                raise invalid(place.at("query").path, "must be an object that is not empty.")
            return dict(given["query"])  # as a search body has it
        one, _ = self._followed(given, place)
        return {"query_string": {"query": one.query}} if isinstance(one, request_model.QueryString) else None

    def _pairs(self, given: request_model.PairsReference, place: RequestPlace) -> str:
        """The name of a stage that finds pairs."""
        finding = [name for name, stage in self.stages.items() if isinstance(stage, request_model.Duplicates)]
        if given.use not in finding:
            allowed = listed(finding) or "no stage of this request finds pairs"
            raise invalid(
                place.at("use").path, f"is {shown(given.use)}, which is no stage that finds pairs; allowed: {allowed}."
            )
        return given.use

    def _followed(self, given: Any, place: RequestPlace) -> tuple[Any, RequestPlace]:
        """The component that a reference leads to in the end, and its place."""
        one = given
        while one.type.endswith(":reference"):
            name, family = one.use, one.type.partition(":")[0]
            at = place.at("use").path
            if name in place.trail:
                circle = listed([*place.trail[place.trail.index(name) :], name], " -> ")
                raise invalid(at, f"leads back to itself: {circle}.")
            there = [key for key, other in self.components.items() if other.type.startswith(f"{family}:")]
            if name not in there:
                problem = "is of another type" if name in self.components else "is not among the components"
                allowed = listed(there) or f"there is no component {family}:*"
                raise invalid(at, f"is {shown(name)}, which {problem}; allowed: {allowed}.")
            one, place = self.components[name], RequestPlace(("components", name), (*place.trail, name))
        return one, place


def _limit(given: int | str) -> int | None:
    return given if isinstance(given, int) else None
