"""When requests are sent: the pace of a connection, and retries.

The rate is a leaky bucket (GCRA, as in ITU-T I.371): each request takes its time from a schedule. The load is a window
as in TCP (Chiu & Jain 1989: additive increase, multiplicative decrease): a rejection halves it, and each request that
was accepted completely opens it again by a part.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from typing import TYPE_CHECKING, TypeVar

from es_neardupe.errors import Blocked, IncompleteAnswer, RequestError, SettingsError, Unreachable
from es_neardupe.log_events import log_event
from es_neardupe.server.login.settings import Retries
from es_neardupe.server.parallel import pause
from es_neardupe.wording import option

if TYPE_CHECKING:
    from tenacity import RetryCallState, Retrying

_Result = TypeVar("_Result")

PART_RETRIES = Retries(total=math.inf)
"""Retries of the failed items of an answered request. Their total time has no limit: large requests take long."""

_TEMPORARY = {429, 502, 503, 504}
_NODE_LOST = {
    "connect_transport_exception",
    "node_closed_exception",
    "node_disconnected_exception",
    "node_not_connected_exception",
}
"""The contacted node forwarded the request to one that was just lost; another node takes its place."""


def may_pass(error: BaseException) -> bool:
    """Whether the same request is likely to succeed a little later."""
    if isinstance(error, Blocked):
        return error.status == 503  # no master, or a cluster that starts; an administrator must remove any other block
    if isinstance(error, RequestError):
        return error.status in _TEMPORARY or error.type in _NODE_LOST
    if isinstance(
        error, IncompleteAnswer
    ):  # statistics of all shards, before the cluster has noticed that a node is lost
        return error.type == "failed_node_exception"
    return isinstance(error, Unreachable)


def with_retries(
    work: Callable[[], _Result],
    retries: Retries,
    worthwhile: Callable[[BaseException], bool] = may_pass,
    *,
    before: Callable[[RetryCallState], None] | None = None,
) -> _Result:
    """The result of ``work``, which is called again while its error is ``worthwhile``, and ``before`` before each
    further try. Raises the last error when the tries are used up."""
    started = time.monotonic()
    try:
        return work()
    except Exception as error:
        if not worthwhile(error):
            raise
        failed = [error]

    def again() -> _Result:
        if failed:
            raise failed.pop()  # the first try was before
        return work()

    return retrying(retries, worthwhile, before=before, since=started)(again)


def retrying(
    retries: Retries,
    worthwhile: Callable[[BaseException], bool] = may_pass,
    *,
    before: Callable[[RetryCallState], None] | None = None,
    since: float | None = None,
) -> Retrying:
    """The tries of `with_retries`, the first of which began at the time ``since`` (default: now)."""
    # Loaded when a request has failed: it takes as long as a tenth of a command that reads little.
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, wait_random_exponential

    used = 0 if since is None else time.monotonic() - since
    return Retrying(
        before_sleep=before,
        retry=retry_if_exception(worthwhile),
        sleep=pause,
        stop=stop_after_attempt(retries.attempts) | stop_after_delay(retries.total - used),
        wait=wait_random_exponential(multiplier=retries.wait, max=retries.longest_wait),
        reraise=True,
    )


_RECOVERY = 20
"""Number of completely accepted requests that open the window from nothing to its full size."""


class Pace:
    """The limits of one connection; none until `limit` is called. Safe to share between threads."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._changed = Condition()
        self._rate = self._load = self._window = math.inf
        self._next = -math.inf
        self._under_way = 0
        self.documents: int | None = None
        """Maximum number of documents of unknown size to request at a time; None if it was not determined yet."""
        self.request_bytes: int | None = None
        """Maximum size of a request in bytes; None if it was not determined yet."""
        self.counts = False
        """Whether the server counts the documents of a search in its memory, and rejects too many."""
        self.measures = True
        """Whether the server measures the sizes of documents before they are read; False once it has refused to."""

    def limit(self, *, max_rate: float | None = None, max_load: int | None = None) -> None:
        """Set the limits; None means no limit. ``max_rate`` is in documents per second, ``max_load`` in documents that
        were sent and not yet answered. Raises `SettingsError` for numbers out of range."""
        if max_rate is not None and not (0 < max_rate < math.inf):
            raise SettingsError(f"{option('max_rate')} must be more than 0 documents per second, not {max_rate}.")
        if max_load is not None and max_load < 1:
            raise SettingsError(f"{option('max_load')} must be at least 1 document, not {max_load}.")
        with self._changed:
            self._rate = math.inf if max_rate is None else max_rate
            self._load = self._window = math.inf if max_load is None else max_load

    def share(self, parts: int) -> tuple[float | None, int | None]:
        """The limits of one of several connections that together keep these."""
        rate = None if self._rate == math.inf else self._rate / parts
        return rate, None if self._load == math.inf else max(1, int(self._load / parts))

    def maximum(self, batch: int) -> int:
        """Documents that the next request may contain: at most ``batch``, one second's worth, and the window."""
        return max(1, int(min(batch, self._rate, self._window)))

    def wait(self, documents: int) -> None:
        """Wait until a request with this number of documents may start: in any ``t`` seconds, at most ``max_rate * t``
        documents are sent, plus one request."""
        with self._changed:
            if self._rate == math.inf:
                return
            now = self._clock()
            begins = max(now, self._next)
            self._next = begins + documents / self._rate
        if begins > now:
            self._sleep(begins - now)

    @contextmanager
    def turn(self, documents: int) -> Iterator[None]:
        """Wait until the window has room for this number of documents, then count them as in flight for a ``with``
        block. A single request is always allowed, however large it is."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way or self._under_way + documents <= self._window)
            self._under_way += documents
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= documents
                self._changed.notify_all()

    def rejected(self) -> None:
        """Halve the window: the server rejected a request (429)."""
        if self._load == math.inf:
            return
        with self._changed:
            self._window = max(1, self._window / 2)
            log_event(logging.WARNING, "backs_off", under_way=int(self._window), max_load=int(self._load))

    def accepted(self) -> None:
        """Open the window by a part: a request was accepted completely."""
        if self._load == math.inf:
            return
        with self._changed:
            self._window = min(self._load, self._window + self._load / _RECOVERY)
            self._changed.notify_all()
