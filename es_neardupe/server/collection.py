"""CollectionClient: a client for collections of Amazon OpenSearch Serverless, which lack some requests.

Nothing makes writes visible to searches there: they become visible some seconds later, so this client waits for its
own. Documents are read by their ids in one index at a time. Unknown parameters are not sent. Whether the versions of
documents are checked is not documented, so that is tried before the first write that depends on it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import partial
from threading import Lock
from typing import Any

from es_neardupe.errors import IncompleteAnswer, NotFound, UnsupportedServer
from es_neardupe.server.client import JSON, Before, Params, checks_versions
from es_neardupe.server.client import path as path_of
from es_neardupe.server.http_client import ServerClient
from es_neardupe.server.parallel import pause

_LONGEST = 120.0
"""Seconds to wait until writes are visible."""

_PAUSES = (0.1, 2.0)
"""Shortest and longest pause between two searches for them, in seconds."""

_REMEMBERED = 1000
"""Number of the last written documents of each index that are waited for."""

_NOT_SENT = {"allow_partial_search_results", "allow_partial_pit_creation"}
"""Parameters that may be unknown. Answers with failed shards are errors without them, too."""

_WRITTEN = ",items.*._index,items.*._id,items.*._version,items.*.result"

_Versions = dict[str, "int | None"]
"""Id -> the version that was written; None if the document was deleted."""


class CollectionClient(ServerClient):
    """As `ServerClient`, with the requests that a collection answers."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lock = Lock()
        self._unseen: dict[str, _Versions] = {}
        self._versions_checked = False

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Mapping[str, Any] | None = None,
        again: bool = True,
    ) -> Any:
        """See ``Client.request``."""
        if path.endswith("/_refresh") and not params:  # with parameters, `doctor` tries whether there is one
            return self._wait_for_writes()
        if path == "/_mget":
            return {"docs": self._documents(list((body or {})["docs"]))}
        if "if_seq_no" in (params or {}):
            self._check_versions(path.split("/")[1])
        params = {name: value for name, value in (params or {}).items() if name not in _NOT_SENT}
        if params.get("op_type") == "create":  # the path is listed, and the parameter is not
            path = path.replace("/_doc/", "/_create/", 1)
            del params["op_type"]
        answer = super().request(method, path, params=params, body=body, again=again)
        if method != "GET" and isinstance(answer, dict) and "result" in answer:
            self._note(answer)
        return answer

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        """See ``Client.bulk``."""
        if b'"if_seq_no"' in body:
            (first,) = json.loads(body.partition(b"\n")[0]).values()
            self._check_versions(path_of(first["_index"])[1:])
        params = dict(params or {})
        if "filter_path" in params:
            params["filter_path"] += _WRITTEN
        answer = super().bulk(body, params=params, before=before)
        for item in answer["items"] if isinstance(answer, dict) else ():
            (result,) = item.values()
            if result["status"] < 300:
                self._note(result)
        return answer

    def _note(self, written: Mapping[str, Any]) -> None:
        """Remember a document that was written."""
        version = None if written["result"] in ("deleted", "not_found") else int(written["_version"])
        with self._lock:
            some = self._unseen.setdefault(written["_index"], {})
            some.pop(written["_id"], None)
            some[written["_id"]] = version
            if len(some) > _REMEMBERED:
                del some[next(iter(some))]

    def _wait_for_writes(self) -> JSON:
        """Wait until searches find the last documents that this client has written. Raises `IncompleteAnswer`."""
        with self._lock:
            waiting, self._unseen = self._unseen, {}
        wait, ends = _PAUSES[0], time.monotonic() + _LONGEST
        while waiting := {index: left for index, some in waiting.items() if (left := self._unfound(index, some))}:
            if time.monotonic() > ends:
                raise IncompleteAnswer(
                    f"Searches of {', '.join(sorted(waiting))} do not find what was written {_LONGEST:g} seconds ago. "
                    f"Run the same command again: it continues where it stopped."
                )
            pause(wait)
            wait = min(2 * wait, _PAUSES[1])
        return {}

    def _unfound(self, index: str, written: _Versions) -> _Versions:
        """Those of the documents that searches do not find as they were written."""
        body = {"size": len(written), "query": {"ids": {"values": list(written)}}, "version": True, "_source": False}
        try:
            found = super().request("POST", path_of(index, "_search"), body=body)["hits"]["hits"]
        except NotFound:  # the index was deleted
            return {}
        versions = {hit["_id"]: hit["_version"] for hit in found}
        return {
            id: version
            for id, version in written.items()
            if (id in versions if version is None else versions.get(id, 0) < version)
        }

    def _documents(self, docs: list[JSON]) -> list[JSON]:
        """The answers to ``_mget``, which is listed for one index only."""
        found: list[JSON] = [{}] * len(docs)
        for index in dict.fromkeys(doc["_index"] for doc in docs):
            places = [place for place, doc in enumerate(docs) if doc["_index"] == index]
            wanted = [{name: value for name, value in docs[place].items() if name != "_index"} for place in places]
            try:
                answer = super().request("GET", path_of(index, "_mget"), body={"docs": wanted})["docs"]
            except NotFound:
                answer = [{"_index": index, "_id": doc["_id"], "found": False} for doc in wanted]
            for place, doc in zip(places, answer, strict=True):
                found[place] = doc
        return found

    def _check_versions(self, index: str) -> None:
        """Raises `UnsupportedServer` unless the collection rejects a write that depends on another version."""
        if not self._versions_checked and not checks_versions(partial(super().request, again=False), f"/{index}"):
            raise UnsupportedServer(
                "This collection does not check the versions of documents (if_seq_no), so a command that writes could "
                "overwrite the changes of others: only commands that read can be used."
            )
        self._versions_checked = True
