"""Retries: which errors are worth another try, how often, and after which waits."""

from __future__ import annotations

import math
from collections.abc import Callable

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_random_exponential,
)

from es_neardupe.errors import Blocked, RequestError, Unreachable
from es_neardupe.server.login.settings import Retries

__all__ = ["PART_RETRIES", "may_pass", "retrying"]

PART_RETRIES = Retries(total=math.inf)
"""Retries of the failed items of an answered request. Their total time has no limit: large requests take long."""

_WORTH_ANOTHER_TRY = {429, 502, 503, 504}
_NODE_LOST = {
    "connect_transport_exception",
    "node_closed_exception",
    "node_disconnected_exception",
    "node_not_connected_exception",
}
"""The node that we talk to forwarded the request to one that was just lost; another node takes its place."""


def may_pass(error: BaseException) -> bool:
    """Whether the same request is likely to succeed a little later."""
    if isinstance(error, Blocked):
        return error.status == 503  # no master, or a cluster that starts; an administrator must remove any other block
    if isinstance(error, RequestError):
        return error.status in _WORTH_ANOTHER_TRY or error.type in _NODE_LOST
    return isinstance(error, Unreachable)


def retrying(
    retries: Retries,
    worthwhile: Callable[[BaseException], bool] = may_pass,
    *,
    before: Callable[[RetryCallState], None] | None = None,
) -> Retrying:
    """Calls a function again while its error is ``worthwhile``, with ``before`` called before each further try; at the
    end raises the last error."""
    return Retrying(
        before_sleep=before,
        retry=retry_if_exception(worthwhile),
        stop=stop_after_attempt(retries.attempts) | stop_after_delay(retries.total),
        wait=wait_random_exponential(multiplier=retries.wait, max=retries.longest_wait),
        reraise=True,
    )
