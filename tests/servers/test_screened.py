"""`screened`: near-duplicates are found before they are written, and groups end as without it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import eq
from pathlib import Path
from typing import Any

import elasticsearch
import elasticsearch.helpers
import numpy as np
import opensearchpy
import opensearchpy.helpers
import pytest
from conftest import Cli
from server_tools import (
    JSON,
    TEXT,
    change,
    delete_all,
    family,
    hits,
    jaccard,
    make_index,
    ours,
    require_driver_for,
    words,
)

from es_neardupe import NearDupe, Settings, features, fingerprints
from es_neardupe.commands.load import skipped
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.incoming import piece as module
from es_neardupe.incoming import stored_buckets
from es_neardupe.incoming.matches import Match, MatchedAction, OtherMatch, ScreenReport
from es_neardupe.incoming.recent_documents import RecentDocuments
from es_neardupe.incoming.stored_buckets import StoredBuckets
from es_neardupe.records import Product, Reference
from es_neardupe.server.client import Client, path, to_json

SETTINGS = Settings(("text",))
NEVER = {"index": {"refresh_interval": -1}}
"""Settings of an index whose documents searches see only after a refresh that somebody asks for."""


def document(id: str, text: Any, index: str | None = None, **more: Any) -> JSON:
    return {"_id": id, "_source": {"text": text}, **({"_index": index} if index else {}), **more}


def named(action: MatchedAction) -> list[Match | OtherMatch]:
    """The document whose group an action joins, and the others that it matches."""
    return [action.match, *action.match.others]


def write(client: Client, index: str, actions: Iterable[Mapping[str, Any]], chunk: int = 100) -> list[str]:
    """Send actions as they come, in small bulk requests without a refresh; returns their ids."""
    ids: list[str] = []
    remaining = iter(actions)
    while some := list(islice(remaining, chunk)):
        lines = []
        for action in some:
            meta = {"_index": action.get("_index", index), "_id": action.get("_id"), "routing": action.get("routing")}
            op = action.get("_op_type", "index")
            lines.append(to_json({op: {name: value for name, value in meta.items() if value is not None}}))
            if op != "delete":
                lines.append(to_json({"doc": action["doc"]} if op == "update" else action["_source"]))
        answer = client.bulk(b"\n".join(lines) + b"\n", params={})
        assert not answer["errors"], answer
        ids += [item[op]["_id"] for item in answer["items"] for op in item]
    return ids


def begun(client: Client, index: str) -> NearDupe:
    make_index(client, index, {**TEXT, "n": {"type": "integer"}}, settings=NEVER)
    found = NearDupe(index, client)
    found.init(SETTINGS)
    return found


@pytest.fixture
def news(client: Client, index_name: str) -> NearDupe:
    return begun(client, index_name)


@pytest.fixture(scope="module")
def empty(client: Client, shared_index: str) -> NearDupe:
    """The index of all tests that write nothing."""
    return begun(client, shared_index)


def load_texts(client: Client, news: NearDupe, texts: Mapping[str, str]) -> None:
    """Index texts with their keys, and make searches see them."""
    write(client, news.name, news.fingerprinted(document(id, text) for id, text in texts.items()))
    client.request("POST", path(news.name, "_refresh"))


def groups(client: Client, name: str) -> dict[str, tuple[frozenset[str], str | None, float]]:
    """Document -> the members and the principal of its group, and its similarity."""
    stored = ours(client, name)
    members: dict[str, set[str]] = {}
    for id, one in stored.items():
        members.setdefault(one["group"], set()).add(id)
    principals = {one["group"]: id for id, one in stored.items() if one.get("principal")}
    return {
        id: (frozenset(members[one["group"]]), principals.get(one["group"]), round(one.get("similarity", -1), 5))
        for id, one in stored.items()
    }


def plainly_grouped(client: Client, texts: Mapping[str, str], name: str) -> dict[str, Any]:
    """The groups of the same documents, indexed with `fingerprinted`."""
    make_index(client, name)
    plain = NearDupe(name, client)
    plain.init(SETTINGS)
    load_texts(client, plain, texts)
    plain.group()
    return groups(client, name)


def check_sums(report: ScreenReport) -> None:
    counts = report.counts
    assert counts.actions == (
        counts.screened
        + counts.known
        + counts.repeated
        + counts.without_id
        + counts.without_keys
        + counts.other_indices
        + counts.other_actions
    )
    assert counts.screened == counts.unique + len(report.matches)
    assert len(report.matches) == counts.marked + counts.apart + counts.skipped + counts.passed
    assert counts.copies == sum(one.match.copy for one in report.matches)


def test_a_deleted_document_does_not_match_itself(client: Client, news: NearDupe) -> None:
    """Searches still see it when it is written again."""
    text = " ".join(words("a", 30))
    load_texts(client, news, {"a": text})
    client.request("DELETE", path(news.name, "_doc", "a"))
    report = ScreenReport()
    assert len(list(news.screened([document("a", text), document("b", text)], on_match="skip", report=report))) == 1
    assert [(one.id, one.match.id, one.match.others) for one in report.matches] == [("b", "a", ())]
    assert (report.counts.unique, report.counts.not_compared) == (1, 0)


def some_texts(stored: int, sent: int, seed: int = 1) -> tuple[dict[str, str], dict[str, str]]:
    """Texts of an index, and texts to send: 15 % are near-copies of stored ones, 15 % of earlier ones sent."""
    chance = random.Random(seed)
    before = {f"s{number}": " ".join(words(f"s{number}", 60)) for number in range(stored)}
    after: dict[str, str] = {}
    for number in range(sent):
        kind = chance.random()
        source = before if kind < 0.15 else after if kind < 0.3 and after else None
        changed = words(f"n{number}", 60) if source is None else chance.choice(list(source.values())).split()
        if source is not None:
            for place in chance.sample(range(60), chance.choice([0, 1, 1, 1, 2])):
                changed[place] = f"changed{number}x{place}"
        after[f"n{number}"] = " ".join(changed)
    return before, after


def true_pairs(before: Mapping[str, str], after: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Every pair of a sent text with a stored or an earlier one that share a key and are similar, by brute force."""
    texts = {**before, **after}
    keys = dict(
        zip(texts, (set(one.bands) for one in fingerprints(list(texts.values()), SETTINGS.scheme)), strict=True)
    )
    earlier, found = list(before), {}
    for id in after:
        for other in earlier:
            if keys[id] & keys[other] and (similarity := jaccard(texts[id], texts[other])) >= 0.8:
                found[id, other] = similarity
        earlier.append(id)
    return found


@pytest.mark.parametrize("page", [2000, 30], ids=["searched", "read"])
def test_every_pair_that_the_keys_promise_is_found(
    news: NearDupe, client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """None of them is visible to searches, and no other is reported. The groups are then those of a run without."""
    monkeypatch.setattr(module, "_PAGE", page)
    before, after = some_texts(100, 300)
    load_texts(client, news, before)
    report = ScreenReport()
    write(client, index_name, news.screened((document(*one) for one in after.items()), report=report))
    check_sums(report)
    expected, texts = true_pairs(before, after), {**before, **after}
    found: dict[tuple[str, str], float] = {}
    for one in report.matches:
        for other in named(one):
            for id, text in texts.items():  # of equal texts, one is named
                if text == texts[other.id] and (one.id, id) in expected:
                    found[one.id, id] = other.similarity
        assert one.match.similarity == max(value for pair, value in expected.items() if pair[0] == one.id)
    assert found.keys() == expected.keys()
    assert all(abs(found[pair] - expected[pair]) < 1e-9 for pair in expected)
    assert len({pair[0] for pair in expected}) > 60
    counts = report.counts
    assert (counts.unique, counts.not_compared, counts.forgotten) == (300 - len({one for one, _ in expected}), 0, 0)
    assert min(counts.marked, counts.apart, counts.copies) > 0

    client.request("POST", path(index_name, "_refresh"))
    stored = ours(client, index_name)
    leaders = {one["group"]: id for id, one in stored.items() if one.get("principal")}
    for id, fields in stored.items():  # the guarantee of star linkage, before group runs
        assert jaccard(texts[id], texts[leaders[fields["group"]]]) >= 0.8
    marked = {one.id: one.match.group for one in report.matches if one.done == "marked"}
    assert {id: stored[id]["group"] for id in marked} == marked
    grouped = news.group()
    assert (grouped.writes.refused, grouped.scope.stale, grouped.scope.corrupt) == (0, 0, 0)
    assert groups(client, index_name) == plainly_grouped(client, texts, f"{index_name}-plain")
    assert news.group().writes.written == 0


def without_time(action: JSON) -> JSON:
    """An action without the time of its fingerprint."""
    source = action["_source"]
    return {**action, "_source": {**source, "neardupe": {**source["neardupe"], "at": ""}}}


def test_skipped_documents_are_reported_and_no_duplicates_of_others(
    news: NearDupe, client: Client, index_name: str
) -> None:
    """The text `near both` is similar to a skipped document, but not to the stored one: it is written."""
    base = words("skip", 100)
    stored, skipped, near_both = list(base), list(base), list(base)
    skipped[10] = "one"
    near_both[10] = "one"
    near_both[50] = "two"
    near_both[80] = "three"
    assert jaccard(" ".join(skipped), " ".join(near_both)) >= 0.8 > jaccard(" ".join(stored), " ".join(near_both))
    load_texts(client, news, {"stored": " ".join(stored)})
    seen: list[tuple[str, Match]] = []

    def skip(action: Mapping[str, Any], match: Match) -> str:
        seen.append((action["_id"], match))
        return "skip"

    report = ScreenReport()
    texts = {"skipped": skipped, "near": near_both, "copy": stored, "other": words("other", 40)}
    actions = [document(id, " ".join(text)) for id, text in texts.items()]
    written = list(news.screened(actions, on_match=skip, report=report))
    assert [one["_id"] for one in written] == ["near", "other"]
    check_sums(report)
    assert (report.counts.skipped, report.counts.copies, report.counts.unique) == (2, 1, 2)
    assert [(id, match.id, match.copy) for id, match in seen] == [
        ("skipped", "stored", False),
        ("copy", "stored", True),
    ]
    assert [one.match for one in report.matches] == [match for _, match in seen]
    assert seen[0][1].similarity == jaccard(" ".join(stored), " ".join(skipped))
    again = news.screened(actions, on_match="skip")
    assert list(map(without_time, again)) == list(map(without_time, written))


def test_updates_of_known_documents_are_no_duplicates(news: NearDupe, client: Client, index_name: str) -> None:
    texts = family("known", 4)
    load_texts(client, news, {"a": texts[0], "b": " ".join(words("b", 80))})
    report = ScreenReport()
    actions = [
        document("a", texts[0]),  # as it is stored
        document("b", texts[1]),  # now similar to a, but an update
        document("new", texts[2]),
        document("new", " ".join(words("before", 50)), _op_type="create"),  # written again by the next one
        document("new", texts[3]),
    ]
    write(client, index_name, news.screened(actions[:3], on_match="skip", report=report))
    check_sums(report)
    assert (report.counts.known, report.counts.skipped) == (2, 1)
    assert {one.id for one in named(report.matches[0])} == {"a", "b"}

    report = ScreenReport()
    assert list(news.screened(actions[3:], on_match="skip", report=report)) == []  # the later one counts
    check_sums(report)
    counts = report.counts
    assert (counts.screened, counts.repeated, counts.skipped, counts.repeated_skipped) == (1, 1, 1, 1)

    client.request("POST", path(index_name, "_refresh"))
    report = ScreenReport()
    again = [document("a", texts[0]), document("b", texts[1])]
    written = list(news.screened(again, on_match="skip", report=report))
    assert [one["_id"] for one in written] == ["a", "b"]
    assert (report.counts.known, report.matches) == (2, [])


def test_what_this_run_changed_or_deleted_does_not_match(news: NearDupe, client: Client, index_name: str) -> None:
    one, two, three = (family(f"changed{k}", 2) for k in range(3))
    load_texts(client, news, {"deleted": one[0], "rewritten": two[0], "updated": three[0]})
    actions = [
        {"_op_type": "delete", "_id": "deleted"},
        document("rewritten", " ".join(words("another", 50))),
        {"_op_type": "update", "_id": "updated", "doc": {"text": "quite another text than before"}},
        *[document(f"near{k}", texts[1]) for k, texts in enumerate((one, two, three))],
    ]
    for pieces in (actions,), (actions[:3], actions[3:]):
        report = ScreenReport()
        given = (action for piece in pieces for action in (*piece, *filler(256 - len(piece))))
        list(news.screened(given, report=report))
        assert [matched.id for matched in report.matches] == []
        assert (report.counts.known, report.counts.other_actions) == (1, 2)


def filler(number: int) -> Iterator[JSON]:
    """Actions that fill a piece."""
    return (document(f"filler{k}", "", "another") for k in range(number))


def test_other_actions_pass_as_fingerprinted_passes_them(news: NearDupe, client: Client, index_name: str) -> None:
    texts = family("pass", 2)
    load_texts(client, news, {"stored": texts[0]})
    actions: list[JSON] = [
        {"_op_type": "update", "_id": "stored", "doc": {"n": 1}},
        {"_op_type": "update", "_id": "stored", "doc": {"text": texts[1]}},
        {"_op_type": "update", "_id": "stored", "script": {"source": "ctx._source.n = 2"}},
        {"_op_type": "delete", "_id": "stored"},
        {"_id": "elsewhere", "_index": "another", "text": texts[1]},
        {"_id": "numbers", "text": {"no": "text"}},
        {"_id": "empty", "text": ""},
        {"_id": "large", "text": texts[1] + " more" * 500},
        {"text": texts[1]},
    ]
    for on_match in ("mark", "skip", "pass"):
        report = ScreenReport()
        made = list(news.screened(actions, on_match=on_match, max_chars=2000, report=report))
        plain = list(news.fingerprinted(actions, max_chars=2000))
        for one in (made, plain):
            one[-1]["neardupe"].pop("group")  # a random one
            for action in one:
                for fields in (action.get("neardupe"), action.get("doc", {}).get("neardupe")):
                    if fields:
                        fields.pop("at", None)
        assert made == plain
        check_sums(report)
        counts = report.counts
        assert (counts.other_actions, counts.other_indices, counts.without_keys, counts.without_id) == (4, 1, 3, 1)
        assert counts.screened == 0


def test_a_document_that_is_not_similar_to_the_principal_founds_a_group(
    news: NearDupe, client: Client, index_name: str
) -> None:
    base = words("chain", 100)
    texts = [list(base) for _ in range(3)]
    texts[1][20] = "one"
    texts[2][20], texts[2][60], texts[2][90] = "one", "two", "three"
    principal, member, far = map(" ".join, texts)
    assert jaccard(member, far) >= 0.8 > jaccard(principal, far)
    load_texts(client, news, {"p": principal + " and longer"})
    write(client, index_name, news.screened([document("m", member)]))
    client.request("POST", path(index_name, "_refresh"))
    for refreshed in (False, True):
        report = ScreenReport()
        (written,) = news.screened([document("far", far)], report=report)
        ((matched),) = report.matches
        assert (matched.done, matched.match.id, matched.match.group) == ("apart", "m", None)
        own = written["_source"]["neardupe"]
        assert (own["principal"], own["similarity"]) == (True, 1.0)
        assert own["group"] != ours(client, index_name)["m"]["group"]
        if not refreshed:
            news.group()


def test_two_writers_that_miss_each_other_are_repaired_by_group(
    news: NearDupe, client: Client, index_name: str
) -> None:
    before, after = some_texts(40, 160, seed=2)
    load_texts(client, news, before)
    reports = ScreenReport(), ScreenReport()
    ids = list(after)
    streams = [
        news.screened([document(id, after[id]) for id in ids[number::2]], report=report)
        for number, report in enumerate(reports)
    ]
    for one, other in zip(*streams, strict=True):  # each has chosen its groups before it sees the other's documents
        write(client, index_name, [one, other])
    seen = {(one.id, other.id) for report in reports for one in report.matches for other in named(one)}
    assert true_pairs(before, after).keys() - seen
    client.request("POST", path(index_name, "_refresh"))
    news.group()
    assert groups(client, index_name) == plainly_grouped(client, {**before, **after}, f"{index_name}-plain")


many = pytest.mark.parametrize("read", [True, False], ids=["read", "searched"])
"""Whether the documents that share keys are few enough to be read at once, or each document has a search of its own."""


@many
def test_more_documents_share_keys_than_one_search_returns(
    news: NearDupe, client: Client, monkeypatch: pytest.MonkeyPatch, read: bool
) -> None:
    texts = family("large", 62, length=300)
    load_texts(client, news, {f"s{k}": text for k, text in enumerate(texts[:60])} | {"copy": texts[0]})
    others = [document(f"o{k}", " ".join(words(k, 50))) for k in range(6)]
    actions = [*others[:3], document("a", texts[60]), *others[3:], document("b", texts[61])]
    monkeypatch.setattr(module, "_PAGE", 30)
    monkeypatch.setattr(module, "MAXIMUM", 1000 if read else 0)
    report = ScreenReport()
    list(news.screened(actions, on_match="pass", report=report))
    assert [(one.id, len(one.match.others)) for one in report.matches] == [("a", 59), ("b", 60)]  # the copy once
    assert report.counts.not_compared == 0
    report = ScreenReport()
    list(news.screened(actions, on_match="pass", max_candidates=20, report=report))
    if read:  # those with the most similar signatures suffice
        assert [len(one.match.others) for one in report.matches] == [9, 9]
        assert 0 <= (61 - 10) + (62 - 10) - report.counts.not_compared <= 2  # the copy is compared or not
    else:
        assert [len(one.match.others) for one in report.matches] == [19, 9]
        assert report.counts.not_compared == (60 - 20) + (60 - 10 + 1)  # b shares keys with a too: with 21 texts


@pytest.mark.product("each")
@pytest.mark.parametrize(("seconds", "reads"), [(600, 1), (-1, 2)])
def test_what_was_read_of_a_large_family_serves_later_pieces(
    news: NearDupe, client: Client, monkeypatch: pytest.MonkeyPatch, seconds: int, reads: int
) -> None:
    """Texts are compared as they are now, and those that the run or others have changed do not match. A text with new
    keys, too, is compared with what was read. The second piece finds the index unchanged, the third one does not."""
    texts = family("kept", 63, length=300)
    load_texts(client, news, {f"s{k:02}": text for k, text in enumerate(texts[:60])})
    monkeypatch.setattr(module, "_PAGE", 30)
    monkeypatch.setattr(stored_buckets, "SECONDS", seconds)
    read = list[int]()
    add = StoredBuckets.add

    def noted(self: StoredBuckets, *given: Any) -> list[Reference]:
        unsigned = add(self, *given)
        read.append(len(self))
        return unsigned

    monkeypatch.setattr(StoredBuckets, "add", noted)

    def actions() -> Iterator[JSON]:
        yield from [document("a", texts[60]), *filler(255)]
        for k in range(20):
            yield document(f"s{k:02}", " ".join(words(k, 50)))
        yield from [document("b", texts[61]), *filler(235)]
        for k in range(20, 40):  # while this piece is read, the first one is compared already
            change(client, news.name, f"s{k}", {"text": "quite another text"})
        client.request("POST", path(news.name, "_refresh"))
        yield document("c", texts[62])

    report = ScreenReport()
    list(news.screened(actions(), on_match="skip", report=report))
    assert read == [60] * reads
    found = {one.id: {other.id for other in named(one)} for one in report.matches}
    rest = {f"s{k}" for k in range(40, 60)}
    assert found == {"a": {f"s{k:02}" for k in range(60)}, "b": rest, "c": rest}
    assert report.counts.not_compared == 0


def test_documents_of_a_large_family_without_a_signature_are_found_by_their_keys(
    news: NearDupe, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys follow from signatures only if these can be read, and are of the scheme."""
    texts = family("damaged", 42, length=300)
    load_texts(client, news, {f"s{k:02}": text for k, text in enumerate(texts[:40])})
    for id, damage in (("s03", {"signature": None}), ("s04", {"signature": "AAAA"}), ("s05", {"scheme": "v1-other"})):
        change(client, news.name, id, {"neardupe": damage})
    client.request("POST", path(news.name, "_refresh"))
    monkeypatch.setattr(module, "_PAGE", 30)
    report = ScreenReport()
    actions = [document("a", texts[40]), *filler(255), document("b", texts[41])]
    list(news.screened(actions, on_match="skip", report=report))
    assert [one.id for one in report.matches] == ["a", "b"]
    assert [{other.id for other in named(one)} for one in report.matches] == [{f"s{k:02}" for k in range(40)}] * 2
    assert report.counts.not_compared == 0


@many
def test_the_most_similar_document_shares_fewer_keys_than_others(
    news: NearDupe, client: Client, monkeypatch: pytest.MonkeyPatch, read: bool
) -> None:
    """Without a match among those that share most keys, those with similar signatures are compared; if there is still
    none, the document is counted as unsure."""
    stored = family("tie", 60, length=300)
    keys, sets = fingerprints(stored, SETTINGS.scheme), features(stored, SETTINGS.shingle)

    def similarities(text: str) -> list[float]:
        (found,) = features([text], SETTINGS.shingle)
        return [len(np.intersect1d(found, one)) / len(np.union1d(found, one)) for one in sets]

    def places(text: str) -> tuple[int, int, int, int]:
        """The document with most common keys, that of the others with such keys that has most equal slots, the most
        similar one, and the number of documents with common keys."""
        (own,) = fingerprints([text], SETTINGS.scheme)
        shared = [len({*own.bands} & {*one.bands}) for one in keys]
        equal = [sum(map(eq, own.signature, one.signature)) for one in keys]
        first = shared.index(max(shared)) if shared.count(max(shared)) == 1 else -1
        others = [place for place in range(60) if shared[place] and place != first]
        best = max((equal[place] for place in others), default=0)
        nearest = [place for place in others if equal[place] == best]
        found = similarities(text)
        return first, nearest[0] if len(nearest) == 1 else -1, found.index(max(found)), len(others) + 1

    def changed(number: int) -> str:
        some = stored[number % 60].split()
        for place in random.Random(number).sample(range(len(some)), 6):
            some[place] = f"changed{place}"
        return " ".join(some)

    text = next(one for one in map(changed, range(400)) if (of := places(one))[0] >= 0 and of[0] != of[1] == of[2])
    _, nearest, _, sharing = places(text)
    load_texts(client, news, {f"s{k:02}": one for k, one in enumerate(stored)})
    monkeypatch.setattr(module, "_PAGE", 30)
    monkeypatch.setattr(module, "MAXIMUM", 1000 if read else 0)
    highest = max(similarities(text))
    for minimum, matched in ((highest, [f"s{nearest:02}"]), (min(1.0, highest + 0.001), [])):
        report = ScreenReport()
        list(news.screened([document("a", text)], on_match="pass", max_candidates=1, min=minimum, report=report))
        assert [one.match.id for one in report.matches] == matched
        assert (report.counts.unique, report.counts.unsure) == ((0, 0) if matched else (1, 1))
        assert report.counts.not_compared == sharing - (1 if read and matched else 2)


def test_memory_is_bounded_and_searches_take_over(
    news: NearDupe, client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents that the run can forget are found by searches: it refreshes the index. Those that are never written
    are forgotten too, and counted."""
    monkeypatch.setattr(RecentDocuments.__init__, "__defaults__", (600, 64_000_000))
    texts = {f"d{k}": " ".join(words(k, 30)) for k in range(1200)}
    texts |= {f"copy{k}": texts[f"d{k}"] for k in range(0, 1200, 10)}
    report = ScreenReport()
    write(client, index_name, news.screened((document(*one) for one in texts.items()), report=report))
    assert {one.id: one.match.id for one in report.matches} == {f"copy{k}": f"d{k}" for k in range(0, 1200, 10)}
    assert report.counts.forgotten == 0
    report = ScreenReport()
    unsent = news.screened((document(f"x{k}", " ".join(words(f"x{k}", 30))) for k in range(1200)), report=report)
    assert len(list(unsent)) == 1200
    assert report.counts.forgotten > 200


def test_texts_that_changed_without_their_keys_are_compared_as_they_are(
    news: NearDupe, client: Client, index_name: str
) -> None:
    """Of three equal texts, the first two were changed or deleted; only their hashes still say that they are equal."""
    texts = family("current", 3)
    load_texts(client, news, {"a": texts[0], "b": texts[0], "c": texts[0], "d": texts[1]})
    change(client, index_name, "a", {"text": "no longer similar to any other text"})
    client.request("DELETE", path(index_name, "_doc", "b"))
    change(client, index_name, "d", {"text": "changed too"})
    report = ScreenReport()
    list(news.screened([document("new", texts[2])], report=report))
    (matched,) = report.matches
    assert (matched.match.id, matched.match.others) == ("c", ())
    assert matched.match.similarity == jaccard(texts[0], texts[2])


def test_a_routed_document_is_known_by_its_routing(news: NearDupe, client: Client, index_name: str) -> None:
    texts = family("routed", 3)
    write(client, index_name, news.fingerprinted([document("a", texts[0], routing="r")]))
    client.request("POST", path(index_name, "_refresh"))
    report = ScreenReport()
    actions = [document("a", texts[1], routing="r"), document("b", texts[2], routing="q")]
    written = list(news.screened(actions, on_match="skip", report=report))
    assert [one["_id"] for one in written] == ["a"]
    assert (report.counts.known, report.counts.skipped, report.matches[0].match.id) == (1, 1, "a")


def test_an_alias_with_a_write_index(client: Client, index_name: str) -> None:
    """Matches are found in all of its indices; a document is known if the index that is written to has it."""
    texts = family("alias", 4)
    old, new = f"{index_name}-old", f"{index_name}-new"
    for name, write_index in ((old, False), (new, True)):
        make_index(client, name, settings=NEVER, aliases={index_name: {"is_write_index": write_index}})
    news = NearDupe(index_name, client)
    news.init(SETTINGS)
    write(client, old, news.fingerprinted([document("a", texts[0], old)]))
    write(client, new, news.fingerprinted([document("b", " ".join(words("b", 50)), new)]))
    client.request("POST", path(index_name, "_refresh"))
    report = ScreenReport()
    actions = [
        document("a", texts[1]),  # the id of a document of the older index
        document("b", texts[2]),  # known: the write index has it
        document("c", texts[3], new),
        document("d", texts[3], f"{index_name}-another"),
    ]
    written = list(news.screened(actions, on_match="skip", report=report))
    assert [action["_id"] for action in written] == ["b", "d"]
    check_sums(report)
    assert (report.counts.known, report.counts.skipped, report.counts.other_indices) == (1, 2, 1)
    named = [
        {(one.match.index, one.match.id), *((other.index, other.id) for other in one.match.others)}
        for one in report.matches
    ]
    assert named == [{(old, "a"), (new, "b")}] * 2


def test_the_copy_of_the_group_id_is_that_of_the_match(client: Client, index_name: str) -> None:
    make_index(client, index_name, settings=NEVER)
    news = NearDupe(index_name, client)
    news.init(Settings(("text",), group_field="story"))
    texts = family("copy", 2)
    write(client, index_name, news.screened([document("a", texts[0]), document("b", texts[1])]))
    client.request("POST", path(index_name, "_refresh"))
    stored = {hit["_id"]: hit["_source"] for hit in hits(client, index_name)}
    assert stored["b"]["story"] == stored["b"]["neardupe"]["group"] == stored["a"]["neardupe"]["group"]


def test_an_id_whose_group_others_have_waits(news: NearDupe, client: Client, index_name: str) -> None:
    """The principal of a marked document is written again with another text: searches must not fold the two as one
    group with two principals, and group separates them."""
    texts = family("again", 2)
    fillers = [document(f"filler{k}", "") for k in range(254)]
    actions = [document("a", texts[0]), document("b", texts[1]), *fillers, document("a", " ".join(words("again", 60)))]
    written = list(news.screened(actions))
    first, *_, again = (action["_source"]["neardupe"] for action in written)
    assert (first["principal"], again.get("principal")) == (True, None)
    assert again["group"] == first["group"] == written[1]["_source"]["neardupe"]["group"]
    write(client, index_name, written)
    client.request("POST", path(index_name, "_refresh"))
    news.group()
    found = groups(client, index_name)
    assert found["a"] == (frozenset("a"), "a", 1.0)
    assert found["b"] == (frozenset("b"), "b", 1.0)


@pytest.mark.product("each")
def test_the_helpers_of_the_drivers(news: NearDupe, client: Client, index_name: str) -> None:
    """`screened` is read lazily, and its actions are those that the helpers take."""
    require_driver_for(client)
    if client.server.product is Product.ELASTICSEARCH:
        driver: Any = elasticsearch.Elasticsearch(client.url)
        bulk: Any = elasticsearch.helpers.bulk
    else:
        driver, bulk = opensearchpy.OpenSearch(client.url), opensearchpy.helpers.bulk
    taken: list[int] = []

    def actions() -> Iterator[JSON]:
        for number, text in enumerate([*family("driver", 10), *(" ".join(words(k, 20)) for k in range(290))]):
            taken.append(number)
            yield {"_op_type": "create", "_index": index_name, "_id": f"d{number}", "text": text}

    with NearDupe(index_name, driver) as near:
        first = near.screened(actions())
        assert taken == []
        assert next(first)["_id"] == "d0"
        assert len(taken) == 300  # one piece ahead
        assert bulk(driver, near.screened(actions()), refresh=True, chunk_size=50) == (300, [])
    assert len({one["group"] for one in ours(client, index_name).values()}) == 291
    assert news.group().groups.largest == 10
    driver.close()


def dated(client: Client, index: str) -> NearDupe:
    """An index that rejects documents whose date is none."""
    make_index(client, index, {**TEXT, "date": {"type": "date"}})
    found = NearDupe(index, client)
    found.init(SETTINGS)
    return found


def test_load_skips_nothing_because_of_a_document_that_was_not_written(
    client: Client, index_name: str, server_cli: Cli, tmp_path: Path
) -> None:
    dated(client, index_name)
    texts, other = family("rejected", 4), " ".join(words("other", 60))
    file, matches, left = tmp_path / "texts.jsonl", tmp_path / "matches.jsonl", tmp_path / "left.jsonl"
    lines = {"bad": texts[0], "worse": texts[1], "good": texts[2], "copy": texts[3], "other": other}
    dates = {"bad": "no date", "worse": "no date"}
    file.write_text(
        "".join(json.dumps({"id": id, "text": text, "date": dates.get(id)}) + "\n" for id, text in lines.items())
    )
    options = ("--on-match", "skip", "--report", str(matches), "--failures", str(left), "--json")
    run = server_cli("load", index_name, str(file), *options)
    assert run.code == 1
    assert set(ours(client, index_name)) == {"good", "other"}
    scope, writes, screened = run.json["scope"], run.json["writes"], run.json["screened"]
    assert (scope["read"], scope["matching"], writes["written"], writes["refused"]) == (5, 1, 2, 2)
    assert (screened["actions"], screened["screened"], screened["skipped"], screened["unique"]) == (5, 5, 1, 4)
    (match,) = [json.loads(line) for line in matches.read_text("utf-8").splitlines()]
    assert (match["id"], match["match"]["id"], match["done"]) == ("copy", "good", "skipped")
    assert [json.loads(line)["id"] for line in left.read_text("utf-8").splitlines()] == ["bad", "worse"]


@pytest.mark.parametrize("kept", [64_000_000, 0])
def test_load_counts_documents_that_match_only_rejected_ones(
    kept: int, client: Client, index_name: str, server_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is compared ten times; those that are too many to be kept for it, only once."""
    monkeypatch.setattr(skipped, "_MAX_BYTES", kept)
    dated(client, index_name)
    file, left = tmp_path / "texts.jsonl", tmp_path / "left.jsonl"
    lines = [{"id": f"d{n:02}", "text": text, "date": "no date"} for n, text in enumerate(family("all", 15))]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = server_cli("load", index_name, str(file), "--on-match", "skip", "--failures", str(left), "--json")
    writes = run.json["writes"]
    assert (run.code, run.json["scope"]["read"], run.json["scope"]["matching"]) == (1, 15, 0)
    assert (writes["refused"], writes["failed"]) == ((10, 5) if kept else (2, 13))
    assert sorted(json.loads(line)["id"] for line in left.read_text("utf-8").splitlines()) == [
        one["id"] for one in lines
    ]
    assert "it matches a document of the same files, which was not written" in left.read_text("utf-8")


def test_load_sends_documents_that_others_wait_for(
    client: Client, index_name: str, server_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Skipped documents are kept until the one that they match is written."""
    monkeypatch.setattr(skipped, "_MAX_BYTES", 10_000)
    dated(client, index_name)
    file, size = tmp_path / "texts.jsonl", 1500
    texts = family("wait", 2)
    lines = [{"id": f"d{n}", "text": texts[n % 2] if n % 500 else " ".join(words(n, 60))} for n in range(size)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    most = 0
    full = skipped.SkippedRecords.full

    def measured(self: skipped.SkippedRecords) -> bool:
        nonlocal most
        most = max(most, sum(map(len, self._waiting.values())))
        return bool(full.__get__(self))

    monkeypatch.setattr(skipped.SkippedRecords, "full", property(measured))
    run = server_cli("load", index_name, str(file), "--on-match", "skip", "--json")
    assert (run.code, run.json["scope"]["read"], run.json["writes"]["written"]) == (0, size, 4)
    assert run.json["scope"]["matching"] == size - 4
    assert 0 < most <= 256


def test_documents_skipped_because_of_a_rejected_one_can_be_sent_again(client: Client, index_name: str) -> None:
    """As docs/screened.md says: by the ids of the rejected documents and the report."""
    news = dated(client, index_name)
    texts = family("again", 3)
    documents: dict[str, JSON] = {f"d{n}": {"_id": f"d{n}", "text": text} for n, text in enumerate(texts)}
    documents["d0"]["date"] = "no date"
    require_driver_for(client)
    elastic = client.server.product is Product.ELASTICSEARCH
    driver: Any = elasticsearch.Elasticsearch(client.url) if elastic else opensearchpy.OpenSearch(client.url)
    helpers: Any = elasticsearch.helpers if elastic else opensearchpy.helpers

    def send(actions: Iterable[Mapping[str, Any]]) -> tuple[set[str], ScreenReport]:
        report = ScreenReport()
        rejected: set[str] = set()
        screened = news.screened(actions, on_match="skip", report=report)
        for ok, item in helpers.streaming_bulk(driver, screened, index=index_name, raise_on_error=False):
            if not ok:
                rejected.update(result["_id"] for result in item.values())
        return rejected, report

    rejected, report = send(documents.values())
    assert rejected == {"d0"}
    again = [one.id for one in report.matches if one.done == "skipped" and one.match.id in rejected]
    assert again == ["d1", "d2"]
    assert send(documents[id] for id in again)[0] == set()
    client.request("POST", path(index_name, "_refresh"))
    assert set(ours(client, index_name)) == {"d1"}
    driver.close()


def test_load_with_matches(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    texts = family("load", 4)
    file, matches = tmp_path / "texts.jsonl", tmp_path / "matches.jsonl"
    lines = {"new": " ".join(words("new", 50)), "near": texts[1], "a": texts[0], "copy": texts[0]}
    file.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in lines.items()), "utf-8")
    expected = {
        "mark": (3, 0, ["marked", "marked"]),
        "skip": (1, 2, ["skipped", "skipped"]),
        "pass": (3, 0, ["passed", "passed"]),
    }
    for word, (written, matching, done) in expected.items():
        delete_all(client, index_name)
        server_cli("init", index_name, "--field", "text", "--create")
        load_texts(client, NearDupe(index_name, client), {"a": texts[0]})
        options = ("--on-match", word, "--min", "0.85", "--report", str(matches), "--json")
        dry = server_cli("load", index_name, str(file), *options, "--dry-run").json
        run = server_cli("load", index_name, str(file), *options)
        assert (run.code, run.err) == (0, "")
        assert run.json["scope"] == dry["scope"]
        assert run.json["screened"] == dry["screened"]
        assert (run.json["writes"]["written"], run.json["scope"]["matching"]) == (written, matching)
        assert run.json["scope"]["read"] == 4 == written + matching + run.json["scope"]["existing"]
        found = [json.loads(line) for line in matches.read_text("utf-8").splitlines()]
        assert [(one["id"], one["match"]["id"], one["done"]) for one in found] == [
            ("near", "a", done[0]),
            ("copy", "a", done[1]),
        ]
        shown = server_cli("load", index_name, str(file), "--on-match", word)
        assert shown.code == 0
    stored = ours(client, index_name)
    assert len({one["group"] for one in stored.values()}) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_match": "drop"}, "`on_match` must be one of mark, skip, pass"),
        ({"min": 0}, "must lie in"),
        ({"max_candidates": 0}, "`max_candidates` must be 1 or more"),
        ({"measure": "estimate"}, "Unknown measure"),
        ({"on_match": lambda action, match: None}, "not None"),
    ],
)
def test_options_that_are_wrong(empty: NearDupe, options: dict[str, Any], message: str) -> None:
    texts = family("wrong", 2)
    with pytest.raises(SettingsError, match=message):
        list(empty.screened([document(f"d{k}", text) for k, text in enumerate(texts)], **options))


def test_wrong_uses(news: NearDupe, client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"id": "a", "text": "a b c d e f"}\n', "utf-8")
    with pytest.raises(SettingsError, match="`min` and `report` are for `on_match`"):
        news.load([str(file)], min=0.9)
    assert server_cli("load", index_name, str(file), "--report", str(tmp_path / "x")).code == 2
    into_input = server_cli("load", index_name, str(file), "--on-match", "pass", "--report", str(file))
    assert (into_input.code, "is an input file" in into_input.err) == (2, True)
    news.clean()
    news.init(SETTINGS, sidecar=True)
    with pytest.raises(IndexUnusable, match="screened writes keys into documents"):
        list(news.screened([document("a", "a b c d e f")]))


@pytest.mark.parametrize("measure", ["containment", "bag"])
def test_other_measures(news: NearDupe, client: Client, measure: str) -> None:
    texts = family("measure", 2)
    load_texts(client, news, {"stored": texts[0]})
    report = ScreenReport()
    list(news.screened([document("new", texts[1])], measure=measure, min=0.5, report=report))
    (matched,) = report.matches
    hits = news.similar(text=texts[1], measure=measure, min=0.5).hits
    assert (matched.match.similarity, matched.match.measure) == (hits[0].similarity, hits[0].measure)
