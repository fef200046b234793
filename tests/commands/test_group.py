"""Incremental runs while documents are added, changed and deleted: a run over all documents changes nothing after."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Cli
from server_tools import (
    Spy,
    assert_settled,
    change,
    family,
    groups_of,
    hits,
    living,
    make_index,
    ours,
    put,
    registry,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.candidates import memory_limit, spill_to_disk
from es_neardupe.commands.bands import bands
from es_neardupe.errors import SettingsError
from es_neardupe.groups.related import linked_groups
from es_neardupe.index import queries
from es_neardupe.index.index import Index, opened
from es_neardupe.options import FactKind, MeasureName
from es_neardupe.records import Hit
from es_neardupe.server.client import Client, ForwardingClient, path
from es_neardupe.similarity.facts.kinds import FIGURES

FIELDS = {
    "text": {"type": "text"},
    "site": {"type": "keyword"},
    "published": {"type": "date"},
}
TWO_BANDS = 6
"""The seed of a run in which candidates share two or more keys."""


def start(client: Client, index: str, texts: dict[str, Any], **options: Any) -> None:
    """Create an index of these documents, and group it for the first time."""
    make_index(client, index, FIELDS)
    put(client, index, texts)
    NearDupe(index, client).init(Settings(("text",)))
    NearDupe(index, client).enrich()
    NearDupe(index, client).group(**options)


def regroup(client: Client, index: str, **options: Any) -> Any:
    """Run the commands that a user runs after changes; asserts that the run was incremental."""
    NearDupe(index, client).enrich()
    report = NearDupe(index, client).group(**options)
    assert not report.scope.whole
    return report


@pytest.mark.parametrize(
    ("texts", "options", "warned"),
    [
        ([family(number, 2, length=60, edits=2) for number in range(20)], [], True),
        ([family(number, 2, length=60, edits=2) for number in range(20)], ["--min", "0.6"], False),
        ([family(number, 2, length=60, edits=2) for number in range(20)], ["--max", "0.9"], False),
        ([family(number, 2, length=60, edits=2) for number in range(6)], [], False),
        ([family(0, 20, length=60, edits=1)], [], False),
    ],
    ids=["near-copies", "lower minimum", "maximum", "few", "template"],
)
def test_a_warning_if_more_pairs_nearly_match_than_match(
    server_cli: Cli, client: Client, index_name: str, texts: list[list[str]], options: list[str], warned: bool
) -> None:
    """Pairs of one word in 30 replaced are 0.7 similar. Of a template, each text is 0.7 similar to each other one."""
    start(
        client, index_name, {f"{k}-{n}": {"text": text} for k, some in enumerate(texts) for n, text in enumerate(some)}
    )
    shown = server_cli("group", index_name, *options, "--rebuild")
    pairs = server_cli("group", index_name, *options, "--rebuild", "--json").lines[0]["pairs"]
    assert (f"{pairs['nearly']} candidate pairs are 0.6 to 0.8 similar, more than match" in shown.err) == warned
    assert (f"`es-neardupe distribution {index_name}` shows them" in shown.err) == warned
    assert pairs["nearly"] + pairs["matches"] <= pairs["candidates"]


def members(client: Client, index: str) -> dict[str, set[str]]:
    return {one.group: {member.id for member in one.members} for one in groups_of(client, index)}


class Application:
    """An application that adds, changes and deletes documents."""

    def __init__(self, client: Client, index: str, seed: int) -> None:
        self.client, self.index = client, index
        self.dice = random.Random(seed)
        self.bases = [words(f"{seed}/{number}", 60) for number in range(4)]
        self.next = 0

    def text(self) -> str:
        """One of a few texts with up to three changed words: families overlap, and form chains."""
        base = list(self.dice.choice(self.bases))
        for _ in range(self.dice.choice((0, 0, 1, 1, 2, 3))):
            base[self.dice.randrange(len(base))] = f"other{self.dice.randrange(6)}"
        return " ".join(base[: self.dice.choice((60, 60, 58))])

    def document(self) -> dict[str, Any]:
        day = self.dice.randrange(1, 29)
        return {"text": self.text(), "site": self.dice.choice("ab"), "published": f"2026-01-{day:02}"}

    def add(self, number: int) -> None:
        put(self.client, self.index, {f"d{self.next + k:03}": self.document() for k in range(number)})
        self.next += number

    def turn(self) -> None:
        """Some new documents, some changed, some indexed anew, some deleted: principals among them."""
        self.add(self.dice.randrange(1, 6))
        ids = sorted(hit["_id"] for hit in hits(self.client, self.index))
        for id in self.dice.sample(ids, 4):
            body = {"doc": {"text": self.text()}}
            self.client.request("POST", path(self.index, "_update", id), body=body)
        put(self.client, self.index, {id: self.document() for id in self.dice.sample(ids, 2)})
        principals = sorted(one.members[0].id for one in groups_of(self.client, self.index))
        for id in {*self.dice.sample(ids, 2), *principals[:1]}:
            self.client.request("DELETE", path(self.index, "_doc", id), params={"refresh": "true"})


def test_what_is_printed(client: Client, index_name: str, server_cli: Cli) -> None:
    texts = family("printed", 3)
    make_index(client, index_name, FIELDS)
    put(client, index_name, {f"d{k}": {"text": text} for k, text in enumerate([*texts, texts[0], "another text"])})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    run = server_cli("group", index_name, "--min", "0.8")
    assert run.code == 0
    assert run.out.startswith("Rules: measure resemblance, min 0.8, max 1.0,")
    shown = " ".join(run.out.split())
    for row in ("enriched documents 5 in 1 group 4 alone 1", "exact copies 1", "at least 0.8 similar 3"):
        assert row in shown
    assert "Examined all documents: the first run." in run.err
    assert f"Next: es-neardupe groups {index_name}" in run.err


@pytest.mark.either("seed")
@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (1, {}),
        (2, {"linkage": "chain"}),
        (3, {"linkage": "complete", "principal": "oldest"}),
        (4, {"principal": "site:desc", "within": ["site"], "window": "published:9"}),
        (5, {"measure": "containment", "min": 0.85, "max_bucket": 4}),
        (TWO_BANDS, {"max_bucket": 4}),
    ],
)
def test_as_after_a_whole_run(client: Client, index_name: str, seed: int, options: dict[str, Any]) -> None:
    make_index(client, index_name, FIELDS)
    application = Application(client, index_name, seed)
    application.add(60)
    agreeing: dict[str, Any] = {"bands": 16, "rows": 4, "agree": 2} if seed == TWO_BANDS else {}
    NearDupe(index_name, client).init(Settings(("text",), **agreeing))
    NearDupe(index_name, client).enrich()
    assert NearDupe(index_name, client).group(**options).scope.reason == "the first run"
    assert_settled(client, index_name, **options)
    for _ in range(2):
        application.turn()
        report = regroup(client, index_name, **options)
        scope, groups, writes = report.scope, report.groups, report.writes
        assert scope.affected == sum(scope.states.values()) > writes.written - writes.deleted > 0
        assert scope.affected == writes.written + writes.unchanged
        assert scope.documents == groups.grouped + groups.alone
        assert_settled(client, index_name, **options)
    again = NearDupe(index_name, client).group(check=True, **options)
    assert (again.writes.written, again.scope.affected, again.scope.whole) == (0, 0, False)


def asked_for(spy: Spy) -> set[str]:
    """The band keys whose documents were queried."""
    clauses = [clause for _, body in spy.asked if body for clause in walked(body) if "neardupe.bands" in clause]
    return {key for clause in clauses for key in clause["neardupe.bands"]}


def walked(part: Any) -> Iterator[dict[str, Any]]:
    """All objects in a request body."""
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from walked(inner)


@pytest.mark.parametrize("linkage", ["star", "chain"])
def test_whose_neighbours_are_asked_for(client: Client, index_name: str, linkage: str) -> None:
    """Those of the whole cluster: a text that joins it can move all others."""
    first, second, third, new = family("asked", 4)
    texts = {"a": f"{first} more", "b": second, "c": third}
    start(client, index_name, {id: {"text": text} for id, text in texts.items()}, linkage=linkage)
    put(client, index_name, {"new": {"text": new}})
    NearDupe(index_name, client).enrich()
    spy = Spy(client)
    report = NearDupe(index_name, spy).group(linkage=linkage)
    assert (report.scope.whole, report.scope.affected, report.groups.count, report.groups.grouped) == (False, 4, 1, 4)
    stored = ours(client, index_name)
    keys = set(stored["new"]["bands"])
    others = {key for id in "abc" for key in stored[id]["bands"]} - keys
    assert others
    assert asked_for(spy) == keys | others
    assert stored["a"]["principal"] is True
    assert_settled(client, index_name, linkage=linkage)


def test_ids_and_groups_do_not_depend_on_how_documents_arrived(client: Client, index_name: str) -> None:
    application = Application(client, index_name, 11)
    documents = {f"d{number:03}": application.document() for number in range(70)}
    order = list(documents)
    seen = []
    for shards, workers, batch in ((1, 1, 500), (3, 3, 7)):
        make_index(client, index_name, FIELDS, settings={"number_of_shards": shards, "number_of_replicas": 0})
        for start_at in range(0, len(order), 20):
            put(client, index_name, {id: documents[id] for id in order[start_at : start_at + 20]})
        NearDupe(index_name, client).init(Settings(("text",)))
        NearDupe(index_name, client).enrich(workers=workers, batch=batch)
        NearDupe(index_name, client).group(workers=workers, batch=batch)
        seen.append((ours(client, index_name), members(client, index_name)))
        NearDupe(index_name, client).clean()
        client.request("DELETE", path(index_name))
        random.Random(3).shuffle(order)
    assert seen[0] == seen[1]
    assert len(seen[0][1]) > 3


@pytest.mark.product("each")
def test_merge_split_and_end_are_told(client: Client, index_name: str) -> None:
    """A text between a family of three and one of two merges them; they split when it is deleted."""
    base = words("lineage", 100)
    far = [*base[:70], *words("else", 6), *base[76:]]
    between = [*base[:73], *far[73:]]
    assert bands(0.8).detection > 0.99
    texts = {
        "a1": " ".join(base),
        "a2": " ".join([*base[:20], "one", *base[21:]]),
        "a3": " ".join([*base[:10], "two", *base[11:]]),
        "b1": " ".join(far),
        "b2": " ".join([*far[:40], "three", *far[41:]]),
    }
    start(client, index_name, {id: {"text": text} for id, text in texts.items()}, linkage="chain", min=0.85)
    before = {tuple(sorted(ids)): id for id, ids in members(client, index_name).items()}
    larger, smaller = before["a1", "a2", "a3"], before["b1", "b2"]
    founded = registry(client, index_name).records({larger, smaller})
    assert {one.history[0].event for one in founded.values()} == {"founded"}

    put(client, index_name, {"x": {"text": " ".join(between)}})
    regroup(client, index_name, linkage="chain", min=0.85)
    assert members(client, index_name) == {larger: {*texts, "x"}}
    found = registry(client, index_name).records({larger, smaller})
    assert [(one.event, one.group) for one in found[larger].history] == [("founded", None), ("merged with", smaller)]
    assert [(one.event, one.group) for one in found[smaller].history] == [("founded", None), ("merged into", larger)]
    assert found[smaller].ended is not None
    assert (found[larger].size, found[larger].diameter, found[larger].ended) == (6, 4, None)
    assert 0.85 <= (found[larger].weakest or 0) < 0.95

    client.request("DELETE", path(index_name, "_doc", "x"), params={"refresh": "true"})
    report = NearDupe(index_name, client).group(linkage="chain", min=0.85)
    assert report.scope.reason == "0 new or changed documents, 1 group that lost documents"
    split = members(client, index_name)
    assert split.keys() >= {larger}
    assert sorted(map(sorted, split.values())) == [["a1", "a2", "a3"], ["b1", "b2"]]
    (part,) = split.keys() - {larger}
    events = {one.group: [event.event for event in one.history] for one in living(client, index_name)}
    assert events == {larger: ["founded", "merged with", "split into"], part: events[part]}
    assert events[part][-1] == "split from"

    client.request("DELETE", path(index_name, "_doc", "b2"), params={"refresh": "true"})
    regroup(client, index_name, linkage="chain", min=0.85)
    assert NearDupe(index_name, client).group_history(part).history[-1].event == "dissolved"
    assert_settled(client, index_name, linkage="chain", min=0.85)


def test_a_group_keeps_its_id_when_its_principal_leaves(client: Client, index_name: str) -> None:
    texts = dict(zip(("p", "m1", "m2", "m3"), family("stay", 4), strict=True))
    texts["p"] += " and a few words more"
    start(client, index_name, {id: {"text": text} for id, text in texts.items()})
    ((id, ids),) = members(client, index_name).items()
    assert (ids, groups_of(client, index_name)[0].members[0].id) == ({*texts}, "p")
    put(client, index_name, {"p": {"text": " ".join(words("gone", 50))}})  # removes the neardupe fields too
    regroup(client, index_name)
    left = ours(client, index_name)
    assert members(client, index_name) == {id: {"m1", "m2", "m3"}}
    assert left["p"]["group"] != id
    assert left["p"]["principal"] is True
    assert_settled(client, index_name)


@pytest.mark.either("check")
@pytest.mark.either("longer")
@pytest.mark.parametrize("longer", [True, False])
@pytest.mark.parametrize("check", [False, True])
def test_a_document_that_returns_beside_its_former_group(
    client: Client, index_name: str, *, longer: bool, check: bool
) -> None:
    """It shares keys with a document that has kept the id of their former group, and does not match it: it is alone."""
    (c, near_c), (d, e, near_d) = family("c", 2), family("d", 3)
    more = " and a few more words" * longer  # then it is the principal, and the id of the group its own
    texts = {"c": c, "x": near_c + more, "d": d, "e": e, **{f"alone{n}": " ".join(words(n, 200)) for n in range(20)}}
    start(client, index_name, {id: {"text": text} for id, text in texts.items()})
    assert sorted(map(sorted, members(client, index_name).values())) == [["c", "x"], ["d", "e"]]
    change(client, index_name, "x", {"text": near_d + more})
    regroup(client, index_name)
    assert list(members(client, index_name).values()) == [{"d", "e", "x"}]
    distant = c.split()
    for place in range(15, 200, 33):
        distant[place] = f"other{place}"
    change(client, index_name, "x", {"text": " ".join(distant)})
    regroup(client, index_name, check=check)
    assert list(members(client, index_name).values()) == [{"d", "e"}]
    stored = {id: fields["group"] for id, fields in ours(client, index_name).items()}
    assert len(set(stored.values())) == len(stored) - 1
    assert_settled(client, index_name)


def test_the_guarantee_is_reported(client: Client, index_name: str) -> None:
    """A text similar to two others that are not similar to each other."""
    base = words("guarantee", 60)
    texts = {
        "middle": " ".join([*base, "and", "longer"]),
        "one": " ".join([*base[:20], "x", *base[21:]]),
        "other": " ".join([*base[:40], "y", *base[41:]]),
        "copy": " ".join([*base[:40], "y", *base[41:]]),
    }
    start(client, index_name, {id: {"text": text} for id, text in texts.items()}, min=0.8)
    ((id, ids),) = members(client, index_name).items()
    entry = NearDupe(index_name, client).group_history(id)
    assert ids == {*texts}
    assert (entry.size, entry.texts, entry.principal[1], entry.pairs_below, entry.pairs_not_compared) == (
        (4, 3, "middle", 2, 0)
    )
    similarities = {member.id: member.similarity for member in groups_of(client, index_name)[0].members[1:]}
    assert entry.min_similarity == pytest.approx(min(similarities.values()))
    assert entry.mean_similarity == pytest.approx(sum(similarities.values()) / 3)
    whole = NearDupe(index_name, client).group(linkage="complete", min=0.8)
    assert (whole.groups.looked_at.pairs_below, whole.groups.count, whole.scope.whole) == (0, 1, True)
    assert whole.scope.reason == "the last run had other settings: linkage star"
    assert sorted(map(len, members(client, index_name).values())) == [3]


def test_policies_scopes_and_advice(client: Client, index_name: str, server_cli: Any) -> None:
    texts = family("policy", 4, length=120)
    documents = {
        "a": {"text": texts[0] + " longer than the others", "site": "x", "published": "2026-01-20"},
        "b": {"text": texts[1], "site": "x", "published": "2026-01-01"},
        "c": {"text": texts[2], "site": "y", "published": "2026-01-02"},
        "d": {"text": texts[3], "site": "y"},
    }
    start(client, index_name, documents)
    for policy, first in (("longest", "a"), ("oldest", "b"), ("newest", "a"), ("site:desc", "c"), ("site:asc", "a")):
        NearDupe(index_name, client).group(principal=policy)
        ((one),) = groups_of(client, index_name)
        assert (one.members[0].id, one.size) == (first, 4), policy
        (advice,) = NearDupe(index_name, client).suggest_keep()
        assert (advice.keep[1], advice.policy, advice.is_principal, len(advice.redundant)) == (first, policy, True, 3)
    (other,) = server_cli("groups", index_name, "--suggest-keep", "--keep-policy", "published:asc", "--json").lines
    assert [one["id"] for one in (other["keep"], *other["redundant"])] == ["b", "c", "a", "d"]
    assert other["is_principal"] is False

    NearDupe(index_name, client).group(within=["site"])
    assert sorted(map(sorted, members(client, index_name).values())) == [["a", "b"], ["c", "d"]]
    NearDupe(index_name, client).group(within=["site", "published"])
    assert members(client, index_name) == {}
    NearDupe(index_name, client).group(window="published:1", default_rules=True)
    assert sorted(map(sorted, members(client, index_name).values())) == [["b", "c"]]
    assert_settled(client, index_name, window="published:1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--principal", "shortest"], "longest, oldest, newest"),
        (["--principal", "text:asc"], "Available: published, site"),
        (["--principal", "oldest"], "exactly one date field"),
        (["--within", "sites"], "Available: published, site"),
        (["--within", "site", "--within", "sites"], "Available: published, site"),
        (["--window", "site:3"], "date field 'site'"),
        (["--window", "published"], "FIELD:DAYS"),
        (["--window", "published:-1"], "FIELD:DAYS"),
    ],
)
def test_rules_that_mean_nothing(
    client: Client, index_name: str, server_cli: Any, options: list[str], message: str
) -> None:
    fields = FIELDS | ({"changed": {"type": "date"}} if "oldest" in options else {})
    make_index(client, index_name, fields)
    NearDupe(index_name, client).init(Settings(("text",)))
    run = server_cli("group", index_name, *options)
    assert (run.code, message in run.err) == (2, True), run.err


def test_evidence_of_group(client: Client, index_name: str, server_cli: Any) -> None:
    """A run over all documents stores it even if no group changes; a rebuild has nothing to add."""
    application = Application(client, index_name, 21)
    start(client, index_name, {f"d{number}": application.document() for number in range(40)})
    first = server_cli("group", index_name, "--evidence", "--json").json
    assert first["scope"]["reason"] == "the last run had other settings: evidence False"
    assert first["writes"]["written"] == 0
    assert (
        first["evidence"]["written"]
        == first["evidence"]["pairs"]
        == first["groups"]["grouped"] - first["groups"]["count"]
    )
    put(client, index_name, {"d0": application.document(), "new": application.document()})
    changed = regroup(client, index_name, evidence=True)
    assert changed.evidence.written > 0
    again = NearDupe(index_name, client).group(evidence=True, rebuild=True)
    assert again.writes.written == 0
    assert again.evidence is not None
    assert (again.evidence.written, again.evidence.removed) == (0, 0)
    assert_settled(client, index_name)
    dry = NearDupe(index_name, client).group(evidence=True, rebuild=True, dry_run=True)
    assert dry.evidence is None
    assert len(NearDupe(index_name, client).clean().deleted_indices) == 2


def test_other_features_need_whole_runs(client: Client, index_name: str) -> None:
    """Fingerprints do not show changes of other fields."""
    start(client, index_name, {str(n): {"text": text} for n, text in enumerate(family("whole", 3))}, features=["words"])
    again = NearDupe(index_name, client).group(features=["words"])
    assert (again.scope.whole, again.writes.written) == (True, 0)
    assert again.scope.reason == "the measure uses more than the words that keys are made from"


def test_a_former_principal_with_another_text_is_alone(client: Client, index_name: str, server_cli: Cli) -> None:
    """At once, although it has the keys of its old text until the next enrich; its group has another principal."""
    texts = dict(zip(("p", "m1", "m2"), family("former", 3), strict=True))
    texts["p"] += " and a few words more"
    alone = {f"alone{n}": " ".join(words(f"alone{n}", 30)) for n in range(5)}
    start(client, index_name, {id: {"text": text} for id, text in (texts | alone).items()})
    ((id, _),) = members(client, index_name).items()
    change(client, index_name, "p", {"text": " ".join(words("else", 40))})
    assert NearDupe(index_name, client).group(rebuild=True).scope.stale == 1
    stored = ours(client, index_name)
    assert [stored[one]["group"] == id for one in ("p", "m1", "m2")] == [False, True, True]
    assert [stored["p"]["principal"], stored["p"]["similarity"]] == [True, 1]
    assert members(client, index_name) == {id: {"m1", "m2"}}
    news = NearDupe(index_name, client)
    counts = [one.groups for one in (news.group(check=True), news.group(), news.group(rebuild=True))]
    assert {(one.count, one.grouped, one.alone) for one in counts} == {(1, 2, 6)}
    assert NearDupe(index_name, client).group(check=True).scope.affected == 0
    assert NearDupe(index_name, client).group().scope.written_since_enrich == 1
    shown = server_cli("group", index_name)
    assert "1 document was written since the last enrich: if its text has changed, run" in shown.err
    regroup(client, index_name)
    assert ours(client, index_name)["p"]["group"] != id
    assert_settled(client, index_name)


def test_a_limited_memory(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spilled columns are read again when groups are written; what does not fit ends the run before it writes."""
    monkeypatch.setattr(memory_limit, "_PROCESS", 0)
    monkeypatch.setattr(spill_to_disk, "HELD", 10)
    texts = {f"{k}-{place}": {"text": text} for k in range(10) for place, text in enumerate(family(k, 2))}
    texts |= {f"alone{k}": {"text": " ".join(words(f"alone{k}", 60))} for k in range(100)}
    with pytest.raises(SettingsError, match=r"too small for 120 documents: give"):
        start(client, index_name, texts, memory=120 * 140 - 1)
    news = NearDupe(index_name, client)
    with pytest.raises(SettingsError, match=r"120 documents, 10 candidate pairs and 10 groups"):
        news.group(memory=120 * 140 + 10 * 500)
    assert not groups_of(client, index_name)
    first = news.group(memory=120 * (140 + 80))
    assert (first.groups.count, first.writes.written) == (10, 10)
    again = news.group(rebuild=True, evidence=True)
    assert (again.groups.count, again.writes.written) == (10, 0)

    with pytest.raises(SettingsError, match=r"10 stored pairs and 10 groups: give"):
        news.group(rebuild=True, evidence=True, memory=10 * 500 + 10 * 100)
    put(client, index_name, {"new": texts["3-0"]})
    news.enrich()
    with pytest.raises(SettingsError, match=r"3 examined documents"):
        news.group(memory=3 * 4000 - 1)
    report = news.group(memory=3 * 4000 + 6000)
    assert (report.scope.whole, report.groups.count, report.groups.largest) == (False, 10, 3)
    assert news.group(rebuild=True).writes.written == 0


def test_a_changed_document_is_read_once(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys are in one query, which finds other documents."""
    texts = {f"n{n:02}": {"text": " ".join(words(f"once{n}", 30))} for n in range(40)}
    start(client, index_name, texts | {"near": {"text": texts["n00"]["text"] + " more"}})
    for id in ("n00", "n01", "n02", "n03", "n04"):
        change(client, index_name, id, {"text": texts[id]["text"] + " changed"})
    monkeypatch.setattr(queries, "MAX_TERMS", 40)  # fewer than the keys of three documents
    read: list[str] = []

    class Listing(ForwardingClient):
        def pages(self, index: str, body: Any, **options: Any) -> Iterator[list[Hit]]:
            for page in self.plain.pages(index, body, **options):
                read.extend(hit.id for hit in page if hit.index == index_name and "neardupe" in hit.source)
                yield page

    NearDupe(index_name, client).enrich()
    report = NearDupe(index_name, Listing(client)).group()
    assert not report.scope.whole
    assert sorted(id for id in read if id != "near") == ["n00", "n01", "n02", "n03", "n04"]
    assert "near" in read
    assert_settled(client, index_name)


def test_nobody_is_alone_whose_match_went_to_another(client: Client, index_name: str) -> None:
    """The longest text, a, is .81 similar to b, and b is .97 similar to b2."""
    one, other = (words(name, size) for name, size in (("w", 120), ("x", 9)))
    texts = {"a": one, "b": [*one[:103], *other[:6]], "b2": [*one[:103], *other]}
    start(client, index_name, {id: {"text": " ".join(some)} for id, some in texts.items()})
    (group,) = groups_of(client, index_name)
    assert (group.members[0].id, group.principal, group.size) == ("b", group.members[0].address, 3)
    assert group.min_similarity >= 0.8


OVERLAPPING = ((40, 60), (10, 50), (60, 50), (0, 50), (30, 50), (20, 50), (0, 40))
"""First word and number of words of texts that are parts of one text: their groups, with a minimum of .5, are d1, d4
and d5; d3 and d6; d0 and d2. Without d0 and d2, they are d1, d3 and d6; d4 and d5."""


def test_a_deleted_group_of_a_cluster(client: Client, index_name: str) -> None:
    """What it has matched is in other groups, which only the registry shows."""
    text = words("overlapping", 120)
    make_index(client, index_name, FIELDS)
    parts = {f"d{n}": " ".join(text[at : at + size]) for n, (at, size) in enumerate(OVERLAPPING)}
    put(client, index_name, {id: {"text": part} for id, part in parts.items()})
    near = NearDupe(index_name, client)
    near.init(Settings(("text",), threshold=0.5))
    near.enrich()
    related = near.group().groups.related
    assert related.alone == 0
    assert related.pairs > 0
    assert {frozenset(some) for some in members(client, index_name).values()} == {
        frozenset({"d1", "d4", "d5"}), frozenset({"d3", "d6"}), frozenset({"d0", "d2"})
    }  # fmt: skip
    ids = {one.group for one in near.groups()}
    for id in ids:
        assert linked_groups(opened(Index(index_name, client)), id) == (tuple(sorted(ids - {id})), ())
    for id in ("d0", "d2"):
        client.request("DELETE", path(index_name, "_doc", id), params={"refresh": True})
    report = regroup(client, index_name)
    assert report.scope.affected == 5
    assert {frozenset(some) for some in members(client, index_name).values()} == {
        frozenset({"d1", "d3", "d6"}), frozenset({"d4", "d5"})
    }  # fmt: skip
    assert_settled(client, index_name)
    assert near.group().scope.affected == 0


def test_a_deleted_document_that_was_alone(client: Client, index_name: str) -> None:
    """It is in the registry because it matches others, so its cluster is processed again, and not only once."""
    text = words("alone", 100)
    parts = {"d1": text[:60], "d2": text[4:62], "d3": text[8:67]}
    texts = {id: {"text": " ".join(some)} for id, some in parts.items()}
    start(client, index_name, texts, linkage="complete", min=0.8)
    first = NearDupe(index_name, client).group(check=True)
    known = registry(client, index_name).clusters()
    (cluster,) = known.values()
    assert cluster is not None
    assert (len(cluster.groups), len(cluster.alone)) == (1, 1)
    assert first.scope.affected == 0
    alone = next(id for id, one in ours(client, index_name).items() if one["group"] in cluster.alone)
    client.request("DELETE", path(index_name, "_doc", alone), params={"refresh": True})
    assert regroup(client, index_name, linkage="complete", min=0.8).scope.affected == 2
    assert registry(client, index_name).clusters() == {}
    assert_settled(client, index_name)


def test_rules_of_an_index_that_is_created_again(client: Client, index_name: str) -> None:
    """They hold if it gets the same keys, as one that is loaded each night. With other keys, the defaults of these are
    used, also after a run that was broken off."""

    def again(settings: Settings) -> NearDupe:
        client.request("DELETE", path(index_name), params={"ignore_unavailable": True})
        make_index(client, index_name, FIELDS)
        put(client, index_name, {id: {"text": " ".join(words("a", 60))} for id in "ab"})
        news = NearDupe(index_name, client)
        news.init(settings)
        news.enrich()
        return news

    first = Settings(("text",), threshold=0.7)
    again(first).group(min=0.9, facts=["figures"])
    kept = again(first).group()
    assert (kept.rules.min, kept.rules.match.facts) == (0.9, tuple(kind.value for kind in FactKind if kind in FIGURES))
    reader = again(Settings.chosen(("text",), preset="reader"))
    begun = registry(client, index_name)
    assert begun.last_run() is None
    begun.note_begun("2026-01-01T00:00:00.000+00:00")
    made = reader.group()
    assert (made.rules.match.measure, made.rules.min, made.rules.match.facts) == (MeasureName.EDIT, 0.71, ())
    assert made.scope.reason == "the last run did not finish"
    assert NearDupe(index_name, client).group().rules == made.rules
