"""Large buckets and common shingles on real servers: mails with a long notice, a few of them near-copies."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from conftest import Cli, read_jsonl
from server_tools import JSON, living, make_index, one_line, ours, put, reconcile, shingles, true_pairs, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.groups import linked_pairs
from es_neardupe.keys.unit import Unit
from es_neardupe.server.client import Client, path
from es_neardupe.verification import boilerplate

NOTICE = "This e-mail and any attachments are confidential. " + " ".join(words("notice", 60))
SETTINGS = Settings(("text",), threshold=0.8)
CHARACTERS = replace(SETTINGS, unit=Unit.CHARACTER)
LEAST = 0.8


def mails() -> dict[str, str]:
    """120 different mails below one notice; 12 near-copies; texts without it; and the notice alone, twice."""
    texts = {f"mail{row:03}": f"{' '.join(words(row, 8 + row % 5))} {NOTICE}" for row in range(120)}
    for row in range(0, 120, 10):
        texts[f"mail{row:03}-copy"] = texts[f"mail{row:03}"].replace("e-mail", "e-mail message")
    texts |= {f"other{row}": " ".join(words(f"other{row}", 60)) for row in range(40)}
    return texts | {"notice": NOTICE, "notice-again": NOTICE.upper()}


def similar_pairs(texts: dict[str, str], common: set[tuple[str, ...]]) -> set[tuple[str, str]]:
    """Pairs with this minimum similarity without common shingles, computed by independent code."""
    left = {id: shingles(text) - common or shingles(text) for id, text in texts.items()}
    return {
        (a, b)
        for (a, one), (b, other) in combinations(sorted(left.items()), 2)
        if len(one & other) >= LEAST * len(one | other)
    }


def common_shingles(texts: dict[str, str], share: float) -> set[tuple[str, ...]]:
    every = [shingles(text) for text in texts.values()]
    return {one for one in set().union(*every) if sum(one in its for its in every) > share * len(every)}


def stored_lists(client: Client, name: str) -> list[JSON]:
    client.request("POST", path(f"{name}-neardupe-groups", "_refresh"))
    body = {"query": {"term": {"kind": "common"}}}
    hits = client.request("POST", path(f"{name}-neardupe-groups", "_search"), body=body)["hits"]["hits"]
    return [hit["_source"]["value"] for hit in hits]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ES_NEARDUPE_CACHE", str(tmp_path))


@pytest.fixture
def mailbox(client: Client, index_name: str) -> dict[str, str]:
    texts = mails()
    make_index(client, index_name)
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).enrich()
    return texts


def test_common_shingles(client: Client, index_name: str, mailbox: dict[str, str], server_cli: Cli) -> None:
    common = common_shingles(mailbox, 0.2)
    wanted, plain = similar_pairs(mailbox, common), similar_pairs(mailbox, set())
    assert 0 < len(wanted) < len(plain)

    tried = NearDupe(index_name, client).group(ignore_common=0.2, max_bucket=500, dry_run=True)
    assert tried.common is not None
    assert tried.common.effect is not None
    assert (tried.common.shingles, tried.common.documents) == (len(common), len(mailbox))
    assert tried.common.texts == 2
    copies = {("notice", "notice-again")}
    assert (tried.common.effect.gained, tried.pairs.matches) == (0, len(wanted - copies))
    assert tried.common.effect.lost == tried.common.effect.without - tried.pairs.matches > 100
    begins = "This e-mail and any attachments are confidential"
    assert tried.common.effect.examples[0].startswith((begins, begins.upper()))  # one of the texts has it in capitals

    first = NearDupe(index_name, client).group(ignore_common=0.2, max_bucket=500)
    (stored,) = stored_lists(client, index_name)
    assert (stored["share"], stored["documents"], len(stored["hashes"])) == (0.2, len(mailbox), len(common))
    assert first.common is not None
    assert first.common.version == stored["version"] == tried.common.version
    groups = {id: fields["group"] for id, fields in ours(client, index_name).items()}
    together = {(a, b) for a, b in combinations(sorted(groups), 2) if groups[a] == groups[b]}
    assert together == wanted

    # Later runs use the same list, also for new documents; another share needs a new one.
    put(client, index_name, {f"new{row}": {"text": " ".join(words(f"new{row}", 60))} for row in range(5)})
    NearDupe(index_name, client).enrich()
    again = NearDupe(index_name, client).group(ignore_common=0.2, max_bucket=500)
    assert (again.scope.whole, again.scope.affected, again.writes.written) == (False, 5, 0)
    with pytest.raises(SettingsError, match=r"is for `ignore_common` 0\.2\. Use this value, or add `renew`"):
        NearDupe(index_name, client).pairs(ignore_common=0.3)
    listed = server_cli("pairs", index_name, "--ignore-common", "0.3", "--renew", "--json", "--max-bucket", "500")
    assert {(one["a"]["id"], one["b"]["id"]) for one in listed.lines} == wanted
    assert "shingles were ignored: more than 0.3 of 179 random documents contain them" in listed.err
    assert stored_lists(client, index_name) == [stored]  # pairs writes nothing
    renewed = NearDupe(index_name, client).group(ignore_common=0.3, renew=True, max_bucket=500)
    assert renewed.scope.whole is (renewed.common is not None and renewed.common.version != stored["version"])
    assert stored_lists(client, index_name)[0]["share"] == 0.3
    refused = server_cli("group", index_name, "--default-rules", "--ignore-common", "0.2", "--measure", "edit")
    assert (refused.code, one_line(refused.err)) == (
        2,
        "error: --ignore-common is for resemblance and weighted of shingles, not for edit.",
    )


def test_large_buckets_say_what_their_texts_share(
    client: Client, index_name: str, mailbox: dict[str, str], server_cli: Cli
) -> None:
    report = NearDupe(index_name, client).group(max_bucket=30, dry_run=True)
    top = report.pairs.large_buckets[0]
    assert top.size > 30
    assert top.documents >= top.size
    assert len(top.passage) > 100
    assert top.passage.removesuffix("...") in NOTICE
    assert top.compared + top.skipped == top.size * (top.size - 1) // 2
    corpus = {fields["content"]: fields["bands"] for fields in ours(client, index_name).values()}
    shared = Counter(key for keys in corpus.values() for key in keys)
    large = [{key for key in keys if shared[key] > 30} for keys in corpus.values()]
    every = sum(not one.isdisjoint(other) for one, other in combinations(large, 2))
    assert 0 < report.pairs.skipped < sum(one.skipped for one in report.pairs.large_buckets)
    assert every - report.pairs.candidates <= report.pairs.skipped <= every - 12
    shown = server_cli("pairs", index_name, "--max-bucket", "30")
    assert f"documents share: '{top.passage}'" in shown.err

    # The near-copies are still found among all the others.
    found = {(pair.a[1], pair.b[1]) for pair in NearDupe(index_name, client).pairs(max_bucket=30)}
    planted = {(f"mail{row:03}", f"mail{row:03}-copy") for row in range(0, 120, 10)}
    assert len(planted & found) >= 11


def filled(client: Client, name: str, texts: dict[str, str], settings: Settings = SETTINGS) -> NearDupe:
    make_index(client, name)
    put(client, name, {id: {"text": text} for id, text in texts.items()})
    news = NearDupe(name, client)
    news.init(settings)
    news.enrich()
    return news


def test_boilerplate_holds_unrelated_texts_together(client: Client, index_name: str, server_cli: Cli) -> None:
    """Short texts with a long footer, 12 of them with a near-copy: the footer joins them all. `group`, `pairs` and
    `audit` say so, and with the option that they name only the 12 pairs match. The audit counts such pairs apart."""
    footer = " ".join(words("footer", 90))
    texts = {f"t{row:03}": f"{' '.join(words(row, 8))} {footer}" for row in range(60)}
    texts |= {f"t{row:03}-copy": f"Re: {texts[f't{row:03}']}" for row in range(12)}
    wanted = {(f"t{row:03}", f"t{row:03}-copy") for row in range(12)}
    news = filled(client, index_name, texts)

    plain = news.group()
    found = plain.boilerplate
    assert (found.examined, found.clusters, found.documents) == (1, 1, plain.groups.largest) == (1, 1, 72)
    assert plain.groups.looked_at.only_boilerplate == 1
    (passage,) = found.passages
    assert passage.passage.removesuffix("...") in footer
    named = f"run `es-neardupe group {index_name} --ignore-common auto`."
    assert all(named in server_cli(*line).err for line in (("group", index_name, "--rebuild"), ("pairs", index_name)))

    audited = news.audit()
    assert audited.only_boilerplate is not None
    assert audited.only_boilerplate.pairs + audited.recall.pairs == len(true_pairs(texts, LEAST))
    assert (audited.recall.pairs, audited.recall.recall, audited.precision) == (len(wanted), 1.0, 1.0)
    assert audited.precision_without_boilerplate == len(wanted) / audited.claims
    assert named in server_cli("audit", index_name).err
    assert audited.recall.pairs == sum(one.recall.pairs for one in audited.lengths)
    assert sum(one.pairs for one in audited.lost) == 0

    mended = server_cli("group", index_name, "--ignore-common", "auto")
    assert not mended.code, mended.err
    assert "boilerplate of a sample of 72 texts" in mended.err
    assert f"ignored: '{passage.passage}'" in mended.err
    assert grouped(client, index_name) == wanted
    (stored,) = stored_lists(client, index_name)
    assert (stored["share"], stored["documents"], stored["passages"]) == ("auto", 72, [passage.passage])
    again = news.group(rebuild=True, dry_run=True)
    assert (again.rules.match.ignore_common, again.boilerplate.clusters, again.writes.written) == ("auto", 0, 0)
    assert {(one.a.id, one.b.id) for one in news.pairs(ignore_common="auto")} == wanted

    audited_again = server_cli("audit", index_name).err
    assert named not in audited_again
    assert "held together only by boilerplate: the last run of `group` left it out." in audited_again

    # A new mail below the footer is compared by its own words.
    put(client, index_name, {"new": {"text": f"{' '.join(words('new', 8))} {footer}"}})
    news.enrich()
    assert (news.group().scope.whole, grouped(client, index_name)) == (False, wanted)
    with pytest.raises(SettingsError, match="is for `ignore_common` auto"):
        news.group(ignore_common=0.5)


def test_boilerplate_is_learned_from_a_sample(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all candidates are compared to find the passages, and not more is in memory than the run may use."""
    footer = " ".join(words("footer", 90))
    texts = {f"t{row:03}": f"{' '.join(words(row, 8))} {footer}" for row in range(60)}
    texts |= {f"t{row:03}-copy": f"Re: {texts[f't{row:03}']}" for row in range(12)}
    news = filled(client, index_name, texts)
    monkeypatch.setattr(boilerplate, "_SAMPLE", 30)
    stages = set[str]()
    with pytest.raises(SettingsError, match="too small for 72 documents"):
        news.group(ignore_common="auto", memory=1, progress=lambda stage, *_: stages.add(stage))
    assert "verifying pairs" not in stages
    found = news.group(ignore_common="auto", dry_run=True)
    assert found.common is not None
    assert found.common.documents <= 30
    news.group(ignore_common="auto", memory=2**30)
    assert grouped(client, index_name) == {(f"t{row:03}", f"t{row:03}-copy") for row in range(12)}


def test_boilerplate_below_other_boilerplate(client: Client, index_name: str) -> None:
    """A disclaimer makes one cluster of all texts; without it, the signature of each user makes one."""
    notice = " ".join(words("notice", 60))
    texts = {
        f"{user}-{row}": f"{' '.join(words((user, row), 8))} {' '.join(words(str(user), 40))} {notice}"
        for user in range(12)
        for row in range(5)
    }
    news = filled(client, index_name, texts, replace(SETTINGS, threshold=0.3))
    assert news.group().boilerplate.clusters == 1
    report = news.group(ignore_common="auto")
    assert report.common is not None
    assert len(report.common.passages) > 1
    assert (report.boilerplate.clusters, report.groups.count) == (0, 0)


def test_boilerplate_of_a_small_family_of_other_measures(client: Client, index_name: str, server_cli: Cli) -> None:
    """Five texts are enough, without a large bucket, by any measure; four are not."""
    header = " ".join(words("licence", 100))
    texts = {f"{family}{row}": f"{header} {' '.join(words((family, row), 9))}" for family in "a" for row in range(5)}
    other = " ".join(words("other", 100))
    texts |= {f"b{row}": f"{other} {' '.join(words(('b', row), 9))}" for row in range(4)}
    news = filled(client, index_name, texts)
    report = news.group(measure="jaccard", dry_run=True)
    found = report.boilerplate
    assert (found.examined, found.clusters, found.documents) == (1, 1, 5)
    assert (report.groups.count, report.groups.looked_at.only_boilerplate) == (2, 1)
    said = server_cli("group", index_name, "--measure", "edit", "--dry-run").err
    assert f"group {index_name} --default-rules --measure resemblance --ignore-common auto`" in said
    assert news.group(ignore_common="auto", dry_run=True).groups.grouped == 4


def grouped(client: Client, name: str) -> set[tuple[str, str]]:
    """The pairs of documents in one group."""
    groups = {id: fields["group"] for id, fields in ours(client, name).items()}
    return {(a, b) for a, b in combinations(sorted(groups), 2) if groups[a] == groups[b]}


def test_boilerplate_of_texts_with_shingles_of_characters(client: Client, index_name: str) -> None:
    footer = " ".join(words("footer", 90))
    texts = {f"t{row:03}": f"{' '.join(words(row, 8))} {footer}" for row in range(40)}
    texts |= {f"t{row:03}-copy": f"Re: {texts[f't{row:03}']}" for row in range(6)}
    news = filled(client, index_name, texts, CHARACTERS)
    assert news.group(dry_run=True).boilerplate.clusters == 1
    news.group(ignore_common="auto")
    assert grouped(client, index_name) == {(f"t{row:03}", f"t{row:03}-copy") for row in range(6)}


@pytest.mark.parametrize("settings", [SETTINGS, CHARACTERS], ids=["words", "characters"])
def test_near_copies_have_no_boilerplate(client: Client, index_name: str, settings: Settings) -> None:
    """Form letters are one group because they are nearly equal: there is nothing to warn of."""
    letter = words("letter", 100)
    texts = {str(row): " ".join([*letter[: row % 90], f"name{row}", *letter[row % 90 + 1 :]]) for row in range(150)}
    news = filled(client, index_name, texts, settings)
    report = news.group(max_bucket=20)
    assert report.pairs.large_buckets
    assert (report.groups.grouped, report.boilerplate.examined, report.boilerplate.clusters) == (150, 1, 0)
    audited = news.audit(max_bucket=20, sample=50)
    assert (audited.only_boilerplate, audited.precision_without_boilerplate) == (None, None)


def test_complete_linkage_of_form_letters(
    client: Client, index_name: str, server_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every two letters are similar, but most pairs are no candidates: linkage complete compares those that decide, and
    makes one group. If they are too many, all of them are counted."""
    letter = words("letter", 100)
    texts = {f"{row:03}": " ".join([*letter[: row % 90], f"name{row}", *letter[row % 90 + 1 :]]) for row in range(100)}
    assert len(true_pairs(texts, LEAST)) == (every := 100 * 99 // 2)
    news = filled(client, index_name, texts)
    report = news.group(linkage="complete", max_bucket=5)
    reconcile("group", report)
    assert (report.groups.count, report.groups.grouped, report.pairs.open) == (1, 100, 0)
    assert report.pairs.candidates < every / 2
    assert report.pairs.compared_to_link == every - report.pairs.candidates
    assert {fields["group"] for fields in ours(client, index_name).values()} == {news.groups()[0].group}
    (stored,) = living(client, index_name)
    assert (stored.size, stored.pairs_below, stored.pairs_not_compared) == (100, 0, 0)

    # An added letter is compared with all others, too.
    put(client, index_name, {"new": {"text": texts["000"].replace("name0", "other")}})
    news.enrich()
    more = news.group()
    reconcile("group", more)
    assert (more.scope.whole, more.groups.count, more.groups.grouped) == (False, 1, 101)
    assert news.group(rebuild=True, evidence=True).writes.written == 0

    monkeypatch.setattr(linked_pairs, "PAIRS_AT_ONCE", 1)
    split = news.group(rebuild=True, dry_run=True)
    reconcile("group", split)
    assert split.groups.count > 1
    assert split.pairs.open == 101 * 100 // 2 - split.pairs.candidates
    said = server_cli("group", index_name, "--rebuild", "--dry-run")
    assert f"{split.pairs.open:,} pairs of linked texts were not compared" in said.err
    (tried,) = news.what_if(min=[0.8]).thresholds
    assert tried.groups == split.groups.count


def test_too_few_documents(client: Client, index_name: str) -> None:
    """With enough documents, the next call draws another sample."""
    make_index(client, index_name)
    put(client, index_name, {str(row): {"text": " ".join(words(row, 30))} for row in range(20)})
    NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).enrich()
    with pytest.raises(IndexUnusable, match="20 documents with keys are too few"):
        NearDupe(index_name, client).group(ignore_common=0.2)
    put(client, index_name, {str(row): {"text": " ".join(words(row, 30))} for row in range(20, 100)})
    NearDupe(index_name, client).enrich()
    found = NearDupe(index_name, client).group(ignore_common=0.2, dry_run=True)
    assert found.common is not None
    assert (found.common.documents, found.common.shingles) == (100, 0)
    for share in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(SettingsError, match="between 0 and 1"):
            NearDupe(index_name, client).group(ignore_common=share)


@pytest.mark.parametrize("shingle", [5, 3], ids=["strict", "reader"])
def test_mails_with_one_disclaimer(client: Client, index_name: str, shingle: int) -> None:
    """740 mails, most of them with one disclaimer: groups mix threads, but not without it."""
    threads = {one["id"]: one["thread"] for one in read_jsonl("cases/mails.jsonl.xz")}
    texts = {one["id"]: one["text"] for one in read_jsonl("cases/mails.jsonl.xz")}
    news = filled(client, index_name, texts, replace(SETTINGS, shingle=shingle))

    def mixed() -> int:
        groups: dict[str, set[str]] = {}
        for id, fields in ours(client, index_name).items():
            groups.setdefault(fields["group"], set()).add(threads[id])
        return sum(len(some) > 1 for some in groups.values())

    report = news.group()
    assert mixed() > 40 < report.groups.looked_at.only_boilerplate
    news.group(ignore_common="auto")
    assert mixed() == 0
