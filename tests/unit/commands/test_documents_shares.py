"""`documents`: shares of chunks of each pair of documents, compared with the same by brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import columns

from es_neardupe.columns import RowLists, ValueSets
from es_neardupe.commands.documents import shares as module
from es_neardupe.commands.documents.shares import chunks_of_documents, shared_texts_meet_all

CHUNKS = st.lists(
    st.tuples(st.integers(0, 4), st.frozensets(st.sampled_from("abcd"), max_size=2), st.integers(1, 9)),
    min_size=1,
    max_size=14,
)
"""The text, documents and words of each chunk."""


@given(CHUNKS, st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4))), st.integers(1, 8))
def test_as_by_brute_force(
    chunks: list[tuple[int, frozenset[str], int]], similar: set[tuple[int, int]], top: int
) -> None:
    sets = sorted({tuple(sorted(of)) for _, of, _ in chunks})
    numbers = np.array([sets.index(tuple(sorted(of))) for _, of, _ in chunks])
    words = np.array([words for _, _, words in chunks])
    corpus = columns(len(chunks), across=ValueSets(numbers, sets), tokens=words)
    texts = sorted({text for text, _, _ in chunks})
    classes = RowLists.of([[row for row, one in enumerate(chunks) if one[0] == text] for text in texts])
    links = {tuple(sorted(pair)) for pair in similar if len(set(pair)) == 2 and set(pair) <= set(texts)}
    sides = np.array([[texts.index(text) for text in pair] for pair in links], np.int64).reshape(-1, 2)

    def matching(one: str, other: str) -> list[int]:
        found = {text for text, of, _ in chunks if other in of}
        found |= {b for pair in links for a, b in (pair, pair[::-1]) if a in found}
        return [row for row, (text, of, _) in enumerate(chunks) if one in of and text in found]

    def side(one: str, other: str) -> tuple[str, int, int, int, int]:
        own = [row for row, (_, of, _) in enumerate(chunks) if one in of]
        rows = matching(one, other)
        return one, len(own), len(rows), int(words[own].sum()), int(words[rows].sum())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_ENTRIES", 3)
        made = chunks_of_documents(corpus, classes)
        pairs, total = made.pairs(sides[:, 0], sides[:, 1], top)
    named = sorted({one for _, of, _ in chunks for one in of})
    wanted = [(side(a, b), side(b, a)) for a, b in combinations(named, 2) if matching(a, b)]
    wanted.sort(key=lambda pair: (-round(max(one[4] / one[3] for one in pair), 12), pair[0][0], pair[1][0]))
    found = [
        tuple((one.document, one.chunks, one.matching, one.words, one.matching_words) for one in (pair.a, pair.b))
        for pair in pairs
    ]
    assert (found, total) == (wanted[:top], len(wanted))
    assert made.names == tuple(named)
    assert (made.number, made.without) == (sum(bool(of) for _, of, _ in chunks), sum(not of for _, of, _ in chunks))
    for one in (side for pair in pairs for side in (pair.a, pair.b)):
        assert (one.share, one.word_share) == (one.matching / one.chunks, one.matching_words / one.words)


@given(CHUNKS)
def test_texts_of_several_documents_may_meet_all_others(chunks: list[tuple[int, frozenset[str], int]]) -> None:
    sets = sorted({tuple(sorted(of)) for _, of, _ in chunks})
    numbers = np.array([sets.index(tuple(sorted(of))) for _, of, _ in chunks])
    content = np.array([f"{text:016}".encode() for text, _, _ in chunks], "S16")
    found = shared_texts_meet_all(columns(len(chunks), across=ValueSets(numbers, sets), content=content)).across
    for row, (text, of, _) in enumerate(chunks):
        several = len({other for one, other, _ in chunks if one == text}) > 1
        assert sorted(found.sets[found.numbers[row]]) == ([] if several else sorted(of))
