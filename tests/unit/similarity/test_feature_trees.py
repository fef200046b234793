"""Trees of features against a plain implementation of their definition."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.errors import SettingsError
from es_neardupe.keys.shingles import features
from es_neardupe.keys.text import tokenize
from es_neardupe.similarity.features import (
    Characters,
    Combine,
    FeatureTree,
    Flatten,
    Ngrams,
    Paragraphs,
    Sentences,
    Values,
    Words,
    describe,
    example,
    fields_of,
    hashes,
    paragraphs,
    sentences,
)

T = ("title",)
GRAY, BLUE = {"title": ["Lucy had a gray cat."]}, {"title": ["Lucy had a blue cat."]}

TEXTS = st.text(st.sampled_from("aAbcé中 .!\n"), max_size=24)
DOCUMENTS = st.lists(
    st.fixed_dictionaries({}, optional={"a": st.lists(TEXTS, max_size=3), "b": st.lists(TEXTS, max_size=2)})
)
FIELDS = st.sampled_from([("a",), ("b", "a")])
KINDS = (Values, Words, Characters, Sentences, Paragraphs)
LEAVES = st.one_of(*(st.builds(kind, FIELDS, apart=st.booleans()) for kind in KINDS))


def _grown(inner: st.SearchStrategy[FeatureTree]) -> st.SearchStrategy[FeatureTree]:
    holding = inner.filter(lambda tree: not isinstance(tree, Values | Combine))
    combined = st.builds(Combine, st.lists(inner, min_size=2, max_size=3).map(tuple))
    return st.builds(Flatten, inner) | st.builds(Ngrams, st.integers(1, 6), holding) | combined


TREES: st.SearchStrategy[FeatureTree] = st.recursive(LEAVES, _grown, max_leaves=3)


def made(tree: FeatureTree, document: Mapping[str, Sequence[str]]) -> list[Any]:
    """The features of a document by definition: an atom is a string, a composite a tuple of atoms."""
    if isinstance(tree, Combine):
        sets = [sorted(map(repr, set(made(source, document)))) for source in tree.sources]
        return [repr(sets)] if all(sets) else []
    if isinstance(tree, Flatten):
        return [atom for one in made(tree.source, document) for atom in (one if isinstance(one, tuple) else (one,))]
    if isinstance(tree, Ngrams):
        found = made(tree.source, document)
        sequences = [tuple(found)] if isinstance(tree.source, Flatten) else found
        return [run for one in sequences for run in windows(one, tree.window)]
    found = []
    for field in tree.fields:
        mark = f"{field}: " if tree.apart else ""
        for value in document.get(field, []):
            if isinstance(tree, Values):
                found += [mark + value] if value.strip() else []
            else:
                found += [tuple(mark + one for one in elements)] if (elements := parts(tree)(value)) else []
    return found


def parts(tree: FeatureTree) -> Any:
    """The function from a value to the tuple of its elements."""
    return {
        Words: lambda value: tuple(tokenize(value)),
        Characters: lambda value: tuple("".join(tokenize(value))),
        Sentences: lambda value: tuple(" ".join(words) for one in sentences(value) if (words := tokenize(one))),
        Paragraphs: lambda value: tuple(" ".join(words) for one in paragraphs(value) if (words := tokenize(one))),
    }[type(tree)]  # type: ignore[index]  # each of them is a key


def windows(sequence: tuple[Any, ...], size: int) -> list[tuple[Any, ...]]:
    """Every run of this size; for a shorter sequence all of it, for an empty one nothing."""
    if len(sequence) <= size:
        return [sequence] if sequence else []
    return [sequence[k : k + size] for k in range(len(sequence) - size + 1)]


def of(tree: FeatureTree, *documents: Mapping[str, Sequence[str]]) -> list[list[int]]:
    """The hashes of each document."""
    found = hashes(tree, documents)
    return [part.tolist() for part in np.split(found.values, found.bounds[1:-1])] if documents else []


def shared(tree: FeatureTree) -> tuple[int, int]:
    """The features that the two titles share, and all that they have."""
    a, b = map(set, of(tree, GRAY, BLUE))
    return len(a & b), len(a | b)


@given(TREES, DOCUMENTS)
def test_hashes_are_equal_where_features_are_equal(tree: FeatureTree, documents: list[Any]) -> None:
    expected = [made(tree, document) for document in documents]
    found = of(tree, *documents)
    assert list(map(len, found)) == list(map(len, expected))
    pairs = {
        (hash, feature)
        for row, texts in zip(found, expected, strict=True)
        for hash, feature in zip(row, texts, strict=True)
    }
    assert len(pairs) == len({hash for hash, _ in pairs}) == len({feature for _, feature in pairs})


@given(TREES, DOCUMENTS)
def test_a_document_has_the_same_hashes_in_any_company(tree: FeatureTree, documents: list[Any]) -> None:
    assert of(tree, *documents) == [row for document in documents for row in of(tree, document)]


@given(TREES, DOCUMENTS.filter(bool))
def test_the_text_of_a_feature_is_found_by_its_hash(tree: FeatureTree, documents: list[Any]) -> None:
    for hash in of(tree, documents[0])[0]:
        text = example(tree, documents[0], hash)
        assert text is not None
    assert example(tree, documents[0], 1) is None


@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(1, 7))
def test_ngrams_of_flattened_words_are_the_features_of_the_scheme(values: list[str], size: int) -> None:
    (found,) = of(Ngrams(size, Flatten(Words(("a",)))), {"a": values})
    assert sorted(set(found)) == features(["\n".join(values)], size)[0].tolist()


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (Values(T), (0, 2)),
        (Words(T), (0, 2)),  # not flattened: the whole sequence is one feature
        (Flatten(Words(T)), (4, 6)),
        (Ngrams(3, Words(T)), (1, 5)),  # "lucy had a"
        (Ngrams(4, Words(T)), (0, 4)),
        (Ngrams(9, Words(T)), (0, 2)),  # shorter than the window: one n-gram as a whole
    ],
)
def test_lucy_and_her_cats(tree: FeatureTree, expected: tuple[int, int]) -> None:
    assert shared(tree) == expected


def test_the_texts_of_features() -> None:
    def texts(tree: FeatureTree) -> list[str | None]:
        return [example(tree, GRAY, hash) for hash in of(tree, GRAY)[0]]

    assert texts(Ngrams(3, Words(T))) == ["lucy had a", "had a gray", "a gray cat"]
    assert texts(Words(T)) == ["lucy had a gray cat"]
    assert texts(Flatten(Words(T))) == ["lucy", "had", "a", "gray", "cat"]
    assert texts(Values(T)) == ["Lucy had a gray cat."]
    assert texts(Ngrams(13, Characters(T))) == ["lucyhadagrayc", "ucyhadagrayca", "cyhadagraycat"]


def test_runs_of_values_do_not_cross_unless_flattened() -> None:
    document = {"title": ["one two", "three four"]}
    apart, joined = Ngrams(3, Words(T)), Ngrams(3, Flatten(Words(T)))
    assert [example(apart, document, hash) for hash in of(apart, document)[0]] == ["one two", "three four"]
    assert [example(joined, document, hash) for hash in of(joined, document)[0]] == ["one two three", "two three four"]


def test_a_hash_does_not_depend_on_the_field() -> None:
    for kind in KINDS:
        assert of(kind(("a",), apart=True), {"a": ["One. Two."]}) != of(kind(("b",), apart=True), {"b": ["One. Two."]})
        assert of(kind(("a",)), {"a": ["One. Two."]}) == of(kind(("b",)), {"b": ["One. Two."]})


@given(st.text(st.sampled_from("a .!?\u3002\uff1f\u2026\n\"')\t")))
def test_sentences_end_where_their_definition_says(value: str) -> None:
    between = r"(?<=[.!?\u2026])[\"'\u2019\u201d)\]]*\s+|(?<=[\u3002\uff01\uff1f])|\n\s*\n"
    assert list(filter(None, sentences(value))) == list(filter(None, re.split(between, value)))


FACES = [
    {"hair": ["blond"], "beard": ["beard", "moustache"], "skin": ["brown"]},
    {"hair": ["blond"], "beard": ["moustache", "beard", "beard"], "skin": ["white"]},
    {"hair": ["blond"], "beard": ["moustache"], "skin": ["white"]},
    {"hair": ["none"], "beard": ["none"], "skin": ["white"]},
    {"hair": ["blond"], "skin": ["white"]},
]


def test_hair_and_facial_hair_are_one_feature() -> None:
    """Equal sets of values of both fields, in any order; a face without one of the fields has no such feature."""
    tree = Combine((Values(("hair",)), Values(("beard",))))
    one, same, other, none, without = of(tree, *FACES)
    assert one == same
    assert len({*one, *other, *none}) == 3
    assert without == []
    assert example(tree, FACES[0], one[0]) == "blond + beard, moustache"
    assert describe(tree) == "combinations of entire values from field: hair and entire values from field: beard"
    assert fields_of(tree) == ("hair", "beard")


def test_the_same_value_of_two_fields_is_two_features_if_fields_are_apart() -> None:
    fields = ("hair", "beard", "skin")
    for kind in (Values, lambda *given: Flatten(Words(*given))):
        together, apart = kind(fields), kind(fields, False, True)
        assert [len(set(row)) for row in of(together, FACES[3])] == [2]
        assert [len(set(row)) for row in of(apart, FACES[3])] == [3]
    assert describe(Values(fields, apart=True)) == "entire values from fields: hair, beard, skin (each field apart)"


def test_a_value_that_is_the_name_of_the_other_field_is_another_feature() -> None:
    """With a plain sum of both hashes, ``hair`` of a field ``beard`` was ``beard`` of a field ``hair``."""
    (found,) = of(Values(("hair", "beard"), apart=True), {"hair": ["beard"], "beard": ["hair"]})
    assert len(set(found)) == 2


@given(st.text(st.sampled_from("a b\n\r\t\u2029.")))
def test_paragraphs_end_at_empty_lines(value: str) -> None:
    """A paragraph has no line that is empty or blank, and no word is lost."""
    found = paragraphs(value)
    assert [word for one in found for word in tokenize(one)] == tokenize(value)
    assert not any("\u2029" in one or re.search(r"\n\s*\n", one) for one in found)
    lines = value.replace("\u2029", "\n\n").split("\n")
    blocks, block = [], []
    for line in [*lines, ""]:
        if line.strip():
            block += tokenize(line)
        elif block:
            blocks.append(block)
            block = []
    assert [words for one in found if (words := tokenize(one))] == blocks


def test_what_a_tree_is_in_words() -> None:
    assert describe(Values(T)) == "entire values from field: title"
    assert describe(Flatten(Words(T))) == "flattened composites of words from field: title"
    tree = Ngrams(5, Words(("title", "abstract")))
    assert describe(tree) == "5-grams of words from fields: title, abstract"
    assert fields_of(tree) == ("title", "abstract")


def test_what_has_no_ngrams_is_refused() -> None:
    with pytest.raises(SettingsError, match="1 element or more"):
        Ngrams(0, Words(T))
    with pytest.raises(SettingsError, match="words, characters, sentences or paragraphs"):
        Ngrams(2, Values(T))
    with pytest.raises(SettingsError, match="combinations cannot be split"):
        Ngrams(2, Combine((Values(T), Words(T))))


def test_a_million_features_of_one_document() -> None:
    document = {"title": [" ".join(f"w{number}" for number in range(1_000_000))]}
    (found,) = of(Ngrams(100_000, Words(T)), document)
    assert len(set(found)) == len(found) == 900_001
