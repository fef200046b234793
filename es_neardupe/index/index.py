"""An index: its name, the connection to the server, and once opened, its concrete indices, settings and storage."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from es_neardupe.engines.engine import Engine
from es_neardupe.errors import IndexUnusable, NeardupeError, NotInitialised, RolledOver
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.storage.inline import InlineStorage
from es_neardupe.index.storage.interface import Storage
from es_neardupe.index.storage.sidecar.indices import invisible_sidecar, open_sidecar_target
from es_neardupe.index.target import IndexTarget, open_target
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.server.client import Client
from es_neardupe.wording import command

_Result = TypeVar("_Result")

_REMEMBERED = 60.0
"""Seconds after which aliases and settings are read again."""

_UNCHANGED = 0.1
"""Seconds for which mappings are taken to be unchanged: of many calls in a row, few read them."""

_READERS = ThreadPoolExecutor(16, "mappings")
"""Threads that read mappings; they are started when they are needed."""


class Index(IndexHandle):
    """An index, alias, data stream or pattern on a server. All commands and most functions take one.

    A new `Index` is a name and a connection. `opened` resolves the name and returns one with a `target`. Every command
    opens its index again, because the indices that a name resolves to, settings and privileges can change; see also
    `with_texts`.
    """

    def __init__(
        self,
        name: str,
        client: Client,
        prefix: str = DEFAULT_PREFIX,
        *,
        target: IndexTarget | None = None,
        engine: Engine | None = None,
    ) -> None:
        super().__init__(name, client, prefix, target=target)
        if target is not None:
            self.client = self.storage.client
        self.engine = engine
        """Where the tasks of a command run; None: everything in this process."""
        self._last: _Opened | None = None
        """The index as `with_texts` opened it."""

    @cached_property
    def storage(self) -> Storage:
        """Where keys and groups are stored. Only an `opened` index has one."""
        layout = self.target.sidecar
        if layout is None:
            return InlineStorage(self)
        from es_neardupe.index.storage.sidecar.storage import SidecarStorage

        return SidecarStorage(self, layout)

    def through(self, client: Client) -> Index:
        """The same index with another connection, such as that of a dry run."""
        return Index(self.name, client, self.prefix, target=self._target, engine=self.engine)

    def with_target(self, target: IndexTarget) -> Index:
        """The same connection for another target."""
        return Index(target.name, self.server, target=target, engine=self.engine)

    def on_engine(self, engine: Engine | None) -> Index:
        """The same index, with the tasks of its commands on an engine."""
        return Index(self.name, self.server, self.prefix, target=self._target, engine=engine)


def opened(
    index: Index,
    *,
    texts: bool = False,
    adopting: bool = False,
    writes: bool = False,
    groups: bool = False,
    prefix: str | None = None,
) -> Index:
    """Resolve the name of an index, and check that all concrete indices have the same settings.

    ``texts``: the caller compares texts, so the user must have access to the text fields. ``adopting``: the caller
    prepares the indices that a rollover created. ``writes``: the caller writes. ``groups``: the caller needs no keys,
    so that a prefix that holds only groups is possible. ``prefix``: replaces that of the index. Raises what
    `open_target` raises.
    """
    name, prefix, definitions = index.name, prefix or index.prefix, index.definitions
    try:
        target = open_target(definitions, prefix, texts=texts, adopting=adopting, writes=writes, groups=groups)
    except NotInitialised as error:
        with_sidecar = open_sidecar_target(definitions, prefix, texts=texts, adopting=adopting, writes=writes)
        if with_sidecar is None:
            if not isinstance(error, RolledOver) and (sidecar := invisible_sidecar(index, prefix)):
                raise NotInitialised(f"{error} If it has a sidecar index: this user may not read {sidecar}.") from error
            raise
        target = with_sidecar
    return Index(name, index.server, target=target, engine=index.engine)


def with_texts(index: Index, work: Callable[[Index], _Result]) -> _Result:
    """The result of ``work`` with the index opened as by `opened` with ``texts``. For a command that writes nothing and
    is called many times.

    An index that an earlier call opened is used again if its mappings are still the same: they show which indices the
    name resolves to, the settings, the phase of a migration, and which fields the user sees. The mappings are read
    while ``work`` runs, unless they were within the last tenth of a second; if they have changed, its result, or error,
    is discarded, and it runs again. Aliases and settings of the indices are read again after a minute, and always if an
    index has sidecar storage, whose settings are in other mappings.
    """
    last, now = index._last, time.monotonic()
    if last is not None and now < last.at + _REMEMBERED:
        if now < last.checked + _UNCHANGED:
            return work(last.index)
        mappings = _READERS.submit(copy_context().run, index.definitions.mappings)
        found = _finished(work, last.index)
        if mappings.result() == last.index.target.mappings:
            last.checked = now
            return found.result()
    current = opened(index, texts=True)
    index._last = None if current.storage.sidecars else _Opened(current, now, now)
    return work(current)


@dataclass
class _Opened:
    """An index that was opened, with the times, in seconds, at which it was opened and its mappings were read last."""

    index: Index
    at: float
    checked: float


def _finished(work: Callable[[Index], _Result], index: Index) -> Future[_Result]:
    """The result of ``work``, or its error."""
    found: Future[_Result] = Future()
    try:
        found.set_result(work(index))
    except NeardupeError as error:
        found.set_exception(error)
    return found


def opened_inline(index: Index, operation: str, *, texts: bool = False, writes: bool = False) -> Index:
    """As `opened`, for operations that write keys into documents. Raises `IndexUnusable` for an index with sidecar
    storage."""
    found = opened(index, texts=texts, writes=writes)
    if found.storage.sidecars:
        raise IndexUnusable(
            f"{operation} writes keys into documents, and those of {index.name} are in a sidecar index: index "
            f"documents as usual, then run `{command('enrich', index.name)}`."
        )
    return found
