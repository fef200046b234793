"""What is worth another try, and how often it is tried."""

from __future__ import annotations

from collections.abc import Callable

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_random_exponential,
)

from es_neardupe.clients.settings import Retries
from es_neardupe.errors import Blocked, RequestError, Unreachable

__all__ = ["may_pass", "retrying"]

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
