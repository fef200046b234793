"""Plan of a request: its stages as records, checked and without references."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from es_neardupe.commands.duplicates import request_model
from es_neardupe.commands.duplicates.request_json import Step, invalid, listed, read_request, shown
from es_neardupe.options import Matching, MeasureName
from es_neardupe.query_strings import problem_of_query
from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS
from es_neardupe.similarity.features import (
    Characters,
    Combine,
    FeatureTree,
    Flatten,
    Leaf,
    Ngrams,
    Paragraphs,
    Sentences,
    Values,
    Words,
    fields_of,
)
from es_neardupe.similarity.measure import named_measure

RATIO = "featureIntersectionToUnionRatio"
"""Shared features divided by all features of both documents, each counted once."""
SHARED = "featureIntersectionSize"
"""The number of shared features."""
OF_FEATURES = (RATIO, SHARED)
"""The measures of features."""


@dataclass(frozen=True)
class SchemeKeys:
    """Grouping by the stored keys of an enriched index, instead of by features of the texts."""


@dataclass(frozen=True)
class Validation:
    """Similarity that is computed for each candidate pair, and the range that passes, both ends inclusive."""

    measure: str
    """One of `OF_FEATURES`, or the name of a `MeasureName`."""
    features: FeatureTree | None
    """For `OF_FEATURES`; None for measures of texts."""
    fields: tuple[str, ...]
    """For measures of texts: the fields whose values, joined in this order, are the text. Empty for `OF_FEATURES`."""
    matching: Matching
    """For jaccard and the containment measures."""
    ngram: int
    """Words per n-gram of the measure bag."""
    shingle: int
    """Words per shingle, and the minimum number of words in a common passage."""
    min: float
    max: float
    """Infinity for a number of shared features without a maximum."""


@dataclass(frozen=True)
class DuplicatesPlan:
    """Find the pairs of documents in scope that share a feature and pass all validations."""

    name: str
    query: Mapping[str, Any] | None
    """The scope in the server's query DSL; None: all documents."""
    grouping: FeatureTree | SchemeKeys
    max_group: int
    """Maximum number of documents with a common feature. Larger groups are skipped, counted and listed."""
    validations: tuple[Validation, ...]
    """One or more. Each is computed only for the pairs that pass those before it. Pairs are ordered by the first."""
    explanations: bool
    """Whether the similarity of each pair is explained in a sentence; always for an estimate, with its interval."""
    across_indices: bool = False
    """Only pairs of documents in two different indices; the others count as out of scope."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the validations, then those of the grouping, each once. Stored keys have none."""
        compared = [
            field
            for one in self.validations
            for field in (fields_of(one.features) if one.features is not None else one.fields)
        ]
        grouped = () if isinstance(self.grouping, SchemeKeys) else fields_of(self.grouping)
        return tuple(dict.fromkeys((*compared, *grouped)))


@dataclass(frozen=True)
class ContentPlan:
    """Read fields of every document in the pairs of a stage."""

    name: str
    pairs: str
    """The name of the stage."""
    fields: Mapping[str, int | None]
    """Name -> maximum number of characters of a value; None: no limit."""
    limit: int | None
    """Maximum number of documents, in the order of their best pairs; None: no limit."""


@dataclass(frozen=True)
class OverlapsPlan:
    """Find the text blocks shared by the documents of each pair of a stage."""

    name: str
    pairs: str
    """The name of the stage."""
    fields: tuple[str, ...]
    """The fields whose values, joined in this order, are the text."""
    min_words: int = DEFAULT_MIN_WORDS
    """Minimum number of words in a block."""
    limit: int | None = None
    """Maximum number of pairs, the most similar ones first; None: no limit."""


StagePlan = DuplicatesPlan | ContentPlan | OverlapsPlan


@dataclass(frozen=True)
class RequestPlan:
    """A whole request."""

    stages: tuple[StagePlan, ...]
    """In the order of execution: those that find pairs first, otherwise as in the request."""


# Parsing

_MAX_SOURCES = 20
"""Maximum nesting of feature sources. Two or three are useful."""

_LEAVES: dict[str, type[Leaf]] = {
    "featureSource:values": Values,
    "featureSource:words": Words,
    "featureSource:characters": Characters,
    "featureSource:sentences": Sentences,
    "featureSource:paragraphs": Paragraphs,
}


def parse_request(given: str | Mapping[str, Any]) -> RequestPlan:
    """The plan of a request, given as JSON text or as the same in Python objects.

    Raises `SettingsError` for an invalid request: one message with the JSON path, the problem and the allowed values.
    """
    request = read_request(given)
    resolver = _Resolver(request)
    for name, component in request.components.items():  # also unused ones
        resolver.component(component, RequestPlace(("components", name), (name,)))
    stages = [resolver.stage(name, stage) for name, stage in request.stages.items()]
    return RequestPlan(tuple(sorted(stages, key=lambda one: not isinstance(one, DuplicatesPlan))))


@dataclass(frozen=True)
class RequestPlace:
    """A place in the request, and the components that were followed to it."""

    path: tuple[Step, ...]
    trail: tuple[str, ...] = ()

    def at(self, *steps: Step) -> RequestPlace:
        """A place inside this one."""
        return RequestPlace((*self.path, *steps), self.trail)


class _Resolver:
    """Resolves references to the components of one request."""

    def __init__(self, request: request_model.Request) -> None:
        self.components = request.components
        self.stages = request.stages

    def component(self, one: Any, place: RequestPlace) -> None:
        """Check all references inside a component."""
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
        """The plan of a stage."""
        place = RequestPlace(("stages", name))
        if isinstance(stage, request_model.Duplicates):
            return self._duplicates(name, stage, place)
        if isinstance(stage, request_model.Content):
            pairs = self._pairs(stage.documents.document_pairs, place.at("documents", "documentPairs"))
            content_fields = self.content_fields(stage.fields, place.at("fields"))
            return ContentPlan(name, pairs, content_fields, _limit(stage.limit))
        pairs = self._pairs(stage.document_pairs, place.at("documentPairs"))
        fields = self.fields(stage.fields, place.at("fields"))
        return OverlapsPlan(name, pairs, fields, stage.min_words, _limit(stage.limit))

    def _duplicates(self, name: str, stage: request_model.Duplicates, place: RequestPlace) -> DuplicatesPlan:
        grouping, pairing = stage.hash_grouping.features, stage.hash_grouping.pairing
        at = place.at("hashGrouping", "features")
        validations = self._validations(stage.validation, place.at("validation"))
        # an estimate always shows its interval
        estimated = any(one.measure == MeasureName.ESTIMATE.value for one in validations)
        return DuplicatesPlan(
            name=name,
            query=self.query(stage.query, place.at("query")),
            grouping=SchemeKeys() if isinstance(grouping, str) else self.features(grouping, at),
            max_group=pairing.max_hash_group_size,
            validations=validations,
            explanations=stage.output.explanations or estimated,
            across_indices=pairing.across_indices,
        )

    def _validations(
        self, given: request_model.ValidationRange | list[request_model.ValidationRange], place: RequestPlace
    ) -> tuple[Validation, ...]:
        if not isinstance(given, list):
            return (self._validation(given, place),)
        found: list[Validation] = []
        for number, one in enumerate(given):
            validation = self._validation(one, place.at(number))
            for earlier, other in enumerate(found):
                if replace(other, min=validation.min, max=validation.max) == validation:
                    at = place.at(number, "pairwiseSimilarity").path
                    raise invalid(at, f"is the same as that of validation[{earlier}]; allowed: each similarity once.")
            found.append(validation)
        return tuple(found)

    def _validation(self, given: request_model.ValidationRange, place: RequestPlace) -> Validation:
        similarity = self.similarity(given.pairwise_similarity, place.at("pairwiseSimilarity"))
        counted = similarity.measure == SHARED
        for name in ("min", "max"):
            value = getattr(given, name)
            if math.isinf(value):  # no maximum
                continue
            if counted and not (value == int(value) and 0 <= value <= request_model.MAX_SHARED):
                allowed = f"an integer from 0 to {request_model.MAX_SHARED:,}"
                raise invalid(place.at(name).path, f"is {value:g}; allowed: {allowed}, a number of shared features.")
            if not counted and not 0 <= value <= 1:
                raise invalid(place.at(name).path, f"is {value:g}; allowed: a number from 0 to 1.")
        maximum = float(given.max) if counted else min(float(given.max), 1.0)
        if given.min > maximum:
            raise invalid(place.at("min").path, f"is {given.min:g}; allowed: at most max, which is {maximum:g}.")
        return replace(similarity, min=float(given.min), max=maximum)

    def similarity(self, given: Any, place: RequestPlace) -> Validation:
        """The measure and its settings, with the whole range of similarities."""
        one, place = self._followed(given, place)
        measure = one.type.partition(":")[2]
        of_features = measure in OF_FEATURES
        return Validation(
            measure=measure if of_features else named_measure(measure).value,
            features=self.features(one.features, place.at("features")) if of_features else None,
            fields=() if of_features else self.fields(one.fields, place.at("fields")),
            matching=Matching(getattr(one, "matching", "literal")),
            ngram=getattr(one, "ngram", 1),
            shingle=getattr(one, "shingle", DEFAULT_MIN_WORDS),
            min=0.0,
            max=1.0,
        )

    def fields(self, given: Any, place: RequestPlace) -> tuple[str, ...]:
        """The names of fields."""
        return tuple(self._followed(given, place)[0].fields)

    def content_fields(self, given: Any, place: RequestPlace) -> dict[str, int | None]:
        """Name of a field -> maximum number of characters of a value; None: no limit."""
        one, _ = self._followed(given, place)
        return {name: field.max_value_length for name, field in one.fields.items()}

    def features(self, given: Any, place: RequestPlace, depth: int = 1) -> FeatureTree:
        """A feature source with the sources inside it."""
        if depth > _MAX_SOURCES:
            raise invalid(place.path, f"is nested too deeply; allowed: up to {_MAX_SOURCES} feature sources.")
        one, place = self._followed(given, place)
        if isinstance(one, request_model.FeatureLeaf):
            return _LEAVES[one.type](self.fields(one.fields, place.at("fields")), apart=one.per_field)
        if isinstance(one, request_model.FeatureCombine):
            places = [(source, place.at("sources", number)) for number, source in enumerate(one.sources)]
            return Combine(tuple(self.features(source, at, depth + 1) for source, at in places))
        source = self.features(one.source, place.at("source"), depth + 1)
        if isinstance(one, request_model.FeatureFlatten):
            return Flatten(source)
        if isinstance(source, Values | Combine):
            kind = "values" if isinstance(source, Values) else "combine"
            raise invalid(
                place.at("source").path,
                f"is featureSource:{kind}, which makes features without parts; allowed: words, characters, sentences, "
                f"paragraphs, ngrams, flatten.",
            )
        return Ngrams(one.window, source)

    def query(self, given: Any, place: RequestPlace) -> Mapping[str, Any] | None:
        """The query in the server's query DSL; None: all documents."""
        query = self._query(given, place)
        if problem := problem_of_query(query):
            raise invalid(place.path, f"cannot be sent. {problem}")
        return query

    def _query(self, given: Any, place: RequestPlace) -> Mapping[str, Any] | None:
        if isinstance(given, dict):
            if set(given) != {"query"}:
                return given
            inner = given["query"]  # wrapped as in the body of a search
            if not isinstance(inner, dict) or not inner:
                raise invalid(place.at("query").path, f"is {shown(inner)}; allowed: a non-empty object.")
            return inner
        one, _ = self._followed(given, place)
        return {"query_string": {"query": one.query}} if isinstance(one, request_model.QueryString) else None

    def _pairs(self, given: request_model.PairsReference, place: RequestPlace) -> str:
        """The name of a stage that finds pairs."""
        finding = [name for name, stage in self.stages.items() if isinstance(stage, request_model.Duplicates)]
        if given.use not in finding:
            allowed = listed(finding) or "none, because no stage finds pairs"
            raise invalid(
                place.at("use").path, f"is {shown(given.use)}, which does not find pairs; allowed: {allowed}."
            )
        return given.use

    def _followed(self, given: Any, place: RequestPlace) -> tuple[Any, RequestPlace]:
        """The component at the end of a chain of references, and its place; anything else unchanged."""
        one = given
        while one.type.endswith(":reference"):
            name, family = one.use, one.type.partition(":")[0]
            at = place.at("use").path
            if name in place.trail:
                circle = listed([*place.trail[place.trail.index(name) :], name], " -> ")
                raise invalid(at, f"refers back to itself: {circle}.")
            known = [key for key, other in self.components.items() if other.type.startswith(f"{family}:")]
            if name not in known:
                problem = "has another type" if name in self.components else "is not a component"
                allowed = listed(known) or f"none, because no component has a type {family}:*"
                raise invalid(at, f"is {shown(name)}, which {problem}; allowed: {allowed}.")
            one, place = self.components[name], RequestPlace(("components", name), (*place.trail, name))
        return one, place


def _limit(given: int | str) -> int | None:
    return given if isinstance(given, int) else None
