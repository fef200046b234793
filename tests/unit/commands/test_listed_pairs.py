"""The pairs that `pairs` lists, without a server: each once, with their copies, in order."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.candidates.detection import Detection
from es_neardupe.columns import RowLists
from es_neardupe.commands.pairs.report import Pair, PairsReport
from es_neardupe.errors import SettingsError
from es_neardupe.records import Address
from es_neardupe.verification.boilerplate import Boilerplate
from es_neardupe.verification.criterion import check_min


@pytest.mark.parametrize("minimum", [0, -1, 1.01, float("nan")])
def test_min(minimum: float) -> None:
    with pytest.raises(SettingsError, match=r"`min` must lie in \(0, 1\]"):
        check_min(minimum)
    assert check_min(1) == 1


@st.composite
def found(draw: st.DrawFn) -> tuple[PairsReport, Any, Any]:
    sizes = draw(st.lists(st.integers(0, 4), max_size=5))
    numbers = iter(draw(st.permutations(range(sum(sizes)))))
    rows = [sorted(next(numbers) for _ in range(size)) for size in sizes]
    every_address = [Address("xy"[number % 2], f"d{number:02}") for number in range(sum(sizes))]
    classes = [[every_address[row] for row in some] for some in rows]
    every = list(combinations(range(len(sizes)), 2))
    linked = draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    similarity = sorted(draw(st.lists(st.floats(0.5, 1), min_size=len(linked), max_size=len(linked))), reverse=True)
    made = PairsReport(
        indices=("x", "y"),
        measure="resemblance",
        min=0.5,
        max=1.0,
        detection=Detection(0.5, 0.9, (), keys_made_for=True),
        weights=None,
        common=None,
        boilerplate=Boilerplate(0, 0, 0, (), ()),
        candidates=len(linked),
        skipped=0,
        large_buckets=(),
        stale=0,
        unprocessed=0,
        _references=[(*one, None) for one in every_address],
        _classes=RowLists.of(rows),
        _left=np.array([a for a, _ in linked], np.intp),
        _right=np.array([b for _, b in linked], np.intp),
        _similarity=np.array(similarity, np.float64),
        _copies=draw(st.booleans()),
        _maximum_copies=draw(st.integers(1, 5)),
    )
    return made, classes, list(zip(linked, similarity, strict=True))


@given(found())
def test_each_pair_is_listed_once(case: tuple[PairsReport, Any, Any]) -> None:
    """Each pair of documents once, copies first, ordered within; what is not listed is counted."""
    made, classes, linked = case
    listed = list(made)
    assert len(listed) == len(made)
    assert [made[place] for place in range(len(made))] == listed == made[:]
    assert [made[-place] for place in range(1, len(made) + 1)] == listed[::-1] == made[::-1]
    assert made[1:4] == listed[1:4]
    for place in (len(made), -len(made) - 1):
        with pytest.raises(IndexError):
            made[place]
    assert "\n" not in repr(made)
    maximum = made._maximum_copies
    copied = classes if made._copies else []
    wanted = {frozenset(pair): 1.0 for copies in copied for pair in combinations(copies[:maximum], 2)}
    wanted |= {
        frozenset(pair): similarity
        for (a, b), similarity in linked
        for pair in product(classes[a][:maximum], classes[b][:maximum])
    }
    assert {frozenset((pair.a, pair.b)): pair.resemblance for pair in listed} == wanted
    assert len(listed) == len(wanted)
    assert [pair.similarity for pair in listed] == sorted((pair.similarity for pair in listed), reverse=True)
    for pair in listed:
        assert isinstance(pair, Pair)
        assert (pair.a.id, pair.a.index) < (pair.b.id, pair.b.index)
    whole = sum(len(one) * (len(one) - 1) // 2 for one in copied)
    whole += sum(len(classes[a]) * len(classes[b]) for (a, b), _ in linked)
    assert len(made) + made.copies_not_listed == whole
