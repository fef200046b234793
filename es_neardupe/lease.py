"""One run at a time writes the groups of an index: a lease in the registry, taken by optimistic concurrency.

An index can be reached by several names (itself, an alias, a pattern), each with a registry of its own. So whoever has
taken a lease looks whether another one that holds good is about any of the same indices, and then gives way. Each of
two writes its own before it looks for the other: never do both go on, at worst none.

Its end is told by the clocks of those who take part. A lease is renewed when a third of its time is over, so clocks
may differ by two thirds of it before one run takes the lease of another that is at work; that one notices at its next
`Lease.check`. The lease of a process that is gone from this machine is free at once, any other when its time is over.
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
from typing import Any

from es_neardupe.clients import Client
from es_neardupe.companions import Companion, Stored, companions_of_all, ensure, read, store
from es_neardupe.errors import Conflict, Forbidden, LeaseHeld, LeaseLost, NeardupeError
from es_neardupe.indices import Target

__all__ = ["LEASE_ID", "Lease", "held"]

LEASE_ID = "lease"
"""Id of the document in the registry."""

_GOODBYE = 5
"""Seconds that a run waits at its end for a server that does not answer to take the lease back."""


@contextmanager
def held(client: Client, target: Target, command: str = "group", *, seconds: float = 60) -> Iterator[Lease]:
    """Hold the lease of an index for as long as the block runs; it is given back at the end, also after an error.

    Call `Lease.check` before each step that writes. Raises `LeaseHeld` if another run has it, and what
    `companions.ensure` raises where the registry cannot be made.
    """
    lease = Lease(client, ensure(client, target, Companion.GROUPS), target, command, seconds)
    lease.take()
    done = Event()
    renewing = Thread(target=lease.keep, args=(done,), name="lease", daemon=True)
    renewing.start()
    try:
        lease.give_way()
        yield lease
    finally:
        done.set()
        renewing.join(_GOODBYE)


@dataclass(frozen=True)
class Lease:
    """The right to write the groups of an index, as the run that has it sees it."""

    client: Client
    registry: str
    """The index that holds the document."""
    target: Target
    """What the run works on."""
    command: str
    seconds: float
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """What tells this run from every other."""
    taken: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def take(self) -> None:
        """Write the lease in the place of one that is over. Raises `LeaseHeld`.

        What the server holds afterwards decides: the answer to a write may be lost, and of two runs one is faster.
        """
        while not self._is_ours(found := self._read()):
            if found is not None and not _is_free(found.source["value"]):
                raise LeaseHeld(_who(found.source["value"], self.target.name))
            with suppress(Conflict):
                self._store(found)

    def give_way(self) -> None:
        """Raises `LeaseHeld` if a run by another name works on any of the same indices; to be called after `take`."""
        for value in self._others():
            shared = sorted(set(self.target.indices) & set(value["indices"]))
            if shared and not _is_free(value):
                raise LeaseHeld(_who(value, shared[0]))

    def _others(self) -> list[Mapping[str, Any]]:
        """The leases in the other registries that this user may read, as they are this moment."""
        names = set(companions_of_all(self.client, self.target.settings.prefix, Companion.GROUPS)) - {self.registry}
        if not names:
            return []
        docs = [{"_index": name, "_id": LEASE_ID} for name in sorted(names)]
        try:
            answer = self.client.request("POST", "/_mget", body={"docs": docs})
        except Forbidden:
            return []
        values = (one["_source"].get("value", {}) for one in answer["docs"] if one.get("found"))
        return [value for value in values if "indices" in value]

    def check(self) -> None:
        """Raises `LeaseLost` if another run has taken over, for instance while this process was suspended."""
        found = self._read()
        if self._is_ours(found) and found is not None and _is_over(found.source["value"]):
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

    def _read(self) -> Stored | None:
        return read(self.client, self.registry, LEASE_ID)

    def _is_ours(self, found: Stored | None) -> bool:
        return found is not None and found.source["value"]["holder"]["token"] == self.token

    def _store(self, before: Stored | None, **more: str) -> None:
        value = {
            "holder": {"host": socket.gethostname(), "machine": _machine(), "pid": os.getpid(), "token": self.token},
            "command": self.command,
            "indices": list(self.target.indices),
            "taken": _written(self.taken),
            "expires": _written(_now() + timedelta(seconds=self.seconds)),
            **more,
        }
        store(self.client, self.registry, LEASE_ID, {"kind": "lease", "value": value}, before)


def _is_free(value: Mapping[str, Any]) -> bool:
    return "returned" in value or _is_over(value) or _is_dead(value["holder"])


def _is_over(value: Mapping[str, Any]) -> bool:
    return datetime.fromisoformat(value["expires"]) <= _now()


def _is_dead(holder: Mapping[str, Any]) -> bool:
    """Whether the holder was a process of this machine that is there no more."""
    if holder["machine"] is None or holder["machine"] != _machine():
        return False
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # somebody else's: it is there
        return False
    return False


def _machine() -> str | None:
    """What process numbers belong to: this boot of this system, and its namespace (a container has its own).

    None where the system does not tell.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _who(value: Mapping[str, Any], index: str) -> str:
    holder = value["holder"]
    since, end = (f"{datetime.fromisoformat(value[name]):%Y-%m-%d %H:%M:%S} UTC" for name in ("taken", "expires"))
    return (
        f"Another run ({value['command']} by pid {holder['pid']} on host {holder['host']}, since {since}, its lease "
        f"ends at {end}) works on index {index}. Wait for it, or, if it is dead, for the end of its lease."
    )


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
