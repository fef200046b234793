"""Stored fingerprints as columns, and classes of equal texts."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import SETTINGS, hits, paged

from es_neardupe.candidates.fingerprints import classes_of, read_corpus, source_of
from es_neardupe.index.mapping import Fields
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.text import hash_text, tokenize
from es_neardupe.records import FingerprintColumns, Grouping, Hit, TextClasses

BANDS = SETTINGS.scheme.bands

TEXTS = st.dictionaries(
    st.text("ab1", min_size=1, max_size=3),
    st.sampled_from(["", "!", "a", "A.", "b c", "a b c d e", "a b c d e!", "a b c d f", "a b c d e f g", "漢字", "ß"]),
    max_size=12,
)


def corpus_of(found: list[Hit], page: int = 100) -> FingerprintColumns:
    return read_corpus(paged(found, page), "neardupe", BANDS)


def addresses(corpus: FingerprintColumns, classes: TextClasses) -> list[list[tuple[str, str]]]:
    return [[corpus.references[row][:2] for row in rows.tolist()] for rows in classes]


@given(TEXTS, st.integers(1, 5))
def test_columns(texts: dict[str, str], page: int) -> None:
    found = hits(texts)
    corpus = corpus_of(found, page)
    assert len(corpus) == len(texts)
    assert list(corpus.references) == [("i", id, None) for id in texts]
    wanted = fingerprints(list(texts.values()), SETTINGS.scheme)
    assert [hash_text(one) for one in corpus.content.tolist()] == [one.content for one in wanted]
    assert corpus.tokens.tolist() == [one.tokens for one in wanted]
    assert corpus.keys.shape == (len(texts), BANDS)
    for row, one in enumerate(wanted):
        assert [key.tobytes().decode("latin-1") for key in corpus.keys[row] if key] == list(one.bands)
    assert {state: number for state, number in corpus.states.items() if number} == Counter(
        one.state.value for one in wanted
    )
    assert sum(corpus.states.values()) == len(corpus)
    assert set(corpus.states) == {"signed", "short", "empty", "too_large", "failed"}
    assert [one.decode() for one in corpus.group_ids] == [hit.source["neardupe"]["group"] for hit in found]
    assert [corpus.grouping(row) for row in range(len(texts))] == [None] * len(texts)
    assert corpus.corrupt == []


@given(TEXTS)
def test_classes_against_a_dictionary(texts: dict[str, str]) -> None:
    """Equal tokens, one class; the longest first, then the one with the oldest id; members by id."""
    corpus = corpus_of(hits(texts))
    by_tokens: dict[tuple[str, ...], list[str]] = {}
    for id in sorted(texts):
        by_tokens.setdefault(tuple(tokenize(texts[id])), []).append(id)
    by_tokens.pop((), None)
    wanted = sorted(by_tokens.items(), key=lambda item: (-len(item[0]), item[1][0]))
    classes = classes_of(corpus)
    assert addresses(corpus, classes) == [[("i", id) for id in ids] for _, ids in wanted]
    assert len(classes) == len(wanted)


@given(TEXTS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_arrival_order_does_not_matter(texts: dict[str, str], shuffle: random.Random, page: int) -> None:
    found = hits(texts)
    straight = corpus_of(found)
    shuffle.shuffle(found)
    moved = corpus_of(found, page)
    assert addresses(moved, classes_of(moved)) == addresses(straight, classes_of(straight))
    assert moved.states == straight.states


def test_same_id_in_two_indices() -> None:
    found = [*hits({"1": "a b", "2": "a b"}, index="y"), *hits({"1": "a b"}, index="x")]
    corpus = corpus_of(found)
    assert addresses(corpus, classes_of(corpus)) == [[("x", "1"), ("y", "1"), ("y", "2")]]


def test_corrupt_documents_are_in_no_row() -> None:
    found = hits({str(k): f"a b c d e {k}" for k in range(6)})

    def spoiled(place: int, **changed: Any) -> Hit:
        hit = found[place]
        return Hit("i", hit.id, None, 1, 1, {"neardupe": {**hit.source["neardupe"], **changed}})

    keys = found[0].source["neardupe"]["bands"]
    mixed = [
        spoiled(0, bands=keys[:-1]),
        found[1],
        spoiled(2, content=None),
        spoiled(3, tokens="6"),
        Hit("i", "4", None, 1, 1, {}),
        found[5],
    ]
    corpus = corpus_of(mixed, 2)
    assert corpus.corrupt == [("i", "0"), ("i", "2"), ("i", "3"), ("i", "4")]
    assert [reference[1] for reference in corpus.references] == ["1", "5"]
    assert corpus.keys.shape == (2, BANDS)
    assert corpus.keys[:].all()
    assert corpus.states["signed"] == 2


def test_references_versions_and_groupings() -> None:
    (hit,) = hits({"1": "a b c d e"})
    fields = {**hit.source["neardupe"], "group": "g" * 16, "principal": False, "similarity": 0.875}
    corpus = corpus_of([Hit("i", "1", "route", 7, 3, {"neardupe": fields})])
    assert list(corpus.references) == [("i", "1", "route")]
    assert corpus.versions[:].tolist() == [[7, 3]]
    assert corpus.grouping(0) == Grouping("g" * 16, False, 0.875)
    assert corpus.group_ids.tolist() == [b"g" * 16]


def test_nothing() -> None:
    corpus = corpus_of([])
    assert (len(corpus), corpus.keys.shape, len(classes_of(corpus))) == (0, (0, BANDS), 0)
    alone = corpus_of(hits({"1": "", "2": "?!"}))
    assert (len(alone), len(classes_of(alone))) == (2, 0)
    assert not alone.keys[:].any()


def test_what_is_read() -> None:
    """Everything that `read_corpus` needs, and neither text nor signature."""
    names = ["scheme", "state", "content", "bands", "tokens", "features", "group", "principal", "similarity"]
    names.append("checked")
    assert source_of(Fields("nd")) == [f"nd.{name}" for name in names]
    (hit,) = hits({"1": "a b c d e"})
    read = {name: value for name, value in hit.source["neardupe"].items() if name in names}
    assert len(corpus_of([Hit("i", "1", None, 1, 1, {"neardupe": read})])) == 1


def test_latin_key_positions() -> None:
    """From the 65th band on, the first character of a key is not ASCII."""
    from es_neardupe.index.settings import Settings

    settings = Settings(("text",), bands=128, rows=1)
    corpus = read_corpus([hits({"1": "a b c d e"}, settings)], "neardupe", 128)
    assert corpus.keys.shape == (1, 128)
    assert len(np.unique(corpus.keys[:])) == 128
