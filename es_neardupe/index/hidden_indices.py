"""Hidden indices: the registry of groups, the evidence of pairs, and the decisions of reviewers, an index for each.

They are hidden so that a pattern such as ``news-*`` does not include them in a search.

The name of a hidden index is made from other names, so an index of the user can have it, or a hidden index of another
owner. Therefore every hidden index, also a sidecar index, has an `OwnerMark` in the ``_meta`` of its mapping. An index
without the right one is not read, written or deleted.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

from es_neardupe.errors import Conflict, Forbidden, IndexUnusable, NameTaken, NotFound, RequestError
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.mapping import load_mapping
from es_neardupe.index.target import MAX_NAME, IndexTarget, check_same_settings
from es_neardupe.records import Action, Hit, Outcome, Server
from es_neardupe.server.client import Client, path, to_json
from es_neardupe.server.documents import Documents
from es_neardupe.wording import option

_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]")
_REMEMBERED = 60.0
"""Seconds for which an index is taken to exist, or not, by what reads it."""
_AT_ONCE = 0.1
"""Seconds for which it is taken to exist by what writes to it."""
_KEY = "neardupe.owner"
"""Key of the mark in ``_meta``. It contains a dot, so it cannot be a prefix."""


class HiddenIndex(str, Enum):
    """Kind of a hidden index; its mapping is ``mappings/<value>.json``."""

    GROUPS = "groups"
    """The registry: one document per group, the settings of the last run, and the lease of a running one."""
    PAIRS = "pairs"
    """The evidence: one document per verified pair."""
    DECISIONS = "decisions"
    """The decisions of reviewers. It survives migrations, and is only deleted on request."""


OF_KEYS = (HiddenIndex.GROUPS, HiddenIndex.PAIRS)
"""Those that follow from keys: a migration makes new ones under its second prefix."""


@dataclass(frozen=True, slots=True)
class OwnerMark:
    """What a hidden index contains, and for which index; stored in ``_meta`` when it is created.

    Indices are named, not identified by their uuid: an alias gets new indices by rollover, and an index that is deleted
    and created again, or restored from a snapshot, keeps its hidden indices. Entries of a sidecar index have the uuid.
    """

    kind: str
    """``groups``, ``pairs`` or ``sidecar``."""
    index: str
    """The index, alias, data stream or pattern that the hidden index belongs to."""
    prefix: str
    """As given: names of indices are lower case, so ``ND`` and ``nd`` result in one name."""

    def to_meta(self) -> dict[str, Any]:
        """The part of ``_meta``."""
        return {_KEY: {"kind": self.kind, "index": self.index, "prefix": self.prefix}}

    def check(self, name: str, mapping: Mapping[str, Any]) -> None:
        """Raises `NameTaken` if the mapping of the index ``name`` has no mark, or another one."""
        if (other := _mark_in(mapping)) == self:
            return
        if other is None:
            raise NameTaken(
                f"Index {name} has the name of a hidden index of {self.index}, but es-neardupe did not create it: its "
                f"_meta has no {_KEY}. It is not read, written or deleted. Choose another {option('prefix')}, or "
                f"rename or delete that index."
            )
        raise NameTaken(
            f"Index {name} belongs to {other.index} with prefix {other.prefix!r}, and {self.index} with prefix "
            f"{self.prefix!r} would use the same name. It is not read, written or deleted. Choose another "
            f"{option('prefix')} for one of them."
        )


def _mark_in(mapping: Mapping[str, Any]) -> OwnerMark | None:
    """The mark in a mapping; None if there is none, or a value that is no mark."""
    try:
        return OwnerMark(**mapping.get("_meta", {}).get(_KEY))
    except TypeError:
        return None


def check_not_hidden(mappings: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises `IndexUnusable` if one of these indices is a hidden one itself: it has no documents of its user."""
    for name, mapping in mappings.items():
        if (mark := _mark_in(mapping)) is not None:
            raise IndexUnusable(
                f"Index {name} is a hidden index of es-neardupe ({mark.kind} of {mark.index}), and cannot have keys of "
                f"its own: name {mark.index} instead."
            )


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document of a hidden index, with the version that was read."""

    source: Mapping[str, Any]
    seq_no: int
    primary_term: int


def hidden_index_name(target: IndexTarget, kind: HiddenIndex) -> str:
    """``<index>-<prefix>-groups`` for one concrete index; otherwise ``<prefix>-groups-<name>``, by the opened name.

    The second form is for names that resolve to several indices, and for rollover aliases, even if these have only one
    index now. The template of such indices (``<name>-*``) does not match it.
    """
    prefix, owner = target.settings.prefix.lower(), _owner(target)
    if _is_family(target):
        return index_name(owner, front=f"{prefix}-{kind.value}-")
    return index_name(owner, end=f"-{prefix}-{kind.value}")


def _is_family(target: IndexTarget) -> bool:
    return target.rollover_alias is not None or len(target.indices) > 1


def _owner(target: IndexTarget) -> str:
    """The name that hidden indices belong to: the opened one, or that of the only concrete index."""
    return target.name if _is_family(target) else target.indices[0]


def _mark(target: IndexTarget, kind: HiddenIndex) -> OwnerMark:
    return OwnerMark(kind.value, _owner(target), target.settings.prefix)


def index_name(name: str, *, front: str = "", end: str = "", instead: str = "_") -> str:
    """A valid name of an index that is made from another name.

    Characters that need not be allowed are replaced by ``instead``, leading dots (reserved for the server) are removed,
    and a long name is cut. A hash keeps such names distinct.
    """
    plain = _NOT_IN_NAMES.sub(instead, name.lstrip("."))
    room = MAX_NAME - len(front) - len(end)
    if plain != name or len(plain) > room:
        hashed = f"-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        plain = plain[: room - len(hashed)] + hashed
    return front + (plain if front else plain.lstrip("_-")) + end


def hidden_indices_of_all(client: Client, prefix: str, kind: HiddenIndex) -> list[str]:
    """The names of all hidden indices of a kind under a prefix, of any index; only those that this user may see."""
    lower = prefix.lower()
    patterns = f"*-{lower}-{kind.value},{lower}-{kind.value}-*"
    try:
        answer = client.request("GET", path(patterns, "_mapping"), params={"expand_wildcards": "all"})
    except (Forbidden, NotFound):
        return []
    marks = {name: _mark_in(entry["mappings"]) for name, entry in (answer or {}).items()}
    return sorted(name for name, mark in marks.items() if mark and (mark.kind, mark.prefix) == (kind.value, prefix))


def find(index: IndexHandle, kind: HiddenIndex) -> str | None:
    """The name of a hidden index, to read it; None if it does not exist. Raises `NameTaken` if another index has this
    name.

    What was found holds for the next minute: the steps of a command ask often. A write would create an index that was
    deleted in the meantime, without the mark, so `ensure` asks again.
    """
    name = hidden_index_name(index.target, kind)
    if (exists := _remembered(index, name, _REMEMBERED)) is None:
        return _found(index, kind)
    return name if exists else None


def _remembered(index: IndexHandle, name: str, seconds: float) -> bool | None:
    """Whether a hidden index exists, if that was found in the last seconds; None if not."""
    exists, at = index.hidden.get(name, (None, 0.0))
    return exists if time.monotonic() < at + seconds else None


def _found(index: IndexHandle, kind: HiddenIndex) -> str | None:
    """As `find`, now."""
    name, now = hidden_index_name(index.target, kind), time.monotonic()
    index.hidden.pop(name, None)
    try:
        answer = index.client.request("GET", path(name, "_mapping"))
    except NotFound:
        index.hidden[name] = False, now
        return None
    _mark(index.target, kind).check(name, answer.get(name, {}).get("mappings", {}))  # an alias has another key
    index.hidden[name] = True, now
    return name


def check_names(index: IndexHandle, kinds: Iterable[HiddenIndex] = HiddenIndex) -> None:
    """Raises `NameTaken` if another index has the name of a hidden index, of any of these kinds."""
    for kind in kinds:
        find(index, kind)


def ensure(index: IndexHandle, kind: HiddenIndex) -> str:
    """The name of a hidden index, created if it is missing.

    Raises `NameTaken` if another index has this name, `RequestError` if the user may not create it, and `Conflict` if
    the settings of the index were removed or replaced since it was opened.
    """
    name = hidden_index_name(index.target, kind)
    if _remembered(index, name, _AT_ONCE) or _found(index, kind) is not None:
        return name
    check_same_settings(index.server, index.target)  # a run that survives `clean` creates nothing again
    settings = hidden_settings(index.client.server, shards=1)
    mapping = {"_meta": _mark(index.target, kind).to_meta(), **load_mapping(kind.value)}
    try:
        index.client.request("PUT", path(name), body={"settings": settings, "mappings": mapping})
    except RequestError as error:
        if error.type != "resource_already_exists_exception":
            raise
        _found(index, kind)  # another run was faster, or another client
    else:
        index.hidden[name] = True, time.monotonic()
        _leave_aliases(index, name)
    return name


def hidden_settings(server: Server, *, shards: int) -> dict[str, Any]:
    """The settings of a new hidden index. Serverless services choose shards and replicas themselves."""
    chosen = {} if server.is_serverless else {"number_of_shards": shards, "auto_expand_replicas": "0-1"}
    return {"index": {"hidden": True, **chosen}}


def _leave_aliases(index: IndexHandle, name: str) -> None:
    """Remove a new index from the aliases that an index template gives it: searches of the user's indices by such an
    alias must not find it."""
    with suppress(Forbidden, NotFound):  # a collection may not show aliases
        aliases = index.client.request("GET", path(name, "_alias"))[name]["aliases"]
        if aliases:
            index.client.request("DELETE", path(name, "_alias", ",".join(aliases)))


def remove(index: IndexHandle, kinds: Iterable[HiddenIndex]) -> list[str]:
    """Delete hidden indices; returns the names of those that existed. Raises `NameTaken`, before any is deleted, if
    another index has the name of one."""
    names = [name for kind in kinds if (name := _found(index, kind)) is not None]
    index.hidden.clear()
    for name in names:
        with suppress(NotFound):
            index.client.request("DELETE", path(name))
    return names


class HiddenDocuments(Documents):
    """The documents of a hidden index by their ids, of any owner."""

    def read(self, id: str, *, existing: bool = False) -> StoredDocument | None:
        """The current version of a document, without a refresh; None if it or the index does not exist. ``existing``:
        raises `NotFound` if the index does not exist."""
        try:
            answer = self.client.request("GET", path(self.name, "_doc", id))
        except NotFound as error:
            if existing and error.type == "index_not_found_exception":
                raise
            return None
        return StoredDocument(answer["_source"], answer["_seq_no"], answer["_primary_term"])

    def put(self, id: str, source: Mapping[str, Any], before: StoredDocument | None) -> StoredDocument:
        """Replace the version ``before`` of a document, or create it (None); returns the new version. `read` returns it
        at once. The server would create a missing index: check first that it exists.

        Raises `Conflict` if another client has written it since. If the stored document equals ``source``, this is not
        a conflict: the answer to this write was lost, and the request was repeated.
        """
        params: dict[str, str | int | bool] = {"op_type": "create"}
        if before is not None:
            params = {"if_seq_no": before.seq_no, "if_primary_term": before.primary_term}
        try:
            answer = self.client.request("PUT", path(self.name, "_doc", id), params=params, body=source)
        except Conflict:
            stored = self.read(id)
            if stored is None or stored.source != json.loads(to_json(source)):
                raise
            return stored
        written = StoredDocument(source, answer["_seq_no"], answer["_primary_term"])
        return written if written.primary_term else self.read(id) or written  # some collections answer 0

    def delete(self, id: str) -> None:
        """Delete a document, whatever its version; does nothing if it or the index does not exist."""
        with suppress(NotFound):
            self.client.request("DELETE", path(self.name, "_doc", id))


class HiddenStore(HiddenDocuments):
    """The documents of a hidden index of an index, which need not exist.

    `exists`, `refreshed` and `create` raise `NameTaken` if another index has its name. The other methods do not check
    this: call one of the three first.
    """

    def __init__(self, index: IndexHandle, kind: HiddenIndex, client: Client | None = None) -> None:
        """``client``: reads and writes the documents; None: that of the index, which checks before it writes in bulk
        that the index was not replaced."""
        super().__init__(client or index.client, hidden_index_name(index.target, kind))
        self._index = index
        self._kind = kind

    def exists(self) -> bool:
        """Whether there is such an index."""
        return find(self._index, self._kind) is not None

    def refreshed(self) -> bool:
        """As `exists`. If so, it is refreshed, unless this user may not."""
        if found := self.exists():
            self.refresh_if_allowed()
        return found

    def create(self) -> None:
        """Create the index if it is missing; see `ensure`."""
        ensure(self._index, self._kind)

    def with_ids(self, ids: Iterable[str], *, batch: int | None = None) -> Iterator[Hit]:
        """Those of these documents that exist; see `es_neardupe.server.search.fetch`."""
        hits = self.fetch(((self.name, id, None) for id in ids), ["*"], batch=batch)
        return (hit for hit in hits if hit is not None)

    def write_in_order(self, actions: Iterable[Action]) -> Iterator[Outcome]:
        """Send actions in bulk requests, one after the other, and refresh after the last outcome. Raises as
        `es_neardupe.server.bulk.write`."""
        yield from self.write(actions, workers=1)
        self.refresh()
