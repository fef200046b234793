"""History of groups: each event is recorded once, wherever a run is killed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.groups.registry import GroupEvent, GroupHistoryUpdate, GroupRecord
from es_neardupe.records import Address

IDS = ["a", "b", "c", "d"]


def entry(group: str, size: int = 2, **more: Any) -> GroupRecord:
    made = GroupRecord(group, "", "", None, size, size, Address("i", group), 0.9, 0.9, 0, 0, None, None, 0, None, ())
    return replace(made, **more)


def events_of(records: list[GroupRecord]) -> dict[str, list[tuple[str, str | None]]]:
    return {one.group: [(event.event, event.group) for event in one.history] for one in records}


def old(group: str, size: int = 2, **more: object) -> GroupRecord:
    return entry(group, size, created="1", updated="1", history=(GroupEvent("1", "founded"),), **more)


def bearers(**groups: dict[str, int]) -> dict[str, Counter[str]]:
    return {id: Counter(stored) for id, stored in groups.items()}


def test_founded_and_unchanged() -> None:
    wanted = {"a": entry("a")}
    (first,) = list(GroupHistoryUpdate({}, wanted, bearers(a={"a": 1, "x": 1}), "1"))
    assert (first.created, first.updated, first.history) == ("1", "1", (GroupEvent("1", "founded"),))
    assert list(GroupHistoryUpdate({"a": first}, wanted, bearers(a={"a": 2}), "2")) == []
    (larger,) = list(GroupHistoryUpdate({"a": first}, {"a": entry("a", 3)}, bearers(a={"a": 2, "y": 1}), "2"))
    assert (larger.size, larger.created, larger.updated, larger.history) == (3, "1", "2", first.history)


def test_merge_split_and_end() -> None:
    before = {id: old(id) for id in "abc"}
    merged = list(GroupHistoryUpdate(before, {"a": entry("a", 4)}, bearers(a={"a": 2, "b": 2}), "2"))
    assert events_of(merged) == {
        "a": [("founded", None), ("merged with", "b")],
        "b": [("founded", None), ("merged into", "a")],
        "c": [("founded", None), ("dissolved", None)],
    }
    split = list(
        GroupHistoryUpdate({"a": old("a", 4)}, {"a": entry("a"), "n": entry("n")}, bearers(a={"a": 2}, n={"a": 2}), "2")
    )
    assert events_of(split) == {"a": [("founded", None), ("split into", "n")], "n": [("split from", "a")]}
    back = list(GroupHistoryUpdate({"a": old("a", ended="1")}, {"a": entry("a")}, bearers(a={"a": 2}), "3"))
    assert events_of(back) == {"a": [("founded", None), ("founded", None)]}
    assert (back[0].ended, back[0].created) == (None, "1")


def test_the_same_turn_may_come_again_later() -> None:
    before = {
        "a": replace(old("a", 4), history=(GroupEvent("2", "merged with", "b"),), updated="2"),
        "b": replace(old("b"), updated="3"),
    }
    (again, ended) = list(GroupHistoryUpdate(before, {"a": entry("a", 5)}, bearers(a={"a": 3, "b": 2}), "4"))
    assert [one.event for one in again.history] == ["merged with", "merged with"]
    assert ended.ended == "4"


@st.composite
def turns(draw: st.DrawFn) -> GroupHistoryUpdate:
    """Groups before, their documents and others that were alone, and any groups of them after.

    Only ids of living groups are borne by several documents, since the registry is told before the documents.
    """
    before = {id: old(id, ended=draw(st.sampled_from([None, None, "1"]))) for id in draw(st.sets(st.sampled_from(IDS)))}
    living = [id for id, one in before.items() if one.ended is None]
    found: dict[str, Counter[str]] = {}
    for number, id in enumerate(draw(st.lists(st.sampled_from(IDS), unique=True))):
        borne = draw(st.lists(st.sampled_from([*living, "alone"]), min_size=1, max_size=5))
        alone = borne.count("alone")
        found[id] = Counter([one for one in borne if one != "alone"])
        found[id].update([f"{number}/{k}" for k in range(alone)])
    wanted = {id: entry(id, sum(stored.values())) for id, stored in found.items() if sum(stored.values()) > 1}
    return GroupHistoryUpdate(before, wanted, found, "2")


@given(turns(), st.integers(0, 9))
def test_a_killed_run_tells_the_rest(turn: GroupHistoryUpdate, number: int) -> None:
    """After any part of the records was written, the next run ends with the same ones, except for dates."""
    records = list(turn)
    whole = {**turn.before, **{one.group: one for one in records}}
    part = {**turn.before, **{one.group: one for one in records[:number]}}
    rest = list(replace(turn, before=part, at="3"))
    resumed = {**part, **{one.group: one for one in rest}}
    assert events_of(list(resumed.values())) == events_of(list(whole.values()))
    assert {id: one.ended is None for id, one in resumed.items()} == {
        id: one.ended is None for id, one in whole.items()
    }
    assert {id for id, one in resumed.items() if one.ended is None} == set(turn.after)
    assert not replace(turn, before=resumed, at="4", previous_ids={id: Counter({id: 1}) for id in turn.previous_ids})
