"""Application of ``es-neardupe serve``: the pages to review groups, and the HTTP interface below ``/api``."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated
from urllib.parse import unquote

from fastapi import FastAPI, Form, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from es_neardupe.errors import NeardupeError
from es_neardupe.index.index import Index, opened
from es_neardupe.pages.site import Site, error_page
from es_neardupe.serve.answers import refusal, status_of
from es_neardupe.serve.decision_pages import REVIEWER, decision_pages
from es_neardupe.serve.guard import Guard, Keys
from es_neardupe.serve.http_interface import http_interface
from es_neardupe.serve.site_pages import site_pages
from es_neardupe.serve.traffic import Traffic

__all__ = ["asgi"]


def asgi(
    index: Index,
    *,
    token: str,
    fields: Sequence[str] = (),
    hosts: Sequence[str] = (),
    reviewer: str = "reviewer",
    allow_decisions: bool = False,
) -> ASGIApp:
    """The web application for an index, which can be mounted in another one. It writes nothing but decisions of
    reviewers.

    ``token`` must be in each request: see `es_neardupe.serve.guard`. ``fields`` are shown of documents; by default the
    title. ``hosts`` are the names by which it is reached, besides those of the loopback interface. ``reviewer`` is the
    name under which decisions are stored, until a reviewer enters another one. ``allow_decisions``: programs may decide
    as well, over the HTTP interface.
    """
    keys, traffic = Keys(token), Traffic(index.name)
    app = FastAPI(title=f"es-neardupe: {index.name}", docs_url=None, redoc_url=None, openapi_url=None)

    def site(request: Request) -> Site:
        name = unquote(request.cookies.get(REVIEWER, "")).strip()
        named = name[:100] if name and name.isprintable() else reviewer
        return Site(request.scope.get("root_path", ""), index.name, keys.csrf, named)

    @app.middleware("http")
    async def count(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        began = time.monotonic()
        answer = await call_next(request)
        traffic.count(request, answer, time.monotonic() - began)
        return answer

    @app.exception_handler(NeardupeError)
    def error(request: Request, error: NeardupeError) -> HTMLResponse:
        found = error_page(site(request), str(error))
        return HTMLResponse(found.html, status_of(error), headers={"Content-Security-Policy": found.policy})

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> HTMLResponse:
        wrong = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in error.errors())
        found = error_page(site(request), f"The request is not valid: {wrong}.")
        return HTMLResponse(found.html, 400, headers={"Content-Security-Policy": found.policy})

    @app.exception_handler(HTTPException)
    def unknown(request: Request, error: HTTPException) -> HTMLResponse:
        found = error_page(site(request), str(error.detail))
        return HTMLResponse(found.html, error.status_code, headers={"Content-Security-Policy": found.policy})

    @app.get("/health")
    def health() -> JSONResponse:
        try:
            opened(index, groups=True)
        except NeardupeError as error:
            return refusal(error, status=503)
        return JSONResponse({"status": "ok"})

    @app.get("/metrics")
    def metrics() -> PlainTextResponse:
        return PlainTextResponse(*traffic.text())

    @app.post("/sign-out")
    def sign_out(request: Request, csrf: Annotated[str, Form()] = "") -> Response:
        if not keys.is_csrf(csrf):
            return PlainTextResponse("The form is not from this application: open the page again.\n", 403)
        answer = RedirectResponse(site(request).link("/"), status_code=303)
        answer.delete_cookie(keys.cookie_name, path=request.scope.get("root_path") or "/")
        return answer

    app.include_router(site_pages(index, fields, site))
    app.include_router(decision_pages(index, fields, site, keys))
    app.mount("/api", http_interface(index, fields, allow_decisions=allow_decisions))
    return Guard(app, keys, hosts)
