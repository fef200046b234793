"""The shape of a request: what may stand where in its JSON. Nothing is converted, and nothing unknown is overlooked.

What refers to something else, or depends on it, is looked at in `es_neardupe.requests.resolving`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import MinLen
from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from es_neardupe.alignment import DEFAULT_LEAST
from es_neardupe.requests.basics import Between, Model, Name, Ratio, Words
from es_neardupe.requests.components import Component, ContentFields, FeatureSource, Fields, Query, QueryAll, Similarity

__all__ = ["Content", "Duplicates", "Overlaps", "PairsReference", "Request", "ValidationRange"]


class PairsReference(Model):
    """The pairs that another stage finds."""

    type: Literal["documentPairs:reference"]
    use: Name


class DocumentsOfPairs(Model):
    type: Literal["documents:fromDocumentPairs"]
    document_pairs: PairsReference


Limit: TypeAlias = Annotated[int, Between(1, 100_000_000, "a whole number")] | Literal["unlimited"]


class Pairing(Model):
    max_hash_group_size: Annotated[int, Between(2, 10_000, "a whole number")] = 200
    across_indices: bool = False


def _kind_of_grouping(value: Any) -> str:
    return "scheme" if isinstance(value, str) else "features"


def _scheme(value: str) -> str:
    if value != "scheme":
        raise PydanticCustomError(
            "word", "{allowed}", {"allowed": '"scheme" or an object whose type is a featureSource'}
        )
    return value


class HashGrouping(Model):
    features: Annotated[
        Annotated[Literal["scheme"], BeforeValidator(_scheme), Tag("scheme")]
        | Annotated[FeatureSource, Tag("features")],
        Discriminator(_kind_of_grouping),
    ]
    pairing: Pairing = Pairing()


class ValidationRange(Model):
    pairwise_similarity: Similarity
    min: Ratio
    max: Ratio = 1.0


class Output(Model):
    explanations: bool = False


class Duplicates(Model):
    """Find pairs of documents."""

    type: Literal["documentPairs:duplicates"]
    hash_grouping: HashGrouping
    validation: ValidationRange
    query: Query = Field(default_factory=lambda: QueryAll(type="query:all"))
    output: Output = Output()


class Content(Model):
    """Read fields of the documents of pairs."""

    type: Literal["documentContent"]
    documents: DocumentsOfPairs
    fields: ContentFields
    limit: Limit = "unlimited"


class Overlaps(Model):
    """Find the text blocks that the documents of a pair share."""

    type: Literal["documentPairs:overlaps"]
    document_pairs: PairsReference
    fields: Fields
    min_words: Words = DEFAULT_LEAST
    limit: Limit = "unlimited"


Stage: TypeAlias = Annotated[Duplicates | Content | Overlaps, Discriminator("type")]


class Request(Model):
    """A request: named parts that several stages may use, and the stages."""

    stages: Annotated[dict[Name, Stage], MinLen(1)]
    components: dict[Name, Component] = Field(default_factory=dict)
