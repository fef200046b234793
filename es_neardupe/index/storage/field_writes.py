"""Writes of the object of a prefix into documents, after which all other fields have the same values.

A server that updates a document in part, or by a script, rewrites all its numbers (`es_neardupe.server.numbers`). A
document with a number that would change is written as a whole instead, with the literals of its numbers, and so is one
with fields whose names have a dot, which a partial update keeps. Where that could change other fields, it is not
written at all.

So each write needs to know whether the document has such a number. ``enrich`` reads whole documents. Each partial
update stores a mark, ``checked``: a hash of the version that the document has after it. The server has rewritten all
numbers then, so while the document has this version, there is no such number. Any write of another client gives it
another version: then the whole document is read before it is written again. So is a copy in another index, since the
hash includes the uuid of the index. It also includes the name of the group field: a document that was written before
there was one can have a value of an application in it.

If the owner of an index sets the versions of its documents (`Settings.versions`), every document is written as a whole,
with the version that it has: a partial update would give it the next one, and the server would then reject the next
change or deletion by its owner, who takes that for a change that is there already.
"""

from __future__ import annotations

import binascii
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import xxhash

from es_neardupe.errors import InputError
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.mapping import dotted_names, field_types, foreign_value
from es_neardupe.index.permissions import check_updates
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import stored_fields
from es_neardupe.index.target import Definitions
from es_neardupe.log_events import log_event
from es_neardupe.options import Versions
from es_neardupe.records import Action, Address, Hit
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client, path
from es_neardupe.server.failures import Failure
from es_neardupe.server.numbers import document_json, has_unheld
from es_neardupe.server.request_sizes import size_of
from es_neardupe.server.search import fetch_whole

CHECKED = "checked"

_FETCH = 100
"""Documents looked at before they are read together, if some of them must be read."""

_DERIVED = {"semantic_text", "semantic", "knn_vector"}
"""Types of fields whose values the server stores apart from ``_source``, or computes when a whole document is
written."""


Removal = Callable[[Settings], Mapping[str, Any]]
"""Returns the body of the update that removes the fields of the settings."""


class Change(NamedTuple):
    """A document and the new fields of its object; None: the object is to be removed."""

    hit: Hit
    fields: Mapping[str, Any] | None
    checked: bool = False
    """Whether the document is known to have no number that a partial update changes."""
    document_bytes: int = 0
    """Approximate size of the document, if its source was not read."""


def document_writer(index: IndexHandle, client: Client, removal: Removal | None = None) -> FieldWriter:
    """A writer of the documents of an opened index. ``removal``: see `FieldWriter`. With a sidecar, documents have no
    field for the mark."""
    check_whole = partial(check_updates, index, "writing whole documents", whole=True)
    seeds = index.target.mark_seeds if index.target.sidecar is None else {}
    return FieldWriter(client, index.settings, seeds, check_whole, guarded=index.target.guarded, removal=removal)


def checked_mark(seed: str, version: int) -> str:
    """The mark of a document that has no value which a partial update would change, and this version."""
    digest = xxhash.xxh3_64_digest(f"{seed} {version}".encode())
    return binascii.b2a_base64(digest, newline=False).decode("ascii")


def checked_version(hit: Hit, seeds: Mapping[str, str]) -> int:
    """The version of a document that has its mark, under any prefix that was read; 0 without it. ``seeds``:
    `IndexTarget.mark_seeds`."""
    return hit.version if hit.version is not None and _has_mark(hit, seeds, hit.version) else 0


def has_fields_of_version_before(hit: Hit, seeds: Mapping[str, str]) -> bool:
    """Whether the version before that of a document has the mark, and the document still has the fields that were
    written with it. False after several writes of other clients: one of them can have brought back older fields."""
    return hit.version is not None and _has_mark(hit, seeds, hit.version - 1)


def _has_mark(hit: Hit, seeds: Mapping[str, str], version: int) -> bool:
    seed = seeds.get(hit.index)
    if seed is None:
        return False
    mark = checked_mark(seed, version)
    return any(type(one) is dict and one.get(CHECKED) == mark for one in hit.source.values())


def partial_update(hit: Hit, settings: Settings, fields: Mapping[str, Any], document_bytes: int = 0) -> Action:
    """The update of the fields of the settings, rejected by the server if the document has changed since it was
    read."""
    return _action("update", hit, {"doc": settings.in_document(fields)}, document_bytes=document_bytes)


class FieldWriter:
    """Makes the writes of one run.

    A document that cannot be written is in `failed`; each such document needs the server to change, or its owner to
    change the number, so it is not tried again in this run.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        seeds: Mapping[str, str] | None,
        check_whole: Callable[[], None] = lambda: None,
        *,
        guarded: Sequence[Settings] = (),
        removal: Removal | None = None,
    ) -> None:
        """``seeds``: `IndexTarget.mark_seeds`; empty without marks, None if the writes go to entries of a sidecar
        index, not to documents. ``check_whole``: raises an error if the user may not write whole documents.
        ``guarded``: `IndexTarget.guarded`. ``removal``: without it, documents are written as a whole to remove the
        fields."""
        self.client = client
        self.settings = settings
        self.failed: dict[Address, Failure] = {}
        """Documents that were not written, since other fields could change."""
        self.without_fields: set[Address] = set()
        """Documents that were not written, since there is nothing to remove: they only have values of an application
        under the names of the fields."""
        self._reasons: dict[str, str] = {}
        """Why -> the id of the first such document."""
        self._perhaps_whole: set[Address] = set()
        """Documents whose last write conflicted and was one of the whole document."""
        self._seeds = seeds
        self._guarded = guarded
        self._check_whole: Callable[[], None] | None = check_whole
        self._without_copy = replace(settings, group_field=None)
        self._removals = {} if removal is None else {one: removal(one) for one in (settings, self._without_copy)}
        self._external = settings.versions is Versions.EXTERNAL
        self._obstacles: dict[str, str | None] = {}

    @property
    def failures(self) -> tuple[str, ...]:
        """Why documents failed, with an example of each, in the order of occurrence."""
        return tuple(f"{why}, for example document {id!r}" for why, id in self._reasons.items())

    def writes(self, changes: Iterable[Change]) -> Iterator[Action]:
        """The writes of the changes, in any order. Documents that have no mark of their version are read for it.

        A document that was changed or deleted since it was read gets a write that the server rejects.
        """
        for chunk in chunked(changes, _FETCH):
            unknown = []
            for change in chunk:
                if self._needs_source(change):
                    unknown.append(change)
                else:
                    yield self._partial(change, self.settings)
            found = chain.from_iterable(fetch_whole(self.client, [change.hit.reference for change in unknown]))
            for change, hit in zip(unknown, found, strict=True):
                if hit is None or (hit.seq_no, hit.primary_term) != (change.hit.seq_no, change.hit.primary_term):
                    yield partial_update(change.hit, self.settings, {})
                else:
                    current = replace(hit, shard=change.hit.shard)
                    action = self.write(change._replace(hit=current, document_bytes=size_of(hit.source)))
                    if action is not None:
                        yield action

    def write(self, change: Change) -> Action | None:
        """The write of a document whose whole source was read; None if it cannot be written."""
        source, in_documents = change.hit.source, self._seeds is not None
        settings = self.settings if change.fields is not None else self.removed(source)
        if settings is None:
            self.without_fields.add(change.hit.address)
            return None
        if change.fields is not None and (foreign := self._foreign_value(source)) is not None:
            why = f"{foreign} has a value that es-neardupe did not write: rename or remove it in the document"
            self._leave(change.hit, why)
            return None
        whole = self._only_whole(change) or has_unheld(source)
        whole = whole or (in_documents and (self._external or bool(dotted_names(source, self.settings.prefix))))
        if not whole:
            return self._partial(change, settings)
        action = self._whole(change, settings)
        if (obstacle := self._obstacle(action)) is None:
            return action
        self._leave(change.hit, obstacle)
        return None

    def removed(self, source: Mapping[str, Any]) -> Settings | None:
        """The settings of the fields that are removed from a document: without the group field if its value is of an
        application. None if there is nothing to remove."""
        prefix, copy = self.settings.prefix, self.settings.group_field
        foreign = foreign_value(source, self.settings)
        if foreign is not None and foreign != copy:
            return None
        if copy is not None and foreign is None and source.get(copy):
            return self.settings
        has_object = source.get(prefix) is not None or dotted_names(source, prefix)
        return self._without_copy if has_object else None

    def _foreign_value(self, source: Mapping[str, Any]) -> str | None:
        """The name of a value of an application that would be overwritten, now or by the switch of a migration."""
        found = (foreign_value(source, settings) for settings in self._guarded)
        return next((name for name in found if name is not None), None)

    def _leave(self, hit: Hit, why: str) -> None:
        """Note that a document is not written."""
        if hit.address not in self.failed:
            log_event(logging.WARNING, "not_written", index=hit.index, id=hit.id, reason=why)
            self.failed[hit.address] = Failure("failed", *hit.reference, why)
        self._reasons.setdefault(why, hit.id)

    def note_conflict(self, action: Action) -> None:
        """Note a write of this run that conflicted. The reason can be that the server has done it before, and its
        answer was lost."""
        (self._perhaps_whole.add if action.whole else self._perhaps_whole.discard)(action.address)

    def wrote_whole(self, address: Address) -> bool:
        """Whether a document that has turned out to be written by this run, though its write conflicted, was written as
        a whole."""
        return address in self._perhaps_whole

    def _only_whole(self, change: Change) -> bool:
        return change.fields is None and not self._removals

    def _needs_source(self, change: Change) -> bool:
        if self._seeds is None:
            return False
        if self._external:
            return True
        return self._only_whole(change) or not (change.checked or checked_version(change.hit, self._seeds))

    def _partial(self, change: Change, settings: Settings) -> Action:
        hit, fields, _, document_bytes = change
        if fields is None:
            return _action("update", hit, self._removals[settings], document_bytes=document_bytes)
        seed = self._seeds.get(hit.index) if self._seeds else None
        if seed is not None and hit.version is not None:
            fields = {**fields, CHECKED: checked_mark(seed, hit.version + 1)}
        return partial_update(hit, settings, fields, document_bytes)

    def _whole(self, change: Change, settings: Settings) -> Action:
        hit, fields, *_ = change
        own = {*settings.in_documents, *dotted_names(hit.source, settings.prefix)}
        body = {name: one for name, one in hit.source.items() if name not in own}
        if fields is not None:
            before = stored_fields(hit.source, settings.prefix)
            stored = {name: one for name, one in before.items() if name != CHECKED}
            body |= settings.in_document({**stored, **fields})
        action = _action("index", hit, body, pipeline="_none", whole=True)
        if self._external:
            action.version = hit.version
        return action

    def _obstacle(self, action: Action) -> str | None:
        """Why writing a whole document could change its other fields; None if it cannot."""
        if self._check_whole is not None:
            self._check_whole()
            self._check_whole = None
        if action.index not in self._obstacles:
            self._obstacles[action.index] = self._obstacle_in(action.index)
        try:
            document_json(action.body)
        except InputError:
            return "a document must be written as a whole, and is nested too deeply for that"
        return self._obstacles[action.index]

    def _obstacle_in(self, index: str) -> str | None:
        whole = "must be written as a whole, without a change to other fields"
        for state in Definitions(self.client, index).states().values():
            if state.final_pipeline is not None:
                return (
                    f"documents of {index} {whole}, but its final pipeline {state.final_pipeline!r} would process them"
                )
        for entry in self.client.request("GET", path(index, "_mapping")).values():
            for field, kind in field_types(entry["mappings"].get("properties", {})):
                if kind in _DERIVED:
                    return f"documents of {index} {whole}, but the server may compute their {kind} field {field} again"
        return None


def _action(
    op: str,
    hit: Hit,
    body: Mapping[str, Any],
    *,
    pipeline: str | None = None,
    whole: bool = False,
    document_bytes: int = 0,
) -> Action:
    # by position, which takes half as long
    return Action(
        op,
        hit.index,
        hit.id,
        body,
        hit.routing,
        hit.seq_no,
        hit.primary_term,
        pipeline,
        whole,
        document_bytes,
        hit.shard,
    )
