"""Document-level security: a document that the user may not read is no hit, no member of a group, and in no count.

Requests use the user's own connection, so the server hides such documents. These tests check that they are not revealed
by other means: neither by the hidden indices, nor by the user's cache. On a real Elasticsearch with security.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import distributed
import pytest
from cluster_tools import local_cluster
from conftest import Cli
from secured import Secured
from secured_users import CLEANED, NEWS
from server_tools import JSON, TEXT, assert_settled, family, hits, jaccard, make_index, one_line, put, words
from starlette.testclient import TestClient

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Forbidden, IndexUnusable, LoginRefused, NotFound, SettingsError
from es_neardupe.index.index import Index, opened
from es_neardupe.serve.application import asgi
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification import verify
from es_neardupe.verification.feature_weights import frequencies

READERS = ("reader", "pattern-reader", "registry-reader", "loose-reader")
"""Each sees the public documents; they differ in their privileges on the hidden indices."""


def _texts() -> tuple[dict[str, str], dict[str, str]]:
    """The public and the hidden documents, by id. A hidden id is recognisable wherever it is printed."""
    public: dict[str, str] = {}
    hidden: dict[str, str] = {}
    # Families by size and places of hidden documents; the first of a family is the longest: the principal.
    plan = {"open": (2, ()), "member": (3, (2,)), "head": (4, (0,)), "all": (2, (0, 1)), "half": (2, (1,))}
    for name, (size, places) in plan.items():
        for place, text in enumerate(family(name, size, length=120)):
            id = f"{name} ü/{place}"
            longer = f"{text} and an ending that no other one has" if place == 0 else text
            (hidden if place in places else public)[f"hidden {id}" if place in places else id] = longer
    public["copied"] = hidden["hidden copy"] = " ".join(words("copy", 50))
    public["alone"], hidden["hidden alone"] = (" ".join(words(name, 50)) for name in ("alone", "hidden alone"))
    return public, hidden


PUBLIC, HIDDEN = _texts()


@pytest.fixture(scope="module")
def news(secured_server: Secured) -> Iterator[Secured]:
    """An index with public and hidden documents, enriched and grouped by a user with the required privileges."""
    with secured_server.client("admin") as admin:
        at = {"url": {"type": "keyword"}, "date": {"type": "date"}}
        make_index(admin, NEWS, {**TEXT, **at, "public": {"type": "boolean"}})
        documents = {
            id: {"text": text, "public": texts is PUBLIC, "url": f"/{id}", "date": "2024-01-01"}
            for texts in (PUBLIC, HIDDEN)
            for id, text in texts.items()
        }
        put(admin, NEWS, documents)
        NearDupe(NEWS, admin).init(Settings(("text",), sample_mod=4))
        with secured_server.client("runner") as runner:
            assert NearDupe(NEWS, runner).enrich().writes.written == len(documents)
            grouped = NearDupe(NEWS, runner).group(evidence=True)
        in_groups = grouped.groups.grouped
        assert (grouped.groups.count, grouped.writes.written) == (6, in_groups - 6)  # principals have their fields
        yield secured_server
        for name in (NEWS, f"{NEWS}-neardupe-groups", f"{NEWS}-neardupe-pairs"):
            admin.request("DELETE", path(name))


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest, news: Secured) -> Iterator[Client]:
    with news.client(request.param) as client:
        yield client


@pytest.fixture
def admin(news: Secured) -> Iterator[Client]:
    with news.client("admin") as client:
        yield client


def as_user(news: Secured, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in news.environment(name).items():
        monkeypatch.setenv(variable, value)


def test_similar_counts_and_shows_what_the_user_may_read(reader: Client, admin: Client) -> None:
    """By id and by text, also with the exact text of a hidden document."""
    for id, text in {**PUBLIC, **HIDDEN}.items():
        near = {other: jaccard(text, theirs) for other, theirs in PUBLIC.items() if other != id}
        wanted = {other: value for other, value in near.items() if value >= 0.8}
        asked: dict[str, Any] = {"id": id} if id in PUBLIC else {"text": text}
        found = NearDupe(NEWS, reader).similar(min=0.8, **asked)
        assert {hit.id: hit.similarity for hit in found.hits} == pytest.approx(wanted)
        shown = {hit.id for hit in NearDupe(NEWS, admin).similar(min=0.01, top=100, **asked).hits}
        assert (found.candidates, found.not_compared) == (len(shown & PUBLIC.keys()), 0)


def test_contained_counts_and_shows_what_the_user_may_read(reader: Client, admin: Client) -> None:
    """By id and by text, also with the exact text of a hidden document. Keys that only hidden documents have count as
    rare, and the frequency of common ones is that among this user's documents."""
    for id, text in {**PUBLIC, **HIDDEN}.items():
        asked: dict[str, Any] = {"id": id} if id in PUBLIC else {"text": text}
        whole = NearDupe(NEWS, admin).contained(min=0.01, top=100, **asked)
        assert (whole.keys_left_out, whole.not_compared, whole.unreadable) == (0, 0, 0)
        seen = {hit.id: (hit.of_probe, hit.of_document, hit.matched_keys) for hit in whole.hits if hit.id in PUBLIC}
        found = NearDupe(NEWS, reader).contained(min=0.01, top=100, **asked)
        assert {hit.id: (hit.of_probe, hit.of_document, hit.matched_keys) for hit in found.hits} == seen
        assert (found.found, found.candidates, found.not_compared) == (len(seen), len(seen), 0)


def request(*, query: JSON | None = None, stored_keys: bool = False, largest: int = 200) -> JSON:
    """All pairs with a common shingle or stored key, with their texts and common parts."""
    fields = {"type": "fields:simple", "fields": ["text"]}
    words_ = {"type": "featureSource:words", "fields": fields}
    pairs = {"type": "documentPairs:reference", "use": "pairs"}
    return {
        "stages": {
            "pairs": {
                "type": "documentPairs:duplicates",
                "query": query or {"type": "query:all"},
                "hashGrouping": {
                    "pairing": {"maxHashGroupSize": largest},
                    "features": "scheme"
                    if stored_keys
                    else {"type": "featureSource:ngrams", "window": 5, "source": words_},
                },
                "validation": {
                    "pairwiseSimilarity": {"type": "pairwiseSimilarity:resemblance", "fields": fields},
                    "min": 0.01,
                },
                "output": {"explanations": True},
            },
            "texts": {
                "type": "documentContent",
                "documents": {"type": "documents:fromDocumentPairs", "documentPairs": pairs},
                "fields": {"type": "contentFields:simple", "fields": {"text": {}}},
            },
            "shared": {"type": "documentPairs:overlaps", "documentPairs": pairs, "fields": fields},
        }
    }


def stages_of(client: Client, **options: Any) -> Any:
    return NearDupe(NEWS, client).duplicates(request(**options)).stages


@pytest.mark.parametrize("stored_keys", [False, True])
def test_duplicates_counts_and_shows_what_the_user_may_read(stored_keys: bool, reader: Client, admin: Client) -> None:
    """No pair, text, shared passage or skipped group reveals a hidden document, and no number includes it."""
    whole = {(one.a, one.b): one.similarity for one in stages_of(admin, stored_keys=stored_keys)["pairs"].pairs}
    seen = {pair: similarity for pair, similarity in whole.items() if {id for _, id in pair} <= PUBLIC.keys()}
    assert 0 < len(seen) < len(whole)
    found = stages_of(reader, stored_keys=stored_keys)
    assert {(one.a, one.b): one.similarity for one in found["pairs"].pairs} == seen
    figures = {name: value for part in found["pairs"].diagnostics.labelled().values() for name, value in part.items()}
    ends = {id for pair in seen for _, id in pair}
    assert (figures["Documents"], figures["Documents read"]) == (len(PUBLIC), len(ends))
    assert (figures["Candidate pairs"], figures["Pairs passing"]) == (len(seen), len(seen))
    assert (figures["Out of scope pairs"], figures["Documents deleted or changed"]) == (0, 0)
    assert {one["id"]: one["fields"]["text"] for one in found["texts"].documents} == {id: PUBLIC[id] for id in ends}
    assert (found["texts"].missing, found["shared"].missing, len(found["shared"].pairs)) == (0, 0, len(seen))
    skipped = stages_of(reader, stored_keys=stored_keys, largest=2)["pairs"].skipped_groups
    assert {one.size for one in skipped} == {3}
    assert {id for one in skipped for _, id in one.documents} <= PUBLIC.keys()


def test_a_filter_cannot_reach_further(reader: Client) -> None:
    text = HIDDEN["hidden head ü/0"]
    for query in ({"term": {"public": False}}, {"ids": {"values": list(HIDDEN)}}):
        similar = NearDupe(NEWS, reader).similar(text=text, min=0.5, query=query)
        contained = NearDupe(NEWS, reader).contained(text=text, min=0.5, query=query)
        assert (similar.hits, similar.candidates, contained.hits, contained.candidates) == ((), 0, (), 0)
        assert NearDupe(NEWS, reader).search(query).documents == 0
        found = stages_of(reader, query=query)["pairs"]
        assert (len(found.pairs), found.diagnostics.hashing.documents) == (0, 0)
    everything: dict[str, Any] = {"bool": {"should": [{"match_all": {}}]}}
    assert len(NearDupe(NEWS, reader).similar(text=text, min=0.5, query=everything).hits) == 3
    assert len(NearDupe(NEWS, reader).contained(text=text, min=0.5, query=everything).hits) == 3


def test_a_hidden_document_is_as_one_that_is_not_there(reader: Client) -> None:
    for id in ("hidden member ü/2", "nobody"):
        message = f"There is no document '{id}' in {NEWS}."
        for look in (NearDupe.similar, NearDupe.contained):
            with pytest.raises(NotFound) as refused:
                look(NearDupe(NEWS, reader), id=id)
            assert str(refused.value) == message
        with pytest.raises(NotFound) as refused:
            NearDupe(NEWS, reader).compare("member ü/0", id)
        assert str(refused.value) == message


def test_groups_are_those_of_the_documents_that_the_user_sees(reader: Client, admin: Client) -> None:
    everything = NearDupe(NEWS, admin).groups()
    assert sorted(one.size for one in everything) == [2, 2, 2, 2, 3, 4]
    seen = {one.group: [m for m in one.members if m.id in PUBLIC] for one in everything}
    wanted = {group: members for group, members in seen.items() if len(members) > 1}
    found = NearDupe(NEWS, reader).groups()
    assert {one.group: set(one.members) for one in found} == {group: set(all) for group, all in wanted.items()}
    assert all(one.size == len(one.members) for one in found)
    (headless,) = [one for one in found if one.principal is None]
    assert {member.id for member in headless.members} == {id for id in PUBLIC if id.startswith("head")}
    hidden = next(iter(seen.keys() - wanted.keys()))
    assert NearDupe(NEWS, reader).groups(group=hidden) == []


def test_search_collapses_what_the_user_may_read(reader: Client, admin: Client) -> None:
    groups = {hit.id: one.group for one in NearDupe(NEWS, admin).groups() for hit in one.members}
    sizes = Counter(groups[id] for id in PUBLIC if id in groups)
    found = NearDupe(NEWS, reader).search({"match_all": {}}, size=100, expand=True)
    assert (found.documents, found.without_group, found.without_similarity) == (len(PUBLIC), 0, 0)
    assert {hit.group: hit.near_copies + 1 for hit in found.hits if hit.near_copies} == {
        group: size for group, size in sizes.items() if size > 1
    }
    assert sorted(id for hit in found.hits for id in (hit.id, *(one.id for one in hit.members))) == sorted(PUBLIC)


def test_moved_knows_nothing_of_hidden_documents(reader: Client, admin: Client) -> None:
    """Evidence and groupings contain deleted documents; to this user, a hidden one looks the same."""
    asked = ["/open ü/0", "/hidden head ü/0", *HIDDEN]
    there, *unknown = NearDupe(NEWS, reader).moved_all(asked)
    assert [place.id for place in there.places] == ["open ü/1"]
    assert [(one.places, one.basis) for one in unknown] == [((), None)] * len(unknown)
    with_copies = [one for one in NearDupe(NEWS, admin).moved_all(list(HIDDEN)) if one.places]
    assert with_copies


def test_the_registry_says_something_only_of_groups_that_the_user_sees_whole(news: Secured, admin: Client) -> None:
    assert {one.known.size if one.known else None for one in NearDupe(NEWS, admin).groups()} == {2, 3, 4}
    for name, known in {"reader": 0, "pattern-reader": 0, "registry-reader": 1, "loose-reader": 1}.items():
        with news.client(name) as client:
            found = [one for one in NearDupe(NEWS, client).groups() if one.known is not None]
            assert len(found) == known
            assert all(member.id.startswith("open") for one in found for member in one.members)


def test_pairs_and_stats_count_visible_documents(reader: Client, admin: Client) -> None:
    everything = {(one.a[1], one.b[1]): one.similarity for one in NearDupe(NEWS, admin).pairs()}
    wanted = {pair: value for pair, value in everything.items() if set(pair) <= PUBLIC.keys()}
    large = NearDupe(NEWS, reader).pairs(max_bucket=2).large_buckets  # every bucket of three texts counts as large
    assert max(one.documents for one in large) == 3
    found = NearDupe(NEWS, reader).pairs()
    assert {(one.a[1], one.b[1]): one.similarity for one in found} == wanted
    assert len(wanted) == len(found) < len(everything)
    stats = NearDupe(NEWS, reader).stats(buckets=10, disk_usage=True)
    sizes = Counter(one.size for one in NearDupe(NEWS, reader).groups())
    assert stats.scope.documents == stats.scope.states["signed"] == stats.scope.schemes[stats.scheme] == len(PUBLIC)
    assert (stats.groups.sizes, stats.groups.grouped) == (dict(sizes), sum(sizes.elements()))
    assert stats.buckets is not None
    assert max(one.documents for one in stats.buckets.largest) == 3
    assert stats.bytes_per_document is None


def test_an_ordinary_search_collapses_what_the_user_sees(reader: Client) -> None:
    body = {
        "size": 100,
        "query": {"match_all": {}},
        "collapse": {"field": "neardupe.group", "inner_hits": {"name": "copies", "size": 10}},
        "aggs": {"groups": {"cardinality": {"field": "neardupe.group"}}},
    }
    answer = reader.request("POST", path(NEWS, "_search"), body=body)
    hits: list[JSON] = answer["hits"]["hits"]
    inner = [hit["inner_hits"]["copies"]["hits"] for hit in hits]
    assert {one["_id"] for part in inner for one in part["hits"]} == PUBLIC.keys()
    assert sum(part["total"]["value"] for part in inner) == answer["hits"]["total"]["value"] == len(PUBLIC)
    assert answer["aggregations"]["groups"]["value"] == len(hits)


def test_frequencies_are_kept_for_each_user_apart(
    news: Secured, admin: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ES_NEARDUPE_CACHE", str(tmp_path))
    with news.client("reader") as reader:
        for client, documents in (
            (admin, len(PUBLIC) + len(HIDDEN)),
            (reader, len(PUBLIC)),
            (admin, len(PUBLIC) + len(HIDDEN)),
        ):
            found = frequencies(opened(Index(NEWS, client)), Measure())
            assert found.weights.documents == documents
        assert len(list((tmp_path / "frequencies").iterdir())) == 2
        assert (admin.login, reader.login) == ("basic admin", "basic reader")


LOOKING = (
    ("similar", NEWS, "--text", HIDDEN["hidden head ü/0"], "--min", "0.1", "--json"),
    ("groups", NEWS, "--json"),
    ("groups", NEWS),
    ("groups", NEWS, "--suggest-keep", "--keep-policy", "longest", "--json"),
    ("pairs", NEWS, "--json"),
    ("stats", NEWS, "--json"),
    ("distribution", NEWS, "--json"),
    ("compare", NEWS, "member ü/0", "member ü/1", "--weighted", "--json"),
    ("contained", NEWS, "--text", HIDDEN["hidden head ü/0"], "--min", "0.1", "--json"),
    ("contained", NEWS, "--id", "member ü/0", "--min", "0.01"),
    ("search", NEWS, "*", "--expand", "--json"),
    ("search", NEWS, HIDDEN["hidden head ü/0"], "--expand"),
    ("moved", NEWS, "/member ü/0"),
)


@pytest.mark.parametrize("name", ["reader", "loose-reader"])
def test_commands_print_nothing_hidden(
    news: Secured, name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_user(news, name, monkeypatch)
    monkeypatch.setenv("ES_NEARDUPE_CACHE", str(tmp_path))
    file, page = tmp_path / "request.json", tmp_path / "pairs.html"
    file.write_text(json.dumps(request(largest=2)), "utf-8")
    asking = ("duplicates", NEWS, "--request", str(file))
    for command in (*LOOKING, (*asking, "--json"), (*asking, "--html", str(page))):
        run = cli(*command)
        assert run.code == 0, (command, run.err)
        assert run.out
        assert "hidden" not in (run.out + run.err).replace("(deleted or hidden)", "")
    assert not [id for id in HIDDEN if id in page.read_text("utf-8")]
    listed = cli("groups", NEWS).out
    assert "(deleted or hidden)" in listed


def registry(admin: Client) -> list[Any]:
    """The registry without the lease, which is released at the end of a run, without a refresh."""
    name = f"{NEWS}-neardupe-groups"
    admin.request("POST", path(name, "_refresh"))
    body = {"size": 100, "query": {"bool": {"must_not": [{"term": {"kind": "lease"}}]}}}
    found = admin.request("POST", path(name, "_search"), body=body)["hits"]["hits"]
    return sorted(((one["_id"], one["_source"]) for one in found), key=lambda one: one[0])


def test_who_sees_a_part_does_not_write_or_read_about_the_whole(news: Secured, admin: Client, cli: Cli) -> None:
    """Their runs would treat hidden documents as deleted; the registry and the evidence contain them."""
    before = registry(admin)
    assert len(before) == 6 + 1  # groups, and the last run
    group = next(one.group for one in NearDupe(NEWS, admin).groups() if one.size == 4)
    assert NearDupe(NEWS, admin).group_history(group).size == 4
    with news.client("half-runner") as half:
        assert [one.level for one in NearDupe(NEWS, half).doctor() if one.name == "visibility"] == ["warning"]
        for refused in (
            lambda: NearDupe(NEWS, half).enrich(all=True),
            lambda: NearDupe(NEWS, half).group(rebuild=True),
            lambda: NearDupe(NEWS, half).group(dry_run=True),
            lambda: NearDupe(NEWS, half).clean(),
            lambda: NearDupe(NEWS, half).migrate(threshold=0.7),
            lambda: NearDupe(NEWS, half).group_history(group),
            lambda: NearDupe(NEWS, half).what_if(min=[0.5]),
            lambda: NearDupe(NEWS, half).decide("same", "open ü/0", ["open ü/1"], author="half"),
            lambda: NearDupe(NEWS, half).withdraw(["0" * 32]),
            lambda: NearDupe(NEWS, half).decisions(),
        ):
            with pytest.raises(
                Forbidden, match=f"sees only a part of the documents or fields of {NEWS}, and .* needs all"
            ):
                refused()
    for name in ("pattern-reader", "registry-reader", "loose-reader", "few-fields"):
        with news.client(name) as client, pytest.raises(Forbidden, match="sees only a part"):
            NearDupe(NEWS, client).group_history(group)
    with news.client("looker") as looker:
        assert not any(one.name == "visibility" for one in NearDupe(NEWS, looker).doctor())
        found = [one.message for one in NearDupe(NEWS, looker).doctor() if one.level == "error"]
    assert found == [
        f"looker may not run load, enrich: lacks index, maintenance on {NEWS}",
        f"looker may not run group, watch: lacks index, maintenance on {NEWS} and create_index, read, "
        f"view_index_metadata, index, maintenance on {NEWS}-neardupe-groups and read, view_index_metadata, index, "
        f"maintenance on {NEWS}-neardupe-decisions",
    ]
    with news.client("runner") as runner:
        checks = [one for one in NearDupe(NEWS, runner).doctor() if one.level != "ok"]
    assert {one.level for one in checks} == {"warning"}
    (unknown,) = (one for one in checks if one.name == "changes")
    assert unknown.message.startswith(f"it is unknown which documents of {NEWS} have changed (")
    rights = [one.message for one in checks if one is not unknown]
    assert rights
    assert all("may run" in one and "without noticing changed texts" in one for one in rights)
    assert registry(admin) == before
    assert NearDupe(NEWS, admin).stats().scope.documents == len(PUBLIC) + len(HIDDEN)


def test_who_may_not_read_the_texts_is_told_so(news: Secured) -> None:
    """Hidden texts would be treated as empty ones, which are all equal."""
    with news.client("few-fields") as client:
        for refused in (
            lambda: NearDupe(NEWS, client).similar(id="alone"),
            lambda: NearDupe(NEWS, client).contained(id="alone"),
            lambda: NearDupe(NEWS, client).compare("alone", "copied"),
            lambda: list(NearDupe(NEWS, client).pairs()),
            lambda: NearDupe(NEWS, client).distribution(),
            lambda: NearDupe(NEWS, client).moved("alone"),
        ):
            with pytest.raises(Forbidden, match=f"This user does not see text of index {NEWS}"):
                refused()
        assert len(NearDupe(NEWS, client).groups()) == 6  # these need no text
        assert NearDupe(NEWS, client).stats().scope.documents == len(PUBLIC) + len(HIDDEN)


def test_rights_that_are_enough(news: Secured, admin: Client, tmp_path: Path) -> None:
    """The role used in the fixture for enrich and group. No user here may do more than the commands need."""
    with news.client("maker") as maker:
        assert NearDupe(CLEANED, maker).init(Settings(("text",)), create=True).created
    file = tmp_path / "clean.jsonl"
    file.write_text("".join(json.dumps({"id": str(k), "text": t}) + "\n" for k, t in enumerate(family("clean", 2))))
    with news.client("cleaner") as cleaner:
        assert NearDupe(CLEANED, cleaner).load([str(file)]).writes.written == 2
        NearDupe(CLEANED, admin).group(evidence=True)
        assert NearDupe(CLEANED, cleaner).clean().writes.written == 2
    left = admin.request("GET", path("_cat", "indices", f"{CLEANED}*"), params={"h": "index", "format": "json"})
    assert [one["index"] for one in left] == [CLEANED]
    admin.request("DELETE", path(CLEANED))
    with news.client("looker") as looker:
        wanted = [one.members for one in NearDupe(NEWS, looker).groups()]
    with news.client("unread") as unread:
        assert [one.members for one in NearDupe(NEWS, unread).groups()] == wanted
        with pytest.raises(Forbidden):
            NearDupe(NEWS, unread).suggest_keep()
        with pytest.raises(Forbidden, match="neardupe-groups"):
            NearDupe(NEWS, unread).pairs(ignore_common=0.5)
    with news.client("auditor") as auditor:
        assert NearDupe(NEWS, auditor).audit().documents == len(PUBLIC) + len(HIDDEN)
        with pytest.raises(IndexUnusable, match="too few"):  # allowed, then rejected for lack of documents
            NearDupe(NEWS, auditor).pairs(ignore_common=0.5)
        assert len(NearDupe(NEWS, auditor).suggest_keep()) == len(wanted) == 6


def test_what_is_missing_is_said_in_one_line(news: Secured, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = {
        ("stranger", "groups", NEWS): "view_index_metadata",
        ("looker", "enrich", NEWS): "maintenance",
        ("looker", "group", NEWS): "neardupe-groups",
        ("looker", "groups", NEWS, "--suggest-keep"): "view_index_metadata",
        ("looker", "init", NEWS, "--field", "text", "--prefix", "other"): "manage",
    }
    for (name, *command), privilege in refusals.items():
        as_user(news, name, monkeypatch)
        run = cli(*command)
        assert (run.code, run.out) == (1, "")
        (line,) = run.err.splitlines()
        assert line.startswith("error: ")
        assert privilege in line
        assert f"{name} lacks the index privilege" in line


def test_a_wrong_password_is_said_without_it(news: Secured) -> None:
    settings = ConnectionSettings(url=news.url, username="reader", password="not-this-one", ca_certs=str(news.ca_file))
    with pytest.raises(LoginRefused, match="authentication failed") as refused:
        connect(settings)
    assert "not-this-one" not in str(refused.value)
    with pytest.raises(LoginRefused):
        connect(replace(settings, username=None, password=None))


@pytest.fixture
def worker() -> Iterator[distributed.LocalCluster]:
    with local_cluster(1) as started:
        yield started


def test_a_worker_that_may_not_read(
    news: Secured, admin: Client, cli: Cli, monkeypatch: pytest.MonkeyPatch, worker: distributed.LocalCluster
) -> None:
    """One clear line, and nothing is written; once it has the privileges, the same command does everything."""
    name = "secured-engine"
    make_index(admin, name)
    put(admin, name, {id: {"text": text} for id, text in PUBLIC.items()})
    NearDupe(name, admin).init(Settings(("text",)))
    NearDupe(name, admin).enrich()
    monkeypatch.setattr(verify, "_MANY", 1)
    as_user(news, "admin", monkeypatch)
    arguments = ["group", name, "--engine", worker.scheduler_address, "--json"]
    before = hits(admin, name)
    _login(worker, news, "stranger")
    said = cli(*arguments)
    assert said.code == 1
    assert "stranger lacks the index privilege" in one_line(said.err)
    assert hits(admin, name) == before
    _login(worker, news, "admin")
    assert cli(*arguments).json["writes"]["written"] > 0
    assert_settled(admin, name)
    for one in (name, f"{name}-neardupe-groups"):
        admin.request("DELETE", path(one))


def _login(worker: distributed.LocalCluster, news: Secured, user: str) -> None:
    """Give the processes of the workers the credentials of a user."""
    with distributed.Client(worker, set_as_default=False) as client:
        client.run(_set_environment, news.environment(user))


def _set_environment(variables: dict[str, str]) -> None:
    os.environ.update(variables)


def login(news: Secured, name: str, password: str = "") -> dict[str, str]:
    """The header of a login, as a proxy or a browser sends it."""
    word = f"{name}:{password or news.users[name].password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(word).decode()}"}


@pytest.fixture
def site(news: Secured, admin: Client) -> TestClient:
    """`serve --auth-proxy`; its own login may do everything."""
    app = asgi(NearDupe(NEWS, admin), auth_proxy=True, allow_decisions=True)
    return TestClient(app, base_url="http://127.0.0.1")


def test_pages_show_what_the_login_of_the_request_may_see(news: Secured, admin: Client, site: TestClient) -> None:
    group = next(one.group for one in NearDupe(NEWS, admin).groups() if one.size == 4)  # the first one is hidden
    for name, members in (("reader", 3), ("loose-reader", 3), ("looker", 4)):
        headers = login(news, name)
        api = site.get(f"/api/groups/{group}", headers=headers).json()
        assert (api["size"], len(api["members"])) == (members, members), name
        assert ("hidden" in json.dumps(api)) == (members == 4)
    headers = login(news, "registry-reader")
    page = site.get("/group", params={"id": group}, headers=headers)
    assert page.status_code == 200, page.text
    assert ">3 documents · least similarity" in page.text  # without the number of texts, which counts hidden ones
    found = site.get("/search", params={"q": HIDDEN["hidden head ü/0"]}, headers=headers).text
    for text in (page.text, found, site.get("/compare", params={"a": "head ü/1", "b": "hidden head ü/0"}).text):
        assert not [id for id in HIDDEN if id in text.replace("hidden head ü/0&#39;", "")]
    for address in ("/", "/groups", "/decisions", "/decisions/export?format=csv", "/api/groups", "/api/decisions"):
        refused = site.get(address, headers=headers)
        assert refused.status_code == 403, address
        assert "sees only a part of the documents" in refused.text
    decision = {"verdict": "same", "id": "head ü/1", "others": ["head ü/2"], "author": "me"}
    assert site.post("/api/decisions", json=decision, headers=headers).status_code == 403


def test_without_a_login_that_the_server_accepts_nothing_is_shown(news: Secured, site: TestClient) -> None:
    for address in ("/", "/groups", "/search?q=a", "/api/stats", "/api/groups", "/health", "/metrics", "/nowhere"):
        answer = site.get(address)
        assert (answer.status_code, answer.headers["WWW-Authenticate"].partition(" ")[0]) == (401, "Basic"), address
    for address in ("/", "/search?q=a", "/api/stats", "/metrics"):
        for header in (login(news, "reader", "wrong"), {"Authorization": "Bearer not used at all"}):
            assert site.get(address, headers=header).status_code == 401, address
    assert site.get("/health", headers=login(news, "reader", "wrong")).status_code == 503
    assert site.get("/metrics", headers=login(news, "looker")).status_code == 200


def test_logins_need_a_connection_without_certificate(news: Secured) -> None:
    """The server might know the user by the certificate, whatever the header says."""
    certificate = news.certificates["runner"]
    settings = ConnectionSettings(
        url=news.url, ca_certs=str(news.ca_file), client_cert=str(certificate.cert), client_key=str(certificate.key)
    )
    client = connect(settings)
    try:
        with pytest.raises(SettingsError, match="without a client certificate"):
            asgi(NearDupe(NEWS, client), auth_proxy=True)
    finally:
        client.close()


def test_decisions_are_stored_under_the_name_of_the_login(news: Secured, admin: Client, site: TestClient) -> None:
    """With the privileges of this user, and by a form of this user."""
    found = NearDupe(NEWS, admin)
    group = next(one for one in found.groups() if one.size == 4)
    headers = login(news, "admin") | {"Cookie": "es-neardupe-reviewer=somebody"}
    page = site.get("/group", params={"id": group.group}, headers=headers).text
    assert '<summary title="Reviewer">admin</summary>' in page
    documents = [unescape(one) for one in re.findall(r'name="document" value="([^"]*)"', page)]
    (csrf, *_) = (unescape(one) for one in re.findall(r'name="csrf" value="([^"]*)"', page))
    form = {"csrf": csrf, "group": group.group, "verdict": "apart", "confirmed": "true", "document": documents}
    try:
        assert (
            site.post("/decide", data=form, headers=login(news, "looker")).status_code == 403
        )  # a form of another user
        assert site.post("/decide", data=form, headers=headers, follow_redirects=False).status_code == 303
        assert [one.author for one in found.decisions()] == ["admin"]
    finally:
        admin.request("DELETE", path(f"{NEWS}-neardupe-decisions"))
