"""Metrics of the application for Prometheus: answered requests, and their duration."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from fastapi import Request, Response

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class Traffic:
    """The metrics of one application, all with the label ``index``; none without prometheus-client."""

    def __init__(self, index: str) -> None:
        self._index = index
        self._registry: CollectorRegistry | None = None
        if importlib.util.find_spec("prometheus_client") is None:
            return
        from prometheus_client import CollectorRegistry, Counter, Summary, disable_created_metrics

        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        labels = ["index", "path"]
        self._requests = Counter(
            "es_neardupe_http_requests_total", "Answered requests", [*labels, "status"], registry=self._registry
        )
        self._seconds = Summary("es_neardupe_http_request_seconds", "Duration", labels, registry=self._registry)

    def count(self, request: Request, answer: Response, seconds: float) -> None:
        """Count an answered request under the path of its route, which has no ids of documents."""
        if self._registry is not None:
            path = getattr(request.scope.get("route"), "path", "other")
            self._requests.labels(self._index, path, str(answer.status_code)).inc()
            self._seconds.labels(self._index, path).observe(seconds)

    def text(self) -> tuple[str, int]:
        """The metrics in the format of Prometheus, with the HTTP status."""
        if self._registry is None:
            return "Metrics need prometheus-client: install the extra watch of es-neardupe.\n", 404
        from prometheus_client import generate_latest

        return generate_latest(self._registry).decode(), 200
