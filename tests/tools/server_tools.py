"""Helpers of the tests on real servers: texts with a known resemblance, and reading an index without our code."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import random
import re
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

import elasticsearch
import pytest

from es_neardupe import NearDupe
from es_neardupe.errors import NodeError, NotFound, RequestError
from es_neardupe.groups.read import Group
from es_neardupe.groups.registry import GroupRecord, Registry
from es_neardupe.index.index import Index, opened
from es_neardupe.index.storage.interface import GroupIdsWritten
from es_neardupe.records import Product
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.client import Client, path, to_json
from es_neardupe.server.search import knows

JSON = dict[str, Any]
TEXT = {"text": {"type": "text"}}
_SYLLABLES = ["ba", "co", "di", "fu", "ga", "he", "ki", "lo", "mu", "ne", "po", "ra", "si", "tu", "ve", "wa", "zo"]


@contextlib.contextmanager
def required() -> Iterator[None]:
    """For starting a server: if it is not available, the test is skipped; in CI it fails."""
    try:
        yield
    except NodeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no server to be had: {error}")


def new_name() -> str:
    """The name of an index that does not exist yet. Only rollovers create names that end with digits."""
    return f"test-{uuid.uuid4().hex[:11]}x"


def delete_all(client: Client, name: str) -> None:
    """Delete the indices with this prefix, including hidden and closed ones, and the hidden indices of several of
    them."""
    # Not by _cat/indices, which counts documents and bytes.
    wanted = path(f"{name}*,neardupe-*-{name}*", "_alias")
    names = client.request("GET", wanted, params={"expand_wildcards": "all"})
    if names:
        client.request("DELETE", path(",".join(names)), params={"ignore_unavailable": True})


def words(seed: object, number: int) -> list[str]:
    """Random words: nearly all shingles of two such texts differ."""
    rng = random.Random(str(seed))
    return ["".join(rng.choices(_SYLLABLES, k=3)) for _ in range(number)]


def family(seed: object, size: int, *, length: int = 200, edits: int = 1) -> list[str]:
    """Near-duplicates: a text, and copies of it with ``edits`` words replaced far apart."""
    base = words(seed, length)
    texts = [" ".join(base)]
    for number in range(1, size):
        variant = list(base)
        for edit in range(edits):
            variant[(number * 17 + edit * (length // edits)) % (length - 10) + 5] = f"edited{number}x{edit}"
        texts.append(" ".join(variant))
    return texts


def shingles(text: str, width: int = 5) -> set[tuple[str, ...]]:
    """The shingles of a text, by independent code."""
    tokens = re.findall(r"\w+", text.lower())
    if not tokens:
        return set()
    return {tuple(tokens[k : k + width]) for k in range(max(1, len(tokens) - width + 1))}


def jaccard(one: str, other: str) -> float:
    """The exact resemblance of two texts, by brute force."""
    a, b = shingles(one), shingles(other)
    return len(a & b) / len(a | b) if a and b else 0.0


def true_pairs(texts: Mapping[str, str], minimum: float) -> dict[tuple[str, str], float]:
    """Every pair of ids that is at least this similar."""
    sets = {id: shingles(text) for id, text in sorted(texts.items())}
    found = {}
    for (a, one), (b, other) in combinations(sets.items(), 2):
        if one and other and (similarity := len(one & other) / len(one | other)) >= minimum:
            found[a, b] = similarity
    return found


def shared_and_own(fill: Callable[[Client, str], str]) -> tuple[Any, Any]:
    """Two fixtures, to be assigned to names in a test file: an index for all of its tests that change nothing, and one
    for a single test, which may change it. ``fill`` creates the index of a name, and returns this name."""

    @pytest.fixture(scope="module")
    def shared(client: Client, shared_index: str) -> str:
        return fill(client, shared_index)

    @pytest.fixture
    def own(client: Client, index_name: str) -> str:
        return fill(client, index_name)

    return shared, own


def make_index(client: Client, name: str, properties: Mapping[str, Any] = TEXT, **more: Any) -> None:
    """Create an index of an application, by default without replicas, which one node cannot allocate but would try to
    at each change. ``more``: ``settings``, ``aliases``, and further parts of the mapping."""
    body: JSON = {"settings": {"number_of_replicas": 0} | (more.pop("settings", None) or {})}
    body |= {"aliases": more.pop("aliases")} if "aliases" in more else {}
    body["mappings"] = {"properties": dict(properties), **more}
    client.request("PUT", path(name), body=body)


def exists(client: Client, name: str) -> bool:
    """Whether there is an index of this name."""
    try:
        client.request("GET", path(name, "_settings", "index.uuid"))
    except NotFound:
        return False
    return True


def make_or_skip(client: Client, name: str, fields: JSON, settings: JSON) -> None:
    """Create an index with fields or settings that some servers do not support: there the test is skipped."""
    try:
        make_index(client, name, fields, settings=settings)
    except RequestError:
        pytest.skip("this server has no such field or setting")


def put(client: Client, index: str, sources: Mapping[str, Any], *, routing: str | None = None) -> None:
    """Index documents as any application would, and make them visible."""
    send(client, [({"index": {"_index": index, "_id": id, "routing": routing}}, one) for id, one in sources.items()])


def send(client: Client, actions: Iterable[tuple[JSON, JSON | None]], *, whole: bool = True) -> list[JSON]:
    """One bulk request; returns the items of its answer. ``whole``: all of it must succeed."""
    lines = [to_json(part) for action in actions for part in action if part is not None]
    answer = client.bulk(b"\n".join(lines) + b"\n", params={"refresh": "true"})
    assert not (whole and answer["errors"]), answer
    items: list[JSON] = answer["items"]
    return items


def change(client: Client, index: str, id: str, doc: JSON, **params: Any) -> None:
    """A partial update by an application."""
    client.request("POST", path(index, "_update", id), params={"refresh": True, **params}, body={"doc": doc})


def plain_request(client: Client, method: str, target: str, body: JSON | None = None) -> tuple[int, JSON]:
    """Status and answer of a request as an application sends it: our client bypasses default search pipelines."""
    data = None if body is None else to_json(body)
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(client.url + target, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def hits(client: Client, name: str, **params: Any) -> list[JSON]:
    """All documents, as the server returns them."""
    client.request("POST", path(name, "_refresh"), params=params)
    body = {"size": 10_000, "query": {"match_all": {}}, "seq_no_primary_term": True, "version": True}
    found: list[JSON] = client.request("POST", path(name, "_search"), params=params, body=body)["hits"]["hits"]
    assert len(found) < 10_000
    return found


def theirs(client: Client, name: str, prefix: str = "neardupe") -> dict[tuple[str, str], str]:
    """The application's fields of each document as text, including order and number format."""
    return {
        (hit["_index"], hit["_id"]): json.dumps({k: v for k, v in hit["_source"].items() if k != prefix})
        for hit in hits(client, name)
    }


def ours(client: Client, name: str, prefix: str = "neardupe") -> dict[str, JSON]:
    """The neardupe fields of each document by id: those with a value, except the time of writing and the mark of the
    version."""
    return {hit["_id"]: ours_of(hit["_source"], prefix) for hit in hits(client, name)}


def ours_of(source: Mapping[str, Any], prefix: str = "neardupe") -> JSON:
    return {k: v for k, v in source.get(prefix, {}).items() if k not in ("at", "checked") and v is not None}


def versions(client: Client, name: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Sequence numbers and primary terms, which any write changes."""
    return {(hit["_index"], hit["_id"]): (hit["_seq_no"], hit["_version"]) for hit in hits(client, name)}


def mapping(client: Client, name: str) -> JSON:
    (entry,) = client.request("GET", path(name, "_mapping")).values()
    found: JSON = entry["mappings"]
    return found


def wait_until(met: Callable[[], object], seconds: float = 60.0, *, every: float = 0.02) -> None:
    """Wait for a condition, which is tried again after ``every`` seconds, for a limited time. The failure shows the
    condition."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not met():
        assert time.monotonic() < deadline, f"not within {seconds} s: {inspect.getsource(met).strip()}"
        pause.wait(every)


def runs_painless(client: Client) -> bool:
    """Whether the server runs scripts: Elasticsearch from pip does not."""
    return knows(client, "POST", "/_scripts/painless/_execute", {"script": {"source": "1 + 1"}})


def require_driver_for(client: Client) -> None:
    """Skip a test that uses the driver of Elasticsearch itself with an older server, which refuses its requests."""
    server = client.server
    if server.product is Product.ELASTICSEARCH and elasticsearch.__version__[0] > server.version[0]:
        pytest.skip("this version of the driver does not talk to so old a server by itself")


def one_line(text: str) -> str:
    """The one error line of a command; no traceback."""
    assert "Traceback" not in text
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) == 1, text
    assert lines[0].startswith("error: ")
    return lines[0]


class Spy:
    """A client that records its requests."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.asked: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def request(self, method: str, path: str, **more: Any) -> Any:
        self.asked.append((path, more.get("body")))
        return self._client.request(method, path, **more)

    def pages(self, index: str, body: Any, **more: Any) -> Any:
        self.asked.append((index, body))
        return self._client.pages(index, body, **more)


def registry(client: Client, index: str) -> Registry:
    return Registry(opened(Index(index, client)))


def assert_settled(client: Client, index: str, **options: Any) -> None:
    """A full run would change nothing, the registry agrees with the documents, and totals reconcile."""
    fresh = NearDupe(index, client).group(rebuild=True, dry_run=True, **options)
    assert (fresh.scope.whole, fresh.writes.written, fresh.scope.stale) == (True, 0, 0)
    assert fresh.scope.documents == fresh.groups.grouped + fresh.groups.alone == fresh.writes.unchanged
    there = {one.group: (one.size, one.members[0].address, one.min_similarity) for one in groups_of(client, index)}
    found: dict[str, Any] = {
        one.group: (one.size, one.principal, pytest.approx(one.min_similarity)) for one in living(client, index)
    }
    assert there == found


def groups_of(client: Client, index: str) -> list[Group]:
    return NearDupe(index, client).groups()


def living(client: Client, index: str) -> list[GroupRecord]:
    return [one for one in registry(client, index).living().values() if one is not None]


def check_left(writes: WriteCounts) -> None:
    """The documents that are left are as many as the counts say, each with its index, id and reason."""
    kinds = Counter(one.kind for one in writes.left_documents)
    assert kinds == +Counter(conflict=writes.conflicts, refused=writes.refused, failed=writes.failed)
    assert len(writes.left_documents) == writes.left
    mirrored = writes.mirrored or GroupIdsWritten()
    assert len(mirrored.left_documents) == mirrored.left + mirrored.failed
    for one in (*writes.left_documents, *mirrored.left_documents):
        assert one.id
        assert one.reason
        assert "sidecar" not in one.index


def reconcile(name: str, report: Any) -> None:
    """Check the sums that the reports promise, and that each is shown in one short line in a Python shell."""
    assert "\n" not in repr(report)
    assert len(repr(report)) < 200
    if name in ("load", "enrich", "group", "clean"):
        check_left(report.writes)
    if name == "load":
        assert (
            report.scope.read
            == report.scope.bad + report.scope.duplicates + report.scope.existing + report.writes.total
        )
        assert report.writes.written == sum(report.writes.states.values())
    if name == "enrich":
        assert report.scope.changed <= report.scope.read == report.writes.total
        assert report.writes.written == sum(report.writes.states.values())
    if name == "group":
        scope, pairs, groups = report.scope, report.pairs, report.groups
        assert scope.documents == groups.grouped + groups.alone + scope.untouched + scope.corrupt
        assert scope.affected == sum(scope.states.values()) + scope.corrupt
        assert scope.affected == report.writes.total + scope.untouched + scope.corrupt
        assert scope.untouched <= scope.stale
        assert scope.affected == scope.documents or not scope.whole
        assert pairs.matches <= pairs.candidates
        skipped = [one.skipped for one in pairs.large_buckets]  # buckets overlap
        assert max(skipped, default=0) <= pairs.skipped <= sum(skipped)
        assert report.rules.group.linkage == "complete" or pairs.open == pairs.compared_to_link == 0
        assert 2 * groups.count <= groups.grouped
        assert groups.looked_at.count == groups.count or not scope.whole
        assert (groups.looked_at.mean_similarity is None) == (groups.looked_at.count == 0)
        if report.evidence:
            kept = report.evidence
            assert kept.pairs == kept.accepted + kept.rejected
            assert kept.pairs == kept.written + kept.decided_again + kept.unchanged + kept.left_out + kept.refused
    if name == "clean":
        assert report.documents == report.writes.total
