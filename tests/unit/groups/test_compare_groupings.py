"""Comparison of groupings with sets of documents, and the updates of a switch."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.groups.compare_groupings import KINDS, changed_parts, compare_groups
from es_neardupe.index.mapping import fields_mapping
from es_neardupe.index.storage.field_writes import Change
from es_neardupe.index.storage.inline import takeovers
from es_neardupe.records import Hit

IDS = st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from("abcdefg")), max_size=14)


def groups_of(ids: list[str]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for document, id in enumerate(ids):
        found.setdefault(id, set()).add(document)
    return {id: members for id, members in found.items() if len(members) > 1}


@given(IDS)
def test_every_group_is_in_one_part(borne: list[tuple[str, str]]) -> None:
    """Parts share no document, together they hold all groups, and their kinds are those of the sets."""
    olds, news = (groups_of([ids[side] for ids in borne]) for side in (0, 1))
    parts = list(changed_parts(Counter(borne)))
    assert sorted(id for _, part, _ in parts for id in part[0]) == sorted(olds)
    assert sorted(id for _, part, _ in parts for id in part[1]) == sorted(news)
    held = []
    for kind, (before, after), documents in parts:
        was, is_ = ([groups[id] for id in ids] for groups, ids in ((olds, before), (news, after)))
        together = set().union(*was, *is_)
        assert documents == len(together)
        held.append(together)
        if kind in ("unchanged", "grown", "shrunk", "exchanged"):
            ((one,), (other,)) = was, is_
            wanted = {"unchanged": one == other, "grown": one < other, "shrunk": one > other}
            assert wanted.get(kind, not (one <= other or one >= other))
        sizes = {"new": (0, 1), "gone": (1, 0), "split": (1, 2), "merged": (2, 1), "mixed": (2, 2)}.get(kind, (1, 1))
        assert (min(len(was), 2), min(len(is_), 2)) == sizes
    assert all(not one & other for one, other in combinations(held, 2))


@given(IDS)
def test_comparison_reconciles(borne: list[tuple[str, str]]) -> None:
    found = compare_groups(Counter(borne))
    olds, news = (groups_of([ids[side] for ids in borne]) for side in (0, 1))
    assert [one.kind for one in found.kinds] == list(KINDS)
    assert (found.before, found.after, found.documents) == (len(olds), len(news), len(borne))
    assert sum(one.before for one in found.kinds) == len(olds)
    assert sum(one.after for one in found.kinds) == len(news)
    assert found.moved == sum(old != new for old, new in borne)
    kinds = Counter(one.kind for one in found.examples)
    assert "unchanged" not in kinds
    assert all(number <= 2 for number in kinds.values())
    for one in found.examples:
        assert one.before == {id: len(olds[id]) for id in one.before}
        assert one.after == {id: len(news[id]) for id in one.after}


def hit(id: str, **sources: object) -> Hit:
    return Hit("i", id, "r", 7, 2, sources)


def test_takeovers() -> None:
    """All fields of ours are named, so that those of before go; who has nothing new, or all of it, is left alone."""
    new = {"scheme": "v1-b", "state": "signed", "bands": ["A"], "group": "g", "principal": True, "similarity": 1.0}
    old = {"scheme": "v1-a", "samples": ["x"], "content": "c", "group": "h"}
    done = [hit("same", ours=new, next=new), hit("none", ours=old), hit("broken", ours=old, next="text")]
    switched = hit("switch", ours=old, next={**new, "checked": "of another version"})
    every = dict.fromkeys(name for name in fields_mapping()["properties"] if name != "checked")
    assert list(takeovers([*done, switched], "next", "ours")) == [Change(switched, every | new)]
    (first,) = takeovers([hit("whole", next=new)], "next", "ours")
    assert first.fields is not None
    assert first.fields["group"] == "g"
