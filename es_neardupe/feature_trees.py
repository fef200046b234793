"""Features of a document as a request composes them: a source over fields, runs of its elements, what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "Characters",
    "FeatureTree",
    "Flatten",
    "Ngrams",
    "Sentences",
    "Values",
    "Words",
    "describe",
    "fields_of",
]


@dataclass(frozen=True, slots=True)
class Values:
    """Each value of each field as it stands: one feature that holds nothing else."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Each value as the sequence of its words: one composite feature a value."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Characters:
    """Each value as the sequence of its characters, with one blank between two words: one composite a value."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sentences:
    """Each value as the sequence of its sentences: one composite a value."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ngrams:
    """Every run of ``window`` elements of each composite of the source; a shorter composite is one run as a whole.

    Where the source is flattened, the runs go over the whole sequence of the document.
    """

    window: int
    source: FeatureTree


@dataclass(frozen=True, slots=True)
class Flatten:
    """What the composites of the source hold, opened one level."""

    source: FeatureTree


Leaf: TypeAlias = Values | Words | Characters | Sentences
FeatureTree: TypeAlias = Leaf | Ngrams | Flatten

_LEAVES: dict[type[Leaf], str] = {
    Values: "entire values",
    Words: "words",
    Characters: "characters",
    Sentences: "sentences",
}


def fields_of(tree: FeatureTree) -> tuple[str, ...]:
    """The fields that the features are made of, in the order of the request."""
    return fields_of(tree.source) if isinstance(tree, Ngrams | Flatten) else tree.fields


def describe(tree: FeatureTree) -> str:
    """The features in words: "5-grams of words from field: title"."""
    return f"{_kind(tree)} from field{'s'[: len(fields_of(tree)) > 1]}: {', '.join(fields_of(tree))}"


def _kind(tree: FeatureTree) -> str:
    if isinstance(tree, Ngrams):
        return f"{tree.window}-grams of {_kind(tree.source)}"
    if isinstance(tree, Flatten):
        return f"flattened composites of {_kind(tree.source)}"
    return _LEAVES[type(tree)]
