"""Decisions of reviewers on real servers: `group` respects them, also incrementally, and they outlive the keys."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta, timezone
from itertools import combinations
from threading import Event
from typing import Any

import pytest
from conftest import Cli
from server_tools import assert_settled, change, family, make_index, ours, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IncompleteAnswer, IndexUnusable, InputError, NotFound, SettingsError
from es_neardupe.groups import reviewed
from es_neardupe.groups.collate import collate_group
from es_neardupe.groups.decisions import Decision, Decisions, Verdict
from es_neardupe.groups.listing import GroupFilter
from es_neardupe.groups.read import groups_of_texts
from es_neardupe.groups.reviewed import KnownReviews, ReviewedGroups, ReviewFilter, ReviewState, review_findings
from es_neardupe.index.index import opened
from es_neardupe.index.shown_fields import NO_FIELDS
from es_neardupe.options import MeasureName
from es_neardupe.records import Address
from es_neardupe.server.client import Client, path

pytestmark = pytest.mark.either("sidecar")

FIELDS = {"text": {"type": "text"}}
A, B, C, D = family("decided", 4)
TEXTS = {
    "a": f"{A} and a few more words",  # the longest is the principal
    "b": B,
    "c": C,
    "d": D,
    "copy": B,
    **{f"x{n}": " ".join(words(f"x{n}", 40)) for n in range(20)},
}
ALL = {"a", "b", "c", "d", "copy"}


def begun(client: Client, index: str, *, sidecar: bool = False, **options: Any) -> NearDupe:
    """A grouped index: a, b, c, d and a copy of b are one group with the principal a, x0 to x19 are alone."""
    make_index(client, index, FIELDS)
    put(client, index, {id: {"text": text} for id, text in TEXTS.items()})
    news = NearDupe(index, client)
    news.init(Settings(("text",)), sidecar=sidecar)
    news.enrich()
    news.group(**options)
    assert groups(news) == [ALL]
    return news


def groups(news: NearDupe) -> list[set[str]]:
    """The groups, smallest id first."""
    return sorted(({member.id for member in one.members} for one in news.groups()), key=min)


@pytest.mark.parametrize("sidecar", [False, True])
def test_different_texts_leave_the_group_with_their_copies(client: Client, index_name: str, sidecar: bool) -> None:
    news = begun(client, index_name, sidecar=sidecar)
    preview = news.decide("different", "a", ["b"], author="ann", dry_run=True)
    assert sum(preview.copies.values()) == 3
    assert news.decisions() == []
    assert news.decide("different", "a", ["b"], author="ann").stored == 1
    assert news.decide("different", "a", ["b"], author="ann").unchanged == 1
    (decision,) = news.decisions()
    assert decision.similarity == news.compare("a", "b").value(MeasureName.RESEMBLANCE)

    report = news.group()
    assert report.scope.reason == "0 new or changed documents, 1 new decision"
    assert (report.scope.whole, report.decisions.different, report.decisions.unsatisfied) == (False, 1, 0)
    assert groups(news) == [{"a", "c", "d"}, {"b", "copy"}]
    assert news.group().scope.affected == 0
    assert news.group(rebuild=True).writes.written == 0
    ignoring = news.group(ignore_reviews=True)
    assert ignoring.scope.reason == "the last run had other settings: reviews respected"
    assert ignoring.decisions.different == 0
    assert groups(news) == [ALL]
    news.group()
    assert groups(news) == [{"a", "c", "d"}, {"b", "copy"}]

    news.withdraw([decision.id])
    assert news.decisions() == []
    assert [one.withdrawn is None for one in news.decisions(withdrawn=True)] == [False]
    assert news.withdraw([decision.id])[0].withdrawn is not None
    assert news.group().scope.reason == "0 new or changed documents, 1 new decision"
    assert groups(news) == [ALL]
    if not sidecar:
        assert_settled(client, index_name)


def test_parts_are_one_decision_that_binds_like_its_pairs(client: Client, index_name: str) -> None:
    """Applied, replaced by a later decision about a pair, disputed, in contradiction, and taken back."""
    news = begun(client, index_name)
    parts = [["a", "c"], ["b", "copy"], ["d"]]  # the copy says nothing more
    assert news.decide(parts=parts, author="ann", dry_run=True).stored == 1
    made = news.decide(parts=parts, author="ann", note="three offices")
    (decision,) = news.decisions()
    assert (decision.verdict, decision.parts, [one.id for one in decision.documents]) == (
        Verdict.SPLIT,
        (1, 1, 2, 3),
        ["a", "c", "b", "d"],
    )
    assert (made.stored, sum(made.copies.values()), decision.note) == (1, 5, "three offices")
    assert news.decide(parts=[["d"], ["c", "a"], ["b"]], author="ann", note="three offices").unchanged == 1
    store = Decisions(opened(news))
    verdicts = {pair: said["ann"] for pair, said in store.pairs().items()}
    assert verdicts == dict(decision.pairs())
    assert {pair: said["ann"] for pair, said in store.pairs([decision.contents[3]]).items()} == {
        pair: one for pair, one in verdicts.items() if decision.contents[3] in pair
    }
    assert store.written_since(0) == set(verdicts)
    assert store.waiting().contents == set(decision.contents)
    report = news.group()
    assert report.scope.reason == "0 new or changed documents, 1 new decision"
    assert (report.decisions.same, report.decisions.different) == (1, 5)
    assert groups(news) == [{"a", "c"}, {"b", "copy"}]
    assert news.group(rebuild=True).writes.written == 0

    with pytest.raises(SettingsError, match=r"contradicts others: x0 and .: a, c, b and 1 more are split"):
        news.decide("same", "x0", ["a", "b"], author="ann")
    (disputed,) = news.decide("same", "c", ["b"], author="bob", dry_run=True).disputed
    assert disputed.id == decision.id
    assert news.decide("same", "d", ["b"], author="ann").replaced == ()  # of three pairs, only this one changes
    assert store.pairs()[min(decision.contents[2:]), max(decision.contents[2:])] == {"ann": Verdict.SAME}
    news.group()
    assert groups(news) == [{"a", "c"}, {"b", "copy", "d"}]
    whole = news.decide(parts=[["a", "b", "c", "d"]], author="ann")
    assert (whole.decisions[0].verdict, len(whole.replaced)) == (Verdict.SAME, 2)
    news.group()
    assert groups(news) == [ALL]
    news.withdraw([whole.decisions[0].id])
    assert news.decisions() == []
    assert store.pairs() == {}
    for wrong, match in (
        ([["a", "b"], ["copy"]], "exact copies"),
        ([["b", "copy"]], "two documents with different texts"),
        ([["a", "b"], ["a"]], "named twice"),
    ):
        with pytest.raises(SettingsError, match=match):
            news.decide(parts=wrong, author="ann")
    with pytest.raises(SettingsError, match="either parts, or a verdict"):
        news.decide("same", "a", parts=[["b"], ["c"]], author="ann")


def test_texts_that_are_the_same_are_held(client: Client, index_name: str) -> None:
    """Unrelated texts stay in the group, are counted, and have their true similarity."""
    news = begun(client, index_name)
    news.decide("same", "b", ["x1", "x2"], author="ann")
    report = news.group()
    assert (report.decisions.same, report.decisions.held, report.scope.whole) == (2, 2, False)
    assert groups(news) == [ALL | {"x1", "x2"}]
    assert ours(client, index_name)["x1"]["similarity"] == news.compare("a", "x1").value(MeasureName.RESEMBLANCE)
    (record,) = (one.known for one in news.groups())
    assert record is not None
    assert (record.held, record.min_similarity, record.size) == (2, 0.0, 7)
    assert news.group(rebuild=True).writes.written == 0
    put(client, index_name, {"y": {"text": TEXTS["x1"]}})  # a copy inherits the decision
    news.enrich()
    assert news.group().decisions.held == 3
    assert groups(news) == [ALL | {"x1", "x2", "y"}]
    assert_settled(client, index_name)


def test_the_evidence_has_the_verdicts(client: Client, index_name: str) -> None:
    """Those about texts of a group and its principal, also after incremental runs."""

    def verdicts() -> dict[str, str]:
        body = {"size": 100, "query": {"exists": {"field": "verdict"}}}
        found = client.request("POST", path(f"{index_name}-neardupe-pairs", "_search"), body=body)["hits"]["hits"]
        sources = [hit["_source"] for hit in found]
        return {" ".join(sorted((one["a"]["id"], one["b"]["id"]))): one["verdict"] for one in sources}

    news = begun(client, index_name, evidence=True)
    assert verdicts() == {}
    news.decide("different", "a", ["b"], author="ann")
    news.decide("same", "a", ["c", "x1"], author="ann")
    report = news.group(evidence=True)
    assert not report.scope.whole
    assert verdicts() == {"a c": "same", "a x1": "same"}
    (group,) = (one.group for one in news.groups() if "c" in {two.id for two in one.members})
    found = {row.members[0].id: row.evidence for row in collate_group(opened(news, texts=True), group, NO_FIELDS).rows}
    assert {id: one.verdict for id, one in found.items() if one is not None and one.verdict} == {
        "c": "same",
        "x1": "same",
    }
    again = news.group(evidence=True, rebuild=True).evidence
    assert again is not None
    assert (again.written, again.decided_again, again.removed) == (0, 0, 0)
    news.withdraw([one.id for one in news.decisions() if "c" not in {two.id for two in one.documents}])
    again = news.group(evidence=True).evidence
    assert again is not None
    assert again.removed == 1  # a and x1 are not similar
    assert verdicts() == {"a c": "same"}
    news.group(evidence=True, ignore_reviews=True)
    assert verdicts() == {}


def test_a_decision_holds_as_long_as_both_texts_are_unchanged(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    news.decide("different", "a", ["c"], author="ann")
    news.group()
    assert groups(news) == [ALL - {"c"}]
    change(client, index_name, "c", {"text": f"{C} again"})
    news.enrich()
    news.group()
    assert groups(news) == [ALL]
    change(client, index_name, "c", {"text": C})
    news.enrich()
    news.group()
    assert groups(news) == [ALL - {"c"}]


def test_reviewers_who_disagree_leave_the_pair_open(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    news.decide("different", "a", ["c"], author="ann")
    report = news.decide("same", "a", ["c"], author="bob")
    assert [(one.author, one.verdict.value) for one in report.disputed] == [("ann", "different")]
    assert news.group().decisions.disputed == 1
    assert groups(news) == [ALL]
    news.decide("different", "a", ["c"], author="bob")  # replaces the other decision of bob
    assert news.group().decisions.different == 1
    assert groups(news) == [ALL - {"c"}]
    assert len(news.decisions()) == 2


def test_a_disagreement_about_several_texts_is_one(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    news.decide(parts=[["a", "b", "c"]], author="ann")
    news.decide(parts=[["a"], ["b", "c"]], author="bob")
    news.decide(parts=[["a"], ["d"]], author="ann")
    news.decide(parts=[["a", "d"]], author="bob")
    index = opened(news, groups=True)
    (group,) = (one for one in news.groups() if len(one.members) > 1)
    members = [one.reference for one in group.members if one.id != "copy"]
    found = review_findings(index, group.group, members[0], members[1:], "eve").disputes
    assert sorted(([one.id for one in each.documents], each.pairs, each.of_all) for each in found) == [
        (["a", "b", "c"], 2, False),
        (["a", "d"], 1, True),
    ]
    assert {(one.author, one.other) for one in found} == {("ann", "bob")}


def test_audit_reports_the_precision_as_judged_by_reviewers(client: Client, index_name: str, server_cli: Cli) -> None:
    """Every pair counts once; withdrawn decisions, other verdicts and notes count nowhere."""
    news = begun(client, index_name)
    assert news.audit().reviewed is None
    news.decide("same", "a", ["b"], author="ann")
    news.decide("same", "a", ["copy"], author="bob")  # a copy of b: the same pair
    news.decide("different", "a", ["c"], author="ann")
    news.decide("same", "c", ["d"], author="ann")
    news.decide("different", "c", ["d"], author="bob")
    news.decide("same", "x1", ["x2"], author="ann")
    news.decide("different", "x1", ["x3", "x4"], author="ann")
    news.decide("different", "b", ["x5"], author="ann")
    news.decide("keep", "b", author="ann")
    news.decide("note", "a", ["d"], author="ann", note="as well")
    news.withdraw([one.id for one in news.decisions() if one.documents[-1].id == "x4"])
    change(client, index_name, "x5", {"text": "it has another text now"})
    counts = {"pairs": 6, "same": 1, "different": 1, "below_same": 1, "below_different": 1, "disputed": 1}
    news.enrich()
    found = news.audit(sample=5).reviewed
    assert found is not None
    assert asdict(found) == counts | {"gone": 1, "precision": 0.5}
    shown = server_cli("audit", index_name).out
    assert re.search(r"precision as judged by reviewers +0\.5000 ", shown)
    assert news.audit(min=0.999).reviewed == replace(
        found, same=0, different=0, below_same=2, below_different=2, precision=None
    )


def test_audit_counts_all_pairs_of_a_decision_about_several_texts(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    news.decide(parts=[["a", "b"], ["c"], ["x1"]], author="ann")
    found = news.audit(sample=5).reviewed
    assert found is not None
    assert (found.pairs, found.same, found.different, found.below_different) == (6, 1, 2, 3)
    assert found.precision == 1 / 3


def test_contradictions_are_refused_until_one_is_withdrawn(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    news.decide("same", "a", ["b"], author="ann")
    news.decide("same", "b", ["c"], author="bob")
    (found,) = news.decide("different", "a", ["c"], author="ann", dry_run=True).contradictions
    assert {one.author for one in found.others} == {"ann", "bob"}
    with pytest.raises(SettingsError, match=r"a and c: .*are same"):
        news.decide("different", "a", ["c"], author="ann")
    assert len(news.decisions()) == 2
    (bobs,) = news.decisions(author="bob")
    news.withdraw([bobs.id])
    news.decide("different", "a", ["c"], author="ann")
    with pytest.raises(SettingsError, match="are different"):
        news.decide("same", "copy", ["c"], author="bob")  # the copy is the same text as b
    news.group()
    assert groups(news) == [ALL - {"c"}]


@pytest.mark.parametrize("sidecar", [False, True])
def test_decisions_that_cannot_all_be_satisfied_are_counted_in_each_run(
    client: Client, index_name: str, sidecar: bool
) -> None:
    """Three reviewers decide at the same moment, so none of them sees the contradiction."""
    news = begun(client, index_name, sidecar=sidecar)
    news.decide("same", "x1", ["x2"], author="ann")
    news.decide("same", "x2", ["x3"], author="bob")
    news.decide("same", "x5", ["x6"], author="bob")
    content = {
        two.id: one
        for decision in news.decisions()
        for one, two in zip(decision.contents, decision.documents, strict=True)
    }
    documents = Address(index_name, "x1"), Address(index_name, "x3")
    at = datetime.now(timezone.utc).isoformat()
    store = Decisions(opened(news))
    store.put([Decision(Verdict.DIFFERENT, (content["x1"], content["x3"]), documents, "eve", at)])
    assert news.group().decisions.unsatisfied == 1
    put(client, index_name, {"new": {"text": TEXTS["x9"]}})
    news.enrich()
    ways: list[dict[str, Any]]
    ways = [{"dry_run": True}, {}, {}, {"check": True}, {"rebuild": True}, {"rebuild": True, "dry_run": True}]
    for options in ways:
        report = news.group(**options)
        assert report.decisions.unsatisfied == 1, options
        assert report.scope.whole == ("rebuild" in options)
    assert news.group().decisions.same == 0  # of the texts of the run
    client.request("DELETE", path(index_name, "_doc", "x3"), params={"refresh": "true"})
    assert news.group().decisions.unsatisfied == 0
    put(client, index_name, {"x3": {"text": TEXTS["x3"]}})
    news.enrich()
    assert [news.group().decisions.unsatisfied for _ in range(2)] == [1, 1]
    news.withdraw([one.id for one in news.decisions(author="eve")])
    assert [news.group().decisions.unsatisfied for _ in range(2)] == [0, 0]
    assert groups(news) == [ALL, {"new", "x9"}, {"x1", "x2", "x3"}, {"x5", "x6"}]


def test_what_cannot_be_decided(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    for wrong, kind, message in (
        (("perhaps", "a", ["b"]), SettingsError, "Unknown verdict"),
        (("same", "a", []), SettingsError, "the other ones as well"),
        (("same", "a", ["a"]), SettingsError, "named twice"),
        (("different", "b", ["copy"]), SettingsError, "exact copies"),
        (("same", "a", ["none"]), NotFound, "no document"),
        (("note", "a", []), SettingsError, "needs a text"),
    ):
        with pytest.raises(kind, match=message):
            news.decide(*wrong, author="ann")
    for author in ("", "  ", "a\nb", "x" * 300):
        with pytest.raises(SettingsError, match="name of a reviewer"):
            news.decide("same", "a", ["b"], author=author)
    with pytest.raises(SettingsError, match="4,000 characters"):
        news.decide("note", "a", author="ann", note="x" * 5000)
    with pytest.raises(SettingsError, match="cannot have the character U"):
        news.decide("note", "a", author="ann", note="a\0b")
    with pytest.raises(IndexUnusable, match="since you saw it"):
        news.decide("same", "a", ["b"], author="ann", seen={"b": "0" * 32})
    put(client, index_name, {"empty": {"text": "..."}})
    news.enrich()
    with pytest.raises(InputError, match="no words"):
        news.decide("same", "a", ["empty"], author="ann")
    change(client, index_name, "b", {"text": "quite another text"})
    with pytest.raises(IndexUnusable, match="since it got its keys"):
        news.decide("same", "a", ["b"], author="ann")
    with pytest.raises(NotFound, match="no decision"):
        news.withdraw(["none"])
    assert news.decisions() == []


def test_the_document_to_keep(client: Client, index_name: str) -> None:
    """Of the documents that were looked at, a reviewer keeps one; what several say stays visible."""
    news = begun(client, index_name)
    (before,) = news.suggest_keep()
    assert (before.keep.id, before.reviewer) == ("a", None)
    news.decide("keep", "b", ["a", "c", "d", "copy"], author="ann")
    (advice,) = news.suggest_keep()
    assert (advice.keep.id, advice.reviewer, advice.is_principal) == ("b", "ann", False)
    assert {one.id for one in advice.redundant} == ALL - {"b"}
    assert [one.contents for one in news.decide("keep", "c", ["a", "b"], author="ann").replaced]
    assert [one.keep.id for one in news.suggest_keep()] == ["c"]
    news.decide("keep", "d", author="bob")
    (advice,) = news.suggest_keep()
    assert (advice.keep.id, advice.reviewer) == ("a", None)  # they disagree, so the policy decides
    assert news.group().scope.affected == 0


def test_decisions_outlive_clean_and_migrate(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    news.decide("different", "a", ["c"], author="ann")
    news.group()
    report = news.migrate(threshold=0.7, confirm=lambda migration: True)
    assert report.state == "done"
    assert groups(news) == [ALL - {"c"}]
    cleaned = news.clean()
    assert cleaned.kept_decisions == 1
    news.init(Settings(("text",)))
    news.enrich()
    news.group()
    assert groups(news) == [ALL - {"c"}]
    cleaned = news.clean(decisions=True)
    assert (cleaned.kept_decisions, len(cleaned.deleted_indices)) == (0, 2)
    news.init(Settings(("text",)))
    assert news.decisions() == []


def test_the_state_of_a_review_is_kept_up_to_date(client: Client, index_name: str) -> None:
    """From call to call: decisions at once, groups and texts with each run of `group`."""
    news = begun(client, index_name)
    (group,) = (one.group for one in news.groups())
    kept = ReviewedGroups()

    def state() -> Any:
        found = kept.read(opened(news, groups=True)).groups
        assert found == ReviewedGroups().read(opened(news, groups=True)).groups
        assert found is not None
        review, reached = found.get(group, (None, None))
        return reached if review is None else (review.decided, review.disputed, review.reviewers, reached)

    assert state() is None
    news.decide("same", "a", ["b"], author="ann")
    assert state() == (2, 0, ("ann",), ReviewState.OPEN)
    news.decide("same", "a", ["c", "d"], author="bob")
    assert state() == (4, 0, ("ann", "bob"), ReviewState.REVIEWED)
    assert state() == (4, 0, ("ann", "bob"), ReviewState.REVIEWED)
    news.decide("different", "a", ["b"], author="bob")
    assert state() == (3, 1, ("ann", "bob"), ReviewState.DISPUTED)
    news.withdraw([one.id for one in news.decisions() if "b" in {two.id for two in one.documents}])
    assert state() == (3, 0, ("bob",), ReviewState.OPEN)
    change(client, index_name, "c", {"text": f"{TEXTS['c']} changed"})
    news.enrich()
    news.group()
    assert state() == (2, 0, ("bob",), ReviewState.OPEN)
    news.clean(decisions=True)
    news.init(Settings(("text",)))
    news.enrich()
    news.group()
    assert state() is None
    news.decide("same", "a", ["b"], author="eve")
    (group,) = (one.group for one in news.groups())
    assert state() == (2, 0, ("eve",), ReviewState.OPEN)


def test_a_page_does_not_wait_for_the_states_of_many_decisions(
    client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the current ones are read, it says so: with none at first, later with the former ones."""
    news, kept, go_on = begun(client, index_name), ReviewedGroups(), Event()
    index = opened(news, groups=True)
    news.decide("same", "a", ["b"], author="ann")

    def later(*given: Any) -> Any:
        assert go_on.wait(60)
        return groups_of_texts(*given)

    monkeypatch.setattr(reviewed, "groups_of_texts", later)
    monkeypatch.setattr(reviewed, "_MANY", 0)
    first = kept.read(index, 0.01)
    assert first.groups is None
    assert first.reading is not None
    with pytest.raises(IncompleteAnswer, match="Load the page again"):
        ReviewFilter(ReviewState.OPEN).applied(first, GroupFilter())
    go_on.set()
    before = kept.read(index, 60)
    assert before == KnownReviews(dict(before.groups or {}))
    assert len(before.groups or ()) == 1

    go_on.clear()
    news.decide("same", "a", ["c"], author="ann")
    second = kept.read(index, 0.01)
    assert second.groups == before.groups
    assert second.reading is not None
    go_on.set()
    assert kept.read(index, 60) == ReviewedGroups().read(index) != before
    noted: list[tuple[str, int, int | None]] = []
    Decisions(index).pairs(progress=lambda *one: noted.append(one))
    assert noted == [("decisions", 0, None), ("decisions", 2, 2)]


def test_a_decision_that_changes_while_group_runs_waits(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    news.decide("different", "a", ["c"], author="ann")
    store = Decisions(opened(news))
    waiting = store.waiting()
    news.decide("same", "a", ["c"], author="ann")
    store.settle(waiting)
    assert store.count_waiting() == 1
    assert news.group().decisions.same == 1
    assert store.count_waiting() == 0


def test_claims_expire(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    store = Decisions(opened(news))
    now = datetime.now(timezone.utc)
    assert store.claims(["g"]) == {}
    first = store.claim("g", "ann", now)
    assert store.claim("g", "bob", now).author == "ann"
    assert store.claim("g", "ann", now + timedelta(minutes=1)).until > first.until
    assert store.claims(["g", "h"], now) == {"g": store.claim("g", "ann", now + timedelta(minutes=1))}
    assert store.claim("g", "bob", now + timedelta(minutes=17)).author == "bob"


@pytest.mark.either("linkage")
@pytest.mark.parametrize("linkage", ["star", "complete", "chain"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_each_run_ends_as_a_rebuild_does(client: Client, index_name: str, linkage: str, seed: int) -> None:
    """Whatever was decided, withdrawn, written and deleted before it."""
    chance = random.Random(f"{linkage}{seed}")
    texts = [*family("one", 4), *family("two", 4), *(" ".join(words(n, 40)) for n in range(2))]
    make_index(client, index_name, FIELDS)
    put(client, index_name, {f"d{n}": {"text": chance.choice(texts)} for n in range(12)})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)))
    news.enrich()
    news.group(linkage=linkage)
    pairs = list(combinations([f"d{n}" for n in range(12)], 2))
    kept = ReviewedGroups()
    for _ in range(8):
        for _ in range(chance.randint(1, 3)):
            step = chance.choice(["same", "different", "different", "change", "delete", "create", "withdraw"])
            one, other = chance.choice(pairs)
            with suppress(SettingsError, NotFound, IndexUnusable):
                if step in ("same", "different"):
                    news.decide(step, one, [other], author=chance.choice(["ann", "bob"]))
                elif step == "withdraw":
                    news.withdraw([chance.choice(news.decisions()).id] if news.decisions() else [])
                elif step == "change":
                    change(client, index_name, one, {"text": chance.choice(texts)})
                elif step == "create":
                    put(client, index_name, {one: {"text": chance.choice(texts)}})
                else:
                    client.request("DELETE", path(index_name, "_doc", one), params={"refresh": "true"})
        news.enrich()
        news.group()
        assert news.group(rebuild=True, dry_run=True).writes.written == 0
        assert news.group().scope.affected == 0
        assert kept.read(opened(news)) == ReviewedGroups().read(opened(news))
        together = groups(news)
        content = {id: one["content"] for id, one in ours(client, index_name).items()}
        decided = {frozenset(one.contents): set[str]() for one in news.decisions()}
        for one_decision in news.decisions():
            decided[frozenset(one_decision.contents)].add(one_decision.verdict.value)
        for first, second in combinations(content, 2):
            verdicts = decided.get(frozenset((content[first], content[second])))
            if verdicts == {"different"}:
                assert not any({first, second} <= group for group in together)
