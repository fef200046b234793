"""Lease of an index: a document in the registry, so that only one run at a time writes groups.

A lease is taken by optimistic concurrency. An index can be opened by several names (its own, an alias, a pattern), each
with its own registry. So after taking a lease, a run reads the leases in all other registries; if a valid one includes
any of the same concrete indices, the run ends. Each of two runs writes its lease before it reads the other's: they
never both continue, but both can end.

No clocks are compared. The holder renews its lease twelve times in its period by increasing a counter. Another run
watches the lease: if the counter increases, the holder is alive; if it does not for the whole period, by the clock of
the watching run, the lease is taken, unless it is renewed in this very moment. A holder that was suspended for so long
notices at its next `Lease.check`. The lease of a process of this machine that no longer exists is taken at once, and so
is that of a run of this process that ended without releasing it.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from itertools import chain, count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil

from es_neardupe.errors import Conflict, Forbidden, LeaseHeld, LeaseLost, NeardupeError
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.hidden_indices import (
    HiddenDocuments,
    HiddenIndex,
    HiddenStore,
    StoredDocument,
    hidden_indices_of_all,
)
from es_neardupe.index.target import IndexTarget
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Reference
from es_neardupe.server.client import JSON
from es_neardupe.server.request_sizes import RequestSize, in_requests

LEASE_ID = "lease"
"""Id of the lease for writing groups, a document in the registry."""

_RUNNING: set[str] = set()
"""Tokens of the runs of this process that have not ended."""

_REGISTRIES = 100
"""Number of registries whose leases are read at a time."""

_RENEWALS = 12
"""Number of renewals in the period of a lease."""

_MAX_PERIOD = 600.0
"""Maximum period of a stored lease in seconds: no run watches a forged one for longer."""

_RELEASE_TIMEOUT = 5
"""Maximum number of seconds to wait for the server to release the lease at the end of a run."""


@contextmanager
def held(
    index: IndexHandle, command: str = "group", *, seconds: float = 60, id: str = LEASE_ID, progress: Progress = silent
) -> Iterator[Lease]:
    """Hold the lease of an index during a block. It is released at the end, also after an error.

    Leases with another ``id`` are for other operations than writing groups. ``seconds``: the period of the lease. Call
    `Lease.check` before each step that writes. Raises `LeaseHeld` if another run has the lease, after watching it until
    it is renewed, and what `hidden_indices.ensure` raises if the registry cannot be created.
    """
    registry = HiddenStore(index, HiddenIndex.GROUPS)
    registry.create()
    lease = Lease(registry, index.target, command, seconds, id, progress)
    done = Event()
    renewing = Thread(target=lease.keep, args=(done,), name="lease", daemon=True)
    try:
        lease.take()
        renewing.start()
        lease.give_way()
        yield lease
    finally:
        done.set()
        if renewing.ident is None:  # after an error of `take`, which may have written the lease
            renewing.start()
        renewing.join(_RELEASE_TIMEOUT)
        _RUNNING.discard(lease.token)


@dataclass(frozen=True)
class Lease:
    """The exclusive right of a run to write the groups of an index."""

    registry: HiddenDocuments
    """Where the document is."""
    target: IndexTarget
    """The indices that the run processes."""
    command: str
    seconds: float
    id: str = LEASE_ID
    progress: Progress = silent
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """Identifies the run."""
    taken: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    renewals: Iterator[int] = field(default_factory=count, repr=False)

    def take(self) -> None:
        """Write the lease if there is none, or if the stored one can be taken. Raises `LeaseHeld`, and `NotFound` if
        the registry was deleted: a write would create it again."""
        _RUNNING.add(self.token)
        while True:
            document = self.registry.read(self.id, existing=True)
            other = _decode_document(document)
            if other is None or other.is_free or self._outlasts(other, self.registry, self.target.name):
                with suppress(Conflict):  # another run was faster
                    self._store(document)
                    return

    def give_way(self) -> None:
        """Raises `LeaseHeld` if a run that opened the index by another name has any of the same concrete indices. Call
        it after `take`."""
        for registry, other in self._others():
            shared = sorted(other.indices.intersection(self.target.indices))
            if shared and not other.is_free and self._outlasts(other, registry, shared[0]):
                self._end(other, registry, shared[0])

    def _end(self, other: _StoredLease, registry: HiddenDocuments, index: str) -> None:
        """Mark the lease of a dead run as returned, so that this run loses it if it was only suspended."""
        document = registry.read(self.id)
        if document is None or _decode(document.source) != other:
            raise LeaseHeld(other.description(index))
        value = {**document.source["value"], "returned": written_now()}
        try:
            registry.put(self.id, {**document.source, "value": value}, document)
        except Conflict as error:
            raise LeaseHeld(other.description(index)) from error
        except Forbidden:  # a user of other indices; the mark is not necessary for this run
            pass

    def _outlasts(self, other: _StoredLease, registry: HiddenDocuments, index: str) -> bool:
        """Watch the lease of another run. Returns whether it was not renewed for its period; False: it was released.
        Raises `LeaseHeld` when it is renewed."""
        found = _watched(registry, self.id, other, self.progress)
        if found is _Watched.RENEWED:
            raise LeaseHeld(other.description(index))
        return found is _Watched.UNCHANGED

    def _others(self) -> list[tuple[HiddenDocuments, _StoredLease]]:
        """The current leases in the other registries that this user may read, with their registries."""
        client = self.registry.client
        registries = hidden_indices_of_all(client, self.target.settings.prefix, HiddenIndex.GROUPS)
        docs = [{"_index": name, "_id": self.id} for name in sorted(set(registries) - {self.registry.name})]

        def request(some: list[JSON]) -> list[JSON]:
            answer: JSON = client.request("POST", "/_mget", body={"docs": some})
            return list(answer["docs"])

        def reference(doc: JSON) -> Reference:
            return doc["_index"], doc["_id"], None

        try:
            found = list(chain.from_iterable(in_requests(RequestSize.fixed(_REGISTRIES), docs, request, reference)))
        except Forbidden:
            return []
        sources = ((one["_index"], one["_source"]) for one in found if one.get("found"))
        return [(HiddenDocuments(client, name), lease) for name, source in sources if (lease := _decode(source))]

    def check(self) -> None:
        """Renew the lease, so that no other run can take it during its period. Raises `LeaseLost` if another run has
        taken it, for instance while this process was suspended.

        It is read first, which shows that the registry still exists and is that of this run: what is written to the
        registry next needs no other check. A write alone would create a deleted registry again.
        """
        while self._is_own(document := self.registry.read(self.id)):
            with suppress(Conflict):  # the thread that renews it was faster, or another run
                self._store(document)
                return
        raise LeaseLost(
            f"This run has lost its lease on index {self.target.name}: it was suspended or without a connection for "
            f"too long, or the lease was deleted. Nothing more is written: run the same command again."
        )

    def keep(self, done: Event) -> None:
        """Renew the lease until ``done``, then release it, so that the next run can take it at once.

        Errors are ignored: the next renewal can succeed, `check` notices a lost lease, and a lease that is not released
        is taken after its period.
        """
        while not done.wait(self.seconds / _RENEWALS):
            self._write_if_own()
        self._write_if_own(returned=_written(_now()))

    def _write_if_own(self, **more: str) -> None:
        with suppress(NeardupeError):
            if self._is_own(document := self.registry.read(self.id)):
                self._store(document, **more)

    def _is_own(self, document: StoredDocument | None) -> bool:
        stored = _decode_document(document)
        return stored is not None and stored.token == self.token and not stored.returned

    def _store(self, before: StoredDocument | None, **more: str) -> None:
        value = {
            "holder": {"host": socket.gethostname(), "machine": _machine(), "pid": os.getpid(), "token": self.token},
            "command": self.command,
            "indices": list(self.target.indices),
            "taken": _written(self.taken),
            "seconds": self.seconds,
            "renewals": next(self.renewals),
            **more,
        }
        self.registry.put(self.id, {"kind": "lease", "value": value}, before)


@dataclass(frozen=True, slots=True)
class _StoredLease:
    """A lease as stored in a registry."""

    host: str
    machine: str | None
    pid: int
    token: str
    command: str
    taken: datetime
    """By the clock of the holder."""
    seconds: float
    """Its period."""
    renewals: int
    returned: bool
    indices: frozenset[str]
    """The concrete indices of the run."""

    @property
    def is_free(self) -> bool:
        """Whether it can be taken without watching it."""
        return self.returned or self._is_dead()

    @property
    def is_here(self) -> bool:
        """Whether the holder is a run of this process that has not ended."""
        return self.machine == _machine() and self.pid == os.getpid() and self.token in _RUNNING

    def _is_dead(self) -> bool:
        """Whether the holder was a process of this machine that no longer exists, or a run of this process that has
        ended."""
        if self.machine is None or self.machine != _machine():
            return False
        if self.pid == os.getpid():
            return self.token not in _RUNNING
        return not psutil.pid_exists(self.pid)

    def description(self, index: str) -> str:
        """The run that holds the lease, for a message."""
        return f"Another run ({self.holder}) is processing index {index}. Wait until it ends."

    @property
    def holder(self) -> str:
        """Command, process and start of the holder."""
        since = f"{self.taken:%Y-%m-%d %H:%M:%S} UTC by its clock"
        return f"{self.command}, pid {self.pid} on host {self.host}, since {since}"


class _Watched(Enum):
    """Result of watching a lease."""

    RELEASED = "released"
    RENEWED = "renewed"
    """By its holder, or taken by another run."""
    UNCHANGED = "unchanged"
    """For its whole period."""


def _watched(registry: HiddenDocuments, id: str, first: _StoredLease, progress: Progress = silent) -> _Watched:
    """Watch a lease, seen ``first`` just now, until it changes, at most for its period by the clock of this process."""
    if first.is_here:
        return _Watched.RENEWED
    started = time.monotonic()
    while (seconds := time.monotonic() - started) < first.seconds:
        progress("watching the lease of another run", int(seconds), int(first.seconds))
        time.sleep(min(1, first.seconds / _RENEWALS))
        lease = _decode_document(registry.read(id))
        if lease is None or lease.is_free:
            return _Watched.RELEASED
        if lease != first:
            return _Watched.RENEWED
    return _Watched.UNCHANGED


def is_held(registry: HiddenDocuments, id: str, token: str, progress: Progress = silent) -> bool:
    """Whether the run with this token holds a lease. If that is not known at once, the lease is watched."""
    stored = _decode_document(registry.read(id))
    if stored is None or stored.token != token or stored.is_free:
        return False
    return _watched(registry, id, stored, progress) is _Watched.RENEWED


def holder(index: IndexHandle) -> str | None:
    """The run that holds the lease for writing groups, for a message; None if no run does. A run that was killed on
    another machine still holds it."""
    stored = _decode_document(HiddenStore(index, HiddenIndex.GROUPS).read(LEASE_ID))
    return None if stored is None or stored.is_free else stored.holder


def delete_lease(index: IndexHandle) -> None:
    """Delete the lease for writing groups, from any holder. A holder that is alive stops before its next write."""
    HiddenStore(index, HiddenIndex.GROUPS).delete(LEASE_ID)


def _decode_document(document: StoredDocument | None) -> _StoredLease | None:
    return None if document is None else _decode(document.source)


def _decode(source: Mapping[str, Any]) -> _StoredLease | None:
    """Decode what `Lease` stored; None for any other value, which is ignored."""
    try:
        value = source["value"]
        holder = value["holder"]
        machine, pid, token = holder["machine"], holder["pid"], holder["token"]
        if not isinstance(pid, int) or not 0 < pid < 2**31 or not isinstance(token, str):
            return None
        taken = datetime.fromisoformat(value["taken"]).astimezone(timezone.utc)
        seconds, renewals = value["seconds"], value["renewals"]
        if not isinstance(seconds, int | float) or not 0 < seconds <= _MAX_PERIOD or not isinstance(renewals, int):
            return None
        indices = frozenset(value["indices"]) if "indices" in value else frozenset[str]()
        command, returned = str(value["command"]), "returned" in value
        host = str(holder["host"])
        return _StoredLease(host, machine, pid, token, command, taken, seconds, renewals, returned, indices)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _machine() -> str | None:
    """An id of the boot and the process namespace (of a container) that process ids belong to; None if the system has
    none.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _now() -> datetime:
    return datetime.now(timezone.utc)


def written_now() -> str:
    """The current time in the format of leases."""
    return _written(_now())


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
