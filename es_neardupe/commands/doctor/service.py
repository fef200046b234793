"""Probes of ``doctor`` on a managed service: which requests it answers. Services do not document all of them, and their
versions say little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from es_neardupe.commands.doctor.checks import Check
from es_neardupe.errors import Forbidden, NeardupeError
from es_neardupe.records import Service
from es_neardupe.server.client import Client, checks_versions, path
from es_neardupe.server.read_all import open_snapshot

_MOMENT = "10s"


class _Trial:
    """Requests to an index of a service."""

    def __init__(self, client: Client, index: str) -> None:
        self._client, self._index = client, index

    def reports_numbers(self) -> bool:
        answer = self._client.request("GET", path(self._index, "_stats"), params={"level": "shards"})
        copies = [one for entry in answer["indices"].values() for shard in entry["shards"].values() for one in shard]
        return all("seq_no" in one and "history_uuid" in one["commit"]["user_data"] for one in copies)

    def refreshes(self) -> bool:
        self._client.request("POST", path(self._index, "_refresh"), params={"allow_no_indices": True})
        return True

    def checks_versions(self) -> bool:
        return checks_versions(self._client.request, path(self._index.partition(",")[0]))

    def sorts_by_shard(self) -> bool:
        return self._reads_snapshot(sort=["_doc", "_shard_doc"])

    def slices(self) -> bool:
        return self._reads_snapshot(sort=["_doc"], slice={"field": "_id", "id": 0, "max": 2})

    def _reads_snapshot(self, **body: Any) -> bool:
        """Search a point in time, which expires some seconds later."""
        pit = {"id": open_snapshot(self._client, self._index, _MOMENT), "keep_alive": _MOMENT}
        self._client.request("POST", "/_search", body={"pit": pit, "size": 1, "_source": False, **body})
        return True

    def selects_shards(self) -> bool:
        self._client.request("POST", path(self._index, "_search"), params={"preference": "_shards:0"}, body={"size": 0})
        return True

    def reads_parameters(self) -> bool:
        answer = self._client.request(
            "POST", path(self._index, "_search"), params={"filter_path": "took"}, body={"size": 0}
        )
        return set(answer) == {"took"}

    def runs_pipelines(self) -> bool:
        script = {"lang": "painless", "source": "ctx.tried = true"}
        body = {"pipeline": {"processors": [{"script": script}]}, "docs": [{"_source": {}}]}
        answer = self._client.request("POST", path("_ingest", "pipeline", "_simulate"), body=body)
        return "doc" in answer["docs"][0]


@dataclass(frozen=True)
class _Probe:
    """A request, and what commands do if the service does not answer it."""

    what: str
    answers: Callable[[_Trial], bool]
    otherwise: str
    needed: bool = False
    """Whether commands that write need it."""


def probes(client: Client, index: str) -> Iterator[Check]:
    """The service, and which requests it answers; nothing for a server that is not known to be one of a service."""
    if client.server.service is Service.UNKNOWN:
        return
    yield Check("service", "ok", client.server.service.value)
    trial = _Trial(client, index)
    for probe in _PROBES:
        try:
            answers = probe.answers(trial)
        except Forbidden:
            yield Check("service", "ok", f"{probe.what}: not tried, this user may not")
        except NeardupeError:
            yield _unanswered(probe)
        else:
            yield Check("service", "ok", f"{probe.what}: yes") if answers else _unanswered(probe)


def _unanswered(probe: _Probe) -> Check:
    return Check("service", "error" if probe.needed else "ok", f"{probe.what}: no, {probe.otherwise}")


_PROBES = (
    _Probe(
        "sequence numbers (_stats)",
        _Trial.reports_numbers,
        "`enrich` and `group` read all documents each time, unless keys are in a sidecar",
    ),
    _Probe("refresh (_refresh)", _Trial.refreshes, "commands wait until searches find what they wrote"),
    _Probe("versions of documents (if_seq_no)", _Trial.checks_versions, "commands that write refuse", needed=True),
    _Probe("sorting by shards (_shard_doc)", _Trial.sorts_by_shard, "documents are read by _doc and _id"),
    _Probe("slices", _Trial.slices, "each slice reads all documents"),
    _Probe("selecting shards (preference)", _Trial.selects_shards, "all shards are read together"),
    _Probe("parameters of a POST request", _Trial.reads_parameters, "answers are larger than necessary"),
    _Probe("scripts in ingest pipelines", _Trial.runs_pipelines, "`pipeline` refuses: make the keys with `enrich`"),
)
