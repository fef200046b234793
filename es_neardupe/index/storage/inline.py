"""Inline storage: keys and groups are fields of the documents themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from es_neardupe.errors import DocumentTooLarge, NotFound
from es_neardupe.index import queries
from es_neardupe.index.document_text import whole_pages
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.mapping import check_text_fields, fields_mapping
from es_neardupe.index.migration_state import Phase, replaced_prefix
from es_neardupe.index.permissions import check_unblocked
from es_neardupe.index.settings import Settings
from es_neardupe.index.slices import read_slices
from es_neardupe.index.storage.change_feed import ChangeFeed, Consumer
from es_neardupe.index.storage.collapse import CollapsedPage, CollapsedSearch, collapse_request, collapsed_by_server
from es_neardupe.index.storage.field_writes import (
    CHECKED,
    Change,
    FieldWriter,
    document_writer,
    has_fields_of_version_before,
)
from es_neardupe.index.storage.interface import EnrichRequest, EnrichResult, OnWorkers, Send, tracked_results
from es_neardupe.index.storage.same_indices import SameIndicesClient
from es_neardupe.index.stored_fields import count_of, group_of, stored_fields, text_bytes, timestamp
from es_neardupe.index.target import (
    Definitions,
    IndexTarget,
    stored_group_field,
    stored_settings,
)
from es_neardupe.index.updates import (
    FingerprintedDocument,
    GroupIdsInUse,
    fingerprint_documents,
    fingerprint_fields,
    has_copy,
    is_current,
)
from es_neardupe.keys.arrays import Ints
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Action, Address, Hit, Outcome, Reference
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.server.client import JSON, Client
from es_neardupe.server.failures import Failure
from es_neardupe.server.request_sizes import size_of
from es_neardupe.server.search import fetch_whole

_ROUNDS = 10
"""Maximum number of attempts for a document that keeps changing between read and write."""


class InlineStorage:
    """See `es_neardupe.index.storage.interface.Storage`."""

    sidecars: tuple[str, ...] = ()
    groups_in_documents = True

    def __init__(self, index: IndexHandle) -> None:
        self._index = index

    @property
    def client(self) -> Client:
        """The connection, which writes only to the indices that were opened."""
        return SameIndicesClient(self._index)

    @property
    def written(self) -> tuple[str, ...]:
        """The concrete indices of the target."""
        return self._index.target.indices

    def documents_of(self, written: str) -> str:
        """The index itself."""
        return written

    @property
    def path(self) -> str:
        """The path of the index."""
        return self._index.path

    def field_writer(self) -> FieldWriter:
        """A writer of documents."""
        return document_writer(self._index, self.client)

    def group_feed(self, *, stores: bool) -> ChangeFeed:
        """The changes of the index: new documents have all group fields already."""
        return ChangeFeed(self._index, Consumer.GROUPS, stores=stores)

    def field_feed(self, *, stores: bool) -> None:
        """None: a change of any field is one of the document."""

    def check_writable(self) -> None:
        """Check the indices of the target, as they were opened."""
        states = self._index.target.states.items()
        check_unblocked(self._index.name, {name: state.blocks for name, state in states if state.blocks})

    def prepare_rolled_over(self) -> None:
        """Add fields and settings to their mappings."""
        prepare_new(self._index)

    def write_fingerprints(
        self, request: EnrichRequest, send: Send, progress: Progress, on_workers: OnWorkers | None = None
    ) -> EnrichResult:
        """Write partial updates of the documents. Raises as `SameIndicesClient.bulk`, also while documents are read."""
        try:
            return _enrich(self._index, request, send, progress, on_workers)
        except NotFound:
            SameIndicesClient(self._index).check()
            raise

    def write_group_ids(self, *, batch: int, workers: int, dry_run: bool) -> None:
        """Do nothing: `group` has written the ids into the documents."""

    def document_versions(self, references: Sequence[Reference], read: Ints) -> Ints:
        """Return ``read``: fingerprints are part of their documents, so both have the same version."""
        return read

    def collapse_request(self, search: CollapsedSearch) -> JSON:
        """A search with the server's ``collapse``."""
        return collapse_request(self._index, search)

    def collapse(self, search: CollapsedSearch) -> CollapsedPage:
        """The result of the server's ``collapse``."""
        return collapsed_by_server(self._index, self._index.documents, search, self.collapse_request(search))

    def mark_migration(self, phase: Phase, coming: Settings, notes: Mapping[str, Any]) -> None:
        """Write into the mapping of every index."""
        mappings, prefix = self._index.definitions.mappings(), replaced_prefix(coming.prefix)
        after = replace(coming, prefix=prefix, group_field=stored_group_field(mappings.values(), prefix))
        missing = self._index.settings if phase is Phase.PREPARING else after
        for name, mapping in mappings.items():
            stored = stored_settings(mapping, after.prefix) if phase is not Phase.CLEANING else after
            Definitions(self.client, name).put_settings(
                mapping, stored or missing, coming, notes={coming.prefix: notes}
            )

    def group_pairs(self, former: IndexHandle, progress: Progress) -> Iterator[tuple[str | None, str | None]]:
        """Read both ids from the same documents."""
        fields = [former.fields.group, self._index.fields.group]
        query = {"bool": {"filter": [{"exists": {"field": name}} for name in fields]}}
        total = self._index.documents.count(query)
        pages = self._index.documents.pages({"query": query, "_source": fields}, page_size=2000)
        for hit in tracked((hit for page in pages for hit in page), progress, "comparing groups", total):
            before, now = (stored_fields(hit.source, one.settings.prefix) for one in (former, self._index))
            yield group_of(before), group_of(now)

    def takeovers(self, after: IndexHandle, writer: FieldWriter, *, batch: int, progress: Progress) -> Iterator[Action]:
        """Writes of the documents that have these keys."""
        documents, query = self._index.documents, queries.processed(self._index.fields)
        prefixes = [self._index.settings.prefix, after.settings.prefix]
        pages = documents.pages({"query": query, "_source": prefixes}, page_size=max(batch, 100))
        hits = tracked((hit for page in pages for hit in page), progress, "switching", documents.count(query))
        return writer.writes(takeovers(hits, *prefixes))

    def refresh(self) -> None:
        """Refresh the indices of the target."""
        self._index.documents.refresh()

    def remove_settings(self) -> None:
        """Remove the settings from ``_meta``. Fields cannot be removed from a mapping."""
        for name, mapping in self._index.definitions.mappings().items():
            Definitions(self.client, name).remove_settings(mapping, self._index.settings.prefix)

    def replaced(self) -> Mapping[str, int]:
        """Always empty: keys are deleted with their documents."""
        return {}

    def of_deleted(self, documents: int) -> int:
        """Always 0, likewise."""
        return 0


def takeovers(hits: Iterable[Hit], source: str, target: str) -> Iterator[Change]:
    """The changes that copy the fields under prefix ``source`` to prefix ``target``. Documents without keys under
    ``source``, and those with equal fields under both, need none."""
    for hit in hits:
        copied, present = (_all_fields(hit, prefix) for prefix in (source, target))
        if copied["scheme"] is not None and copied != present:
            yield Change(hit, copied, document_bytes=text_bytes(count_of(copied, "tokens")))


def _all_fields(hit: Hit, prefix: str) -> dict[str, Any]:
    """Every field of the mapping but the mark, null if missing: a partial update keeps fields that it does not name."""
    stored = stored_fields(hit.source, prefix)
    return {name: stored.get(name) for name in fields_mapping()["properties"] if name != CHECKED}


def _enrich(
    index: IndexHandle, request: EnrichRequest, send: Send, progress: Progress, on_workers: OnWorkers | None
) -> EnrichResult:
    """Write fingerprints into the documents; read and write those again that change in between."""
    feed = ChangeFeed(
        index, Consumer.TEXTS, stores=not (request.dry_run or request.task)
    )  # first: it refreshes the index
    before = counts_before(index, request)
    unknown = {} if request.reads_all else feed.unknown_changes()
    feed.begin(feed.unknown.keys() - unknown.keys())
    enrichment = _InlineEnrichment(index, feed, rewrite=request.all)
    selections = {shard: selection(index.target, request, feed.changed(shard), unknown) for shard in feed.shards}
    numbers = {shard: index.documents.count(query, shard=shard) for shard, query in selections.items()}
    if on_workers is not None:
        for result in tracked_results(on_workers(request), progress, sum(numbers.values())):
            enrichment.add(result)
        return enrichment.result(request, before, unknown)
    shards, total = [shard for shard, number in numbers.items() if number], request.share(sum(numbers.values()))

    def read(shard: int | None, part: tuple[int, int] | None) -> Iterator[list[Hit]]:
        return whole_pages(index, selections[shard], enrichment.too_large, shard=shard, slice=part)

    with closing(read_slices(index, read, request.slices, shards=shards, part=request.part)) as pages:
        documents = tracked(enrichment.documents(pages, request.max_chars), progress, "fingerprinting", total)
        conflicts = enrichment.settle(send(enrichment.updates(documents)))
    for _ in range(_ROUNDS):
        if not conflicts:
            break
        current = enrichment.documents(_read_again(index, conflicts, enrichment), request.max_chars)
        conflicts = enrichment.settle(send(enrichment.updates(current, again=True)))
    enrichment.finish(conflicts)
    return enrichment.result(request, before, unknown)


def counts_before(index: IndexHandle, request: EnrichRequest) -> dict[str, int]:
    """The counts of documents before a run; see `EnrichResult`."""
    scope = index.target.within(request.query)
    return index.documents.counts(
        scope=queries.matching(scope),
        everything={"match_all": {}},
        skipped=queries.of_relations(index.target.skipped_relations),
        current=queries.all_of(scope, queries.fingerprinted(index.fields, index.scheme_id)),
    )


def selection(
    target: IndexTarget, request: EnrichRequest, changed: JSON | None, unknown: Mapping[str, str] = MappingProxyType({})
) -> JSON:
    """The query for the documents to read. ``changed``: those that were written since they were processed; ``unknown``:
    indices of which these are unknown, see `ChangeFeed.unknown_changes`."""
    scope = target.within(request.query)
    if request.since is None and (request.check or request.all):
        return queries.matching(scope)
    selected = [target.stale(request.query)]
    if target.settings.group_field is not None:
        selected.append(target.without_copy(request.query))
    if changed is not None:
        selected.append(queries.all_of(scope, changed))
    if unknown and request.rereads:
        selected.append(queries.all_of(scope, {"terms": {"_index": sorted(unknown)}}))
    if request.since is not None:
        selected.append(queries.all_of(scope, queries.since(*request.since)))
    return {"bool": {"should": selected, "minimum_should_match": 1}}


def _read_again(index: IndexHandle, conflicts: Sequence[Action], enrichment: _InlineEnrichment) -> Iterator[list[Hit]]:
    """The current documents; counts those that were deleted, and those that no longer fit into memory."""
    index.documents.refresh()
    shards = {action.address: action.shard for action in conflicts}
    references = (action.reference for action in conflicts)
    for found in fetch_whole(index.client, references, skip=enrichment.add_too_large):
        enrichment.tally.counts["deleted"] += found.count(None)
        yield [replace(hit, shard=shards[hit.address]) for hit in found if hit is not None]


class _InlineEnrichment:
    """Decides which of the documents read are written, and counts the results of all."""

    def __init__(self, index: IndexHandle, feed: ChangeFeed, *, rewrite: bool) -> None:
        self.settings = index.settings
        self._mark_seeds = index.target.mark_seeds
        self.feed = feed
        self.inherits = index.target.inherits
        self._in_use = GroupIdsInUse(index)
        self.writer = document_writer(index, index.client)
        self.rewrite = rewrite
        self.at = timestamp()
        self.tally = BulkCounts()
        self.states: Counter[str] = Counter()
        self.lengths: Counter[int] = Counter()
        self._too_large: list[tuple[Hit, DocumentTooLarge]] = []
        """Documents that do not fit into memory, noted by the threads that read."""
        self._sent_twice: set[Address] = set()
        """Documents whose conflict may be with this run's own write."""

    def documents(self, pages: Iterable[Sequence[Hit]], max_chars: int) -> Iterator[FingerprintedDocument]:
        """The documents of all pages with their fingerprints."""
        return fingerprint_documents(pages, self.settings, max_chars, inherits=self.inherits, in_use=self._in_use.among)

    def updates(self, documents: Iterable[FingerprintedDocument], *, again: bool = False) -> Iterator[Action]:
        """The updates that are needed. ``again``: the documents were read and counted before.

        Such a document can be current by now: written by this run, with the answer lost (counted as written), or by
        another run.
        """
        counts, prefix = self.tally.counts, self.settings.prefix
        for one in documents:
            without_keys = prefix not in one.hit.source  # nearly every document of a first run
            if not again:
                counts["read"] += 1
            known = not without_keys and self._was_fingerprinted(one.hit)
            if known and not again:
                counts["changed"] += self.feed.has_changed(one.hit)
            current = not without_keys and is_current(one, self.settings)
            in_its_group = known and not current and has_fields_of_version_before(one.hit, self._mark_seeds)
            if one.hit.version == 1 or in_its_group:
                self.feed.note_kept(one.hit)
            complete = current and has_copy(one.hit, self.settings)
            if complete and (again or not self.rewrite):
                self.feed.note_read(one.hit)
            if complete and again and self._written_here(one.hit):
                self.tally.counts["written"] += 1
                self.tally.counts["whole"] += self.writer.wrote_whole(one.hit.address)
                self._count(one.fingerprint.state.value, one.fingerprint.tokens, one.fingerprint.numeric)
            elif complete and (again or not self.rewrite):
                self.tally.counts["unchanged"] += 1
            else:
                fields = fingerprint_fields(one, self.settings, self.at, inherits=self.inherits)
                action = self.writer.write(Change(one.hit, fields, document_bytes=size_of(one.hit.source)))
                if action is not None:
                    yield action
                else:
                    self.feed.leave(one.hit)

    def too_large(self, hit: Hit, error: DocumentTooLarge) -> None:
        """Note a document that was not read before, and does not fit into memory. `finish` counts it as failed."""
        self._too_large.append((hit, error))

    def add_too_large(self, reference: Reference, error: DocumentTooLarge) -> None:
        """Count a document that does not fit into memory as failed."""
        reason = error.args[0].rstrip(".")
        self.tally.add_failed([Failure("failed", *reference, reason)], [reason])

    def settle(self, outcomes: Iterable[Outcome]) -> list[Action]:
        """Count outcomes; returns the actions with a version conflict."""
        conflicts: list[Action] = []
        for outcome in outcomes:
            if outcome.conflict:
                conflicts.append(replace(outcome.action, body={}))
                self.writer.note_conflict(outcome.action)
                self._sent_twice.update([outcome.action.address] if outcome.repeated else [])
                continue
            self.tally.add(outcome)
            if outcome.done:
                self.feed.note_written(outcome)
                self.feed.save()
                body = outcome.action.body
                fields = body.get("doc", body)[self.settings.prefix]
                self._count(fields["state"], fields["tokens"], fields["numeric"] is True)
            else:
                self.feed.leave(outcome.action)
        return conflicts

    def finish(self, conflicts: Sequence[Action]) -> None:
        """Count the documents that were not written."""
        for hit, error in self._too_large:
            self.tally.counts["read"] += 1
            self.feed.leave(hit)
            self.add_too_large(hit.reference, error)
        self.tally.add_conflicts(action.reference for action in conflicts)
        self.tally.add_failed(self.writer.failed.values(), self.writer.failures)

    def add(self, part: EnrichResult) -> None:
        """Add the result of a slice."""
        self.tally.add_all(part.tally)
        self.states.update(part.states)
        self.lengths.update(part.lengths)
        if part.notes is not None:
            self.feed.add(part.notes)
            self.feed.save()

    def result(self, request: EnrichRequest, before: Mapping[str, int], unknown: Mapping[str, str]) -> EnrichResult:
        """Store the progress of the feed, and return the counts. ``unknown``: see `ChangeFeed.unknown_changes`."""
        self.feed.store(whole=request.whole, skipped=frozenset() if request.rereads else unknown.keys())
        reasons = {name: self.feed.reason or why for name, why in unknown.items()}
        return EnrichResult(
            before,
            before["current"],
            self.tally,
            self.states,
            self.lengths,
            *request.unknown(reasons),
            self.feed.notes if request.task else None,
        )

    def _was_fingerprinted(self, hit: Hit) -> bool:
        """Whether the document had a fingerprint of the scheme."""
        stored = stored_fields(hit.source, self.settings.prefix)
        return stored.get("scheme") == self.settings.scheme.id and group_of(stored) is not None

    def _written_here(self, hit: Hit) -> bool:
        """Whether this run has written the document, though the answer was lost. A synthetic source returns the time
        with milliseconds."""
        at = str(stored_fields(hit.source, self.settings.prefix).get("at"))
        return hit.address in self._sent_twice and at.startswith(self.at.removesuffix("Z"))

    def _count(self, state: str, words: int, numeric: bool) -> None:
        self.states[state] += 1
        self.lengths[words] += 1
        self.tally.counts["numeric"] += numeric


def prepare_new(index: IndexHandle) -> None:
    """Add fields and settings to the mappings of indices that a rollover created. Raises `IndexUnusable` if these lack
    the text fields, `Forbidden` if the user may not change a mapping."""
    for name in index.target.new:
        mapping = Definitions(index.client, name).mappings()[name]
        check_text_fields(name, mapping, index.settings)
        Definitions(index.client, name).put_settings(mapping, index.settings)
