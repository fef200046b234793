"""The one client: sends through a driver, tries again where that helps, and turns refusals into errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from tenacity import (
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_random_exponential,
)

from es_neardupe.clients.answers import Answer, check_whole, refusal
from es_neardupe.clients.driver import Driver
from es_neardupe.clients.paging import Reading, pages
from es_neardupe.clients.protocol import to_json
from es_neardupe.clients.settings import Retries
from es_neardupe.errors import Blocked, RequestError, Unreachable
from es_neardupe.records import Hit, Product, Server

__all__ = ["ServerClient", "retrying"]

# One dialect for Elasticsearch 8 and 9, whichever major version the driver has.
_DIALECTS = {
    Product.ELASTICSEARCH: "application/vnd.elasticsearch+{}; compatible-with=8",
    Product.OPENSEARCH: "application/{}",
}
_WORTH_ANOTHER_TRY = {429, 502, 503, 504}
_NODE_LOST = {
    "connect_transport_exception",
    "node_closed_exception",
    "node_disconnected_exception",
    "node_not_connected_exception",
}
"""The node that we talk to passed the request on to one that was just lost: another takes its place."""

_Params = Mapping[str, str | int | bool]


class ServerClient:
    """A :class:`~es_neardupe.clients.protocol.Client` over a driver."""

    def __init__(self, driver: Driver, server: Server, retries: Retries) -> None:
        self._driver = driver
        self._server = server
        self._retries = retries

    @property
    def server(self) -> Server:
        return self._server

    @property
    def url(self) -> str:
        return self._driver.url

    @property
    def login(self) -> str:
        """See ``Client.login``."""
        return self._driver.login

    def request(
        self,
        method: str,
        path: str,
        *,
        params: _Params | None = None,
        body: Mapping[str, Any] | None = None,
        again: bool = True,
    ) -> Any:
        """See ``Client.request``. ``again`` False: sent once, for what must not be done twice."""
        data = None if body is None else to_json(body)
        answer = self._send(method, path, params, data, "json", again=again)
        check_whole(answer, f"{method} {self.url}{path}")
        return answer

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None) -> Any:
        """See ``Client.bulk``."""
        return self._send("POST", "/_bulk", params, body, "x-ndjson")

    def pages(
        self,
        index: str,
        body: Mapping[str, Any],
        *,
        page_size: int = 1000,
        slice: tuple[int, int] | None = None,
        keep_alive: str = "5m",
        first_page: int | None = None,
    ) -> Iterator[list[Hit]]:
        """See ``Client.pages``."""
        return pages(self, Reading(index, body, page_size, slice, keep_alive, first_page))

    def close(self) -> None:
        """See ``Client.close``."""
        self._driver.close()

    def _send(
        self,
        method: str,
        path: str,
        params: _Params | None,
        data: bytes | None,
        kind: str,
        *,
        again: bool = True,
    ) -> Any:
        dialect = _DIALECTS[self._server.product]
        headers = {"accept": dialect.format("json")}
        if data is not None:
            headers["content-type"] = dialect.format(kind)
        doing = f"{method} {self.url}{path}"

        def once() -> Any:
            return _body(self._driver.send(method, path + _query(params), data, headers), doing)

        return retrying(self._retries)(once) if again else once()


def retrying(retries: Retries) -> Retrying:
    """Calls a function again while it raises what may pass; then raises its last error."""
    return Retrying(
        retry=retry_if_exception(_may_pass),
        stop=stop_after_attempt(retries.attempts) | stop_after_delay(retries.total),
        wait=wait_random_exponential(multiplier=retries.wait, max=retries.longest_wait),
        reraise=True,
    )


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, Blocked):
        return error.status == 503  # no master, or a cluster that starts: somebody has to lift any other block
    if isinstance(error, RequestError):
        return error.status in _WORTH_ANOTHER_TRY or error.type in _NODE_LOST
    return isinstance(error, Unreachable)


def _body(answer: Answer, doing: str) -> Any:
    if not answer.ok:
        raise refusal(answer, doing)
    if isinstance(answer.body, str):
        raise RequestError(f"{doing}: the answer is not JSON. Is there a proxy in between?", status=answer.status)
    return answer.body


def _query(params: _Params | None) -> str:
    if not params:
        return ""
    words = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in params.items()}
    return "?" + urlencode(words, quote_via=quote, safe=",*")
