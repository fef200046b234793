"""A client that writes only to the concrete indices that were opened, not to others that got their names since."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from es_neardupe.errors import Conflict, IndexReplaced
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.target import Definitions, check_gc_deletes
from es_neardupe.options import Versions
from es_neardupe.server.client import Before, ForwardingClient
from es_neardupe.wording import command

_AT_ONCE = 0.1
"""Seconds for which a check holds."""


class SameIndicesClient(ForwardingClient):
    """Checks the uuids of a target before and after each bulk request; see `es_neardupe.server.client.Client`.

    An update names the version of the document that was read. In an index that is deleted and created again, or
    restored from a snapshot, versions start again, so the server could accept an update that was made for a document of
    the former index. The first check prevents this, except in the moment between it and the request. The second check
    notices it then: a uuid is never used twice, so if it is still the same, the request went to the opened index. If
    another request follows at once, it is also the first check of that one.
    """

    def __init__(self, index: IndexHandle) -> None:
        super().__init__(index.server)
        self._target = index.target
        self._checked = -math.inf
        """When the last check began that found the same indices."""

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        """See ``Client.bulk``. Raises `IndexReplaced` if an index was deleted and created again, `Conflict` if it was
        deleted, and `IndexUnusable` if writes with the versions of another system are not safe."""
        if time.monotonic() > self._checked + _AT_ONCE:
            self.check()
        answer = self.plain.bulk(body, params=params, before=before)
        self.check()
        return answer

    def check(self) -> None:
        """Raises as `bulk` if an index was deleted or replaced since the target was opened."""
        name, now = self._target.name, time.monotonic()
        current = Definitions(self.plain, self._target.path).states()
        for concrete, opened in self._target.states.items():
            if concrete not in current:
                raise Conflict(
                    f"Index {concrete} was deleted during this run: run the same command again.",
                    status=409,
                )
            if current[concrete].uuid != opened.uuid:
                raise IndexReplaced(
                    f"Index {concrete} was deleted and created again, or restored from a snapshot, during this run. "
                    f"Documents that were written last may have keys of former ones: run `{command('enrich', name)} "
                    f"--check`, then the same command again."
                )
            pipeline = current[concrete].final_pipeline
            if pipeline is not None and opened.final_pipeline is None:
                raise Conflict(
                    f"Index {concrete} got the final pipeline {pipeline!r} during this run. It may have processed the "
                    f"documents that were written as a whole last: check them, then run the same command again.",
                    status=409,
                )
        if self._target.settings.versions is Versions.EXTERNAL:
            check_gc_deletes(current)
        self._checked = now
