"""Answers to requests: pages, and for those that failed, problem JSON (RFC 9457) with the HTTP status of the error."""

from __future__ import annotations

from http import HTTPStatus

from fastapi.responses import HTMLResponse, JSONResponse

from es_neardupe.errors import (
    ConnectError,
    Forbidden,
    IncompleteAnswer,
    IndexUnusable,
    InputError,
    NeardupeError,
    NotFound,
    RequestError,
    SettingsError,
)
from es_neardupe.pages.site import Hosted

PROBLEM_JSON = "application/problem+json"
"""Its content type."""

STATUS_ALONE = "about:blank"
"""The type of a problem about which the status says all (RFC 9457, section 4.2.1)."""


def problem(status: int, detail: str, kind: str = STATUS_ALONE) -> JSONResponse:
    """An answer of problem JSON."""
    content = {"type": kind, "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(content, status, media_type=PROBLEM_JSON)


_STATUSES: tuple[tuple[type[NeardupeError], int], ...] = (
    (NotFound, 404),
    (Forbidden, 403),
    (SettingsError, 400),
    (InputError, 400),
    (IndexUnusable, 409),
    (ConnectError, 503),
    (IncompleteAnswer, 503),
)


def page_answer(page: Hosted, status: int = 200) -> HTMLResponse:
    """A page with its policy."""
    return HTMLResponse(page.html, status, headers={"Content-Security-Policy": page.policy})


def status_of(error: NeardupeError) -> int:
    """The HTTP status of an error: 4xx if another request would help, else 5xx."""
    if type(error) is RequestError and error.status == HTTPStatus.BAD_REQUEST:  # such as a wrong query string
        return 400
    if isinstance(error, RequestError) and error.status in (429, 503):
        return 503
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 502)


def refusal(error: NeardupeError, *, status: int | None = None) -> JSONResponse:
    """An error as problem JSON."""
    return problem(status or status_of(error), str(error), type(error).__name__)
