"""Problem JSON (RFC 9457): the answer of the HTTP interface to a request that failed."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import JSONResponse

PROBLEM_JSON = "application/problem+json"
"""Its content type."""

STATUS_ALONE = "about:blank"
"""The type of a problem about which the status says all (RFC 9457, section 4.2.1)."""


def problem(status: int, detail: str, kind: str = STATUS_ALONE) -> JSONResponse:
    """An answer of problem JSON."""
    content = {"type": kind, "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(content, status, media_type=PROBLEM_JSON)
