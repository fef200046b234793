"""Documents that a run has written: found by keys, replaced, regrouped and forgotten. No server."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.incoming.recent_documents import RecentDocuments
from es_neardupe.incoming.texts_by_key import Candidate, TextsByKey

SLOTS = 6


def document(id: str, keys: str, **more: Any) -> Candidate:
    fields = {"content": id, "tokens": 5, "group": f"group of {id}", "principal": True, "source": {"text": "x" * 92}}
    return Candidate(("i", id, None), list(keys), **{**fields, "signature": signature(keys), **more})


def signature(keys: str) -> bytes:
    """One slot for each of a few keys."""
    return bytes(key in keys for key in "uvwxyz")


def shared(recent: RecentDocuments, keys: str, minimum: int = 1, id: str = "probe") -> list[str]:
    found = recent.nearest(document(id, keys), minimum, 1000)
    assert (found.others, found.number) == (0, len(found.texts))
    return [one.reference[1] for copies in found.texts for one in copies]


def test_documents_that_share_keys() -> None:
    recent = RecentDocuments(SLOTS)
    for id, keys in (("a", "xyz"), ("b", "yz"), ("c", "q")):
        recent.add(document(id, keys))
    assert shared(recent, "zyx") == ["a", "b"]
    assert shared(recent, "zyx", minimum=3) == ["a"]
    assert shared(recent, "w") == []


def test_the_last_version_of_a_document_counts() -> None:
    recent = RecentDocuments(SLOTS)
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
    recent = RecentDocuments(SLOTS)
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
    recent = RecentDocuments(SLOTS)
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
    recent = RecentDocuments(SLOTS, maximum=10)
    for number in range(10):
        recent.add(document(f"d{number}", "x"))
    assert not recent.full
    recent.add(document("d10", "x"))
    assert recent.full
    assert recent.forget_oldest() == 6
    assert [one.reference[1] for one in recent.documents] == ["d6", "d7", "d8", "d9", "d10"]
    recent = RecentDocuments(SLOTS, max_bytes=1000)
    for number in range(20):
        recent.add(document(f"d{number}", "x"))
        if recent.full:
            recent.forget_oldest()
    assert 2 <= len(recent) <= 10
    assert shared(recent, "x")[-1] == "d19"


def test_all_texts_of_a_large_bucket_count() -> None:
    recent = RecentDocuments(SLOTS)
    for number in range(1200):
        recent.add(document(f"d{number:04}", "x" if number else "xyz"))
    found = recent.nearest(document("probe", "xyz"), 1, 500)
    assert [one.reference[1] for (one,) in found.texts] == [f"d{number:04}" for number in range(500)]
    assert (found.number, found.others) == (1200, 700)
    assert len(recent.nearest(document("probe", "xyz"), 1, 2**64).texts) == 1200


def test_of_many_copies_those_that_may_match_are_found() -> None:
    """At most 100 of them, however many others come first."""
    recent = RecentDocuments(SLOTS)
    for number in range(400):
        recent.add(document(f"d{number:04}", "xyz", content="same"))
    found = recent.nearest(
        document("probe", "xyz"), 1, 10, lambda some: [one for one in some if one.reference[1] > "d0200"]
    )
    assert [one.reference[1] for one in found.texts[0]] == [f"d{number:04}" for number in range(201, 301)]
    assert (found.sizes, found.number, found.others) == ([199], 1, 0)


STEPS = st.lists(
    st.tuples(st.sets(st.sampled_from("uvwxyz"), min_size=1), st.integers(0, 2), st.booleans()), max_size=12
)


@given(STEPS, st.booleans())
def test_texts_by_key(steps: list[tuple[set[str], int, bool]], fold: bool) -> None:
    """Texts of which some documents were removed, compared with a simple model."""
    texts, kept = TextsByKey(SLOTS, fold=fold), list[Candidate]()
    for number, (keys, content, removes) in enumerate(steps):
        kept.append(document(f"d{number}", "".join(sorted(keys)), content=f"content {content}"))
        texts.insert(kept[-1])
        if removes:
            texts.remove(kept.pop(len(kept) // 2))
    probe = document("probe", "xyz")
    for minimum, maximum in ((1, 20), (2, 20), (1, 2)):
        expected = dict[object, list[Candidate]]()
        for one in kept:
            if len({*"xyz"} & set(one.bands)) >= minimum:
                expected.setdefault((one.content, *one.bands) if fold else one, []).append(one)
        found = texts.nearest(probe, minimum, maximum)
        assert found.number == len(expected)
        assert sum(found.sizes) + found.others == sum(map(len, expected.values()))
        assert list(map(len, found.texts)) == list(found.sizes)
        assert all(copies in list(expected.values()) for copies in found.texts)
        equal = sorted((equal_slots(probe, copies[0]) for copies in expected.values()), reverse=True)
        assert found.equal_slots.tolist() == equal[:maximum]
        odd = texts.nearest(
            probe, minimum, maximum, lambda some: [one for one in some if int(one.reference[1][1:]) % 2]
        )
        counted = sum(int(one.reference[1][1:]) % 2 for some in expected.values() for one in some)
        assert sum(odd.sizes) + odd.others == counted


def equal_slots(one: Candidate, other: Candidate) -> int:
    return sum(a == b for a, b in zip(one.signature, other.signature, strict=True))
