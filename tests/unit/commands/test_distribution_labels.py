"""Labelled pairs: files, the best threshold against brute force, cross-validation. No server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.commands.distribution.labels import LabelledPair, best_threshold, cross_validated, read_labels
from es_neardupe.errors import InputError

LINES = {
    "pairs.csv": "a,b,label,note\n1,2,same,\n1,3,different,x\n07,é,1,\n",
    "pairs.tsv": "label\ta\tb\nsame\t1\t2\nDifferent\t1\t3\ntrue\t07\té\n",
    "pairs.jsonl": '{"a": 1, "b": "2", "label": true}\n{"a": "1", "b": "3", "label": 0}\n'
    '{"a": "07", "b": "é", "label": "same", "similarity": 0.5}\n',
}


@pytest.mark.parametrize("name", LINES)
def test_each_kind_of_file(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(LINES[name], "utf-8")
    found = read_labels(str(file))
    pairs = [(one.a, one.b, one.same) for one in found.pairs]
    assert found.file == str(file)
    assert pairs == [
        ((None, "1"), (None, "2"), True),
        ((None, "1"), (None, "3"), False),
        ((None, "07"), (None, "é"), True),
    ]


def test_addresses_as_in_the_output_of_pairs(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"a": {"index": "x", "id": "1"}, "b": {"index": "y", "id": "1"}, "label": "same"}\n', "utf-8")
    assert read_labels(str(file)).pairs == (LabelledPair(f"{file}:1", ("x", "1"), ("y", "1"), True),)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"a": "1", "label": 1}', "needs a, b and label, but has no b."),
        ('{"a": "1", "b": "2"}', "needs a, b and label, but has no label."),
        ('{"a": "1", "b": "2", "label": "maybe"}', "the label is none of same, true, 1, different, false, 0."),
        ('{"a": "1", "b": "2", "label": 0.9}', "the label is none of"),
        ('{"a": "1", "b": "2", "label": null}', "the label is none of"),
        ('{"a": "1", "b": 2.5, "label": 1}', 'b is neither an id nor {"index": ..., "id": ...}.'),
        ('{"a": true, "b": "2", "label": 1}', "a is neither an id"),
        ('{"a": {"id": "1"}, "b": "2", "label": 1}', "a is neither an id"),
        ('{"a": "", "b": "2", "label": 1}', "a is neither an id"),
        ('{"a": "1", "b": 1, "label": 1}', "a and b are the same document."),
        ('{"a": "9", "b": "8", "label": 0}', "the pair was already labelled at "),
        ("[1]", "a JSON array: write each of its objects on a line of its own."),
        ("{", "invalid JSON"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"a": "8", "b": "9", "label": 1}\n\n' + line + "\n", "utf-8")
    with pytest.raises(InputError) as error:
        read_labels(str(file))
    assert str(error.value).startswith(f"{file}:3: ")
    assert why in str(error.value)


def test_other_files(tmp_path: Path) -> None:
    for name, text, why in (
        ("pairs.csv", "1,2,same\n3,4,same\n", r"csv:2: a labelled pair needs a, b and label, but has no a\."),
        ("pairs.csv", "a,b,label\n1,2\n", "csv:2: fewer columns than the header has"),
        ("pairs.txt", "1 2 same\n", "is neither JSON lines"),
    ):
        (tmp_path / name).write_text(text, "utf-8")
        with pytest.raises(InputError, match=why):
            read_labels(str(tmp_path / name))
    with pytest.raises(InputError, match="is a folder"):
        read_labels(str(tmp_path))
    with pytest.raises(InputError, match="There is no file"):
        read_labels(str(tmp_path / "nothing.csv"))


SIMILARITIES = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 1 / 3]), st.floats(0, 1, allow_subnormal=False))


@st.composite
def labelled(draw: st.DrawFn) -> tuple[list[float], list[bool]]:
    """Similarities and labels, with at least two of each label."""
    pairs = draw(st.lists(st.tuples(SIMILARITIES, st.booleans()), max_size=25))
    pairs += [(draw(SIMILARITIES), label) for label in (True, True, False, False)]
    return [value for value, _ in pairs], [label for _, label in pairs]


def f_of(values: list[float], same: list[bool], threshold: float) -> float:
    """F by its definition."""
    hits = sum(one and value >= threshold for value, one in zip(values, same, strict=True))
    reached = sum(value >= threshold for value in values)
    if not hits:
        return 0.0
    precision, recall = hits / reached, hits / sum(same)
    return 2 * precision * recall / (precision + recall)


@given(labelled())
def test_no_threshold_is_better(pairs: tuple[list[float], list[bool]]) -> None:
    values, same = pairs
    threshold, above = best_threshold(np.array(values), np.array(same))
    assert 0 <= above < threshold <= 1
    best = f_of(values, same, threshold)
    assert best == pytest.approx(max(f_of(values, same, value) for value in [*values, 1.0] if value > 0), abs=1e-12)
    assert not any(above < value < threshold for value in values)
    assert above in (0.0, *values)
    # Of several with this F it is the highest: those that fewer pairs reach are worse.
    top = min((value for value in values if value >= threshold), default=1.0)
    assert all(best == 0 or f_of(values, same, value) < best - 1e-12 for value in values if value > top)


def test_the_middle_of_the_gap_with_few_digits() -> None:
    values, same = [0.9, 0.81234, 0.6, 0.1], [True, True, False, False]
    assert best_threshold(np.array(values), np.array(same)) == (0.71, 0.6)
    assert best_threshold(np.array([1, 0.999, 0]), np.array([True, False, True])) == (1.0, 0.999)
    assert best_threshold(np.zeros(4), np.array([True, True, False, False])) == (1.0, 0.0)


@given(labelled(), st.integers(0, 5))
def test_cross_validation(pairs: tuple[list[float], list[bool]], seed: int) -> None:
    values, same = np.array(pairs[0]), np.array(pairs[1])
    found = cross_validated(values, same, seed)
    assert found == cross_validated(values, same, seed)
    assert found.folds == min(10, int(same.sum()), int((~same).sum()))
    assert found.lowest_threshold <= found.highest_threshold
    assert 0 <= found.lowest_f <= found.highest_f <= 1
    if found.precision and found.recall:
        assert found.f == pytest.approx(2 / (1 / found.precision + 1 / found.recall))


def test_cross_validation_does_not_see_the_fold() -> None:
    """Similarities that have nothing to do with the labels: the best F on all pairs is too high."""
    chance = np.random.default_rng(3)
    flattered, validated = [], []
    for seed in range(60):
        values, same = chance.random(24), np.arange(24) % 2 == 0
        threshold, _ = best_threshold(values, same)
        flattered.append(f_of(values.tolist(), same.tolist(), threshold))
        validated.append(cross_validated(values, same, seed).f)
    assert np.mean(flattered) > np.mean(validated) + 0.02


def test_separated_labels_are_recognised_in_every_fold() -> None:
    values = np.concatenate([np.linspace(0.9, 1, 40), np.linspace(0, 0.5, 60)])
    found = cross_validated(values, np.arange(100) < 40, 1)
    assert (found.folds, found.f, found.lowest_f, found.recall, found.precision) == (10, 1, 1, 1, 1)
    assert 0.5 < found.lowest_threshold <= found.highest_threshold <= 0.95
