"""Proxies that answer as managed services do, in front of a real server. What each service offers and refuses comes
from its documentation and from answers that its users have quoted; what is unknown is refused, or has a switch."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from signature_proxy import Proxy, Reply, Request, SignatureProxy

_LARGEST = 10 * 2**20
"""Bytes of a request, on the smaller machines of Amazon."""


@dataclass
class DomainProxy(SignatureProxy):
    """Amazon OpenSearch Service: some paths are answered by 401, and large requests by 413."""

    denied: tuple[str, ...] = ("/_plugins/_security/authinfo",)
    """Beginnings of paths."""

    def refuse(self, request: Request) -> Reply | None:
        """See `Proxy.refuse`."""
        if len(request.body) > _LARGEST:
            return Reply.of(413, {"Message": f"Request size exceeded {_LARGEST} bytes"})
        if self.denied and request.path.startswith(self.denied):
            return Reply.of(401, {"Message": f"Your request: '{request.path}' is not allowed."})
        return super().refuse(request)

    def answered(self, request: Request, reply: Reply) -> Reply:
        """See `Proxy.answered`."""
        return replace(reply, headers={**reply.headers, "x-amzn-requestid": "1", "access-control-allow-origin": "*"})


_NAME = r"/(?!_)[^/]+"
_COLLECTION_PATHS = {
    "GET": rf"{_NAME}(/_(mappings?|settings?(/[^/]+)?|(doc|explain|source)/[^/]+|mget|count|field_caps|search))?"
    r"|/_(mappings?|resolve/index/[^/]+|field_caps|search|cat/indices)",
    "HEAD": rf"{_NAME}(/_(doc|source)/[^/]+)?",
    "PUT": rf"{_NAME}(/_(mapping|(doc|create)/[^/]+))?",
    "POST": rf"({_NAME})?/_bulk|{_NAME}/_(doc|(create|update)/[^/]+|search|search/point_in_time|count|field_caps)"
    r"|/_search",
    "DELETE": rf"{_NAME}(/_doc/[^/]+)?|/_search/point_in_time",
}
"""Method -> the paths that the service lists, for the requests that could be sent, and ``PUT INDEX/_mapping``."""

_NO_IDS = {
    "type": "illegal_argument_exception",
    "reason": "Document ID is not supported in create/index operation request",
}
_WITH_ID = re.compile(rf"{_NAME}/_(doc|create|update)/[^/]+")


@dataclass
class CollectionProxy(SignatureProxy):
    """A collection of Amazon OpenSearch Serverless: no refresh, no scroll, no requests about the cluster."""

    service: str = "aoss"
    type: str = "SEARCH"
    """Or TIMESERIES, VECTORSEARCH, which take no ids of documents."""
    checks_versions: bool = True
    """Whether ``if_seq_no`` is honoured, which is unknown."""
    refresh_interval: str = "300ms"
    """Of the indices that are created by the proxy."""
    broken: list[str] = field(default_factory=list)
    """Requests with something that a collection may not have."""

    def refuse(self, request: Request) -> Reply | None:
        """See `Proxy.refuse`."""
        if refused := super().refuse(request):
            return refused
        if not re.fullmatch(_COLLECTION_PATHS.get(request.method, ""), request.path):
            return Reply(404)
        if "refresh" in request.params:
            reason = f"{request.params['refresh']} refresh policy is not supported."
            return Reply.of(400, {"error": {"type": "status_exception", "reason": reason}, "status": 400})
        if unknown := self._unknown(request):
            self.broken.append(f"{request.method} {request.target}: {unknown}")
            reason = f"[{unknown}] is not supported"
            return Reply.of(400, {"error": {"type": "illegal_argument_exception", "reason": reason}, "status": 400})
        if self.type != "SEARCH" and (found := self._without_ids(request)):
            return found
        return None

    def _unknown(self, request: Request) -> str:
        """A part of a request that a collection may not have; empty if there is none."""
        params = {"preference", "search_pipeline", "scroll", "routing", "allow_partial_search_results", "op_type"}
        if found := params & request.params.keys():
            return found.pop()
        if request.path.endswith("/_search"):
            body = request.json
            return "slice" if "slice" in body else "_shard_doc" if "_shard_doc" in body.get("sort", ()) else ""
        return ""

    def _without_ids(self, request: Request) -> Reply | None:
        if request.method in ("PUT", "POST") and _WITH_ID.fullmatch(request.path):
            return Reply.of(400, {"error": _NO_IDS, "status": 400})
        if not request.path.endswith("/_bulk"):
            return None
        items = [json.loads(line) for line in request.body.splitlines() if line]
        actions = [one for one in items if len(one) == 1 and "_index" in next(iter(one.values()), {})]
        answers = [{op: {**meta, "status": 400, "error": _NO_IDS}} for one in actions for op, meta in one.items()]
        return Reply.of(200, {"took": 1, "errors": True, "items": answers})

    def sent(self, request: Request) -> Request:
        """See `Proxy.sent`."""
        request = super().sent(request)
        if not self.checks_versions:
            target = re.sub(r"(?<=[?&])if_(seq_no|primary_term)=\d+&?", "", request.target)
            body = re.sub(rb'"if_(seq_no|primary_term)":\d+,?', b"", request.body).replace(b",}", b"}")
            request = replace(request, target=target, body=body)
        if request.method == "PUT" and re.fullmatch(_NAME, request.path):
            body = request.json
            settings = body.setdefault("settings", {})
            settings.setdefault("index", {})["refresh_interval"] = self.refresh_interval
            request = replace(request, body=json.dumps(body).encode())
        return request

    def answered(self, request: Request, reply: Reply) -> Reply:
        """See `Proxy.answered`."""
        return replace(reply, headers={**reply.headers, "server": "aoss-amazon", "x-request-id": "1"})


_SERVERLESS_PATHS = {
    "GET": rf"/|{_NAME}(/_(mapping|settings?|alias|count|field_caps|search|mget)(/[^/]+)?|/_(doc|source)/[^/]+)?"
    r"|/_(alias|data_stream|index_template|ingest/pipeline|mapping|resolve/index|tasks|mget|search|field_caps)(/[^/]+)?",
    "HEAD": rf"/|{_NAME}(/_(doc|source)/[^/]+)?",
    "PUT": rf"{_NAME}(/_(mapping|settings|(doc|create|alias)/[^/]+))?"
    r"|/_(ingest/pipeline|index_template|data_stream)/[^/]+",
    "POST": rf"({_NAME})?/_(bulk|mget|search|count|field_caps)"
    rf"|{_NAME}/_(doc(/[^/]+)?|(create|update)/[^/]+|refresh|pit|update_by_query|delete_by_query|rollover|analyze)"
    r"|/_index_template/_simulate(_index)?(/[^/]+)?|/_ingest/pipeline(/[^/]+)?/_simulate|/_search/scroll|/_reindex"
    r"|/_scripts/painless/_execute|/_security/user/_has_privileges",
    "DELETE": rf"{_NAME}(/_(doc|alias)/[^/]+)?|/_(ingest/pipeline|index_template|data_stream)/[^/]+"
    r"|/_pit|/_search/scroll",
}
"""Method -> the public paths of its API specification, for the requests that could be sent."""

_ALLOWED_SETTINGS = re.compile(
    r"index\.(hidden|refresh_interval|(default|final)_pipeline|mapping\..*|analysis\..*|max_result_window|blocks\..*|uuid)"
)


@dataclass
class ElasticServerlessProxy(Proxy):
    """Elastic Cloud Serverless: requests about nodes and shards are not available."""

    number: str = "10.1.0"
    """The version that it reports, which means nothing."""

    def refuse(self, request: Request) -> Reply | None:
        """See `Proxy.refuse`."""
        method, path = request.method, unquote(request.path)
        if path == "/" and method == "GET":
            version = {"number": self.number, "build_flavor": "serverless", "lucene_version": "10.3.0"}
            return Reply.of(200, {"name": "serverless", "cluster_name": "1", "version": version, "tagline": ""})
        if not re.fullmatch(_SERVERLESS_PATHS.get(method, ""), request.path):
            reason = f"Request for uri [{path}] with method [{method}] exists but is not available when running in "
            error = {"type": "api_not_available_exception", "reason": f"{reason}serverless mode"}
            return Reply.of(410, {"error": error, "status": 410})
        if method == "PUT" and (unknown := [one for one in _settings_in(request) if not _ALLOWED_SETTINGS.match(one)]):
            reason = f"Settings [{','.join(sorted(unknown))}] are not available when running in serverless mode"
            error = {"type": "illegal_argument_exception", "reason": reason}
            return Reply.of(400, {"error": error, "status": 400})
        return None

    def answered(self, request: Request, reply: Reply) -> Reply:
        """See `Proxy.answered`. Settings that are not available are not shown."""
        headers = {**reply.headers, "x-elastic-product": "Elasticsearch"}
        flat = request.params.get("flat_settings") == "true"
        if request.method == "GET" and flat and reply.status == 200:
            found: dict[str, Any] = reply.json
            for entry in found.values():
                if isinstance(entry, dict) and "settings" in entry:
                    shown = entry["settings"].items()
                    entry["settings"] = {name: value for name, value in shown if _ALLOWED_SETTINGS.match(name)}
            reply = Reply.of(200, found)
        return replace(reply, headers={**reply.headers, **headers})


def _settings_in(request: Request) -> list[str]:
    """The flat names of the index settings that a request sets."""
    if request.path.endswith("/_settings"):
        return list(_flat(request.json))
    return list(_flat(request.json.get("settings", {}))) if re.fullmatch(_NAME, request.path) else []


def _flat(settings: Any, before: str = "") -> Any:
    for name, value in settings.items():
        full = f"{before}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{full}.")
        else:
            yield full if full.startswith("index.") else f"index.{full}"
