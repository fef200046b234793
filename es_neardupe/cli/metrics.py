"""What ``watch`` counts, for Prometheus (extra ``watch``)."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from es_neardupe.errors import SettingsError
from es_neardupe.pipeline.rounds import Lag, Round

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["metrics", "serving"]

_PREFIX = "es_neardupe_"


@contextmanager
def serving(host: str, port: int, registry: CollectorRegistry) -> Iterator[str]:
    """Serve a registry over HTTP for as long as the block runs; gives the address. ``port`` 0: any free one.

    Raises `SettingsError` if nobody may listen there.
    """
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"The metrics cannot be served at {host}, port {port} ({error}): choose another --metrics-port or "
            f"--metrics-host."
        ) from error
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def metrics(index: str, lag: Lag) -> tuple[CollectorRegistry, Callable[[Round], None]]:
    """The metrics of the watch of an index, and what counts a round into them. All bear the label ``index``.

    Raises `SettingsError` where prometheus-client is missing.
    """
    if importlib.util.find_spec("prometheus_client") is None:
        raise SettingsError("--metrics-port needs prometheus-client: pip install 'es-neardupe[watch]'.")
    from prometheus_client import CollectorRegistry, Counter, Gauge, Summary, disable_created_metrics

    # Else each counter has a second series with the time it was made.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()

    def gauge(name: str, words: str) -> Gauge:
        return Gauge(_PREFIX + name, words, ["index"], registry=registry).labels(index)

    def counter(name: str, words: str) -> Counter:
        return Counter(_PREFIX + name, words, ["index"], registry=registry).labels(index)

    documents = gauge("documents", "Documents in the index when the last round began")
    left = gauge("documents_left", "Documents that the last round could not settle")
    enriched = counter("documents_enriched_total", "Documents that got keys")
    grouped = counter("documents_grouped_total", "Documents whose grouping was written")
    pairs = counter("pairs_verified_total", "Candidate pairs that were verified")
    skipped = counter("comparisons_skipped_total", "Comparisons left out in large buckets")
    success = gauge("last_success_timestamp_seconds", "When the last round without an error ended, as Unix time")
    gauge("lag_seconds", "How long documents that were noticed have been waiting").set_function(lambda: lag.seconds)
    rounds = Summary(_PREFIX + "round_seconds", "Rounds, and how long they took", ["index"], registry=registry)
    errors = Counter(_PREFIX + "errors_total", "Rounds that an error ended", ["index", "kind"], registry=registry)

    def count(done: Round) -> None:
        if done.documents is not None:
            documents.set(done.documents)
        left.set(done.left)
        enriched.inc(done.enriched)
        grouped.inc(done.grouped)
        pairs.inc(done.pairs)
        skipped.inc(done.skipped)
        rounds.labels(index).observe(done.seconds)
        if done.error is None:
            success.set(time.time())
        else:
            errors.labels(index, done.error).inc()

    return registry, count
