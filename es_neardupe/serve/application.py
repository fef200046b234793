"""Application of ``es-neardupe serve``: the pages to review groups, and the HTTP interface below ``/api``."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

from fastapi import FastAPI, Form, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from es_neardupe.display_text import validation_message
from es_neardupe.errors import Forbidden, LoginRefused, NeardupeError, SettingsError
from es_neardupe.groups.reviewed import ReviewedGroups
from es_neardupe.index.index import Index, opened
from es_neardupe.lists import as_list
from es_neardupe.pages.application import Site
from es_neardupe.pages.site import error_page
from es_neardupe.serve.answers import problem, refusal, status_of
from es_neardupe.serve.decision_pages import REVIEWER, decision_pages
from es_neardupe.serve.document_pages import document_pages
from es_neardupe.serve.guard import INTERFACE, Guard, Keys, check_form, is_of_interface, login_required
from es_neardupe.serve.http_interface import http_interface
from es_neardupe.serve.site_pages import site_pages
from es_neardupe.server.drivers.driver import user_name
from es_neardupe.server.http_client import ServerClient
from es_neardupe.views.group_pages import load_for_filters
from es_neardupe.wording import option

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


def asgi(
    index: Index,
    *,
    token: str = "",
    fields: Sequence[str] = (),
    hosts: Sequence[str] = (),
    reviewer: str = "reviewer",
    allow_decisions: bool = False,
    auth_proxy: bool = False,
) -> ASGIApp:
    """The web application for an index, which can be mounted in another one. It writes nothing but decisions of
    reviewers.

    ``token`` must be in each request (see `es_neardupe.serve.guard`), and have at least 16 printable ASCII characters.
    ``fields`` are shown of documents; by default the title. ``hosts`` are the names by which it is reached, besides
    those of the loopback interface. ``reviewer`` is the name under which decisions are stored, until a reviewer enters
    another one. ``allow_decisions``: programs may decide as well, over the HTTP interface.

    ``auth_proxy``: no token; each request must carry an ``Authorization`` header for the search server, and everything
    is read and written with this login, so that the server decides what each reader may see. Decisions are stored under
    the user name. Raises `SettingsError` if the connection of ``index`` cannot send other logins, and for a weak token.
    """
    fields, hosts = as_list("fields", fields), as_list("hosts", hosts)
    keys, traffic = Keys(token, logins=auth_proxy), Traffic(index.name)
    if auth_proxy:
        _as_user(index, "Basic Og==")  # a connection that cannot do this is an error now, not on every page
    app = FastAPI(title=f"es-neardupe: {index.name}", docs_url=None, redoc_url=None, openapi_url=None)

    def index_of(request: Request) -> Index:
        return _as_user(index, request.headers["authorization"]) if auth_proxy else index

    def site(request: Request) -> Site:
        root = request.scope.get("root_path", "")
        if auth_proxy:
            login = request.headers["authorization"]
            return Site(root, index.name, keys.csrf(login), user_name(login) or reviewer, by_login=True)
        name = unquote(request.cookies.get(REVIEWER, "")).strip()
        named = name[:100] if name and name.isprintable() else reviewer
        return Site(root, index.name, keys.csrf(""), named)

    @app.middleware("http")
    async def count(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        began = time.monotonic()
        answer = await call_next(request)
        traffic.count(request, answer, time.monotonic() - began)
        return answer

    @app.exception_handler(NeardupeError)
    def error(request: Request, error: NeardupeError) -> Response:
        if auth_proxy and isinstance(error, LoginRefused):
            return login_required(request.scope)
        found = error_page(site(request), str(error), back=getattr(request.state, "back", None))
        return HTMLResponse(found.html, status_of(error), headers={"Content-Security-Policy": found.policy})

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> HTMLResponse:
        wrong = "; ".join(f"{one['loc'][-1]}: {validation_message(one)}" for one in error.errors())
        found = error_page(site(request), f"The request is not valid: {wrong}.")
        return HTMLResponse(found.html, 400, headers={"Content-Security-Policy": found.policy})

    @app.exception_handler(HTTPException)
    def unknown(request: Request, error: HTTPException) -> Response:
        if is_of_interface(request.scope):  # with a line break in the path, which no route of it takes
            return problem(error.status_code, str(error.detail))
        found = error_page(site(request), str(error.detail))
        headers = {**(error.headers or {}), "Content-Security-Policy": found.policy}
        return HTMLResponse(found.html, error.status_code, headers=headers)

    @app.get("/health")
    def health(request: Request) -> JSONResponse:
        try:
            opened(index_of(request), groups=True)
        except NeardupeError as error:
            return refusal(error, status=503)
        return JSONResponse({"status": "ok"})

    @app.get("/metrics")
    def metrics(request: Request) -> PlainTextResponse:
        if auth_proxy:
            opened(index_of(request), groups=True)  # otherwise any login would do
        return PlainTextResponse(*traffic.text())

    @app.post("/sign-out")
    def sign_out(request: Request, csrf: Annotated[str, Form()] = "") -> Response:
        try:
            check_form(csrf, site(request).csrf)
        except Forbidden as error:
            return PlainTextResponse(f"{error}\n", error.status)
        answer = RedirectResponse(site(request).link("/"), status_code=303)
        answer.delete_cookie(keys.cookie_name, path=request.scope.get("root_path") or "/")
        return answer

    reviewed = ReviewedGroups()
    if not auth_proxy:  # otherwise only the logins of readers may read
        reviewed.begin(index, load_for_filters)
    app.include_router(site_pages(index_of, fields, site, reviewed))
    app.include_router(document_pages(index_of, fields, site))
    app.include_router(decision_pages(index_of, fields, site, reviewed))
    api = http_interface(index_of, index.name, fields, reviewed, allow_decisions=allow_decisions, logins=auth_proxy)
    app.mount(INTERFACE, api)
    return Guard(app, keys, hosts)


def _as_user(index: Index, authorization: str) -> Index:
    """The index with another login. Raises `SettingsError` if its connection cannot send one."""
    if not isinstance(index.server, ServerClient):
        raise SettingsError(f"{option('auth_proxy')} needs a connection that es-neardupe has opened itself.")
    return index.through(index.server.as_user(authorization))


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
