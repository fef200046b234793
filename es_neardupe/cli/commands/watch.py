"""``es-neardupe watch``: a service that keeps a growing index grouped."""

from __future__ import annotations

import importlib.util
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, FailuresFile, IndexName
from es_neardupe.cli.connection import open_index, resumable
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.left_documents import write_failures
from es_neardupe.cli.messages import (
    say_measure,
    say_prepared,
    say_reread,
    warn_of_detection,
    warn_of_unnoticed,
)
from es_neardupe.cli.output import check_output, print_json, say, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.watch import watch as library
from es_neardupe.errors import SettingsError
from es_neardupe.folders import install_extra
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import counted

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from es_neardupe.commands.watch.rounds import Lag, Round


_PREFIX = "es_neardupe_"


@contextmanager
def serving(host: str, port: int, registry: CollectorRegistry) -> Iterator[str]:
    """Serve a registry over HTTP during the ``with`` block; yields the address. ``port`` 0: any free port.

    Raises `SettingsError` if the address cannot be used.
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
    """The metrics of an index, all with the label ``index``, and the function that adds a round to them.

    Raises `SettingsError` if prometheus-client is missing.
    """
    if importlib.util.find_spec("prometheus_client") is None:
        raise SettingsError(f"--metrics-port needs prometheus-client: {install_extra('watch')}")
    from prometheus_client import CollectorRegistry, Counter, Gauge, Summary, disable_created_metrics

    # Otherwise each counter has a second series with its time of creation.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()

    def gauge(name: str, words: str) -> Gauge:
        return Gauge(_PREFIX + name, words, ["index"], registry=registry).labels(index)

    def counter(name: str, words: str) -> Counter:
        return Counter(_PREFIX + name, words, ["index"], registry=registry).labels(index)

    documents = gauge("documents", "Documents in the index at the start of the last round")
    left = gauge("documents_left", "Documents that the last round could not process")
    enriched = counter("documents_enriched_total", "Documents that got keys")
    grouped = counter("documents_grouped_total", "Documents whose grouping was written")
    pairs = counter("pairs_verified_total", "Candidate pairs that were verified")
    skipped = counter("comparisons_skipped_total", "Comparisons skipped in large buckets")
    success = gauge("last_success_timestamp_seconds", "End of the last round without an error, as Unix time")
    gauge("lag_seconds", "How long documents have been waiting for keys or groups").set_function(lambda: lag.seconds)
    rounds = Summary(_PREFIX + "round_seconds", "Duration of rounds", ["index"], registry=registry)
    errors = Counter(_PREFIX + "errors_total", "Rounds that ended with an error", ["index", "kind"], registry=registry)

    def count(done: Round) -> None:
        if done.scope is not None:
            documents.set(done.scope.documents)
        left.set(done.writes.left)
        enriched.inc(done.writes.enriched)
        grouped.inc(done.writes.grouped)
        if done.pairs is not None:
            pairs.inc(done.pairs.candidates)
            skipped.inc(done.pairs.skipped)
        rounds.labels(index).observe(done.seconds)
        if done.error is None:
            success.set(time.time())
        else:
            errors.labels(index, done.error).inc()

    return registry, count


_METRICS = "Metrics"
_LOCALHOST = "127.0.0.1"


@with_options_of(library, summary=False)
def watch(
    index: IndexName,
    *,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="Serve Prometheus metrics; 0: any free port.",
            rich_help_panel=_METRICS,
        ),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(metavar="HOST", help="Address on which to serve metrics.", rich_help_panel=_METRICS)
    ] = _LOCALHOST,
    max_rate: options.MaxRate = None,
    max_load: options.MaxLoad = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    failures: FailuresFile = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Keep a growing index enriched and grouped, until SIGTERM or Ctrl-C.

    Each round runs enrich and group for new and changed documents, with the rules of the last run of group.
    Temporary failures are retried.

    Examples:

      es-neardupe watch news

      es-neardupe watch news --every 5m --since updated=now-1h --metrics-port 9464
    """
    from es_neardupe.commands.watch.rounds import Lag

    if metrics_port is None and metrics_host != _LOCALHOST:
        raise typer.BadParameter("--metrics-host requires --metrics-port.")
    check_output(failures)
    stop, lag = Event(), Lag()
    with ExitStack() as stack:
        count = stack.enter_context(_metrics(index, lag, metrics_host, metrics_port))
        stack.enter_context(_stopping(stop))
        stack.enter_context(resumable())

        def on_round(done: Round) -> None:
            count(done)
            _show_round(done, as_json)
            write_failures(failures, done.writes.left_documents)

        report = library(
            open_index(index, prefix, max_rate=max_rate, max_load=max_load),
            stop=stop,
            lag=lag,
            on_round=on_round,
            **given,
        )
    if not given["once"]:
        say(f"Stopped. Rounds: {report.rounds:,}, failed: {report.failed:,}.")


@contextmanager
def _metrics(index: str, lag: Lag, host: str, port: int | None) -> Iterator[Callable[[Round], None]]:
    """The function that counts a round. With a port, metrics are served meanwhile."""
    if port is None:
        yield lambda done: None
        return
    registry, count = metrics(index, lag)
    with serving(host, port, registry) as address:
        say(f"Metrics: {address}")
        yield count


@contextmanager
def _stopping(stop: Event) -> Iterator[None]:
    """SIGTERM and SIGINT set ``stop``; a second signal has its usual effect."""

    def request_stop() -> None:
        say("Stopping after the current step.")
        stop.set()

    def handle(number: int, frame: FrameType | None) -> None:
        for one, usual in before.items():
            signal.signal(one, usual)
        # In another thread: the handler interrupts the main thread, which may hold a lock that is needed here.
        Thread(target=request_stop, daemon=True).start()

    before = {one: signal.signal(one, handle) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, usual in before.items():
            signal.signal(one, usual)


def _show_round(done: Round, as_json: bool) -> None:
    """Print one line for each round."""
    result(done)
    if as_json:
        print_json(done)
        sys.stdout.flush()  # a pipe is block-buffered
    else:
        if done.round == 1 and done.grouping is not None:
            say(f"Rules: {done.grouping.rules}.")
        found = "" if done.scope is None else f"{done.scope.new:,} new, {done.scope.changed:,} changed, "
        pairs = ""
        if done.pairs is not None:
            pairs = f"{counted(done.pairs.candidates, 'pair')}, {done.pairs.skipped:,} skipped, "
        say(
            f"{done.at} round {done.round}: {found}{done.writes.enriched:,} enriched, {done.writes.grouped:,} grouped, "
            f"{pairs}{done.writes.left:,} left, lag {done.lag:.1f} s, {done.seconds:.1f} s"
        )
    say_prepared(done.index, done.prepared)
    if done.message is not None:
        warn(f"{done.message} The next round tries again.")
    if done.round == 1 and done.scope is not None:
        say_reread(done.scope.reread)
        warn_of_unnoticed(done.index, done.scope.unnoticed)
    if done.round == 1 and done.grouping is not None:
        say_measure(done.grouping.rules.measure, done.grouping.rules.weights, given=None)
        grouping = done.grouping
        warn_of_detection(grouping.detection)
