"""Model of a request in JSON: stages, and the components that they refer to by name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge, GroupedMetadata, Le, MinLen
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS


class Between(GroupedMetadata):
    """Constraint of a number to a range, with an error that states the range."""

    def __init__(self, low: int, high: int, kind: str) -> None:
        self.low, self.high, self.kind = low, high, kind

    def __iter__(self) -> Iterator[object]:
        yield from (Ge(self.low), Le(self.high), WrapValidator(self._with_range))

    def _with_range(self, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            allowed = f"{self.kind} from {self.low} to {self.high:,}"
            raise PydanticCustomError("range", "{allowed}", {"allowed": allowed}) from None


def _distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise PydanticCustomError("twice", "{allowed}", {"allowed": "an array without duplicates"})
    return names


Name = Annotated[str, MinLen(1)]
Names = Annotated[list[Name], MinLen(1), AfterValidator(_distinct), Field(json_schema_extra={"uniqueItems": True})]


def _number(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError:
        allowed = f"a number from 0 to 1, or for featureIntersectionSize an integer from 0 to {MAX_SHARED:,}"
        raise PydanticCustomError("range", "{allowed}", {"allowed": allowed}) from None


MAX_SHARED = 1_000_000_000
"""Largest number of shared features in a range."""
_NUMBER = {"type": "number", "minimum": 0, "maximum": MAX_SHARED}
Bound = Annotated[float, WrapValidator(_number), WithJsonSchema(_NUMBER)]
"""End of a range. Whether it is a ratio or a number of features depends on the similarity, which may be a
reference."""
MAX_GROUP_SIZE = 10_000
"""The largest ``maxHashGroupSize``."""

Words = Annotated[int, Between(1, 1000, "an integer")]


class Model(BaseModel):
    """An object of the request, without type conversion and without unknown properties."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _properties(cls, value: Any) -> Any:
        """Raises an error for the first unknown or missing property, with the known ones."""
        if not isinstance(value, dict):
            return value
        known = {field.alias or name: field for name, field in cls.model_fields.items()}
        needed = [name for name, field in known.items() if field.is_required()]
        for kind, names in (
            ("unknown", [name for name in value if name not in known]),
            ("missing", [name for name in needed if name not in value]),
        ):
            for name in names:
                raise PydanticCustomError("property", "{problem}", {"name": name, "problem": kind, "known": [*known]})
        return value


# Fields


class FieldsSimple(Model):
    type: Literal["fields:simple"]
    fields: Names


class FieldsReference(Model):
    type: Literal["fields:reference"]
    use: Name


Fields: TypeAlias = Annotated[FieldsSimple | FieldsReference, Discriminator("type")]


# Features


class FeatureLeaf(Model):
    """Features made directly from the values of fields."""

    type: Literal[
        "featureSource:values",
        "featureSource:words",
        "featureSource:characters",
        "featureSource:sentences",
        "featureSource:paragraphs",
    ]
    fields: Fields
    per_field: bool = False


class FeatureNgrams(Model):
    type: Literal["featureSource:ngrams"]
    window: Words
    source: FeatureSource


class FeatureFlatten(Model):
    type: Literal["featureSource:flatten"]
    source: FeatureSource


def _two_or_more(value: Any) -> Any:
    if not isinstance(value, list) or len(value) < 2:
        raise PydanticCustomError("sources", "{allowed}", {"allowed": "an array of two or more feature sources"})
    return value


class FeatureCombine(Model):
    """One feature of the features of several sources."""

    type: Literal["featureSource:combine"]
    sources: Annotated[list[FeatureSource], BeforeValidator(_two_or_more), Field(json_schema_extra={"minItems": 2})]


class FeatureReference(Model):
    type: Literal["featureSource:reference"]
    use: Name


FeatureSource: TypeAlias = Annotated[
    FeatureLeaf | FeatureNgrams | FeatureFlatten | FeatureCombine | FeatureReference, Discriminator("type")
]


# Similarity of two documents


class SharedFeatures(Model):
    type: Literal["pairwiseSimilarity:featureIntersectionToUnionRatio", "pairwiseSimilarity:featureIntersectionSize"]
    features: FeatureSource


class MeasureOfShingles(Model):
    type: Literal[
        "pairwiseSimilarity:resemblance",
        "pairwiseSimilarity:S_R",
        "pairwiseSimilarity:weighted",
        "pairwiseSimilarity:estimate",
    ]
    fields: Fields
    shingle: Words = DEFAULT_MIN_WORDS


class MeasureOfPassages(Model):
    type: Literal[
        "pairwiseSimilarity:jaccard",
        "pairwiseSimilarity:S_J",
        "pairwiseSimilarity:containment",
        "pairwiseSimilarity:containment-longer",
        "pairwiseSimilarity:S_L",
    ]
    fields: Fields
    matching: Literal["literal", "information"] = "literal"
    shingle: Words = DEFAULT_MIN_WORDS


class MeasureOfBags(Model):
    type: Literal["pairwiseSimilarity:bag"]
    fields: Fields
    ngram: Annotated[int, Between(1, 7, "an integer")] = 1


class MeasureOfEdits(Model):
    type: Literal["pairwiseSimilarity:edit"]
    fields: Fields


class SimilarityReference(Model):
    type: Literal["pairwiseSimilarity:reference"]
    use: Name


TextMeasure: TypeAlias = MeasureOfShingles | MeasureOfPassages | MeasureOfBags | MeasureOfEdits
Similarity: TypeAlias = Annotated[SharedFeatures | TextMeasure | SimilarityReference, Discriminator("type")]


# Scope


class QueryString(Model):
    type: Literal["query:string"]
    query: Name


class QueryAll(Model):
    type: Literal["query:all"]


class QueryReference(Model):
    type: Literal["query:reference"]
    use: Name


TypedQuery: TypeAlias = Annotated[QueryString | QueryAll | QueryReference, Discriminator("type")]
_HAS_TYPE = {"properties": {"type": {"type": "string"}}, "required": ["type"]}
ServerQuery: TypeAlias = Annotated[dict[str, Any], MinLen(1), Field(json_schema_extra={"not": _HAS_TYPE})]
"""Query DSL of the server."""


def _kind_of_query(value: Any) -> str:
    return "typed query" if isinstance(value, dict) and isinstance(value.get("type"), str) else "query DSL"


Query: TypeAlias = Annotated[
    Annotated[TypedQuery, Tag("typed query")] | Annotated[ServerQuery, Tag("query DSL")], Discriminator(_kind_of_query)
]


# Content


class ContentField(Model):
    max_value_length: Annotated[int, Between(1, 10_000_000, "an integer")] | None = None


class ContentFieldsSimple(Model):
    type: Literal["contentFields:simple"]
    fields: Annotated[dict[Name, ContentField], MinLen(1)]


class ContentFieldsReference(Model):
    type: Literal["contentFields:reference"]
    use: Name


ContentFields: TypeAlias = Annotated[ContentFieldsSimple | ContentFieldsReference, Discriminator("type")]


# Components and stages

Component: TypeAlias = Annotated[
    FieldsSimple
    | FieldsReference
    | FeatureLeaf
    | FeatureNgrams
    | FeatureFlatten
    | FeatureCombine
    | FeatureReference
    | SharedFeatures
    | TextMeasure
    | SimilarityReference
    | QueryString
    | QueryAll
    | QueryReference
    | ContentFieldsSimple
    | ContentFieldsReference,
    Discriminator("type"),
]


class PairsReference(Model):
    """The pairs that another stage finds."""

    type: Literal["documentPairs:reference"]
    use: Name


class DocumentsOfPairs(Model):
    type: Literal["documents:fromDocumentPairs"]
    document_pairs: PairsReference


Limit: TypeAlias = Annotated[int, Between(1, 100_000_000, "an integer")] | Literal["unlimited"]


class Pairing(Model):
    max_hash_group_size: Annotated[int, Between(2, MAX_GROUP_SIZE, "an integer")] = 200
    across_indices: bool = False


def _kind_of_grouping(value: Any) -> str:
    return "scheme" if isinstance(value, str) else "features"


def _scheme(value: str) -> str:
    if value != "scheme":
        raise PydanticCustomError("word", "{allowed}", {"allowed": '"scheme" or an object with a type featureSource:*'})
    return value


class HashGrouping(Model):
    features: Annotated[
        Annotated[Literal["scheme"], BeforeValidator(_scheme), Tag("scheme")]
        | Annotated[FeatureSource, Tag("features")],
        Discriminator(_kind_of_grouping),
    ]
    pairing: Pairing = Pairing()


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default")  # JSON has no infinity


class ValidationRange(Model):
    pairwise_similarity: Similarity
    min: Bound
    max: Bound = Field(default=math.inf, json_schema_extra=_without_default)
    """Infinity: no maximum."""


def _kind_of_validation(value: Any) -> str:
    return "several" if isinstance(value, list) else "one"


Validations: TypeAlias = Annotated[
    Annotated[ValidationRange, Tag("one")] | Annotated[list[ValidationRange], MinLen(1), Tag("several")],
    Discriminator(_kind_of_validation),
]


class Output(Model):
    explanations: bool = False


class Duplicates(Model):
    """Find pairs of documents."""

    type: Literal["documentPairs:duplicates"]
    hash_grouping: HashGrouping
    validation: Validations
    query: Query = Field(default_factory=lambda: QueryAll(type="query:all"))
    output: Output = Output()


class Content(Model):
    """Read fields of the documents in pairs."""

    type: Literal["documentContent"]
    documents: DocumentsOfPairs
    fields: ContentFields
    limit: Limit = "unlimited"


class Overlaps(Model):
    """Find the text blocks shared by the documents of each pair."""

    type: Literal["documentPairs:overlaps"]
    document_pairs: PairsReference
    fields: Fields
    min_words: Words = DEFAULT_MIN_WORDS
    limit: Limit = "unlimited"


Stage: TypeAlias = Annotated[Duplicates | Content | Overlaps, Discriminator("type")]


class Request(Model):
    """A request: stages, and named components that they refer to."""

    stages: Annotated[dict[Name, Stage], MinLen(1)]
    components: dict[Name, Component] = Field(default_factory=dict)
