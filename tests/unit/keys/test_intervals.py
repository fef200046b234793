"""Intervals against `scipy.stats`, for whole numbers."""

from __future__ import annotations

import pytest
import scipy

from es_neardupe.keys.intervals import exact_share, poisson_interval, wilson_interval

SHARES = [(0, 1), (1, 1), (0, 40), (3, 40), (20, 40), (40, 40), (138, 200), (999, 1000), (360_527, 1_000_000)]


@pytest.mark.parametrize(("hits", "number"), SHARES)
def test_shares(hits: int, number: int) -> None:
    test = scipy.stats.binomtest(hits, number)
    exact, wilson = (test.proportion_ci(0.95, method) for method in ("exact", "wilson"))
    found = exact_share(hits, number)
    assert found.value == hits / number
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-11)
    assert wilson_interval(hits / number, number) == pytest.approx((wilson.low, wilson.high), abs=1e-12)


@pytest.mark.parametrize("number", [3, 6, 10, 13])
def test_an_interval_contains_its_share(number: int) -> None:
    """Also where rounding errors would leave 0 or 1 outside."""
    for hits in (0, number):
        low, high = wilson_interval(hits / number, number)
        assert low <= hits / number <= high


@pytest.mark.parametrize("count", [0, 1, 3, 50, 10_000])
def test_counts(count: int) -> None:
    """At each end, a count at least as extreme has probability 2.5 %."""
    low, high = poisson_interval(count)
    assert scipy.stats.poisson.cdf(count, high) == pytest.approx(0.025)
    assert scipy.stats.poisson.sf(count - 1, low) == pytest.approx(0.025) if count else low == 0


def test_they_grow_without_steps_between_whole_numbers() -> None:
    assert poisson_interval(2) < poisson_interval(2.5) < poisson_interval(3)
    assert wilson_interval(0.5, 10) < wilson_interval(0.5, 10.5)
