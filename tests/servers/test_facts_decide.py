"""``--facts``: texts of the same form with other facts do not match."""

from __future__ import annotations

import csv
import json
import random
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, read_jsonl
from forms import MONTHS, copies, invoice, table
from hints import complaints, followed
from server_tools import TEXT, assert_settled, change, groups_of, make_index, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.display_text import beginning
from es_neardupe.groups.related import linked_groups
from es_neardupe.incoming.matches import ScreenReport
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import shown_fields
from es_neardupe.reports import GroupFacts
from es_neardupe.server.client import Client, path
from es_neardupe.verification import facts
from es_neardupe.views.group_pages import titles_of_groups

FORM = " ".join(words("form", 40))


def letter(amount: int, more: str = "") -> str:
    """A form letter, of which only the amount decides what it is about; and words that do not."""
    return f"{FORM} We have received your payment of ${amount:,} for the repair of the roof. {FORM[::-1]} {more}"


def start(client: Client, name: str, texts: dict[str, str], **settings: Any) -> NearDupe:
    make_index(client, name, TEXT)
    put(client, name, {id: {"text": text} for id, text in texts.items()})
    news = NearDupe(name, client)
    news.init(Settings(("text",), **settings))
    news.enrich()
    return news


LETTERS = {f"{amount}-{copy}": letter(amount, "again " * copy) for amount in (100, 2500, 9000) for copy in range(3)}
LETTERS |= {"copy": f"{letter(2500)}!"}


def amount_of(id: str) -> str:
    return "2500" if id == "copy" else id.split("-", maxsplit=1)[0]


def vague(end: str) -> str:
    return f"{FORM} The lamp is made of brass, and is sent to you as soon as we have your order. {FORM[::-1]} {end}"


def test_a_text_without_the_fact_joins_no_others(client: Client, index_name: str) -> None:
    """A star has no pair of members that match but for their facts, whichever is its principal; in one run, and after
    changes. What is listed as redundant has no other facts than what is kept."""
    texts = {"a": "It costs 120 euros.", "b": "It costs 180 euros.", "c": "Write to us.", "d": "It costs 180 euros!"}
    news = start(client, index_name, {id: vague(end) for id, end in texts.items()})
    report = news.group(facts=["facts"])
    assert report.pairs.other_facts == 1  # exact copies are one text
    members = [sorted(one.id for one in group.members) for group in groups_of(client, index_name)]
    assert sorted(members) in ([["a", "c"], ["b", "d"]], [["b", "c", "d"]])
    for one in news.suggest_keep():
        kept = {one.keep.id, *(other.id for other in one.redundant)}
        assert not ("a" in kept and kept & {"b", "d"})
    change(client, index_name, "c", {"text": vague("It costs 120 euros today.")})
    news.enrich()
    news.group()
    assert_settled(client, index_name)
    assert {frozenset(one.id for one in group.members) for group in groups_of(client, index_name)} == {
        frozenset("ac"),
        frozenset("bd"),
    }


def test_group_names_the_option_for_form_letters(client: Client, index_name: str, server_cli: Cli) -> None:
    start(client, index_name, LETTERS | {"more": letter(7700), "most": letter(9100)})
    done = server_cli("group", index_name)
    assert "differ in 1 of 1 group, such as 'amount: " in done.err
    (one,) = complaints(done)
    done = followed(one, server_cli)
    assert (done.code, complaints(done)) == (0, []), done.err
    amounts = [{amount_of(one.address.id) for one in group.members} for group in groups_of(client, index_name)]
    assert sorted(amounts, key=min) == [{"100"}, {"2500"}, {"9000"}]


def test_report_counts_groups_in_which_facts_differ(
    client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a sample that is limited in texts of a group, and in words."""
    others = {"a": "It was not found. " + " ".join(words("other", 40))}
    others["b"] = others["a"].replace("not ", "")
    news = start(client, index_name, LETTERS | others)

    def counted() -> GroupFacts | None:
        return news.group(dry_run=True).groups.looked_at.facts

    all_of_it = GroupFacts(
        groups=2,
        examined=2,
        pairs=9,
        pairs_left_out=0,
        overlapping=0,
        differ=2,
        figures=1,
        names=0,
        negations=1,
        copies=1,
        copies_differ=0,
        example="amount: $2,500 / $9,000",
    )
    assert counted() == all_of_it
    monkeypatch.setattr(facts, "_MEMBERS", 2)
    assert counted() == replace(all_of_it, pairs=3, pairs_left_out=6)
    monkeypatch.setattr(facts, "_WORDS", 100)
    assert counted() == replace(
        all_of_it, examined=1, pairs=1, differ=1, figures=0, copies=0, example="negation: not / -"
    )


def test_report_counts_copies_that_differ_in_signs(index_name: str, client: Client, server_cli: Cli) -> None:
    text = " ".join(words("other", 40))
    start(client, index_name, {"a": f"{text} $5", "b": f"{text} €5", "c": f"{text} $6", "d": f"{text}, $6"})
    done = server_cli("group", index_name, "--json")
    facts = json.loads(done.out)["groups"]["looked_at"]["facts"]
    assert (facts["copies"], facts["copies_differ"]) == (2, 1)


@pytest.mark.either("linkage")
@pytest.mark.parametrize("linkage", ["star", "complete", "chain"])
def test_letters_about_other_amounts_are_apart(client: Client, index_name: str, linkage: str, server_cli: Cli) -> None:
    """With each linkage; a later run without options does the same, also after changes, as a rebuild does."""
    news = start(client, index_name, LETTERS)
    assert news.group(linkage=linkage).groups.count == 1
    report = news.group(facts=["figures"], linkage=linkage, evidence=True)
    groups = [{member.id for member in group.members} for group in groups_of(client, index_name)]
    assert sorted(map(len, groups)) == [3, 3, 4]
    assert all(len(set(map(amount_of, some))) == 1 for some in groups)
    assert report.pairs.other_facts == sum(
        amount_of(a) != amount_of(b) for a, b in combinations(sorted(set(LETTERS) - {"copy"}), 2)
    )
    assert report.groups.looked_at.facts is None
    assert "facts amount and number and date and unit and code" in str(report.rules)
    assert report.evidence is not None
    assert (report.evidence.accepted, report.evidence.rejected) == (7, report.pairs.other_facts)
    body = {"size": 100, "query": {"exists": {"field": "facts.kinds"}}}
    entries = client.request("POST", path(report.evidence.index, "_search"), body=body)["hits"]["hits"]
    assert len(entries) == report.pairs.other_facts
    for entry in (one["_source"] for one in entries):
        (fact,) = entry["facts"]
        amounts = [f"${int(amount_of(entry[side]['id'])):,}" for side in "ab"]
        assert (entry["decision"], fact) == ("rejected", {"kinds": ["amount"], "a": amounts[0], "b": amounts[1]})
    (threshold,) = news.what_if(min=[0.8]).thresholds
    assert (threshold.joined, threshold.left, threshold.moved) == (0, 0, 0)
    again = news.group(evidence=True, rebuild=True).evidence
    assert again is not None
    assert (again.written, again.decided_again, again.unchanged) == (0, 0, again.pairs)
    dice, left = random.Random(linkage), sorted(LETTERS)
    for _ in range(2):
        dice.shuffle(left)
        client.request("DELETE", path(index_name, "_doc", left.pop()), params={"refresh": "true"})
        for id in left[:2]:
            change(client, index_name, id, {"text": letter(dice.choice((100, 777)), "more")})
        news.enrich()
        assert news.group().rules.match.facts == report.rules.match.facts
        assert_settled(client, index_name)
    assert server_cli("group", index_name, "--facts", "prices", "--dry-run").code == 2


def test_pairs_and_hits_with_other_facts(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """They are no matches, but counted and shown as related, with the facts."""
    news = start(client, index_name, LETTERS)
    every, agreeing = news.pairs(), news.pairs(facts=["amounts"])
    assert {(one.a.id, one.b.id) for one in agreeing} == {
        (one.a.id, one.b.id) for one in every if amount_of(one.a.id) == amount_of(one.b.id)
    }
    assert agreeing.other_facts == 27
    assert agreeing.related is None
    related = news.pairs(facts=["amounts"], related=True).related
    assert related is not None
    apart = [one for one in every if amount_of(one.a.id) != amount_of(one.b.id)]
    assert {(one.a, one.b, one.similarity) for one in related} == {(one.a, one.b, one.similarity) for one in apart}
    for one in related.with_fields():
        (fact,) = one.facts
        assert (fact.words_a, fact.words_b) == tuple(f"${int(amount_of(side.id)):,}" for side in (one.a, one.b))
    line = ("pairs", index_name, "--facts", "amounts", "--related")
    assert "Same form, different facts" in server_cli(*line).out
    listed = list(map(json.loads, server_cli(*line, "--top", "2", "--json").out.splitlines()))
    assert ["facts" in one for one in listed] == [False, False, True, True]
    server_cli(*line, "--output", str(tmp_path / "pairs.csv"))
    rows = list(csv.DictReader((tmp_path / "pairs.csv").read_text("utf-8-sig").splitlines()))
    assert sum(bool(one["facts"]) for one in rows) == len(apart)
    assert len(rows) == len(every)
    assert "--related is for --facts: give it too." in server_cli("pairs", index_name, "--related").err
    found = news.similar(id="100-0", facts=["amounts"])
    assert {hit.id for hit in found.hits} == {"100-1", "100-2"}
    assert found.other_facts == 7
    assert sorted(amount_of(hit.id) for hit in found.related) == ["2500"] * 3 + ["9000"] * 3
    assert sum(hit.copies for hit in found.related) == 1
    assert {(fact.words_a, fact.words_b) for hit in found.related for fact in hit.facts} == {
        ("$100", "$2,500"),
        ("$100", "$9,000"),
    }
    assert "$100 / $2,500" in server_cli("similar", index_name, "--id", "100-0", "--facts", "amounts").out
    assert {amount_of(hit.id) for hit in news.similar(text=letter(9000), facts=["facts"]).hits} == {"9000"}
    report = ScreenReport()
    actions = [{"_id": f"new{amount}", "text": letter(amount, "new")} for amount in (100, 101)]
    written = list(news.screened(actions, facts=["figures"], on_match="skip", report=report))
    assert [one["_id"] for one in written] == ["new101"]
    others = [one.id for one in report.matches[0].match.others]
    assert {report.matches[0].match.id, *others} == {
        "100-0",
        "100-1",
        "100-2",
    }


def test_exact_copies_with_other_signs(client: Client, index_name: str) -> None:
    """They have one content hash, but are apart if facts decide: as a whole, incrementally, in lists and searches."""
    texts = {f"{sign}{copy}": f"{FORM} It is {sign}5 {'!' * copy}" for sign in "$€-" for copy in range(3)}
    news = start(client, index_name, texts)
    assert news.group().groups.count == 1
    report = news.group(facts=["figures"], evidence=True)
    assert (report.groups.count, report.pairs.other_facts) == (3, 3)
    put(client, index_name, {"€new": {"text": texts["€0"]}, "£new": {"text": texts["€0"].replace("€", "£")}})
    news.enrich()
    news.group()
    assert_settled(client, index_name)
    signs = [{member.id[0] for member in group.members} for group in groups_of(client, index_name)]
    assert sorted(map("".join, signs)) == ["$", "-", "€"]
    assert all(one.a.id[0] == one.b.id[0] for one in news.pairs(facts=["figures"]))
    found = news.similar(id="€1", facts=["figures"])
    assert [(hit.id[0], hit.copies) for hit in found.hits] == [("€", 2)]
    assert {hit.id[0] for hit in found.related} == {"$", "-", "£"}
    screened = ScreenReport()
    actions = [{"_id": f"{sign}screened", "text": f"{FORM} It is {sign}5."} for sign in "€₹"]
    assert len(list(news.screened(actions, facts=["figures"], on_match="skip", report=screened))) == 1
    (match,) = (one.match for one in screened.matches)
    assert {match.id[0], *(one.id[0] for one in match.others)} == {"€"}


@pytest.mark.either("sidecar")
@pytest.mark.parametrize("sidecar", [False, True])
def test_groups_with_other_facts_are_related(client: Client, index_name: str, sidecar: bool, server_cli: Cli) -> None:
    """As far as evidence knows them: in the list of related groups, on the page of a group, and in searches."""
    make_index(client, index_name, TEXT)
    texts = LETTERS | {"other": "Another letter: " + " ".join(words("other", 40)), "alone": letter(777)}
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)), sidecar=sidecar)
    news.enrich()
    news.group(facts=["figures"])
    groups = {one.group: {amount_of(member.id) for member in one.members} for one in news.groups()}
    mine = next(id for id, amounts in groups.items() if amounts == {"100"})
    assert [one.group for one in news.groups(group=mine, related=True)] == [mine]
    news.group(evidence=True, rebuild=True)
    found = news.groups(group=mine, related=True)
    assert [(one.size, one.other_facts) for one in found] == [(3, False), (4, True), (3, True), (1, True)]
    assert {member.id for one in found for member in one.members} == set(texts) - {"other"}
    assert news.groups(group="unknown", related=True) == []
    current = opened(Index(index_name, client))
    others = tuple(sorted(set(groups) - {mine}))
    assert linked_groups(current, mine) == ((), others)
    titles = titles_of_groups(current, shown_fields(current, ()), [*others, "unknown"])
    assert {id: one["text"] for id, one in titles.items()} == dict.fromkeys(others, beginning(FORM))
    shown = server_cli("groups", index_name, "--group", mine, "--related")
    assert "other facts" in shown.out
    (*_, last) = server_cli("groups", index_name, "--group", mine, "--related", "--json").lines
    assert last["other_facts"] is True

    plain = news.search("received letter")
    assert sorted(one.near_copies for one in plain.hits) == [0, 0, 2, 2, 3]
    assert not any(one.related for one in plain.hits)
    first, second = sorted(news.search("received letter", related=True).hits, key=lambda one: -len(one.related))
    assert (len(first.related), second.id, second.related) == (3, "other", ())
    # In any order: the letters have the same words, and so the same scores.
    assert {one.id for one in (first, *first.related)} == {one.id for one in plain.hits if one.id != "other"}
    assert server_cli("search", index_name, "received letter", "--related").out.count("related") == 3


def test_pairs_that_lists_would_separate(client: Client, index_name: str, server_cli: Cli) -> None:
    """`distribution` shows some of the candidate pairs that each list of facts would separate."""
    others = {"a": "It was not found. " + " ".join(words("other", 40))}
    others["b"] = others["a"].replace("not ", "")
    news = start(client, index_name, {id: text for id, text in LETTERS.items() if id != "copy"} | others)
    found = news.distribution().facts
    assert (found.pairs, found.examined, found.same, found.different) == (37, 37, None, None)
    values = {one.value: one for one in found.values}
    counts = {"amounts": 27, "negations": 1, "figures": 27, "facts": 28, "all": 28}
    assert {name: one.pairs for name, one in values.items() if one.pairs} == counts
    figures = values["figures"].examples
    assert len({(one.a, one.b) for one in figures}) == len(figures) == 10
    for one in figures:
        (fact,) = one.facts
        shown = {one.a.id: fact.words_a, one.b.id: fact.words_b}
        assert shown == {id: f"${int(amount_of(id)):,}" for id in shown}
    (example,) = values["facts"].examples
    assert {example.a.id, example.b.id} == {"a", "b"}
    assert [len(one.examples) for one in found.values if one.examples] == [10, 1]
    shown_lines = server_cli("distribution", index_name).out
    assert "compared in 37 of the 37 pairs of 0.8 or more" in shown_lines
    assert "$9,000" in shown_lines
    nothing = news.distribution(threshold=1.0, thresholds=[1.0]).facts
    assert (nothing.pairs, nothing.examined) == (0, 0)


def test_labels_say_which_facts_decide(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """Both errors of each value; and the command that groups by the best one."""
    letters = {id: letter(int(amount_of(id)), " ".join(words(id[-1], 8))) for id in LETTERS}
    news = start(client, index_name, letters, threshold=0.6)
    pairs = [(a, b, amount_of(a) == amount_of(b)) for a, b in combinations(sorted(letters), 2)]
    file = tmp_path / "labels.csv"
    file.write_text("a,b,label\n" + "".join(f"{a},{b},{int(same)}\n" for a, b, same in pairs))
    report = news.distribution(labels=str(file))
    same = sum(one[2] for one in pairs)
    assert (report.facts.same, report.facts.different) == (same, len(pairs) - same)
    values = {one.value: (one.same, one.different) for one in report.facts.values if one.pairs}
    assert values == dict.fromkeys(("amounts", "figures", "facts", "all"), (0, len(pairs) - same))
    assert {one.facts for one in report.trials} == {None, "figures"}
    assert max(one.validated.f for one in report.trials if one.facts) == 1
    shown = server_cli("distribution", index_name, "--labels", str(file))
    assert "different: separated" in shown.out
    *_, group = re.findall(r"`es-neardupe (.*?)`", report.preset.reasons)
    assert "--facts figures" in group
    assert server_cli(*group.split()).code == 0
    groups = [{amount_of(one.id) for one in found.members} for found in news.groups()]
    assert sorted(map(len, groups)) == [1, 1, 1]


def test_distribution_without_pairs_with_other_facts(client: Client, index_name: str, server_cli: Cli) -> None:
    """As many pairs and groups as `group` would find with these facts."""
    news = start(client, index_name, LETTERS)
    report = news.distribution(facts=["amounts"], thresholds=[0.8, 0.9])
    (one,), (plain,) = report.distributions, news.distribution(thresholds=[0.8]).distributions
    matching = len(news.pairs(facts=["amounts"]))
    assert (one.levels[0].pairs, one.levels[0].groups, one.levels[0].largest) == (matching, 3, 4)
    assert (one.other_facts, one.candidates.pairs) == (plain.candidates.pairs - matching, matching)
    assert (plain.other_facts, plain.levels[0].groups) == (0, 1)
    shown = server_cli("distribution", index_name, "--facts", "figures")
    assert f"{matching} candidate pairs of the index, {one.other_facts} more with other facts" in shown.out
    assert server_cli("distribution", index_name, "--facts", "prices").code == 2


@pytest.mark.parametrize("number", [30, pytest.param(106, marks=pytest.mark.long)])
def test_invoices_and_tables(client: Client, index_name: str, number: int) -> None:
    """Documents of the same form with other numbers, each with four copies: with the facts that decide, each group is
    one document with all of its copies."""
    chance = random.Random(1)
    forms = [invoice(language, chance).text() for language in MONTHS for _ in range(number // 5)]
    forms += [table(chance) for _ in range(number - len(forms))]
    texts = {f"{k}-{n}": text for k, form in enumerate(forms) for n, text in enumerate((form, *copies(form)))}
    news = start(client, index_name, texts, threshold=0.7, shingle=3)
    news.group(measure="edit", min=0.71, facts=["numbers", "amounts", "dates"])
    groups = {frozenset(member.id for member in group.members) for group in groups_of(client, index_name)}
    assert groups == {frozenset(f"{k}-{n}" for n in range(5)) for k in range(number)}


def test_product_titles(client: Client, index_name: str, server_cli: Cli) -> None:
    """Titles that differ in size, colour or model, and other titles of the same product."""
    rows = {one["id"]: one for one in read_jsonl("cases/product_titles.jsonl.xz")}
    make_index(client, index_name, TEXT)
    put(client, index_name, {id: {"text": one["title"]} for id, one in rows.items()})
    news = NearDupe(index_name, client)
    assert server_cli("init", index_name, "--field", "text", "--preset", "short").code == 0
    news.enrich()
    found = news.pairs(facts=["figures", "names"])
    right = sum(rows[one.a.id]["sku"] == rows[one.b.id]["sku"] for one in found)
    assert (right >= 60, len(found) - right) == (True, 0), (right, len(found))
