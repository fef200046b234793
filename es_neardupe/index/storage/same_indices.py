"""Clients that write only while an index is as it was opened: with the same settings, and the same concrete indices,
not others that got their names since."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

from es_neardupe.errors import Conflict, IndexReplaced, NotFound
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.target import Definitions, check_gc_deletes, check_same_settings, stored_settings
from es_neardupe.options import Versions
from es_neardupe.records import Hit
from es_neardupe.server.client import JSON, Before, ForwardingClient, Params
from es_neardupe.wording import command

AT_ONCE = 0.1
"""Seconds for which a check holds."""


class SameSettingsClient(ForwardingClient):
    """Checks before and after each bulk request that the settings with which an index was opened were neither removed
    nor replaced; see `es_neardupe.server.client.Client`.

    If another request follows at once, the second check is also the first one of that request. A request that is sent
    again is checked again: the server would create an index that was deleted meanwhile.
    """

    def __init__(self, index: IndexHandle) -> None:
        super().__init__(index.server)
        self._target = index.target
        self._checked = -math.inf
        """When the last check began that found everything as it was."""

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        """See ``Client.bulk``. Raises as `check`."""
        sent = False

        def sending() -> None:
            nonlocal sent
            if sent or time.monotonic() > self._checked + AT_ONCE:
                self._check()
            if before is not None:
                before()
            sent = True

        try:
            answer = self.plain.bulk(body, params=params, before=sending)
            self._check()
        except Conflict:
            if sent:
                self._undo()
            raise
        return answer

    def _undo(self) -> None:
        """Undo what the server has done for a request that was sent after a check, but too late."""

    def request(
        self, method: str, path: str, *, params: Params | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        """See ``Client.request``. Raises as `check` if an index that is searched or refreshed does not exist any
        more."""
        try:
            return self.plain.request(method, path, params=params, body=body)
        except NotFound as error:
            if method == "POST" and error.type == "index_not_found_exception":
                self.check()
            raise

    def pages(self, index: str, body: Mapping[str, Any], **options: Any) -> Iterator[list[Hit]]:
        """See ``Client.pages``. Raises as `check` if an index does not exist any more."""
        try:
            yield from self.plain.pages(index, body, **options)
        except NotFound:
            self.check()
            raise

    def _check(self) -> None:
        now = time.monotonic()
        self.check()
        self._checked = now

    def check(self) -> None:
        """Raises `Conflict` if the settings were removed or replaced since the target was opened."""
        check_same_settings(self.plain, self._target)


class SameIndicesClient(SameSettingsClient):
    """Also checks the uuids of a target.

    An update names the version of the document that was read. In an index that is deleted and created again, or
    restored from a snapshot, versions start again, so the server could accept an update that was made for a document of
    the former index. The first check prevents this, except in the moment between it and the request. The second check
    notices it then: a uuid is never used twice, so if it is still the same, the request went to the opened index.
    """

    def check(self) -> None:
        """Raises `IndexReplaced` if an index was deleted and created again since the target was opened, `Conflict` if
        it was deleted, or its settings were removed or replaced, and `IndexUnusable` if writes with the versions of
        another system are not safe."""
        name = self._target.name
        current, mappings = Definitions(self.plain, self._target.path).states_and_meta()
        for concrete, opened in self._target.states.items():
            is_there = concrete in current
            is_another = is_there and current[concrete].uuid != opened.uuid
            if not is_there or (is_another and self._lacks_settings(concrete, mappings)):
                raise Conflict(
                    f"Index {concrete} was deleted during this run. If it exists now, and you did not create it, the "
                    f"last request did, and guessed its mapping: delete it with `DELETE /{concrete}`.",
                    status=409,
                )
            if is_another:
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
        if self._target.sidecar is None:
            self._target.check_settings(mappings)
        else:
            super().check()

    def _lacks_settings(self, concrete: str, mappings: Mapping[str, JSON]) -> bool:
        """Whether an index has no settings now, and had some."""
        before = self._target.opened_with.get(concrete)
        return before is not None and stored_settings(mappings.get(concrete, {}), before.prefix) is None
