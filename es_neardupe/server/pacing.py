"""How hard a connection may push: documents a second, and documents under way at a time.

The rate is a leaky bucket (GCRA, as in ITU-T I.371): each request takes its time from a schedule. The load is a window
as in TCP (Chiu & Jain 1989: additive increase, multiplicative decrease): a refusal halves it, and each request that was
taken whole gives back a part.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_random_exponential,
)

from es_neardupe.errors import Blocked, RequestError, SettingsError, Unreachable
from es_neardupe.log_events import told
from es_neardupe.server.login.settings import Retries

__all__ = ["Pace", "may_pass", "retrying"]


_RECOVERY = 20
"""So many requests that were taken whole bring the window from nothing to its full size."""


class Pace:
    """The limits of one connection. Without `limit` there are none. Threads may share it."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._changed = Condition()
        self._rate = self._load = self._window = math.inf
        self._next = -math.inf
        self._under_way = 0

    def limit(self, *, max_rate: float | None = None, max_load: int | None = None) -> None:
        """Set the limits; None: none. ``max_rate`` is in documents a second, ``max_load`` in documents that were sent
        and not answered. Raises `SettingsError` for numbers out of range."""
        if max_rate is not None and not (0 < max_rate < math.inf):
            raise SettingsError(f"--max-rate must be more than 0 documents a second, not {max_rate}.")
        if max_load is not None and max_load < 1:
            raise SettingsError(f"--max-load must be at least 1 document, not {max_load}.")
        with self._changed:
            self._rate = math.inf if max_rate is None else max_rate
            self._load = self._window = math.inf if max_load is None else max_load

    def most(self, batch: int) -> int:
        """Documents that the next request may have: at most ``batch``, a second's worth, and the window."""
        return max(1, int(min(batch, self._rate, self._window)))

    def wait(self, documents: int) -> None:
        """Wait until a request of so many documents may begin, so that any ``t`` seconds see at most
        ``max_rate * t`` documents, and one request more."""
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
        """Hold the place of so many documents under way. One request may always go, however large it is."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way or self._under_way + documents <= self._window)
            self._under_way += documents
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= documents
                self._changed.notify_all()

    def refused(self) -> None:
        """The server had no room (429): halve the window."""
        if self._load == math.inf:
            return
        with self._changed:
            self._window = max(1, self._window / 2)
            told(logging.WARNING, "backs_off", under_way=int(self._window), max_load=int(self._load))

    def taken(self) -> None:
        """A request was taken whole: open the window by a part."""
        if self._load == math.inf:
            return
        with self._changed:
            self._window = min(self._load, self._window + self._load / _RECOVERY)
            self._changed.notify_all()


_WORTH_ANOTHER_TRY = {429, 502, 503, 504}
_NODE_LOST = {
    "connect_transport_exception",
    "node_closed_exception",
    "node_disconnected_exception",
    "node_not_connected_exception",
}
"""The node that we talk to passed the request on to one that was just lost: another takes its place."""


def retrying(retries: Retries, before: Callable[[RetryCallState], None] | None = None) -> Retrying:
    """Calls a function again while it raises what may pass, ``before`` each further try; then raises its last error."""
    return Retrying(
        before_sleep=before,
        retry=retry_if_exception(may_pass),
        stop=stop_after_attempt(retries.attempts) | stop_after_delay(retries.total),
        wait=wait_random_exponential(multiplier=retries.wait, max=retries.longest_wait),
        reraise=True,
    )


def may_pass(error: BaseException) -> bool:
    """Whether the same request may well be answered a little later."""
    if isinstance(error, Blocked):
        return error.status == 503  # no master, or a cluster that starts: somebody has to lift any other block
    if isinstance(error, RequestError):
        return error.status in _WORTH_ANOTHER_TRY or error.type in _NODE_LOST
    return isinstance(error, Unreachable)
