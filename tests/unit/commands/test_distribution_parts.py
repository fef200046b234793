"""Distributions: all pairs, histograms, estimates, groups at a threshold, examples."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean, pvariance
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from star_model import star_model
from unit_tools import columns

from es_neardupe.candidates import pair_arrays
from es_neardupe.candidates.pair_arrays import components, portions
from es_neardupe.cli import output
from es_neardupe.columns import References
from es_neardupe.commands.distribution import steps as flow
from es_neardupe.commands.distribution.sample import (
    EstimatedPairs,
    _variance,
    compare_sample,
    extrapolated,
    nearest,
    random_rows,
)
from es_neardupe.commands.distribution.steps import excerpts
from es_neardupe.errors import SettingsError
from es_neardupe.groups.stars import Matches
from es_neardupe.index.settings import Settings
from es_neardupe.keys.unit import Unit
from es_neardupe.options import Matching, MeasureName
from es_neardupe.records import FingerprintColumns
from es_neardupe.run_options import check_seed
from es_neardupe.similarity import measure as allpairs
from es_neardupe.similarity.histogram import EDGES, Histogram, binned
from es_neardupe.similarity.measure import Measure, all_pairs, default_sample, measure_name, weights_of

TEXTS = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=14).map(" ".join), min_size=2, max_size=9)
"""Few words, so that texts have repeated words and much in common."""


# The functions of the article whose histograms these are: bags of n-grams, compared by Jaccard


def subseq(seq: Sequence[str], n: int) -> list[str]:
    return [" ".join(seq[i : i + n]) for i in range(len(seq) + 1 - n)]


def multiset(xs: Iterable[Hashable]) -> set[tuple[Hashable, int]]:
    seen: dict[Hashable, int] = defaultdict(int)
    output = set()
    for item in xs:
        output.add((item, seen[item]))
        seen[item] += 1
    return output


def fast_jaccard(x: set[Any], y: set[Any]) -> float:
    n = len(x & y)
    return n / (len(x) + len(y) - n)


@given(TEXTS, st.integers(1, 7))
def test_bags_are_those_of_the_article(texts: list[str], n: int) -> None:
    texts = [text for text in texts if len(text.split()) >= n]
    bags = [multiset(subseq(text.split(), n)) for text in texts]
    truth = {(i, j): fast_jaccard(bags[i], bags[j]) for i, j in combinations(range(len(texts)), 2)}
    measure = Measure(MeasureName.BAG, ngram=n)
    assert of_all(measure, texts) == truth
    if truth:
        left, right = np.array(list(truth), np.intp).T
        assert measure.scores(measure.prepare(texts), left, right).tolist() == list(truth.values())


def of_all(measure: Measure, texts: Sequence[str]) -> dict[tuple[int, int], float]:
    """Every pair that `all_pairs` gives, which must be new each time."""
    found: dict[tuple[int, int], float] = {}
    for block in all_pairs(measure, measure.prepare(texts)):
        for i, j, similarity in zip(block.left.tolist(), block.right.tolist(), block.similarity.tolist(), strict=True):
            assert i < j
            assert (i, j) not in found
            found[i, j] = similarity
    return found


@pytest.mark.parametrize("matching", Matching)
@pytest.mark.parametrize("name", MeasureName)
@given(texts=TEXTS, shingle=st.integers(1, 6))
def test_all_pairs_have_the_measure_of_each(
    name: MeasureName, matching: Matching, texts: list[str], shingle: int
) -> None:
    weights = weights_of(Measure(shingle=shingle).prepare(texts)) if name is MeasureName.WEIGHTED else None
    words: dict[str, Any] = {"ngram": shingle} if name is MeasureName.BAG else {"shingle": shingle}
    measure = Measure(name, matching, weights=weights, **words)
    prepared = measure.prepare(texts)
    truth = {(i, j): measure.score(prepared[i], prepared[j]) for i, j in combinations(range(len(texts)), 2)}
    found = of_all(measure, texts)
    assert found == pytest.approx(truth, abs=1e-12)
    assert all(found[i, j] == 1 for i, j in found if texts[i] == texts[j])
    left, right = np.array(list(truth), np.intp).T
    assert measure.scores(prepared, left, right) == pytest.approx(list(truth.values()), abs=1e-12)


@pytest.mark.parametrize("cells", [1, 7, 40, 10_000])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 20, 41])
def test_blocks_make_every_pair_once(monkeypatch: pytest.MonkeyPatch, size: int, cells: int) -> None:
    monkeypatch.setattr(allpairs, "_CELLS", cells)
    texts = [f"one two three four w{n}" for n in range(size)]
    measure = Measure(shingle=2)
    assert set(of_all(measure, texts)) == set(combinations(range(size), 2))
    blocks = [len(block.left) for block in all_pairs(measure, measure.prepare(texts))]
    assert all(block <= max(cells, size) for block in blocks)


def test_weights_are_document_frequencies() -> None:
    found = weights_of(Measure(shingle=1).prepare(["a b", "a a c", "a"]))
    assert (found.documents, sorted(found.frequencies.tolist())) == (3, [1, 1, 3])


def test_names_and_sizes_of_samples() -> None:
    assert measure_name(Measure(MeasureName.BAG, ngram=2)) == "bag 2"
    assert measure_name(Measure(MeasureName.JACCARD, shingle=4)) == "jaccard 4"
    assert measure_name(Measure(MeasureName.EDIT)) == "edit"
    assert {default_sample(name) for name in MeasureName} == {500, 2000}


# Histograms

SHARES = st.tuples(st.integers(0, 200), st.integers(1, 200)).map(lambda pair: min(pair) / max(pair))


@given(st.lists(SHARES))
def test_histogram(values: list[float]) -> None:
    weights = [1 + number % 3 for number in range(len(values))]
    expected = [0] * 52
    for value, weight in zip(values, weights, strict=True):
        inside = next((k + 1 for k in range(50) if k / 50 <= value < (k + 1) / 50), 51)
        expected[0 if value == 0 else inside] += weight
    counts = binned(np.array(values), np.array(weights, np.int64))
    assert counts.tolist() == expected
    named = Histogram.of(counts)
    assert named.pairs == named.zero + sum(named.counts) + named.one == sum(weights)
    assert (named.zero, named.one) == (expected[0], expected[51])


def test_a_share_that_is_an_edge_opens_its_bin() -> None:
    for bin in range(1, 50):
        counts = binned(np.array([bin / 50, 2 * bin / 100, 7 * bin / 350]))
        assert counts[bin + 1] == 3, EDGES[bin]


@given(st.lists(SHARES, max_size=40), st.floats(0.01, 1), st.integers(1, 6))
def test_nearest(values: list[float], threshold: float, maximum: int) -> None:
    found = [values[k] for k in nearest(np.array(values), threshold, maximum)]
    above, below = (sorted(v for v in values if (v >= threshold) is side) for side in (True, False))
    assert sorted(found) == sorted(below[-maximum:] + above[:maximum])


# What a sample says of the whole


def degrees_in(sample: Iterable[int], pairs: Iterable[tuple[int, int]]) -> Any:
    numbers = {document: place for place, document in enumerate(sample)}
    degrees = np.zeros(len(numbers), np.int64)
    for a, b in pairs:
        if a in numbers and b in numbers:
            degrees[numbers[a]] += 1
            degrees[numbers[b]] += 1
    return degrees


GRAPHS = [
    [(0, 1)],
    [(0, 1), (2, 3), (4, 5)],
    [(0, 1), (0, 2), (0, 3), (0, 4)],
    [*combinations(range(4), 2), (5, 6)],
    [*combinations(range(8), 2)],
]


@pytest.mark.parametrize("pairs", GRAPHS)
@pytest.mark.parametrize("size", [4, 5, 7])
def test_the_estimate_and_its_variance_are_unbiased(pairs: list[tuple[int, int]], size: int) -> None:
    """Averaged over all possible samples, not over a simulation."""
    samples = [degrees_in(sample, pairs) for sample in combinations(range(8), size)]
    assert fmean(extrapolated(one, 8).pairs for one in samples) == pytest.approx(len(pairs))
    counts = [int(one.sum()) // 2 for one in samples]
    assert fmean(_variance(one, 8) for one in samples) == pytest.approx(pvariance(counts))


@pytest.mark.parametrize("cluster", [2, 3, 6])
def test_the_interval_contains_the_true_number(cluster: int) -> None:
    """2,400 documents in clusters whose pairs all count, in samples of 600. The nominal coverage is 95 %."""
    pairs = [pair for at in range(0, 720, cluster) for pair in combinations(range(at, at + cluster), 2)]
    rng = random.Random(cluster)
    hits = 0
    for _ in range(200):
        found = extrapolated(degrees_in(rng.sample(range(2400), 600), pairs), 2400)
        assert found.low <= found.pairs <= found.high
        hits += found.low <= len(pairs) <= found.high
    assert hits >= 180


def test_a_sample_of_all_is_exact_and_no_pair_found_does_not_mean_none() -> None:
    assert extrapolated(np.array([1, 1, 0, 0]), 4) == EstimatedPairs(1.0, 1.0, 1.0)
    none = extrapolated(np.zeros(100, np.int64), 10_000)
    assert (none.pairs, none.low) == (0, 0)
    assert none.high == pytest.approx(
        3.689 * 10_000 * 9_999 / (100 * 99), rel=0.001
    )  # the exact bound for a count of 0
    assert extrapolated(np.zeros(2, np.int64), 3).high <= 3  # there are no more pairs than that


def test_a_cluster_makes_the_interval_wider() -> None:
    """Ten pairs of five documents are less information than ten pairs of twenty."""
    one_cluster = extrapolated(np.array([4] * 5 + [0] * 95), 1000)
    apart = extrapolated(np.array([1] * 20 + [0] * 80), 1000)
    assert one_cluster.pairs == apart.pairs
    assert one_cluster.high - one_cluster.low > 1.5 * (apart.high - apart.low)


# Samples


def corpus(addresses: Sequence[tuple[str, str]], keyed: Sequence[bool]) -> FingerprintColumns:
    size = len(addresses)
    keys = np.arange(1, 2 * size + 1, dtype=np.uint64).reshape(size, 2) * np.array(keyed, np.uint64)[:, None]
    references = References.of((index, id, None) for index, id in addresses)
    return columns(size, references=references, keys=keys)


def test_a_sample_depends_on_seed_and_addresses_only() -> None:
    addresses = [("i", f"d{number}\ud800") for number in range(300)] + [("j", "d1")]
    keyed = [number % 3 > 0 for number in range(301)]
    rows = random_rows(corpus(addresses, keyed), 1)
    assert sorted(rows.tolist()) == [row for row in range(301) if keyed[row]]
    order = [addresses[row] for row in rows]
    turned = random_rows(corpus(addresses[::-1], keyed[::-1]), 1)
    assert [addresses[::-1][row] for row in turned] == order
    other = [addresses[row] for row in random_rows(corpus(addresses, keyed), 2)]
    assert other != order
    assert 10 < len(set(order[:50]) & set(other[:50])) < 30 or len(set(order[:50]) ^ set(other[:50])) > 20


def test_sample_counts_are_those_of_brute_force() -> None:
    rng = random.Random(5)
    texts = [" ".join(rng.choices("abcde", k=rng.randrange(2, 12))) for _ in range(60)]
    keys = np.array([[rng.randrange(1, 9), rng.randrange(100, 120)] for _ in texts], np.uint64)
    measure, thresholds = Measure(shingle=2), [0.2, 0.5, 1.0]
    found = compare_sample(measure, texts, keys, thresholds=thresholds, threshold=0.5)
    truth = of_all(measure, texts)
    assert found.counts.sum() == len(truth) == 60 * 59 // 2
    assert found.counts[0] == sum(value == 0 for value in truth.values())
    for place, threshold in enumerate(thresholds):
        reached = [pair for pair, value in truth.items() if value >= threshold]
        assert found.degrees[place].tolist() == degrees_in(range(60), reached).tolist()
        assert found.found[place] == sum(bool((keys[a] == keys[b]).any()) for a, b in reached)
    assert {(a, b): value for value, a, b in found.near.tolist()}.items() <= truth.items()
    assert min(found.near[:, 0][found.near[:, 0] >= 0.5]) == min(v for v in truth.values() if v >= 0.5)
    assert max(found.near[:, 0][found.near[:, 0] < 0.5]) == max(v for v in truth.values() if v < 0.5)


# Groups


def stars(sizes: Sequence[int], similarity: Mapping[tuple[int, int], float]) -> list[int]:
    """Number of documents in each star of two or more."""
    grouped: Counter[int] = Counter()
    for number, principal in enumerate(star_model(similarity, sizes)):
        grouped[principal] += sizes[number]
    return sorted(size for size in grouped.values() if size > 1)


EDGE_SETS = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] < pair[1]))


@given(st.lists(st.integers(1, 3), min_size=10, max_size=10), EDGE_SETS)
def test_groups_and_documents(sizes: list[int], pairs: set[tuple[int, int]]) -> None:
    left, right = np.array(sorted(pairs), np.intp).reshape(-1, 2).T
    counts = np.array(sizes, np.int64)
    similarity = {(a, b): 0.8 + (7 * a + 3 * b) % 20 / 100 for a, b in sorted(pairs)}
    matches = Matches(left, right, np.array(list(similarity.values()), np.float64))
    found = flow._group_sizes(counts, matches, MeasureName.RESEMBLANCE)
    assert sorted(found.tolist()) == stars(sizes, similarity)
    touched = {one for pair in pairs for one in pair} | {number for number, size in enumerate(sizes) if size > 1}
    assert flow._in_pairs(counts, left, right) == sum(sizes[number] for number in touched)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] < pair[1]), unique=True),
    st.lists(st.integers(0, 9), min_size=10, max_size=10),
    st.integers(1, 20),
    st.sampled_from([1, 3, 1000]),
)
def test_portions_hold_whole_components(
    pairs: list[tuple[int, int]], weights: list[int], limit: int, block: int
) -> None:
    """In any order of pairs and with blocks of any size."""
    left, right = np.array(pairs, np.int32).reshape(-1, 2).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_arrays, "BLOCK", block)
        parts = list(portions(left, right, np.array(weights, np.int64), limit))
        found = [np.concatenate(list(portion.pairs())) for portion in parts]
        assert all(len(some) <= 2 * block for portion in parts for some in portion.pairs())
        component = components(10, left, right)
    assert (
        component.tolist()
        == connected_components(coo_array((np.ones(len(left)), (left, right)), shape=(10, 10)), directed=False)[
            1
        ].tolist()
    )
    assert sorted(number for portion in found for number in portion.tolist()) == list(range(len(pairs)))
    for portion, some in zip(parts, found, strict=True):
        assert (len(portion), portion.nodes.tolist()) == (len(some), sorted({*left[some], *right[some]}))
        assert left[some].tolist() == sorted(left[some])
        parts_of_it = [some for k in range(len(portion.nodes)) for some in portion.pairs(slice(k, k + 1))]
        assert np.concatenate(parts_of_it).tolist() == some.tolist()
    places = [set(component[left[portion]].tolist()) for portion in found]
    assert all(one.isdisjoint(other) for one, other in combinations(places, 2))
    for held in places:
        heavy = [sum(weight for node, weight in enumerate(weights) if component[node] == one) for one in sorted(held)]
        assert sum(heavy[:-1]) < limit + max(heavy)


# Options


def made(names: Sequence[str], shingles: Sequence[int]) -> list[Measure]:
    return list(
        flow.measures_of(
            flow.names_of_measures(names, whitespace=False),
            Matching.LITERAL,
            [(one, Unit.WORD) for one in shingles],
            Settings(("a",), shingle=3),
            False,
        )
    )


def test_a_measure_by_name_and_symbol_is_one() -> None:
    names = flow.names_of_measures(["S_J", "resemblance", "jaccard", "S_R"], whitespace=False)
    assert names == [MeasureName.JACCARD, MeasureName.RESEMBLANCE]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: flow.names_of_measures(["nothing"], whitespace=False),
            "resemblance, jaccard, containment, containment-longer, bag",
        ),
        (lambda: check_seed(-1), "`seed`"),
        (lambda: check_seed(2**64), "`seed`"),
        (lambda: flow.thresholds_of_table([0.5, 0.0], 0.8), "not 0.0."),
        (lambda: flow.thresholds_of_table([0.5], 1.5), "not 1.5."),
        (lambda: flow.thresholds_of_table([float("nan")], 0.5), "not nan."),
        (lambda: made(["bag"], [8]), "1 to 7 words, not 8"),
        (lambda: made(["edit"], [3, 0]), "1,000,000 words, not 0"),
        (lambda: made(["jaccard"], [-1]), "1,000,000 words, not -1"),
    ],
)
def test_values_out_of_range(call: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        call()
    assert message in str(raised.value)


def test_one_distribution_for_each_measure_and_size() -> None:
    found = made(["bag", "edit", "weighted", "bag", "estimate"], [2, 3, 2])
    names = ["bag 2", "bag 3", "edit", "weighted 2", "weighted 3", "estimate 2", "estimate 3"]
    assert list(map(measure_name, found)) == names
    assert [one.scheme.shingle for one in found if one.scheme] == [2, 3]
    assert flow.detecting(Measure(shingle=3), Settings(("a",), shingle=3)) is not None
    assert flow.detecting(Measure(shingle=2), Settings(("a",), shingle=3)) is None
    assert flow.detecting(Measure(MeasureName.JACCARD, shingle=3), Settings(("a",), shingle=3)) is None


# What is shown


@pytest.mark.parametrize(
    ("a", "b", "shown"),
    [
        ("One two THREE four x six", "one two three four y six", ("… two THREE four x six", "… two three four y six")),
        ("a b", "a b c", ("a b", "a b c")),
        ("x 😀 y", "x 😀 z", ("x 😀 y", "x 😀 z")),
        ("", "a", ("", "a")),
        ("…!", "", ("", "")),
    ],
)  # fmt: skip
def test_excerpts(a: str, b: str, shown: tuple[str, str]) -> None:
    assert excerpts(a, b) == shown


@given(st.text(), st.text())
def test_excerpts_are_short_parts_of_the_texts(a: str, b: str) -> None:
    for text, shown in zip((a, b), excerpts(a, b), strict=True):
        inner = shown.removeprefix("… ").removesuffix(" …")
        assert len(inner) <= 120
        assert inner in text or shown in text


def test_excerpt_of_endless_words() -> None:
    one, other = excerpts("a " + "x" * 100_000 + " b", "a " + "y" * 100_000)
    assert one == "a " + "x" * 118 + " …"
    assert other == "a " + "y" * 118 + " …"


def test_terminal_histogram(capsys: pytest.CaptureFixture[str]) -> None:
    counts = [0] * 50
    counts[10], counts[20], counts[49] = 1, 1000, 30
    output.plot_counts(Histogram(1_001_031, 1_000_000, tuple(counts), 0), 0.4)
    *rows, axis, foot = capsys.readouterr().out.splitlines()
    assert len(rows) == 8
    columns = [[row[17 + bin : 18 + bin].strip() for row in rows] for bin in range(50)]
    heights = [sum(map(bool, column)) for column in columns]
    assert [bin for bin, height in enumerate(heights) if height] == [10, 20, 49]
    assert 1 == heights[10] < heights[49] < heights[20] < 8  # a single pair is seen, and heights are logarithms
    assert all("██" in row[14:16] for row in rows)  # exactly 0
    assert axis[17:].startswith("0    0.1  0.2") and axis.endswith("=1")  # noqa: PT018
    assert foot.index("^") == 17 + 20
    assert foot.endswith("^ threshold 0.4")
    assert {row[:13].strip() for row in rows} >= {"1", "1,000", "1,000,000"}


def test_terminal_histogram_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    output.plot_counts(Histogram(0, 0, (0,) * 50, 0), 1.0)
    printed = capsys.readouterr().out
    assert not set("▁▂▃▄▅▆▇█") & set(printed)
    assert "^ threshold 1" in printed


@pytest.mark.parametrize("documents", [2, 3, 4])
def test_the_smallest_samples(documents: int) -> None:
    """Of which no three, or four, documents can be drawn."""
    found = extrapolated(np.array([1, 1]), documents)
    assert 1 <= found.low <= found.pairs <= found.high <= documents * (documents - 1) / 2
