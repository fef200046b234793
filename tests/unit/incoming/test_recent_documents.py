"""Documents that a run has written: found by keys, replaced, regrouped and forgotten. No server."""

from __future__ import annotations

from typing import Any

from es_neardupe.incoming.recent_documents import Candidate, RecentDocuments, sharing


def document(id: str, keys: str, **more: Any) -> Candidate:
    fields = {"content": id, "tokens": 5, "group": f"group of {id}", "principal": True, "source": {"text": "x" * 92}}
    return Candidate(("i", id, None), list(keys), **{**fields, **more})


def shared(recent: RecentDocuments, keys: str, minimum: int = 1, id: str = "probe") -> list[str]:
    found, left_out = sharing(document(id, keys), minimum, recent.by_key)
    assert left_out == 0
    return [one.reference[1] for one in found]


def test_documents_that_share_keys() -> None:
    recent = RecentDocuments()
    for id, keys in (("a", "xyz"), ("b", "yz"), ("c", "q")):
        recent.add(document(id, keys))
    assert shared(recent, "zyx") == ["a", "b"]
    assert shared(recent, "zyx", minimum=3) == ["a"]
    assert shared(recent, "zyx", id="a") == ["b"]  # not with its own earlier version
    assert shared(recent, "w") == []


def test_the_last_version_of_a_document_counts() -> None:
    recent = RecentDocuments()
    recent.add(document("a", "x"))
    recent.add(document("a", "y"))
    assert (shared(recent, "x"), shared(recent, "y"), len(recent)) == ([], ["a"], 1)
    recent.change(("i", "a", None), deleted=False)
    assert shared(recent, "xy") == []
    assert recent.exists(("i", "a", None))
    recent.change(("i", "a", None), deleted=True)
    assert ("i", "a", None) in recent
    assert not recent.exists(("i", "a", None))
    assert not recent.exists(("i", "never seen", None))
    removed = document("b", "x")
    recent.add(removed)
    recent.remove(removed)
    assert (shared(recent, "x"), ("i", "b", None) in recent) == ([], False)


def test_groups_and_their_leaders() -> None:
    recent = RecentDocuments()
    leader, member = document("a", "x"), document("b", "x")
    recent.add(leader)
    recent.add(member)
    recent.regroup(member, "group of a")
    assert (member.group, member.principal) == ("group of a", None)
    assert recent.leader("group of a") is leader
    assert recent.leader("group of b") is None
    assert recent.groups_in_use(["group of a", "group of b", "other"]) == {"group of a"}
    recent.change(leader.reference, deleted=True)
    assert recent.leader("group of a") is None
    assert recent.groups_in_use(["group of a"]) == {"group of a"}  # the member still has it


def test_forgetting_what_searches_see() -> None:
    """A change without keys is forgotten with the documents that were written after it."""
    recent = RecentDocuments()
    first, second, third = (document(id, "x") for id in "abc")
    recent.change(("i", "deleted", None), deleted=True)
    recent.add(first)
    recent.add(second)
    recent.change(("i", "changed", None), deleted=False)
    recent.add(third)
    recent.forget([second])
    assert [one.reference[1] for one in recent.documents] == ["a", "c"]
    assert shared(recent, "x") == ["a", "c"]
    assert ("i", "deleted", None) not in recent
    assert ("i", "changed", None) in recent
    recent.forget([])
    assert len(recent) == 3
    recent.forget([first, third])
    assert len(recent) == 0
    assert not recent.groups_in_use(["group of a"])


def test_memory_is_bounded_by_number_and_size() -> None:
    recent = RecentDocuments(maximum=10)
    for number in range(10):
        recent.add(document(f"d{number}", "x"))
    assert not recent.full
    recent.add(document("d10", "x"))
    assert recent.full
    assert recent.forget_oldest() == 6
    assert [one.reference[1] for one in recent.documents] == ["d6", "d7", "d8", "d9", "d10"]
    recent = RecentDocuments(max_bytes=1000)
    for number in range(20):
        recent.add(document(f"d{number}", "x"))
        if recent.full:
            recent.forget_oldest()
    assert 2 <= len(recent) <= 10
    assert shared(recent, "x")[-1] == "d19"


def test_of_a_large_bucket_the_newest_are_looked_at() -> None:
    recent = RecentDocuments()
    for number in range(1200):
        recent.add(document(f"d{number:04}", "x" if number else "xyz"))
    found, left_out = sharing(document("probe", "xyz"), 1, recent.by_key)
    assert [one.reference[1] for one in found] == ["d0000", *(f"d{number:04}" for number in range(200, 1200))]
    assert left_out == 200
