"""Lease of an index: a document in the registry, so that only one run at a time writes groups.

A lease is taken by optimistic concurrency. An index can be opened by several names (its own, an alias, a pattern), each
with its own registry. So after taking a lease, a run reads the leases in all other registries; if a valid one includes
any of the same concrete indices, the run ends. Each of two runs writes its lease before it reads the other's: they
never both continue, but both can end.

Expiry depends on the clocks of the machines. A lease is renewed after a third of its time, so if clocks differ by more
than two thirds of it, a run can take the lease of another that is still running; that one notices at its next
`Lease.check`. The lease of a process of this machine that no longer exists can be taken at once, and so can that of a
run of this process that ended without releasing it. Any other lease can be taken when it has expired.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import psutil

from es_neardupe.errors import Conflict, Forbidden, LeaseHeld, LeaseLost, NeardupeError
from es_neardupe.index.hidden_indices import HiddenIndex, StoredDocument, ensure, hidden_indices_of_all, read, store
from es_neardupe.index.target import IndexTarget
from es_neardupe.server.client import Client

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["LEASE_ID", "Lease", "held", "is_held", "written_now"]

LEASE_ID = "lease"
"""Id of the lease for writing groups, a document in the registry."""

_RUNNING: set[str] = set()
"""Tokens of the runs of this process that have not ended."""

_RELEASE_TIMEOUT = 5
"""Maximum number of seconds to wait for the server to release the lease at the end of a run."""


@contextmanager
def held(index: Index, command: str = "group", *, seconds: float = 60, id: str = LEASE_ID) -> Iterator[Lease]:
    """Hold the lease of an index during a block. It is released at the end, also after an error.

    Leases with another ``id`` are for other operations than writing groups. Call `Lease.check` before each step that
    writes. Raises `LeaseHeld` if another run has the lease, and what `hidden_indices.ensure` raises if the registry
    cannot be created.
    """
    lease = Lease(index.client, ensure(index, HiddenIndex.GROUPS), index.target, command, seconds, id)
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

    client: Client
    registry: str
    """The index that holds the document."""
    target: IndexTarget
    """The indices that the run processes."""
    command: str
    seconds: float
    id: str = LEASE_ID
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """Identifies the run."""
    taken: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def take(self) -> None:
        """Write the lease if there is none, or if the stored one can be taken. Raises `LeaseHeld`.

        The lease is read back after writing: the answer to a write can be lost, and another run can be faster.
        """
        _RUNNING.add(self.token)
        while not self._is_own(document := self._read()):
            other = _decode_document(document)
            if other is not None and not other.is_free:
                raise LeaseHeld(other.description(self.target.name))
            with suppress(Conflict):
                self._store(document)

    def give_way(self) -> None:
        """Raises `LeaseHeld` if a run that opened the index by another name has any of the same concrete indices. Call
        it after `take`."""
        for other in self._others():
            if not other.is_free and (shared := sorted(other.indices.intersection(self.target.indices))):
                raise LeaseHeld(other.description(shared[0]))

    def _others(self) -> list[_StoredLease]:
        """The current leases in the other registries that this user may read."""
        registries = hidden_indices_of_all(self.client, self.target.settings.prefix, HiddenIndex.GROUPS)
        names = set(registries) - {self.registry}
        if not names:
            return []
        docs = [{"_index": name, "_id": self.id} for name in sorted(names)]
        try:
            answer = self.client.request("POST", "/_mget", body={"docs": docs})
        except Forbidden:
            return []
        sources = (one["_source"] for one in answer["docs"] if one.get("found"))
        return [lease for lease in map(_decode, sources) if lease is not None]

    def check(self) -> None:
        """Raises `LeaseLost` if another run has taken the lease, for instance while this process was suspended."""
        document = self._read()
        if self._is_own(document) and (stored := _decode_document(document)) is not None and stored.is_expired:
            with suppress(Conflict):
                self._store(document)
            document = self._read()
        if not self._is_own(document):
            raise LeaseLost(
                f"This run was suspended for so long that its lease on index {self.target.name} expired, and another "
                f"run took or removed it. Nothing more is written: run the same command again when the other is done."
            )

    def keep(self, done: Event) -> None:
        """Renew the lease every third of its time until ``done``, then release it, so that the next run can take it at
        once.

        Errors are ignored: the next renewal can succeed, `check` notices a lost lease, and a lease that is not released
        expires.
        """
        while not done.wait(self.seconds / 3):
            self._write_if_own()
        self._write_if_own(returned=_written(_now()))

    def _write_if_own(self, **more: str) -> None:
        with suppress(NeardupeError):
            if self._is_own(document := self._read()):
                self._store(document, **more)

    def _read(self) -> StoredDocument | None:
        return read(self.client, self.registry, self.id)

    def _is_own(self, document: StoredDocument | None) -> bool:
        stored = _decode_document(document)
        return stored is not None and stored.token == self.token

    def _store(self, before: StoredDocument | None, **more: str) -> None:
        value = {
            "holder": {"host": socket.gethostname(), "machine": _machine(), "pid": os.getpid(), "token": self.token},
            "command": self.command,
            "indices": list(self.target.indices),
            "taken": _written(self.taken),
            "expires": _written(_now() + timedelta(seconds=self.seconds)),
            **more,
        }
        store(self.client, self.registry, self.id, {"kind": "lease", "value": value}, before)


@dataclass(frozen=True, slots=True)
class _StoredLease:
    """A lease as stored in a registry."""

    host: str
    machine: str | None
    pid: int
    token: str
    command: str
    taken: datetime
    expires: datetime
    returned: bool
    indices: frozenset[str]
    """The concrete indices of the run."""

    @property
    def is_expired(self) -> bool:
        return self.expires <= _now()

    @property
    def is_free(self) -> bool:
        return self.returned or self.is_expired or self._is_dead()

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
        since, end = (f"{moment:%Y-%m-%d %H:%M:%S} UTC" for moment in (self.taken, self.expires))
        return (
            f"Another run ({self.command}, pid {self.pid} on host {self.host}, since {since}; its lease expires at "
            f"{end}) is processing index {index}. Wait until it ends; if it was killed, until its lease expires."
        )


def is_held(document: StoredDocument | None, token: str) -> bool:
    """Whether a stored lease belongs to the run with this token, and is valid."""
    stored = _decode_document(document)
    return stored is not None and stored.token == token and not stored.is_free


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
        taken, expires = (datetime.fromisoformat(value[name]).astimezone(timezone.utc) for name in ("taken", "expires"))
        indices = frozenset(value["indices"]) if "indices" in value else frozenset[str]()
        command, returned = str(value["command"]), "returned" in value
        return _StoredLease(str(holder["host"]), machine, pid, token, command, taken, expires, returned, indices)
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
