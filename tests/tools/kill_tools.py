"""Commands run in a process that dies at a chosen write; the state that a run leaves behind; and indices put back to an
earlier state.

The process is forked from a server process that has already imported our package, so it starts at once.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from server_tools import JSON, hits, put, theirs, wait_until

from es_neardupe import NearDupe
from es_neardupe.index.target import Definitions
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.drivers.driver import Driver
from es_neardupe.server.http_client import ServerClient
from es_neardupe.server.login.settings import ConnectionSettings

Command = tuple[str, dict[str, Any]]
"""A method of the Python interface and its options."""

_NO_STATE = ("lease", "feed")
"""Kinds of documents that are not part of a final state: by which runs show that they are active, and of sequence
numbers."""

_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
WRITES = re.compile(r"/_(bulk|doc|create|update|delete_by_query|update_by_query)\b|^PUT |^DELETE /[^_]")
_IMPORTED = ["es_neardupe.api", "es_neardupe.server.drivers.opensearch"]


@dataclass(frozen=True)
class Moment:
    """The moment when a process dies: the number of the write request, and whether it has been answered."""

    write: int
    when: str
    """``before`` it is sent, ``during`` it, or ``after`` its answer."""
    past: tuple[str, int] | None = None
    """(text, n): count from the n-th write whose line, such as ``PUT /news/_mapping``, contains the text."""
    of: str = ""
    """Count only writes whose line contains this text: leases are renewed by the clock."""


class _Fatal:
    """A driver whose process ends at a given moment, without handlers or ``finally``."""

    def __init__(self, driver: Driver, moment: Moment | None) -> None:
        self._driver = driver
        self._moment = moment
        self._numbers = itertools.count(1)
        self._awaited = moment.past[1] if moment and moment.past else 0
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def send(self, method: str, target: str, *rest: Any) -> Any:
        if not WRITES.search(f"{method} {target}"):
            return self._driver.send(method, target, *rest)
        if self._awaited:
            assert self._moment is not None
            assert self._moment.past is not None
            self._awaited -= self._moment.past[0] in f"{method} {target}"
            return self._driver.send(method, target, *rest)
        if self._moment and self._moment.of not in target:
            return self._driver.send(method, target, *rest)
        self.writes = next(self._numbers)
        when = self._moment.when if self._moment and self._moment.write == self.writes else ""
        if when == "before":
            _die()
        if when == "during":
            threading.Timer(0.001, _die).start()
        answer = self._driver.send(method, target, *rest)
        if when:
            _die()
        return answer


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("killed processes do not go on")


def run_commands(client: Client, index: str, commands: Sequence[Command], **more: Any) -> None:
    """Run the commands one after the other. ``more``: options for all of them."""
    for name, options in commands:
        getattr(NearDupe(index, client), name)(**options, **more)


def _child(sender: Connection, url: str, index: str, commands: Sequence[Command], moment: Moment | None) -> None:
    client = connect(ConnectionSettings(url=url))
    assert isinstance(client, ServerClient)
    fatal = _Fatal(client._driver, moment)
    client._driver = fatal
    run_commands(client, index, commands, batch=10)
    sender.send(fatal.writes)
    if moment is not None:  # fewer writes than in the run that was counted
        _die()


_LONG = 300
"""Seconds for commands that take a few on a quiet machine: on a busy one, they have taken more than 60."""


def _process(sender: Connection, *arguments: Any) -> multiprocessing.process.BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context.Process(target=_child, args=(sender, *arguments), daemon=True)


def writes_of(client: Client, index: str, commands: Sequence[Command]) -> int:
    """The number of write requests of an undisturbed run."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = _process(sender, client.url, index, commands, None)
    process.start()
    process.join(_LONG)
    assert process.exitcode == 0
    return int(receiver.recv())


def run_to_death(client: Client, index: str, commands: Sequence[Command], moment: Moment) -> None:
    """Run the commands in a process that is killed by SIGKILL at the moment. The server completes a request whose
    client is gone: until it has, the next run would be at the same time as this one."""
    _, sender = multiprocessing.Pipe(duplex=False)
    process = _process(sender, client.url, index, commands, moment)
    process.start()
    process.join(_LONG)
    assert process.exitcode == -signal.SIGKILL
    wait_until(lambda: not _is_writing(client, index), 60)


def _is_writing(client: Client, index: str) -> bool:
    """Whether a server still processes a request that writes into an index or its hidden indices."""
    params: dict[str, str | int | bool] = {"actions": "indices:data/write/*", "detailed": True}
    nodes = client.request("GET", path("_tasks"), params=params)["nodes"].values()
    return any(index in task["description"] for node in nodes for task in node["tasks"].values())


@dataclass(frozen=True)
class State:
    """The complete state that a run leaves behind, except dates."""

    users: Mapping[tuple[str, str], str]
    ours: Mapping[str, Any]
    hidden_indices: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, client: Client, index: str) -> State:
        """The application's fields as text; the neardupe fields and the documents of the hidden indices field by
        field."""
        ours = {hit["_id"]: without_dates(_without_mark(hit["_source"].get("neardupe"))) for hit in hits(client, index)}
        hidden_indices = {
            name: {
                id: one
                for id, one in without_dates(_without_counts(_of_any_index(_sources(client, name)))).items()
                if not _of_deleted(one, ours)
            }
            for name in _hidden_indices(client, index)
        }
        return cls(theirs(client, index), ours, hidden_indices)


def _of_deleted(source: JSON, present: Container[str]) -> bool:
    """Whether it is evidence about a deleted document: a run over part of the index keeps it, a run over all does not.

    Which of the two comes last differs: an interrupted run is repeated over all documents.
    """
    return "a" in source and not (source["a"]["id"] in present and source["b"]["id"] in present)


def _of_any_index(sources: dict[str, JSON], uuids: Mapping[str, str] | None = None) -> dict[str, JSON]:
    """Documents of a hidden index, with other uuids in the note of the last run; None: without any."""
    run = sources.get("run")
    if run is None or "indices" not in run["value"]:
        return sources
    indices = {name: (uuids or {}).get(name) for name in run["value"]["indices"]}
    return {**sources, "run": {**run, "value": {**run["value"], "indices": indices}}}


def _without_counts(sources: dict[str, JSON]) -> dict[str, JSON]:
    """Documents of a hidden index without the counts of the last run: after a write without an answer, they are
    unknown."""
    run = sources.get("run")
    if run is None:
        return sources
    value = {name: one for name, one in run["value"].items() if name not in ("principals", "members")}
    return {**sources, "run": {**run, "value": value}}


def _without_mark(value: Any) -> Any:
    """The neardupe object of a document without the mark of its version."""
    return {name: one for name, one in value.items() if name != "checked"} if isinstance(value, dict) else value


def without_dates(value: Any) -> Any:
    """A JSON value without dates, whatever their fields are called, and without the checksum of a record with dates."""
    if isinstance(value, dict):
        return {name: without_dates(one) for name, one in value.items() if name != "checksum"}
    if isinstance(value, list):
        return [without_dates(one) for one in value]
    return "a date" if isinstance(value, str) and _DATE.match(value) else value


def _hidden_indices(client: Client, index: str) -> list[str]:
    """The hidden indices of an index."""
    shown = {"h": "index", "format": "json", "expand_wildcards": "all"}
    return sorted(one["index"] for one in client.request("GET", path("_cat", "indices", f"{index}-*"), params=shown))


def _sources(client: Client, index: str) -> dict[str, JSON]:
    return {hit["_id"]: hit["_source"] for hit in hits(client, index) if hit["_source"].get("kind") not in _NO_STATE}


def copies_of(client: Client, index: str) -> dict[str, JSON]:
    """Mapping and documents of an index and of its hidden indices."""
    found: dict[str, JSON] = {}
    for name in (index, *_hidden_indices(client, index)):
        (entry,) = client.request("GET", path(name)).values()
        hidden = entry["settings"]["index"].get("hidden", "false")
        found[name] = {"mappings": entry["mappings"], "hidden": hidden, "sources": _sources(client, name)}
    return found


def put_back(client: Client, copies: Mapping[str, JSON], *, ours: bool = False) -> None:
    """Recreate the indices as copied, and delete other hidden indices. ``ours``: except the index itself, which keeps
    its documents and their versions. The registry is that of the recreated index."""
    index = next(iter(copies))
    for name in (*_hidden_indices(client, index), *([] if ours else [index])):
        client.request("DELETE", path(name))
    for name, copy in copies.items():
        if ours and name == index:
            continue
        settings = {"index": {"number_of_shards": 1, "number_of_replicas": 0, "hidden": copy["hidden"]}}
        client.request("PUT", path(name), body={"settings": settings, "mappings": copy["mappings"]})
        if copy["sources"]:
            uuids = {one: state.uuid for one, state in Definitions(client, index).states().items()}
            put(client, name, _of_any_index(copy["sources"], uuids))
