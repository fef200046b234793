"""Access to the application: which requests are let in, and the security headers of all answers.

A request must name a known host (else any web page could reach the application by a name that resolves to this
machine: DNS rebinding), must not come from another origin, and must carry the token: in a header
``Authorization: Bearer TOKEN``, in a cookie, or once in the URL, which is exchanged for the cookie by a redirect. Or it
must carry the reader's own login, with which all requests to the search server are then sent.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from es_neardupe.errors import Forbidden, SettingsError
from es_neardupe.serve.answers import problem

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine that every application accepts."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of all answers. A page names its own Content-Security-Policy, with the hashes of its style and script."""

INTERFACE = "/api"
"""Path of the HTTP interface."""

_SAFE = ("GET", "HEAD")

_REFUSED = (
    "A request needs the token of the application: open the address that `es-neardupe serve` printed, or send the "
    "header Authorization: Bearer TOKEN.\n"
)

_MAX_BODY = 16_000_000
"""Bytes of a body; a text with more characters than this is not compared by the application."""

_TOO_LARGE = f"The body of a request may have {_MAX_BODY:,} bytes.\n"


_MIN_TOKEN = 16


def new_token() -> str:
    """A random token: 192 bits."""
    return secrets.token_urlsafe(24)


def _is_strong(token: object) -> bool:
    return isinstance(token, str) and len(token) >= _MIN_TOKEN and token.isascii() and token.isprintable()


class Keys:
    """The token, and derived from it the cookie, which does not reveal the token, and the CSRF token of forms."""

    def __init__(self, token: str, *, logins: bool = False) -> None:
        """``logins``: each request carries a login of the search server, which checks it; the token is only a secret of
        the forms. Raises `SettingsError` for a token that lets requests in and can be guessed, or not be sent."""
        if not logins and not _is_strong(token):
            raise SettingsError(f"The token must have at least {_MIN_TOKEN} printable ASCII characters.")
        self.logins = logins
        self._token = token.encode()
        self.cookie_name = f"es-neardupe-{self._derived('name')[:8]}"
        """Browsers do not separate cookies by port: applications on one machine have cookies of different names."""
        self.cookie = self._derived("cookie")

    def _derived(self, purpose: str) -> str:
        return hmac.new(self._token, purpose.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        """Whether this is the token; takes the same time for each wrong one."""
        return same(given, self._token.decode())

    def csrf(self, login: str) -> str:
        """The token that the forms of a user carry, so that no other site, and no other user, can send them."""
        return self._derived(f"csrf {login}")

    def in_cookies(self, header: str) -> bool:
        """Whether a ``Cookie`` header has the cookie."""
        try:
            found = SimpleCookie(header).get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and same(found.value, self.cookie)


def same(given: str, secret: str) -> bool:
    """Whether both are equal; takes the same time for each wrong value."""
    return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())


def check_form(given: str, secret: str) -> None:
    """Raise `Forbidden` unless the form has the secret of the pages of the reader."""
    if not same(given, secret):
        raise Forbidden("The form is not from this application: open the page again.", status=403)


def host_of(netloc: str) -> str:
    """The host of ``host:port``, in lower case; an IPv6 address keeps its brackets."""
    host, _, port = netloc.rpartition(":")
    return (host if host and port.isdigit() else netloc).lower()


class Guard:
    """ASGI middleware: lets a request in, or answers it itself."""

    def __init__(self, app: ASGIApp, keys: Keys, hosts: Sequence[str], *, refusal: str = _REFUSED) -> None:
        """``refusal``: the answer to a request without the token."""
        self._app = app
        self._refusal = refusal
        self._keys = keys
        self._hosts = {*LOOPBACK, *(one.lower() for one in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the start and the end of the server; there are no web sockets
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = _refused(scope, 413, _TOO_LARGE) if _says_too_large(scope) else self._answer(scope)
        if answer is None and _is_chunked(scope):
            body = await _whole_body(receive)
            answer = _refused(scope, 413, _TOO_LARGE) if body is None else None
            receive = _replayed(body or b"", receive)
        await (self._app if answer is None else answer)(scope, receive, with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """The answer to a request that is not let in; None: it is."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host_of(host) not in self._hosts:
            return _refused(scope, 421, "This host name is unknown here: --allow-host names further ones.\n")
        origin = headers.get("origin")
        if origin is not None and not _is_own(origin, scope["scheme"], host, headers.get("sec-fetch-site")):
            return _refused(scope, 403, "Requests from other sites are refused.\n")
        if self._keys.logins:
            return None if headers.get("authorization") else login_required(scope)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if given and scope["method"] in _SAFE:
            return (
                self._exchanged(scope, query) if self._keys.is_token(given[-1]) else _refused(scope, 401, self._refusal)
            )
        kind, _, value = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return None if self._keys.is_token(value.strip()) else _refused(scope, 401, self._refusal)
        return None if self._keys.in_cookies(headers.get("cookie", "")) else _refused(scope, 401, self._refusal)

    def _exchanged(self, scope: Scope, query: Sequence[tuple[str, str]]) -> Response:
        """A redirect to the same page without the token, with the cookie."""
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + Request(scope).url.path.lstrip("/")  # //host would lead to another site
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        answer.set_cookie(
            self._keys.cookie_name,
            self._keys.cookie,
            httponly=True,
            samesite="strict",
            secure=scope["scheme"] == "https",
            path=scope.get("root_path") or "/",
        )
        return answer


def _says_too_large(scope: Scope) -> bool:
    """Whether a request says that its body is too large; it cannot send more than it says."""
    size = Headers(scope=scope).get("content-length", "0")
    return not size.isdecimal() or int(size[:20]) > _MAX_BODY


def _is_chunked(scope: Scope) -> bool:
    """Whether a request does not say how large its body is."""
    headers = Headers(scope=scope)
    return "content-length" not in headers and "transfer-encoding" in headers


async def _whole_body(receive: Receive) -> bytes | None:
    """The body of a request; None if it is too large, of which no more than that is read."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > _MAX_BODY:
            return None
        if message["type"] != "http.request" or not message.get("more_body"):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Receives a body that was read, then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def login_required(scope: Scope) -> Response:
    """Asks for a login of the search server."""
    answer = _refused(scope, 401, "This page needs a login of the search server.\n")
    answer.headers["WWW-Authenticate"] = 'Basic realm="search server", charset="UTF-8"'
    return answer


def _is_own(origin: str, scheme: str, host: str, site: str | None) -> bool:
    """Whether a request comes from a page of this application. Because its pages send no referrer, browsers name the
    origin ``null`` when they send its forms; ``Sec-Fetch-Site``, which no script can set, says where they are from."""
    if origin == "null":
        return site == "same-origin"
    return urlsplit(origin)[:2] == (scheme, host)


def is_of_interface(scope: Scope) -> bool:
    """Whether a request is one of the HTTP interface, whose errors are problem JSON."""
    return str(scope["path"]).removeprefix(scope.get("root_path", "")).startswith(f"{INTERFACE}/")


def _refused(scope: Scope, status: int, words: str) -> Response:
    answer: Response = PlainTextResponse(words, status)
    if is_of_interface(scope):
        answer = problem(status, words.strip())
    if status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer
