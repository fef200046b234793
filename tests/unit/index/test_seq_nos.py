"""Sets of sequence numbers, compared with Python's sets. No server."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.index.storage.seq_nos import SeqNos

NUMBERS = st.sets(st.integers(0, 60))


def numbers(made: SeqNos) -> set[int]:
    for (_, last), (first, _) in zip(made.pairs, made.pairs[1:], strict=False):
        assert first > last + 1  # ranges that adjoin are one
    return {number for first, last in made.pairs for number in range(first, last + 1)}


@given(NUMBERS, NUMBERS, st.integers(-1, 70), st.integers(1, 10))
def test_like_sets(one: set[int], other: set[int], last: int, most: int) -> None:
    left, right = SeqNos.of(sorted(one)), SeqNos.of(list(other))
    assert numbers(left) == one
    assert numbers(left | right) == one | other
    assert numbers(left - right) == one - other
    assert numbers(left.up_to(last)) == {number for number in one if number <= last}
    assert numbers(left.missing(last)) == set(range(last + 1)) - one
    assert left.last == max(one, default=-1)
    assert [left.has(number) for number in range(70)] == [number in one for number in range(70)]
    assert numbers(left.latest(most)) == {
        number for pair in left.pairs[-most:] for number in range(pair[0], pair[1] + 1)
    }
    kept = left.longest(most)
    assert len(kept.pairs) == min(most, len(left.pairs))
    assert numbers(kept) <= one
    covered = left.fewer(most)
    assert len(covered.pairs) == min(most, len(left.pairs))
    assert one <= numbers(covered)
    assert numbers(covered) <= set(range(min(one, default=0), max(one, default=-1) + 1))
    assert SeqNos(left.pairs) == left
    assert SeqNos(np.array(left.pairs[::-1])) == left


def test_a_million_writes_in_a_row_are_one_range() -> None:
    assert SeqNos.of(range(5, 1_000_000)).pairs == [(5, 999_999)]
