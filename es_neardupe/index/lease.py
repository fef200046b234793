"""One run at a time writes the groups of an index: a lease in the registry, taken by optimistic concurrency.

An index can be reached by several names (itself, an alias, a pattern), each with a registry of its own. So whoever has
taken a lease looks whether another one that holds good is about any of the same indices, and then gives way. Each of
two writes its own before it looks for the other: never do both go on, at worst none.

Its end is told by the clocks of those who take part. A lease is renewed when a third of its time is over, so clocks
may differ by two thirds of it before one run takes the lease of another that is at work; that one notices at its next
`Lease.check`. The lease of a process that is gone from this machine is free at once, and so is that of a run of this
process that ended and could not give it back; any other when its time is over.
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
"""Id of the document in the registry, for who writes groups."""

_AT_WORK: set[str] = set()
"""The tokens of the runs of this process that have not ended."""

_GOODBYE = 5
"""Seconds that a run waits at its end for a server that does not answer to take the lease back."""


@contextmanager
def held(index: Index, command: str = "group", *, seconds: float = 60, id: str = LEASE_ID) -> Iterator[Lease]:
    """Hold the lease of an index for as long as the block runs; it is given back at the end, also after an error.

    Leases of another ``id`` are for other things than writing groups. Call `Lease.check` before each step that writes.
    Raises `LeaseHeld` if another run has it, and what `companions.ensure` raises where the registry cannot be made.
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
        if renewing.ident is None:  # it may be written all the same
            renewing.start()
        renewing.join(_GOODBYE)
        _AT_WORK.discard(lease.token)


@dataclass(frozen=True)
class Lease:
    """The right to write the groups of an index, as the run that has it sees it."""

    client: Client
    registry: str
    """The index that holds the document."""
    target: IndexTarget
    """What the run works on."""
    command: str
    seconds: float
    id: str = LEASE_ID
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """What tells this run from every other."""
    taken: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def take(self) -> None:
        """Write the lease in the place of one that is over. Raises `LeaseHeld`.

        What the server holds afterwards decides: the answer to a write may be lost, and of two runs one is faster.
        """
        _AT_WORK.add(self.token)
        while not self._is_ours(found := self._read()):
            there = _held(found)
            if there is not None and not there.is_free:
                raise LeaseHeld(there.description(self.target.name))
            with suppress(Conflict):
                self._store(found)

    def give_way(self) -> None:
        """Raises `LeaseHeld` if a run by another name works on any of the same indices; to be called after `take`."""
        for there in self._others():
            if not there.is_free and (shared := sorted(there.indices.intersection(self.target.indices))):
                raise LeaseHeld(there.description(shared[0]))

    def _others(self) -> list[_Held]:
        """The leases in the other registries that this user may read, as they are this moment."""
        names = set(hidden_indices_of_all(self.client, self.target.settings.prefix, HiddenIndex.GROUPS)) - {
            self.registry
        }
        if not names:
            return []
        docs = [{"_index": name, "_id": self.id} for name in sorted(names)]
        try:
            answer = self.client.request("POST", "/_mget", body={"docs": docs})
        except Forbidden:
            return []
        sources = (one["_source"] for one in answer["docs"] if one.get("found"))
        return [there for there in map(_read_lease, sources) if there is not None]

    def check(self) -> None:
        """Raises `LeaseLost` if another run has taken over, for instance while this process was suspended."""
        found = self._read()
        if self._is_ours(found) and (there := _held(found)) is not None and there.is_over:
            with suppress(Conflict):
                self._store(found)
            found = self._read()
        if not self._is_ours(found):
            raise LeaseLost(
                f"This run stood still for so long that its lease on index {self.target.name} ended, and another run "
                f"took over or removed it. Nothing more is written: run the same command again when the other is done."
            )

    def keep(self, done: Event) -> None:
        """Renew the lease every third of its time until ``done``, then give it back: the next run has it at once.

        Where the server does not take that, the next time it may, or `check` tells, or the lease ends by itself.
        """
        while not done.wait(self.seconds / 3):
            self._write_if_ours()
        self._write_if_ours(returned=_written(_now()))

    def _write_if_ours(self, **more: str) -> None:
        with suppress(NeardupeError):
            if self._is_ours(found := self._read()):
                self._store(found, **more)

    def _read(self) -> StoredDocument | None:
        return read(self.client, self.registry, self.id)

    def _is_ours(self, found: StoredDocument | None) -> bool:
        there = _held(found)
        return there is not None and there.token == self.token

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
class _Held:
    """A lease as it is stored."""

    host: str
    machine: str | None
    pid: int
    token: str
    command: str
    taken: datetime
    expires: datetime
    returned: bool
    indices: frozenset[str]
    """What it is about."""

    @property
    def is_over(self) -> bool:
        return self.expires <= _now()

    @property
    def is_free(self) -> bool:
        return self.returned or self.is_over or self._is_dead()

    def _is_dead(self) -> bool:
        """Whether the holder was a process of this machine that is there no more, or a run of ours that has ended."""
        if self.machine is None or self.machine != _machine():
            return False
        if self.pid == os.getpid():
            return self.token not in _AT_WORK
        return not psutil.pid_exists(self.pid)

    def description(self, index: str) -> str:
        """Who works on the index, for a message."""
        since, end = (f"{moment:%Y-%m-%d %H:%M:%S} UTC" for moment in (self.taken, self.expires))
        return (
            f"Another run ({self.command} by pid {self.pid} on host {self.host}, since {since}, its lease ends at "
            f"{end}) works on index {index}. Wait for it, or, if it is dead, for the end of its lease."
        )


def is_held(found: StoredDocument | None, token: str) -> bool:
    """Whether a stored lease is that of this token, and holds good."""
    there = _held(found)
    return there is not None and there.token == token and not there.is_free


def _held(found: StoredDocument | None) -> _Held | None:
    """As `_read_lease`, of a document that may not be there."""
    return None if found is None else _read_lease(found.source)


def _read_lease(source: Mapping[str, Any]) -> _Held | None:
    """Read what `Lease` stored; None for anything else, which holds nobody up."""
    try:
        value = source["value"]
        holder = value["holder"]
        machine, pid, token = holder["machine"], holder["pid"], holder["token"]
        if not isinstance(pid, int) or not 0 < pid < 2**31 or not isinstance(token, str):
            return None
        taken, expires = (datetime.fromisoformat(value[name]).astimezone(timezone.utc) for name in ("taken", "expires"))
        indices = frozenset(value["indices"]) if "indices" in value else frozenset[str]()
        command, returned = str(value["command"]), "returned" in value
        return _Held(str(holder["host"]), machine, pid, token, command, taken, expires, returned, indices)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _machine() -> str | None:
    """What process numbers belong to: this boot of this system, and its namespace (a container has its own).

    None where the system does not tell.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _now() -> datetime:
    return datetime.now(timezone.utc)


def written_now() -> str:
    """The present moment, as leases have it."""
    return _written(_now())


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
