"""Feature sources against plain Python: the same features are equal in exactly the documents that share them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.errors import SettingsError
from es_neardupe.keys.shingles import features
from es_neardupe.keys.text import tokenize
from es_neardupe.options import MeasureName
from es_neardupe.similarity.features import (
    INDEXED,
    FeatureTree,
    Flatten,
    Ngrams,
    Sentences,
    Words,
    combined,
    describe,
    hashes,
    parse,
    parse_all,
    spelled,
)
from es_neardupe.similarity.measure import Measure

GRAY, BLUE = "Lucy had a gray cat.", "Lucy had a blue cat."

VALUE = st.text(st.sampled_from("aB é中.!?\n -_"), max_size=14) | st.sampled_from(
    [GRAY, BLUE, "a b", "A, b!", "", "\0"]
)
DOCUMENT = st.lists(VALUE, max_size=4)


def plain(spec: str, values: list[str]) -> list[Any]:
    """The features of a document, by other code."""
    flat = spec.startswith("flatten(")
    if flat and values:
        values = ["\n".join(values)]
    kind, size = re.findall(r"(words|ngrams|characters|sentences|values)\(?([0-9]*)", spec)[0]
    return [feature for value in values for feature in plain_of_value(kind, int(size or 1), flat, value)]


def plain_of_value(kind: str, size: int, flat: bool, value: str) -> list[Any]:
    tokens = tokenize(value)
    if kind == "values":
        return [value]
    if kind == "sentences":
        return [tuple(words) for part in plain_sentences(value) if (words := tokenize(part))]
    if kind == "words":
        return [(word,) for word in tokens] if flat else [tuple(tokens)] if tokens else []
    parts: Any = "".join(tokens) if kind == "characters" else tuple(tokens)
    size = min(size, len(parts))
    return [parts[k : k + size] for k in range(len(parts) - size + 1)] if parts else []


def plain_sentences(text: str) -> list[str]:
    """Split after a full stop or similar followed by a space, and at empty lines."""
    for line in re.findall(r"\n\s*\n", text):
        text = text.replace(line, "\0\0")
    found, start = [], 0
    for at, char in enumerate(text):
        if char in ".!?" and text[at + 1 : at + 2].isspace():
            found.append(text[start : at + 1])
            start = at + 1
        elif text[at : at + 2] == "\0\0":
            found.append(text[start:at])
            start = at
    return [*found, text[start:]]


SPECS = st.builds(
    lambda name, size, flat: "flatten(" * flat + name.format(size) + ")" * flat,
    st.sampled_from(["words", "ngrams({})", "characters({})", "sentences", "values"]),
    st.integers(1, 4),
    st.booleans(),
)


def made(tree: FeatureTree, documents: list[Any]) -> list[Any]:
    """The features of each document."""
    return hashes(tree, documents).each()


@given(SPECS, st.lists(DOCUMENT, max_size=6))
def test_against_plain_python(spec: str, documents: list[list[str]]) -> None:
    """Hashes correspond to features one to one, in the same order."""
    found = made(parse(spec), [{INDEXED: values} for values in documents])
    wanted = [plain(spec, values) for values in documents]
    assert [len(one) for one in found] == [len(one) for one in wanted]
    pairs = {
        pair for numbers, shown in zip(found, wanted, strict=True) for pair in zip(numbers.tolist(), shown, strict=True)
    }
    assert len(pairs) == len({number for number, _ in pairs}) == len({feature for _, feature in pairs})
    assert all(one.dtype == np.uint64 for one in found)


@given(st.lists(DOCUMENT, max_size=6), st.integers(1, 7))
def test_flattened_ngrams_are_the_features_of_the_scheme(documents: list[list[str]], size: int) -> None:
    found = made(parse(f"flatten(ngrams({size}))"), [{INDEXED: values} for values in documents])
    wanted = features(["\n".join(values) for values in documents], size)
    assert [np.unique(one).tolist() for one in found] == [one.tolist() for one in wanted]


def shares(spec: str, a: list[str], b: list[str]) -> float:
    measure = Measure(sources=(parse(spec),))
    one, other = measure.prepare(["", ""], [{INDEXED: a}, {INDEXED: b}])
    return measure.score(one, other)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("flatten(words)", 4 / 6),
        ("words", 0),  # one composite feature each, and these differ
        ("ngrams(3)", 1 / 5),  # lucy had a
        ("flatten(ngrams(3))", 1 / 5),
        ("ngrams(4)", 0),
        ("values", 0),
        ("sentences", 0),
        ("ngrams(1)", 4 / 6),
    ],
)
def test_lucy(spec: str, wanted: float) -> None:
    """The toy example of Lingo4G's manual."""
    assert shares(spec, [GRAY], [BLUE]) == wanted
    assert shares(spec, [GRAY], [GRAY]) == 1


def test_composite_and_flattened() -> None:
    """Words of a value are one feature; n-grams end with their value unless it is flattened."""
    assert shares("words", ["red", "green blue"], ["green, BLUE!", "red"]) == 1
    assert shares("values", ["red", "green blue"], ["green, BLUE!", "red"]) == 1 / 3
    assert shares("flatten(values)", ["red", "green"], ["green", "red"]) == 0
    assert shares("ngrams(2)", ["a b", "c d"], ["a b c d"]) == 2 / 3
    assert shares("flatten(ngrams(2))", ["a b", "c d"], ["a b c d"]) == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("no punctuation at all in this text", 1),
        ("One. Two! Three? Four", 4),
        ('He said "no." She went.', 2),
        ("Version 1.2 of e.g this", 1),
        ("A heading\n\nand a line\nthat goes on.", 2),
        ("\u4f60\u597d\u3002\u518d\u89c1\u3002", 2),
        ("... !!! ???", 0),
        ("", 0),
    ],
)
def test_sentences(text: str, number: int) -> None:
    (found,) = made(parse("sentences"), [{INDEXED: [text]}])
    assert len(found) == number


def test_long_texts_take_no_time() -> None:
    text = "word " * 300_000
    for spec in ("words", "flatten(words)", "ngrams(5)", "characters(5)", "sentences", "values"):
        (found,) = made(parse(spec), [{INDEXED: [text]}])
        assert len(set(found.tolist())) <= 5


def test_several_sources_are_kept_apart() -> None:
    """The words of one field do not match those of another, and each source has its share."""
    title, body = parse_all(["title:flatten(words)", "body:flatten(words)"])
    one, other = {"title": ["a b"], "body": ["c"]}, {"title": ["c"], "body": ["a b"]}
    first, second = combined([title, body], [one, other]).each()
    assert not set(first.tolist()) & set(second.tolist())
    assert combined([title], [one]).each()[0].tolist() == made(title, [one])[0].tolist()
    assert len(first) == len(second) == 3


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("words", "words"),
        (" title : flatten( ngrams( 3 ) ) ", "title:flatten(ngrams(3))"),
        ("a:b:values", "a:b:values"),
        ("characters(4)", "characters(4)"),
        ("meta.tags:values", "meta.tags:values"),
    ],
)
def test_parse(spec: str, shown: str) -> None:
    assert spelled(parse(spec)) == shown
    assert parse(shown) == parse(spec)


@given(SPECS, st.sampled_from(["", "title:", "a:b:"]))
def test_every_string_is_spelled_as_it_was_read(spec: str, field: str) -> None:
    assert spelled(parse(field + spec)) == field + spec


@pytest.mark.parametrize("tree", [Sentences(("a",)), Ngrams(2, Sentences(("a",))), Flatten(Words(("a", "b")))])
def test_what_only_a_request_can_name_is_said_in_words(tree: FeatureTree) -> None:
    assert spelled(tree) == describe(tree)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            "wrods",
            "Unknown feature source 'wrods'. Known: words, ngrams(w), characters(n), sentences, paragraphs, values",
        ),
        ("", "Unknown feature source ''"),
        ("flatten(flatten(words))", "Unknown feature source"),
        ("flatten()", "Unknown feature source"),
        ("ngrams(x)", "Unknown feature source"),
        ("title:", "Unknown feature source ''"),
        (":words", "has no field"),
        ("ngrams", "write ngrams(5)"),
        ("characters", "write characters(5)"),
        ("words(3)", "write words"),
        ("ngrams(0)", "ngrams(0): the number must be 1 or more"),
        ("characters(-1)", "must be 1 or more"),
    ],
)
def test_refused(spec: str, words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        parse(spec)


def test_lists_of_sources() -> None:
    with pytest.raises(SettingsError, match="named twice"):
        parse_all(["words", " words"])
    with pytest.raises(SettingsError, match="is a list"):
        parse_all("words")
    assert parse_all([]) == ()


@given(DOCUMENT, DOCUMENT, SPECS)
def test_bags_of_features(a: list[str], b: list[str], spec: str) -> None:
    measure = Measure(MeasureName.BAG, sources=(parse(spec),))
    one, other = measure.prepare(["", ""], [{INDEXED: a}, {INDEXED: b}])
    in_a, in_b = Counter(plain(spec, a)), Counter(plain(spec, b))
    whole = (in_a | in_b).total() if in_a and in_b else 0
    assert measure.score(one, other) == ((in_a & in_b).total() / whole if whole else 0)
