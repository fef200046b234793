"""Take our fields out of the documents again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from es_neardupe import options
from es_neardupe.commands.report_parts import WriteCounts, one_line
from es_neardupe.errors import BeingMigrated, InputError, NotFound
from es_neardupe.index import mapping as schema
from es_neardupe.index.hidden_indices import HiddenIndex, exists, hidden_index_name
from es_neardupe.index.index import Index, opened
from es_neardupe.index.migration_state import is_switching, phase_of, replaced_prefix
from es_neardupe.index.permissions import check_may_delete, check_sees_all, check_updates
from es_neardupe.index.storage import settings_mappings, sidecar_mappings
from es_neardupe.index.target import mappings_of, stored_settings
from es_neardupe.index.tuning import restore_abandoned, tuned_mappings
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Address, Hit, Reference
from es_neardupe.server.bulk import BulkCounts, chunked, write
from es_neardupe.server.client import Client, path, to_json
from es_neardupe.server.dry_run import DryRunClient, ShownRequest
from es_neardupe.server.fetch import fetch
from es_neardupe.server.search import count, knows, refresh

__all__ = ["CleanReport", "clean"]

_ROUNDS = 5


@dataclass(frozen=True)
class CleanReport:
    """``documents`` is the sum of the writes. The mapping stays: no server can remove a field from one."""

    index: str
    documents: int
    """That had fields of ours when the run read them."""
    writes: WriteCounts
    """Written are those without our fields now."""
    deleted_indices: tuple[str, ...]
    """Hidden indices of ours that were deleted: the registry of groups, the evidence of pairs, the sidecar indices."""
    dry_run: bool
    seconds: float = field(compare=False)
    requests: tuple[ShownRequest, ...] = ()
    """The first writes of a dry run, if they were asked for."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.documents,
            cleaned=self.writes.written,
            left=self.writes.left,
            dry_run=self.dry_run,
        )


def clean(
    index: Index,
    *,
    workers: options.Workers = 2,
    batch: options.Batch = 500,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
    progress: Progress = silent,
) -> CleanReport:
    """Remove our object field from every document, our hidden indices, and our settings from the mapping's ``_meta``.

    A server with scripts removes the field itself. One without gets each document back without the field, refused if
    it changed meanwhile, and past any ingest pipeline. With a sidecar index, that is deleted; of the
    documents, only group ids are removed then, where such were written. Afterwards ``init`` may choose other settings.
    A dry run can ``show_requests``, the first so many.
    """
    started = time.monotonic()
    rehearsal = DryRunClient(index.client, show_requests, dry_run=dry_run)
    if _is_clean(index):
        return CleanReport(index.name, 0, WriteCounts(written=0), (), dry_run, time.monotonic() - started)
    _check_migration(index)
    index = opened(index, adopting=True)
    plain = index.plain
    check_sees_all(index, "cleaning")
    sidecars = index.storage.sidecars
    hidden = [name for kind in HiddenIndex if exists(index.client, name := hidden_index_name(index.target, kind))]
    work = _Cleaning(index, batch, workers, progress)
    if not dry_run:
        check_may_delete(plain, [*hidden, *sidecars])
        index.storage.check_writable()
        check_updates(index, "cleaning", whole=work.whole)
        restore_abandoned(plain, tuned_mappings(plain, index.name, index.prefix))
    work.run(rehearsal if dry_run else None)
    if dry_run:
        _delete(rehearsal, *sidecars)
    elif not work.writes.left:
        _delete(plain, *hidden, *sidecars)
        index.storage.remove_settings()
    return CleanReport(
        index=index.name,
        documents=work.total,
        writes=work.writes,
        deleted_indices=() if work.writes.left else (*hidden, *sidecars),
        dry_run=dry_run,
        seconds=time.monotonic() - started,
        requests=rehearsal.shown,
    )


def _delete(client: Client, *names: str) -> None:
    """The sidecar indices last: as long as they exist, a killed run can be continued."""
    for name in names:
        with suppress(NotFound):
            client.request("DELETE", path(name))


class _Cleaning:
    """Takes our object field out of the documents that have it, and counts what became of each."""

    def __init__(self, index: Index, batch: int, workers: int, progress: Progress) -> None:
        self._index = index
        self._prefix = index.settings.prefix
        self._batch, self._workers, self._progress = batch, workers, progress
        self._query = {"exists": {"field": self._prefix}}
        self._writes = index.storage.groups_in_documents
        self._actions = _by_script if _has_scripts(index.plain) else _by_index
        self._open = dict[Address, Reference]()
        """Documents that were read, of which nobody knows yet that they are without our fields."""
        self._tally = BulkCounts()
        self._changed = set[Address]()
        """Those of them that somebody changed before our last write."""
        self.total = self._cleaned = self._deleted = self._conflicts = self._refused = 0

    @property
    def whole(self) -> bool:
        """Whether each document is written back as a whole."""
        return self._writes and self._actions is _by_index

    @property
    def writes(self) -> WriteCounts:
        """What became of the documents; the reasons are those of any round."""
        return WriteCounts(
            written=self._cleaned,
            conflicts=self._conflicts,
            deleted=self._deleted,
            refused=self._refused,
            refusals=self._tally.refusals,
        )

    def run(self, rehearsal: DryRunClient | None) -> None:
        """Several times, as documents may change under our hands. Nothing where we never wrote into them; with a
        ``rehearsal`` it is shown the first requests, and nothing is written."""
        if not self._writes:
            return
        found = self._count()
        if rehearsal is not None:
            self.total = self._cleaned = found
            self._rehearse(rehearsal)
            return
        for _ in range(_ROUNDS):
            if not found:
                break
            self._round(found)
            found = self._count()
        if self._open or found:
            self._settle()

    def _count(self) -> int:
        """Documents with fields of ours now."""
        refresh(self._index.plain, self._index.target.path)
        return count(self._index.plain, self._index.target.path, self._query)

    def _rehearse(self, rehearsal: DryRunClient) -> None:
        if rehearsal.full:
            return
        for _ in write(
            rehearsal, self._actions(self._hits(), self._prefix, BulkCounts()), batch=self._batch, workers=1
        ):
            if rehearsal.full:
                break

    def _round(self, number: int) -> None:
        hits = tracked(self._hits(), self._progress, "cleaning", number)
        actions = self._actions(self._met(hits), self._prefix, self._tally)
        for outcome in write(self._index.plain, actions, batch=self._batch, workers=self._workers):
            address = outcome.action.address
            if outcome.conflict:
                self._changed.add(address)
            else:
                self._changed.discard(address)
                self._tally.add(outcome)
            if (outcome.done or outcome.gone) and self._open.pop(address, None) is not None:
                self._cleaned += outcome.done
                self._deleted += outcome.gone

    def _met(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Count each document once, however often it is read before something becomes of it."""
        for hit in hits:
            self.total += hit.address not in self._open
            self._open[hit.address] = hit.reference
            yield hit

    def _hits(self) -> Iterator[Hit]:
        body = {"query": self._query, "_source": self._actions is _by_index}
        return (
            hit
            for page in self._index.plain.pages(self._index.target.path, body, page_size=self._batch)
            for hit in page
        )

    def _settle(self) -> None:
        """Documents whose last write was refused or conflicted may be gone, or without our fields all the same: the
        answer to a write of ours was lost, or somebody indexed them anew. All others are left, and those that got
        fields of ours after the last round."""
        for chunk in chunked(self._open.items(), 100):
            present = fetch(self._index.plain, [reference for _, reference in chunk], [self._prefix])
            for (address, _), hit in zip(chunk, present, strict=True):
                if hit is None:
                    self._deleted += 1
                elif self._prefix not in hit.source:
                    self._cleaned += 1
                elif address in self._changed:
                    self._conflicts += 1
                else:
                    self._refused += 1
        unmet = max(0, self._count() - self._conflicts - self._refused)
        self.total += unmet
        self._conflicts += unmet


def _check_migration(index: Index) -> None:
    """Raises `BeingMigrated` for fields that a migration needs."""
    mappings = settings_mappings(index.client, index.name, index.prefix).values()
    if phase_of(mappings, index.prefix) is not None or is_switching(mappings, replaced_prefix(index.prefix)):
        raise BeingMigrated(
            f"Index {index.name} is on its way to other keys: run `es-neardupe migrate {index.name}` to its end first, "
            f"or, before the switch, give up with `--abort`."
        )


def _is_clean(index: Index) -> bool:
    """Whether a run before this one has removed all there was: our mapping is there, our settings are not, and there is
    no sidecar index."""
    mappings = mappings_of(index.client, index.name)
    if any(stored_settings(one, index.prefix) is not None for one in mappings.values()):
        return False
    ours = [not schema.missing(one.get("properties", {}), index.prefix) for one in mappings.values()]
    return any(ours) and not sidecar_mappings(
        index.client, mappings, index.prefix
    )  # any: not in what a rollover made since


def _has_scripts(client: Client) -> bool:
    """Whether the server runs painless. Who may not try it there may still use it in updates."""
    return knows(client, "POST", path("_scripts", "painless", "_execute"), {"script": {"source": "true"}})


def _by_script(hits: Iterable[Hit], prefix: str, _: BulkCounts) -> Iterator[Action]:
    script = {"source": "ctx._source.remove(params.name)", "lang": "painless", "params": {"name": prefix}}
    for hit in hits:
        yield _action(hit, "update", {"script": script})


def _by_index(hits: Iterable[Hit], prefix: str, tally: BulkCounts) -> Iterator[Action]:
    for hit in hits:
        source = {name: value for name, value in hit.source.items() if name != prefix}
        try:
            to_json(source)
        except InputError:  # it holds a number or an array that would not come back as it is
            tally.note("a document cannot be written back without harm: its numbers or arrays are beyond Python's")
            continue
        yield _action(hit, "index", source, pipeline="_none")


def _action(hit: Hit, op: str, body: dict[str, Any], pipeline: str | None = None) -> Action:
    return Action(
        op=op,
        index=hit.index,
        id=hit.id,
        body=body,
        routing=hit.routing,
        seq_no=hit.seq_no,
        primary_term=hit.primary_term,
        pipeline=pipeline,
    )
