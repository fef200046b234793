"""What a request may name as a component and refer to: fields, features, similarities, scopes, content."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import MinLen
from pydantic import Discriminator, Field, Tag

from es_neardupe.alignment import DEFAULT_LEAST
from es_neardupe.requests.basics import Between, Model, Name, Names, Words

__all__ = [
    "Component",
    "ContentFields",
    "FeatureFlatten",
    "FeatureLeaf",
    "FeatureSource",
    "Fields",
    "Query",
    "QueryAll",
    "QueryString",
    "Similarity",
]


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
    """Features straight from the values of fields."""

    type: Literal["featureSource:values", "featureSource:words", "featureSource:characters", "featureSource:sentences"]
    fields: Fields


class FeatureNgrams(Model):
    type: Literal["featureSource:ngrams"]
    window: Words
    source: FeatureSource


class FeatureFlatten(Model):
    type: Literal["featureSource:flatten"]
    source: FeatureSource


class FeatureReference(Model):
    type: Literal["featureSource:reference"]
    use: Name


FeatureSource: TypeAlias = Annotated[
    FeatureLeaf | FeatureNgrams | FeatureFlatten | FeatureReference, Discriminator("type")
]


# Similarity of two documents


class RatioOfFeatures(Model):
    type: Literal["pairwiseSimilarity:featureIntersectionToUnionRatio"]
    features: FeatureSource


class MeasureOfShingles(Model):
    type: Literal["pairwiseSimilarity:resemblance", "pairwiseSimilarity:weighted", "pairwiseSimilarity:estimate"]
    fields: Fields
    shingle: Words = DEFAULT_LEAST


class MeasureOfPassages(Model):
    type: Literal[
        "pairwiseSimilarity:jaccard", "pairwiseSimilarity:containment", "pairwiseSimilarity:containment-longer"
    ]
    fields: Fields
    matching: Literal["literal", "information"] = "literal"
    shingle: Words = DEFAULT_LEAST


class MeasureOfBags(Model):
    type: Literal["pairwiseSimilarity:bag"]
    fields: Fields
    ngram: Annotated[int, Between(1, 7, "a whole number")] = 1


class MeasureOfEdits(Model):
    type: Literal["pairwiseSimilarity:edit"]
    fields: Fields


class SimilarityReference(Model):
    type: Literal["pairwiseSimilarity:reference"]
    use: Name


TextMeasure: TypeAlias = MeasureOfShingles | MeasureOfPassages | MeasureOfBags | MeasureOfEdits
Similarity: TypeAlias = Annotated[RatioOfFeatures | TextMeasure | SimilarityReference, Discriminator("type")]


# Scope


class QueryString(Model):
    type: Literal["query:string"]
    query: Name


class QueryAll(Model):
    type: Literal["query:all"]


class QueryReference(Model):
    type: Literal["query:reference"]
    use: Name


OwnQuery: TypeAlias = Annotated[QueryString | QueryAll | QueryReference, Discriminator("type")]
_OF_OURS = {"properties": {"type": {"type": "string"}}, "required": ["type"]}
ServerQuery: TypeAlias = Annotated[dict[str, Any], MinLen(1), Field(json_schema_extra={"not": _OF_OURS})]


def _kind_of_query(value: Any) -> str:
    return "ours" if isinstance(value, dict) and isinstance(value.get("type"), str) else "server's"


Query: TypeAlias = Annotated[
    Annotated[OwnQuery, Tag("ours")] | Annotated[ServerQuery, Tag("server's")], Discriminator(_kind_of_query)
]


# Content


class ContentField(Model):
    max_value_length: Annotated[int, Between(1, 10_000_000, "a whole number")] | None = None


class ContentFieldsSimple(Model):
    type: Literal["contentFields:simple"]
    fields: Annotated[dict[Name, ContentField], MinLen(1)]


class ContentFieldsReference(Model):
    type: Literal["contentFields:reference"]
    use: Name


ContentFields: TypeAlias = Annotated[ContentFieldsSimple | ContentFieldsReference, Discriminator("type")]


# All of them

Component: TypeAlias = Annotated[
    FieldsSimple
    | FieldsReference
    | FeatureLeaf
    | FeatureNgrams
    | FeatureFlatten
    | FeatureReference
    | RatioOfFeatures
    | TextMeasure
    | SimilarityReference
    | QueryString
    | QueryAll
    | QueryReference
    | ContentFieldsSimple
    | ContentFieldsReference,
    Discriminator("type"),
]
