"""``enrich`` in the cluster: the server makes the keys of documents itself, by updates by query with a script.

No text leaves the server. A round processes the documents that `selection` of
`es_neardupe.index.storage.inline` finds; the next one processes what was written since, which are also the writes of
the round before. The script leaves right keys as they are, so the last round writes nothing, and proves that all keys
are right.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any

from es_neardupe.errors import Forbidden, IndexUnusable, NeardupeError, NotFound, RequestError, UnsupportedServer
from es_neardupe.index import queries
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.on_server.ingest_pipeline import check_keys, is_ours
from es_neardupe.index.on_server.painless import MAX_CHARS, UpdateParams, fingerprint_script
from es_neardupe.index.storage.change_feed import ChangeFeed, Consumer
from es_neardupe.index.storage.inline import counts_before, selection
from es_neardupe.index.storage.interface import EnrichRequest, EnrichResult
from es_neardupe.index.storage.same_indices import SameIndicesClient
from es_neardupe.index.updates import GroupIdsInUse
from es_neardupe.log_events import log_event
from es_neardupe.progress import Progress
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.server.client import JSON, Params, path
from es_neardupe.server.failures import Failure
from es_neardupe.server.parallel import pause
from es_neardupe.server.read_all import of_shard
from es_neardupe.server.request_sizes import RequestSize
from es_neardupe.wording import command

_ROUNDS = 10
"""Maximum number of rounds while other clients change documents."""

_PAGE = 10_000

_POLL = (0.05, 1.0)
"""First and longest time in seconds between two looks at a task."""

_LEFT = (
    f"the script leaves texts of more than {MAX_CHARS:,} characters, numbers with a fraction, and values of others "
    f"under the names of the fields, to plain `enrich`"
)


_AVERAGE = 2_000_000
"""Bytes on disk of a document of which as many are processed at a time as of documents of any size."""

_MAX_WORDS = 50_000
"""Documents with more words are not read only to check their keys."""

_UNCHECKED = f"keys of texts with more than {_MAX_WORDS:,} words are checked by plain `enrich --check`"


def enrich_in_cluster(index: IndexHandle, request: EnrichRequest, *, batch: int, progress: Progress) -> EnrichResult:
    """Let the server make the keys that are missing or wrong, after it was shown to make the same as Python.

    ``batch``: documents that the server reads at a time. Raises `UnsupportedServer` if the server makes no keys or
    other ones, `IndexUnusable` for an index with a final pipeline, `RequestError` if the server gives up.
    """
    if index.client.server.is_collection:
        raise UnsupportedServer(
            "Amazon OpenSearch Serverless has no update by query: run "
            f"`{command('enrich', index.name)}` without --in-cluster."
        )
    _check_final_pipelines(index)
    check_keys(index, index.settings)
    feed = ChangeFeed(index, Consumer.TEXTS, stores=not request.dry_run)
    before = counts_before(index, request)
    unknown = {} if request.reads_all else feed.unknown_changes()
    changed = {shard: feed.changed(shard) for shard in feed.shards}
    tally = BulkCounts()
    tally.counts["changed"] = _changed(index, request, changed)
    unchecked = {shard: _unchecked(index, query) for shard, query in changed.items()} if request.check else {}
    queried = {
        shard: queries.without(query, unchecked.get(shard))
        for shard, query in _queries(index, request, changed, unknown).items()
    }
    if request.dry_run:
        number = sum(index.documents.count(query, shard=shard) for shard, query in queried.items())
        tally.counts.update(read=number, written=number)
        return EnrichResult(before, before["current"], tally, {"unknown": number}, {}, *request.unknown(unknown))
    feed.begin(feed.unknown.keys() - unknown.keys())
    at = _time_of_run()
    update = _Update(index, at, batch, progress)
    first = done = update.run(queried)
    skipped = frozenset[str]() if request.rereads else unknown.keys()
    feed.store(whole=request.whole, skipped=skipped)
    for _ in range(_ROUNDS):
        if not (done["updated"] or done["version_conflicts"]):
            break
        feed = ChangeFeed(index, Consumer.TEXTS)
        changed = {shard: feed.changed(shard) for shard in feed.shards}
        done = update.run(_queries(index, replace(request, check=False, since=None), changed))
        feed.store(whole=request.whole, skipped=skipped)
    index.documents.refresh()
    states, numeric = _written(index, at)
    conflicts = done["version_conflicts"]
    _add_failed(index, tally, _left(index, request, feed), _LEFT)
    tally.counts.update(
        written=sum(states.values()),
        numeric=numeric,
        conflicts=conflicts,
        unchanged=max(0, first["total"] - sum(states.values()) - conflicts - tally.counts["failed"]),
    )
    scope = queries.matching(index.target.within(request.query))
    _add_failed(index, tally, {shard: queries.all_of(scope, query) for shard, query in unchecked.items()}, _UNCHECKED)
    tally.counts["read"] = sum(tally.counts[name] for name in ("written", "unchanged", "conflicts", "failed"))
    reasons = {one: feed.reason or why for one, why in unknown.items()}
    return EnrichResult(before, before["current"], tally, states, {}, *request.unknown(reasons))


def _unchecked(index: IndexHandle, changed: JSON | None) -> JSON:
    """Documents with keys of so many words that looking at many of them takes more memory than a small server has, and
    that were not written since they were processed. Those without keys are processed, whatever their size."""
    large = {"range": {index.fields.tokens: {"gt": _MAX_WORDS}}}
    return queries.without(queries.all_of(queries.fingerprinted(index.fields, index.scheme_id), large), changed)


def _check_final_pipelines(index: IndexHandle) -> None:
    for name, state in index.target.states.items():
        if state.final_pipeline is not None and not is_ours(state.final_pipeline):
            raise IndexUnusable(
                f"The final pipeline {state.final_pipeline!r} of {name} would process the documents again when the "
                f"server writes their keys: run `{command('enrich', index.name)}` without --in-cluster."
            )


_Changed = Mapping[int | None, "JSON | None"]
"""Number of a shard -> query for the documents that were written since they were last processed; None if there are
none."""


def _queries(
    index: IndexHandle, request: EnrichRequest, changed: _Changed, unknown: Mapping[str, str] = MappingProxyType({})
) -> dict[int | None, JSON]:
    """The documents to process, by the number of their shards. ``unknown``: see `ChangeFeed.unknown_changes`."""
    return {shard: selection(index.target, request, query, unknown) for shard, query in changed.items()}


def _changed(index: IndexHandle, request: EnrichRequest, changed: _Changed) -> int:
    """The number of documents with a fingerprint that were written since they were last processed."""
    enriched = queries.all_of(index.target.within(request.query), queries.fingerprinted(index.fields, index.scheme_id))
    return sum(
        index.documents.count(queries.all_of(enriched, query), shard=shard)
        for shard, query in changed.items()
        if query is not None
    )


def _left(index: IndexHandle, request: EnrichRequest, feed: ChangeFeed) -> dict[int | None, JSON]:
    """Queries for the documents without right keys that the last round, which opened this feed, has processed, by the
    number of their shards. Those that were written since are for the next run."""
    stale = index.target.stale(request.query)
    return {shard: queries.without(stale, feed.later(shard)) for shard in feed.shards}


def _add_failed(index: IndexHandle, tally: BulkCounts, queried: Mapping[int | None, JSON], reason: str) -> None:
    """Count the documents of these queries as failed."""
    for shard, query in queried.items():
        for page in index.documents.pages({"query": query, "_source": False}, page_size=_PAGE, shard=shard):
            failed = (Failure("failed", *hit.reference, reason) for hit in page)
            tally.add_failed(failed, () if reason in tally.failures else [reason])


def _time_of_run() -> str:
    """The time, with milliseconds that are not 0, which no other writer of keys uses: it finds the documents that this
    run has written."""
    now = datetime.now(timezone.utc)
    return f"{now:%Y-%m-%dT%H:%M:%S}.{max(1, now.microsecond // 1000):03}Z"


def _written(index: IndexHandle, at: str) -> tuple[dict[str, int], int]:
    """The documents that were written by the run of this time, by state; and how many of them are numeric."""
    body = {
        "size": 0,
        "query": {"term": {f"{index.settings.prefix}.at": at}},
        "aggs": {
            "states": {"terms": {"field": f"{index.settings.prefix}.state", "size": 10}},
            "numeric": {"filter": {"term": {f"{index.settings.prefix}.numeric": True}}},
        },
    }
    found = index.documents.search(body)["aggregations"]
    return {one["key"]: one["doc_count"] for one in found["states"]["buckets"]}, found["numeric"]["doc_count"]


def _fitting(index: IndexHandle, batch: int) -> int:
    """The number of documents of average size that the server can hold at a time, with what the script makes of them;
    at most ``batch``."""
    safe = RequestSize.of_documents(index.client, batch).safe
    params: Params = {"filter_path": "_all.primaries.docs.count,_all.primaries.store.size_in_bytes"}
    try:
        found = index.client.request("GET", path(index.path, "_stats", "docs,store"), params=params)["_all"][
            "primaries"
        ]
    except (Forbidden, NotFound, KeyError):  # a serverless service offers no statistics
        return safe
    average = found["store"]["size_in_bytes"] / max(1, found["docs"]["count"])
    return max(1, min(batch, int(safe * _AVERAGE / max(1, average))))


class _Update:
    """Updates by query of one run."""

    def __init__(self, index: IndexHandle, at: str, batch: int, progress: Progress) -> None:
        self._index, self._progress = index, progress
        self._batch = _fitting(index, batch)
        self._client = SameIndicesClient(index)
        settings = index.settings
        script = fingerprint_script(
            settings.scheme,
            settings.fields,
            prefix=settings.prefix,
            group_field=settings.group_field,
            update=UpdateParams(at, alone=not GroupIdsInUse(index).any),
        )
        self._script = {"lang": "painless", "source": script.source, "params": script.params}

    def run(self, queried: Mapping[int | None, JSON]) -> dict[str, int]:
        """Process the documents of these queries, one shard after the other; returns the counts of the server."""
        sums = dict.fromkeys(("total", "updated", "noops", "version_conflicts"), 0)
        for shard, query in queried.items():
            if self._index.documents.count(query, shard=shard):
                self._client.check()
                done = self._shard(shard, query)
                self._client.check()
                sums = {name: number + done[name] for name, number in sums.items()}
        return sums

    def _shard(self, shard: int | None, query: JSON) -> Mapping[str, int]:
        client = self._index.server
        rate, _ = client.pace.share(1)
        params: Params = {
            "wait_for_completion": False,
            "conflicts": "proceed",
            "pipeline": "_none",
            "scroll_size": self._batch,
            **({} if rate is None else {"requests_per_second": str(rate)}),
            **of_shard(client.server, shard),
        }
        body = {"query": query, "script": self._script}
        task = client.request("POST", path(self._index.path, "_update_by_query"), params=params, body=body)["task"]
        try:
            found = self._wait(task)
        except BaseException:
            try:
                client.request("POST", path("_tasks", task, "_cancel"), params={"wait_for_completion": True})
            except NeardupeError:  # a serverless service cannot cancel a task: it goes on
                log_event(logging.WARNING, "not_cancelled", task=task)
            raise
        finally:
            with suppress(NeardupeError):  # the server keeps the result of each task in an index
                client.request("DELETE", path(".tasks", "_doc", task))
        if (error := _error_of(found)) is not None:
            reason = str(error.get("reason"))
            raise RequestError(
                f"The server stopped making keys in {self._index.name} ({reason}). Run the same command again: it "
                f"continues where it stopped. If it stops again, run it without --in-cluster.",
                status=400,
                type=str(error.get("type", "")),
                reason=reason,
            )
        return dict[str, int](found["response"])

    def _wait(self, task: str) -> Mapping[str, Any]:
        """The task, once it has ended."""
        wait, longest = _POLL
        while True:
            found: Mapping[str, Any] = self._index.server.request("GET", path("_tasks", task))
            status = found["task"].get("status", {})
            done = sum(status.get(name, 0) for name in ("updated", "noops", "version_conflicts"))
            self._progress("making keys in the cluster", done, status.get("total"))
            if found["completed"]:
                return found
            pause(wait)
            wait = min(2 * wait, longest)


def _error_of(task: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The innermost cause of the end of a task; None if it has processed everything."""
    answer = task.get("response", {})
    failures = (one.get("cause") or one.get("reason") for one in answer.get("failures", ()))
    error: Any = task.get("error") or next(failures, None) or answer.get("canceled")
    while isinstance(error, dict) and isinstance(error.get("caused_by"), dict):
        error = error["caused_by"]
    return error if error is None or isinstance(error, dict) else {"reason": error}
