"""Probes of ``doctor`` on a managed service: which requests it answers. Services do not document all of them, and their
versions say little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from es_neardupe.commands.doctor.checks import Check
from es_neardupe.errors import Conflict, Forbidden, NeardupeError, NotFound
from es_neardupe.records import Service
from es_neardupe.server.client import NO_DOCUMENT, Client, path
from es_neardupe.server.read_all import open_snapshot

_MOMENT = "10s"


@dataclass(frozen=True)
class _Probe:
    """A request, and what commands do if the service does not answer it."""

    what: str
    answers: Callable[[Client, str], bool]
    otherwise: str
    needed: bool = False
    """Whether commands that write need it."""


def probes(client: Client, index: str) -> Iterator[Check]:
    """The service, and which requests it answers; nothing for a server that is not known to be one of a service."""
    if client.server.service is Service.UNKNOWN:
        return
    yield Check("service", "ok", client.server.service.value)
    for probe in _PROBES:
        try:
            answers = probe.answers(client, index)
        except Forbidden:
            yield Check("service", "ok", f"{probe.what}: not tried, this user may not")
        except NeardupeError:
            yield _unanswered(probe)
        else:
            yield Check("service", "ok", f"{probe.what}: yes") if answers else _unanswered(probe)


def _unanswered(probe: _Probe) -> Check:
    return Check("service", "error" if probe.needed else "ok", f"{probe.what}: no, {probe.otherwise}")


def _reports_numbers(client: Client, index: str) -> bool:
    answer = client.request("GET", path(index, "_stats"), params={"level": "shards"})
    copies = [one for entry in answer["indices"].values() for shard in entry["shards"].values() for one in shard]
    return all("seq_no" in one and "history_uuid" in one["commit"]["user_data"] for one in copies)


def _refreshes(client: Client, index: str) -> bool:
    client.request("POST", path(index, "_refresh"), params={"allow_no_indices": True})
    return True


def _checks_versions(client: Client, index: str) -> bool:
    """Ask to delete a document that does not exist, which changes nothing."""
    try:
        version = {"if_seq_no": 0, "if_primary_term": 1}
        client.request("DELETE", path(index.partition(",")[0], "_doc", NO_DOCUMENT), params=version)
    except Conflict:
        return True
    except NotFound:
        pass
    return False


def _sorts_by_shard(client: Client, index: str) -> bool:
    return _reads_snapshot(client, index, sort=["_doc", "_shard_doc"])


def _slices(client: Client, index: str) -> bool:
    return _reads_snapshot(client, index, sort=["_doc"], slice={"field": "_id", "id": 0, "max": 2})


def _reads_snapshot(client: Client, index: str, **body: Any) -> bool:
    """Search a point in time, which expires some seconds later."""
    pit = {"id": open_snapshot(client, index, _MOMENT), "keep_alive": _MOMENT}
    client.request("POST", "/_search", body={"pit": pit, "size": 1, "_source": False, **body})
    return True


def _selects_shards(client: Client, index: str) -> bool:
    client.request("POST", path(index, "_search"), params={"preference": "_shards:0"}, body={"size": 0})
    return True


def _reads_parameters(client: Client, index: str) -> bool:
    answer = client.request("POST", path(index, "_search"), params={"filter_path": "took"}, body={"size": 0})
    return set(answer) == {"took"}


def _runs_pipelines(client: Client, _: str) -> bool:
    script = {"lang": "painless", "source": "ctx.tried = true"}
    body = {"pipeline": {"processors": [{"script": script}]}, "docs": [{"_source": {}}]}
    answer = client.request("POST", path("_ingest", "pipeline", "_simulate"), body=body)
    return "doc" in answer["docs"][0]


_PROBES = (
    _Probe(
        "sequence numbers (_stats)",
        _reports_numbers,
        "`enrich` and `group` read all documents each time, but with a sidecar",
    ),
    _Probe("refresh (_refresh)", _refreshes, "commands wait until searches find what they wrote"),
    _Probe("versions of documents (if_seq_no)", _checks_versions, "commands that write refuse", needed=True),
    _Probe("sorting by shards (_shard_doc)", _sorts_by_shard, "documents are read by _doc and _id"),
    _Probe("slices", _slices, "each slice reads all documents"),
    _Probe("selecting shards (preference)", _selects_shards, "all shards are read together"),
    _Probe("parameters of a POST request", _reads_parameters, "answers are larger than necessary"),
    _Probe("scripts in ingest pipelines", _runs_pipelines, "`pipeline` refuses: make the keys with `enrich`"),
)
