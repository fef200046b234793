"""Steps of ``clean``: what is removed from documents, indices and the mapping."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from es_neardupe.errors import BeingMigrated, Forbidden, IndexUnusable, NameTaken, NotFound, NotInitialised
from es_neardupe.index import mapping as schema
from es_neardupe.index.hidden_indices import HiddenIndex, find, remove
from es_neardupe.index.index import Index, opened
from es_neardupe.index.migration_state import is_switching, phase_of, replaced_prefix
from es_neardupe.index.on_server.folding import default_pipelines, unfold
from es_neardupe.index.on_server.ingest_pipeline import OwnPipelines, delete_unused, users
from es_neardupe.index.rollover import alias_named, settings_of_next
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.field_writes import CHECKED, Change, document_writer
from es_neardupe.index.storage.same_indices import AT_ONCE, SameIndicesClient
from es_neardupe.index.storage.stored_settings import may_see_sidecars, settings_mappings, sidecar_mappings
from es_neardupe.index.stored_fields import count_of, stored_fields, text_bytes
from es_neardupe.index.target import IndexTarget, stored_settings
from es_neardupe.options import Versions
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Action, Address, Hit, Reference
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.bulk import BulkCounts, chunked, write
from es_neardupe.server.client import JSON, Client, path
from es_neardupe.server.documents import Documents
from es_neardupe.server.dry_run import DryRunClient
from es_neardupe.server.failures import Failure
from es_neardupe.server.search import knows
from es_neardupe.wording import command

_ROUNDS = 5


def left_in_mapping(index: Index) -> tuple[str, ...]:
    """The fields of this program that a mapping of the index has."""
    with suppress(NotFound):
        mappings = index.definitions.mappings().values()
        return tuple(
            name
            for name in index.settings.in_documents
            if any(schema.is_mapped(mapping.get("properties", {}), name) for mapping in mappings)
        )
    return ()


def is_in_template(index: Index) -> bool:
    """Whether an index template adds the fields to the next index of a data stream, or of an alias with a write index,
    as far as this user may see it."""
    rollover = index.target.rollover_alias
    return rollover is not None and bool(settings_of_next(index.server, rollover, index.settings.prefix))


def remove_folding(index: Index, client: Client) -> tuple[str, ...]:
    """Remove the search pipeline of `fold`; returns the indices that had it."""
    field = index.settings.group_field
    return () if field is None else unfold(client, default_pipelines(index), field)


def check_callers(own: OwnPipelines) -> None:
    """Raises `IndexUnusable` if an ingest pipeline of `pipeline` could make keys after the fields were removed."""
    for name in own.stored:
        if callers := [str(one) for one in users(own.client, name) if one.kind != "index"]:
            raise IndexUnusable(
                f"The ingest pipeline {name}, which makes keys of {own.index.name}, is also used by "
                f"{', '.join(callers)}: remove it there first."
            )


def remove_pipelines(own: OwnPipelines, client: Client) -> tuple[str, ...]:
    """Remove the ingest pipelines of `pipeline` from the settings of the indices, then from the server, unless other
    indices use them; returns those that were deleted."""
    kept = delete_unused(client, own.stored, own.unset(client))
    return tuple(sorted(own.stored.keys() - kept.keys()))


def delete(client: Client, *names: str) -> None:
    """Delete indices in this order."""
    for name in names:
        with suppress(NotFound):
            client.request("DELETE", path(name))


def remove_settings(index: Index, kinds: Iterable[HiddenIndex]) -> None:
    """Remove the settings, then delete the sidecar indices and hidden indices of these kinds.

    Other runs look at the settings before they write. So after the time for which a check of theirs holds, none of them
    creates again what is deleted.
    """
    index.storage.remove_settings()
    time.sleep(2 * AT_ONCE)
    delete(index.server, *index.storage.sidecars)
    remove(index, kinds)


class Cleaning:
    """Removes the object field from the documents that have it, and counts each document by its outcome."""

    def __init__(self, index: Index, batch: int, workers: int, progress: Progress) -> None:
        index = index.with_target(replace(index.target, opened_with={}))  # this run removes the settings
        self._index = index
        self._documents = Documents(SameIndicesClient(index), index.path)
        self._prefix, self._names = index.settings.prefix, index.settings.in_documents
        self._batch, self._workers, self._progress = batch, workers, progress
        having = [{"exists": {"field": name}} for name in self._names]
        self._query = having[0] if len(having) == 1 else {"bool": {"should": having, "minimum_should_match": 1}}
        self._in_documents = index.storage.groups_in_documents
        removal = _removal if _has_scripts(index.server) else None
        self._writer = document_writer(index, self._documents.client, removal)
        self._whole = removal is None
        self._pending = dict[Address, Reference]()
        """Documents that were read and may still have the fields."""
        self._unwritten = dict[Address, Failure]()
        """Pending documents whose last write was rejected, or conflicted with another client."""
        self._tally = BulkCounts()
        self.total = 0

    @property
    def rewrites_documents(self) -> bool:
        """Whether each document is written back as a whole."""
        return self._in_documents and self._whole

    @property
    def writes(self) -> WriteCounts:
        """Documents by outcome."""
        return WriteCounts.of(self._tally)

    def run(self) -> None:
        """Clean in several rounds, as other clients may change documents. Does nothing without fields in documents."""
        if not self._in_documents:
            return
        remaining = self._count()
        for _ in range(_ROUNDS):
            if remaining <= len(self._writer.failed) + len(self._writer.without_fields):
                break
            self._round(remaining)
            remaining = self._count()
        if self._pending or remaining > len(self._writer.without_fields):
            self._settle()

    def dry_run(self, client: DryRunClient) -> None:
        """Count the documents, and send the first write requests to the client of a dry run."""
        if not self._in_documents:
            return
        self.total = self._count()
        for outcome in write(client, self._actions(self._hits()), batch=self._batch, workers=1):
            self._tally.add(outcome)
        self.total -= len(self._writer.without_fields)
        self._tally.add_failed(self._writer.failed.values(), self._writer.failures)

    def _count(self) -> int:
        """Number of documents that have the fields now."""
        self._documents.refresh()
        return self._documents.count(self._query)

    def _round(self, number: int) -> None:
        """Clean the ``number`` documents that have the fields now."""
        hits = tracked(self._hits(), self._progress, "cleaning", number)
        actions = self._actions(self._noted(hits))
        for outcome in self._documents.write(actions, batch=self._batch, workers=self._workers):
            address = outcome.action.address
            if outcome.conflict:
                self._writer.note_conflict(outcome.action)
                self._unwritten[address] = Failure.conflict(outcome.action.reference)
            elif not (outcome.done or outcome.gone):
                self._unwritten[address] = Failure.refused(outcome)
            elif self._pending.pop(address, None) is not None:
                self._unwritten.pop(address, None)
                self._tally.add(outcome)
        for address in self._pending.keys() & self._writer.without_fields:
            del self._pending[address]
            self.total -= 1

    def _noted(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Note the documents as pending, and count each once, even if several rounds read it."""
        for hit in hits:
            self.total += hit.address not in self._pending
            self._pending[hit.address] = hit.reference
            yield hit

    def _actions(self, hits: Iterable[Hit]) -> Iterator[Action]:
        return self._writer.writes(map(self._change, hits))

    def _change(self, hit: Hit) -> Change:
        tokens = count_of(stored_fields(hit.source, self._prefix), "tokens")
        return Change(hit, None, document_bytes=text_bytes(tokens))

    def _hits(self) -> Iterator[Hit]:
        body = {"query": self._query, "_source": [f"{self._prefix}.{CHECKED}", f"{self._prefix}.tokens"]}
        for page in self._documents.pages(body, page_size=self._batch):
            yield from page

    def _settle(self) -> None:
        """Read the pending documents again and count them.

        A document whose last write was refused or conflicted may have been deleted, or may no longer have the fields:
        the answer to an earlier write was lost, or another client indexed it again. All others are left, as are the
        documents that got the fields after the last round.
        """
        counts, left = self._tally.counts, set[Address]()
        for chunk in chunked(self._pending.items(), 100):
            current = self._documents.fetch([reference for _, reference in chunk], self._names, batch=100)
            for (address, reference), hit in zip(chunk, current, strict=True):
                if hit is None:
                    counts["deleted"] += 1
                elif self._writer.removed(hit.source) is None:
                    counts["written"] += 1
                    counts["whole"] += self._writer.wrote_whole(address)
                else:
                    failed, unwritten = self._writer.failed.get(address), self._unwritten.get(address)
                    self._tally.leave(failed or unwritten or Failure.conflict(reference))
                    left.add(address)
        self._pending.clear()
        self._tally.add_failed((), self._writer.failures)
        self._documents.refresh()
        for hit in self._hits():
            if hit.address not in left and hit.address not in self._writer.without_fields:
                self.total += 1
                self._tally.leave(Failure.conflict(hit.reference))


def check_migration(index: Index) -> None:
    """Raises `BeingMigrated` if a migration needs the fields."""
    mappings = settings_mappings(index, index.prefix).values()
    if phase_of(mappings, index.prefix) is not None or is_switching(mappings, replaced_prefix(index.prefix)):
        raise BeingMigrated(
            f"Index {index.name} is being migrated to new keys: complete the migration with "
            f"`{command('migrate', index.name)}` first, or, before the switch, cancel it with `--abort`."
        )


def of_former(index: Index, kinds: Iterable[HiddenIndex]) -> list[str]:
    """The hidden indices that a clean or deleted index still has, of those that this user may see: it was deleted, also
    if it was created again, it was cleaned together with others by an alias, or its decisions were kept."""
    found: list[str] = []
    for kind in kinds:
        with suppress(Forbidden, NameTaken):
            if (name := find(index, kind)) is not None:
                found.append(name)
    with suppress(Forbidden, NameTaken):
        found += sidecar_mappings(index.client, {name: {} for name in index.target.indices}, index.prefix)
    return found


def without_settings(index: Index) -> Index:
    """A clean or deleted index, with what the names of its hidden indices are made from. It is unknown who sets the
    versions of its documents, so they keep them."""
    settings = Settings(("unknown",), prefix=index.prefix, versions=Versions.EXTERNAL)
    try:
        metadata = index.definitions.metadata()
    except NotFound:
        return index.with_target(IndexTarget(index.name, (index.name,), settings, 0))
    rollover = alias_named(metadata.rollover_aliases(index.name), index.name)
    indices = tuple(sorted(metadata.mappings))
    return index.with_target(
        IndexTarget(index.name, indices, settings, 0, rollover_alias=rollover, states=metadata.states)
    )


def is_clean(index: Index) -> bool:
    """Whether the index was never prepared, or an earlier run has cleaned it: it has no settings and no sidecar index,
    its mapping has no `neardupe` fields but as they were added, which no server can remove, and no document has them.
    Also whether it was deleted, and has left hidden indices. Raises `NotFound` if there is nothing of it."""
    client, prefix = index.client, index.prefix
    try:
        mappings = index.definitions.mappings()
    except NotFound:
        if of_former(without_settings(index), HiddenIndex):
            return True
        raise
    if any(stored_settings(one, prefix) is not None for one in mappings.values()):
        return False
    sidecars = sidecar_mappings(client, mappings, prefix).values()
    if any(stored_settings(one, prefix) is not None for one in sidecars):
        return False
    if _are_mapped(mappings, prefix):
        return not _fields_conflict(mappings, prefix) and not _documents_with_fields(index)
    return may_see_sidecars(index, prefix)


def _are_mapped(mappings: Mapping[str, JSON], prefix: str) -> bool:
    return any(schema.has_own_fields(one, prefix) for one in mappings.values())


def _fields_conflict(mappings: Mapping[str, JSON], prefix: str) -> bool:
    """Whether the mapped fields are not as they were added."""
    mapped = [one for one in mappings.values() if schema.has_own_fields(one, prefix)]
    return any(schema.conflicts(one, Settings(("unknown",), prefix=prefix)) for one in mapped)


def _documents_with_fields(index: Index) -> int:
    """The number of documents that have the fields, whatever the settings are."""
    documents = Documents(index.server, index.name)
    documents.refresh_if_allowed()
    return documents.count({"exists": {"field": index.prefix}})


def opened_with_keys(index: Index) -> Index:
    """The index, opened to be cleaned; without settings, if documents got the fields when these had been removed.
    Raises `IndexUnusable` if some of several indices are clean already."""
    try:
        return opened(index, adopting=True, groups=True)
    except NotInitialised as error:
        mappings = index.definitions.mappings()
        clean = [name for name, one in mappings.items() if stored_settings(one, index.prefix) is None]
        with_keys = sorted(mappings.keys() - set(clean))
        if not with_keys:
            is_left = _are_mapped(mappings, index.prefix) and not _fields_conflict(mappings, index.prefix)
            if is_left and not sidecar_mappings(index.client, mappings, index.prefix):
                return without_settings(index)
            raise
        commands = " and ".join(f"`{command('clean', name)}`" for name in with_keys)
        raise IndexUnusable(
            f"Index {', '.join(clean)} of {index.name} has no keys any more: clean the others by their names, with "
            f"{commands}, then {index.name} again."
        ) from error


def _has_scripts(client: Client) -> bool:
    """Whether the server runs Painless scripts. A user without access to this API may still use them in updates."""
    return knows(client, "POST", path("_scripts", "painless", "_execute"), {"script": {"source": "true"}})


def _removal(settings: Settings) -> dict[str, Any]:
    """The update that removes the fields, also those that another program has written with a dot in their names."""
    source = "ctx._source.keySet().removeIf(name -> params.names.contains(name) || name.startsWith(params.dotted))"
    params = {"names": list(settings.in_documents), "dotted": f"{settings.prefix}."}
    return {"script": {"source": source, "lang": "painless", "params": params}}
