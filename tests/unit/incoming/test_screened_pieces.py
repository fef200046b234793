"""`screened` within and between pieces of actions, compared with a simple model. Nothing is stored yet; no server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import SETTINGS, FakeClient, index_of

from es_neardupe.incoming import writes
from es_neardupe.incoming.matches import ScreenReport
from es_neardupe.incoming.screen import Screen
from es_neardupe.incoming.writes import fingerprinted_actions
from es_neardupe.index.stored_fields import own_group
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.options import OnMatch
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.criterion import MatchCriterion

PIECE = 4


def text(family: str, *changed: int) -> str:
    words = [f"{family}{number}" for number in range(100)]
    for place in changed:
        words[place] = f"changed{place}"
    return " ".join(words)


TEXTS = [text("a"), text("a", 10), text("a", 10, 50, 80), text("b"), text("b", 20), text("c"), "", "a b"]
MEASURE = Measure()
PREPARED = MEASURE.prepare(TEXTS)
INDEX = index_of(FakeClient(), IndexTarget("i", ("i",), SETTINGS, 10_000))
CRITERION = MatchCriterion(MEASURE, SETTINGS.threshold, 1.0, None, None)
KEYS = [set(one.bands) for one in fingerprints(TEXTS, SETTINGS.scheme)]


def match(one: int, other: int) -> bool:
    return bool(KEYS[one] & KEYS[other]) and MEASURE.score(PREPARED[one], PREPARED[other]) >= SETTINGS.threshold


Step = tuple[str, str, int]
"""Operation, id, and number of the text."""

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["index", "index", "index", "create", "delete"]),
        st.sampled_from("uvwxyz"),
        st.integers(0, len(TEXTS) - 1),
    ),
    max_size=14,
)


def run(steps: Sequence[Step], on_match: Any) -> tuple[list[dict[str, Any]], ScreenReport]:
    report = ScreenReport()
    screen = Screen(INDEX, CRITERION, on_match, report)
    actions = [
        {"_op_type": op, "_id": id, **({} if op == "delete" else {"_source": {"text": TEXTS[number]}}), "number": place}
        for place, (op, id, number) in enumerate(steps)
    ]
    made = fingerprinted_actions(actions, SETTINGS, index="i", choose_groups=screen.choose_groups)
    return list(made), report


def modelled(steps: Sequence[Step], skips: bool) -> tuple[list[int], dict[int, dict[str, int]]]:
    """The places of the actions that are yielded, and of each that matches, the ids and texts of its matches."""
    written: dict[str, int | None] = {}  # id -> number of its text; None if it is deleted
    yielded: list[int] = []
    found: dict[int, dict[str, int]] = {}
    for start in range(0, len(steps), PIECE):
        piece = list(enumerate(steps))[start : start + PIECE]
        last = {id: place for place, (_, id, _) in piece}
        before, skipped = dict(written), set[str]()
        for place, (op, id, number) in piece:  # what is certain comes first
            if last[id] == place and op == "delete":
                written[id] = None
            elif last[id] == place and (not KEYS[number] or (before.get(id) is not None and op == "index")):
                written[id] = number
        for place, (op, id, number) in piece:
            if last[id] != place or op == "delete" or not KEYS[number] or before.get(id) is not None:
                continue
            found[place] = {other: one for other, one in written.items() if one is not None and match(number, one)}
            if found[place] and skips:
                skipped.add(id)
            else:
                written[id] = number
        yielded += [place for place, (op, id, _) in piece if op == "delete" or id not in skipped]
    return yielded, {place: ids for place, ids in found.items() if ids}


@given(STEPS, st.sampled_from(list(OnMatch)))
def test_a_run_finds_what_the_model_finds(steps: list[Step], on_match: OnMatch) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writes, "_CHUNK", PIECE)
        made, report = run(steps, on_match)
    yielded, found = modelled(steps, on_match is OnMatch.SKIP)
    assert [action["number"] for action in made] == yielded
    assert [one.id for one in report.matches] == [steps[place][1] for place in sorted(found)]
    for one, place in zip(report.matches, sorted(found), strict=True):
        named = [one.match.id, *(other.id for other in one.match.others)]
        texts = [found[place][id] for id in named]
        assert sorted(texts) == sorted(set(found[place].values()))  # of equal texts, one is named
    counts = report.counts
    assert counts.actions == len(steps)
    assert counts.screened == counts.unique + len(report.matches)


def test_a_document_that_is_deleted_and_written_again() -> None:
    """Searches that see its id may still see the deleted version: then it must not be forgotten."""
    screen = Screen(INDEX, CRITERION, "mark", ScreenReport())
    actions = [{"_op_type": "delete", "_id": "a"}, {"_id": "b", "text": ""}, {"_id": "c", "text": ""}] * 2
    actions += [{"_id": "a", "text": TEXTS[0]}, {"_id": "d", "text": TEXTS[3]}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writes, "_CHUNK", PIECE)
        list(fingerprinted_actions(actions, SETTINGS, index="i", choose_groups=screen.choose_groups))
    assert [(one.reference[1], one.rewritten) for one in screen._recent.documents] == [("a", True), ("d", False)]


def test_actions_before_an_error_are_yielded() -> None:
    """The actions are read one piece ahead; an error of their source comes after those of the piece before."""
    report = ScreenReport()
    screen = Screen(INDEX, CRITERION, "mark", report)
    taken: list[int] = []

    def actions() -> Iterator[dict[str, Any]]:
        for number in range(300):
            taken.append(number)
            yield {"_id": f"d{number}", "_source": {"text": TEXTS[0]}}
        raise OSError("the file ends here")

    made = fingerprinted_actions(actions(), SETTINGS, index="i", choose_groups=screen.choose_groups)
    assert taken == []
    assert [next(made)["_id"] for _ in range(256)] == [f"d{number}" for number in range(256)]
    with pytest.raises(OSError, match="the file ends here"):
        next(made)
    assert report.counts.actions == 256


@given(STEPS)
def test_marked_documents_are_similar_to_the_founder_of_their_group(steps: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writes, "_CHUNK", PIECE)
        made, _ = run([step for step in steps if step[0] != "create"], "mark")
    current: dict[str, tuple[str, bool | None, str]] = {}
    for action in made:
        if action["_op_type"] == "delete":
            current.pop(action["_id"], None)
            continue
        fields = action["_source"]["neardupe"]
        current[action["_id"]] = fields["group"], fields.get("principal"), action["_source"]["text"]
    founders = {group: text for group, principal, text in current.values() if principal}
    written_once = {id for _, id, _ in steps if sum(one[1] == id for one in steps) == 1}
    for id, (group, principal, own) in current.items():
        if id in written_once and principal is None and group in founders and group != own_group("i", id):
            a, b = TEXTS.index(own), TEXTS.index(founders[group])
            founder_id = next(one for one, value in current.items() if value[:2] == (group, True))
            if founder_id in written_once:
                assert MEASURE.score(PREPARED[a], PREPARED[b]) >= SETTINGS.threshold
    assert sum(1 for _, principal, _ in current.values() if principal) == len(founders)  # one principal for each group
