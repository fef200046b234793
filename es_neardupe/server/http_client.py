"""ServerClient: sends requests through a driver, retries them, and turns error answers into exceptions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import NeardupeError, RequestError, SettingsError, Unreachable
from es_neardupe.log_events import log_event
from es_neardupe.records import Hit, Product, Server
from es_neardupe.server.client import Before, Params, query_of, to_json
from es_neardupe.server.drivers.driver import Driver, LoginDriver
from es_neardupe.server.login.settings import Retries
from es_neardupe.server.pacing import Pace, may_pass, with_retries
from es_neardupe.server.read_all import ReadQuery, Skip, pages
from es_neardupe.server.request_sizes import can_be_split, is_too_large
from es_neardupe.server.responses import Answer, check_complete, expected, refusal

if TYPE_CHECKING:
    from tenacity import RetryCallState

# The same for Elasticsearch 8 and 9, whichever major version the driver has.
_MEDIA_TYPES = {
    Product.ELASTICSEARCH: "application/vnd.elasticsearch+{}; compatible-with=8",
    Product.OPENSEARCH: "application/{}",
}


class ServerClient:
    """A :class:`~es_neardupe.server.client.Client` over a driver."""

    def __init__(
        self,
        driver: Driver,
        server: Server,
        retries: Retries,
        options: Mapping[str, Any] | None = None,
        *,
        other_logins: bool = False,
    ) -> None:
        """``other_logins``: the server knows the user by a header alone, which `as_user` can replace."""
        self._driver = driver
        self._other_logins = other_logins
        self._retries = retries
        self.options = options
        self.server = server
        self.pace = Pace()

    def as_user(self, authorization: str) -> ServerClient:
        """The same connections with the credentials of another user: an ``authorization`` header.

        Raises `SettingsError` if the connections may carry a client certificate, which can be stronger than the header.
        """
        if not self._other_logins:
            raise SettingsError(
                "This connection cannot send the logins of others: it must be opened by es-neardupe, from a URL, "
                "without a client certificate or signatures of AWS."
            )
        return ServerClient(LoginDriver(self._driver, authorization), self.server, self._retries)

    @property
    def url(self) -> str:
        """See ``Client.url``."""
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
        params: Params | None = None,
        body: Mapping[str, Any] | None = None,
        again: bool = True,
    ) -> Any:
        """See ``Client.request``. ``again`` False: never sent twice."""
        data = None if body is None else to_json(body)
        splits = can_be_split(path, body)
        if path.endswith(("/_search", "/_update_by_query")):
            params = {**(params or {}), **_without_pipeline(self.server)}
        answer, _ = self._send(method, path, params, data, "json", again=again, complete=True, splits=splits)
        return answer

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        """See ``Client.bulk``."""
        answer, sent = self._send("POST", "/_bulk", params, body, "x-ndjson", before=before)
        return {**answer, "sent": sent} if isinstance(answer, dict) else answer

    def pages(
        self,
        index: str,
        body: Mapping[str, Any],
        *,
        page_size: int | None = 1000,
        slice: tuple[int, int] | None = None,
        keep_alive: str = "5m",
        skip: Skip | None = None,
        shard: int | None = None,
    ) -> Iterator[list[Hit]]:
        """See ``Client.pages``."""
        return pages(self, ReadQuery(index, body, page_size, slice, keep_alive, skip, shard))

    def close(self) -> None:
        """See ``Client.close``."""
        self._driver.close()

    def _send(
        self,
        method: str,
        path: str,
        params: Params | None,
        data: bytes | None,
        kind: str,
        *,
        again: bool = True,
        complete: bool = False,
        splits: bool = False,
        before: Before | None = None,
    ) -> tuple[Any, int]:
        """The answer, and how often the request was sent. ``splits``: see `can_be_split`. ``before``: see `bulk`."""
        media_type = _MEDIA_TYPES[self.server.product]
        headers = {"accept": media_type.format("json")}
        if data is not None:
            headers["content-type"] = media_type.format(kind)
        doing = f"{method} {self.url}{path}"
        sent = 0

        def once() -> Any:
            nonlocal sent
            if before is not None:
                before()
            sent += 1
            answer = self._driver.send(method, path + query_of(params), data, headers)
            if answer.ok and answer.body is None and method != "HEAD":
                raise Unreachable(f"{self.url}: the answer is empty. Check any proxy in front of the server.")
            return _body(answer, path, doing, complete=complete)

        if not again:
            return once(), sent
        worthwhile = _may_pass_whole if splits else may_pass
        return with_retries(once, self._retries, worthwhile, before=self._before_retry), sent

    def _before_retry(self, state: RetryCallState) -> None:
        """Slow down after a 429, and log that the request is sent again."""
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, RequestError) and error.status == 429:
            self.pace.rejected()
        log_event(
            logging.WARNING,
            "again",
            request=getattr(error, "request", ""),
            error=type(error).__name__,
            status=getattr(error, "status", None),
            attempt=state.attempt_number,
            wait=round(state.upcoming_sleep, 2),
        )


def _without_pipeline(server: Server) -> Params:
    """The parameter of a search that bypasses the default search pipeline of an index, which may drop or change hits.

    Counts and later pages of a scroll use no pipeline, and reject the parameter.
    """
    return {"search_pipeline": "_none"} if server.has_search_pipelines else {}


def _may_pass_whole(error: BaseException) -> bool:
    return may_pass(error) and not is_too_large(error)


def _body(answer: Answer, path: str, doing: str, *, complete: bool) -> Any:
    """The body of a successful answer, checked to be ``complete``. Errors carry the name of the request."""
    try:
        if not answer.ok:
            raise refusal(answer, doing)
        if isinstance(answer.body, str):
            raise RequestError(
                f"{doing}: the answer is not JSON. Check any proxy in front of the server.", status=answer.status
            )
        if complete:
            check_complete(answer.body, doing)
        return None if answer.body is None else expected(answer.body, path, doing)
    except NeardupeError as error:
        error.request = answer.request
        raise
