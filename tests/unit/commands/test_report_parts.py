"""Parts of reports: the sums that they state, and their ``repr`` in one line."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.commands.stats.report import GroupSizes
from es_neardupe.json_results import plain
from es_neardupe.records import one_line
from es_neardupe.report_parts import FingerprintWrites, WriteCounts

COUNTS = st.integers(0, 10**9)
OUTCOMES = ("written", "unchanged", "conflicts", "deleted", "refused", "failed")


@given(st.fixed_dictionaries(dict.fromkeys(OUTCOMES, COUNTS)))
def test_writes(counts: dict[str, Any]) -> None:
    """Each document counts once, and the total has all counts of documents."""
    writes = WriteCounts(**counts)
    assert writes.total == sum(counts.values())
    assert writes.left == writes.total - writes.written - writes.unchanged - writes.deleted
    assert {one.name for one in fields(WriteCounts) if one.type == "int"} == {*OUTCOMES, "whole"}
    empty: dict[str, list[Any]] = {"refusals": [], "failures": [], "left_documents": []}
    assert plain(writes) == {**counts, "whole": 0, **empty, "mirrored": None}


def test_fingerprint_writes_are_writes() -> None:
    writes = FingerprintWrites(written=3, unchanged=1, states={"signed": 2, "empty": 1}, numeric=1)
    assert (writes.total, sum(writes.states.values())) == (4, writes.written)
    assert list(plain(writes))[-2:] == ["states", "numeric"]


@given(st.lists(st.integers(2, 50)))
def test_group_sizes(sizes: list[int]) -> None:
    found = GroupSizes.of(sizes)
    assert found.count == len(sizes) == sum(found.sizes.values())
    assert found.grouped == sum(sizes) == sum(size * number for size, number in found.sizes.items())
    assert found.largest == max(sizes, default=0)
    assert dict(found.sizes) == Counter(sizes)
    assert list(found.sizes) == sorted(found.sizes, reverse=True)


def test_one_line() -> None:
    class Report:
        def __repr__(self) -> str:
            return one_line(self, index="news", written=3)

    shown: Any = repr(Report())
    assert shown == "Report(index='news', written=3)"
