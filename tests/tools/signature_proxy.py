"""Proxies on the loopback interface, in front of a real server: a plain one, and one that checks the signature of each
request with botocore's own code, as Amazon does."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

REGION = "eu-central-1"
_SIGNED = {"host", "x-amz-date", "x-amz-content-sha256"}
_VALID = timedelta(minutes=5)
_FORWARDED = ("accept", "content-type", "x-opaque-id", "authorization")


@dataclass(frozen=True)
class Request:
    """A request as the proxy received it. ``headers`` have lower-case names."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """The path, as it was sent."""
        return self.target.partition("?")[0]

    @property
    def params(self) -> dict[str, str]:
        """The query, decoded."""
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @property
    def json(self) -> Any:
        """The body; an empty object without one."""
        return json.loads(self.body or b"{}")


@dataclass(frozen=True)
class Reply:
    """An answer."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, status: int, body: Any) -> Reply:
        """An answer in JSON."""
        return cls(status, json.dumps(body).encode(), {"content-type": "application/json"})

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


@dataclass
class Proxy:
    """Forwards each request. Subclasses refuse some, and change requests and answers as a service does."""

    upstream: str
    url: str = ""
    seen: list[Request] = field(default_factory=list)
    """The requests, in the order in which they were received."""

    def refuse(self, request: Request) -> Reply | None:
        """The answer to a request that is not forwarded."""
        return None

    def sent(self, request: Request) -> Request:
        """The request that the server gets."""
        return request

    def answered(self, request: Request, reply: Reply) -> Reply:
        """The answer that the client gets."""
        return reply

    def reply(self, request: Request) -> Reply:
        """Answer a request."""
        self.seen.append(request)
        return self.answered(request, self.refuse(request) or _forwarded(self.upstream, self.sent(request)))


def _forwarded(upstream: str, request: Request) -> Reply:
    kept = {name: request.headers[name] for name in _FORWARDED if name in request.headers}
    connection = HTTPConnection(urlsplit(upstream).netloc, timeout=60)
    try:
        connection.request(request.method, request.target, request.body or None, kept)
        answer = connection.getresponse()
        names = ("content-type", "x-elastic-product")
        headers = {name: value for name in names if (value := answer.getheader(name)) is not None}
        return Reply(answer.status, answer.read(), headers)
    finally:
        connection.close()


@dataclass
class SignatureProxy(Proxy):
    """Refuses requests without a valid signature."""

    service: str = "es"
    keys: dict[str, Credentials] = field(default_factory=dict)
    """Access key -> the credentials that are valid now."""
    fast: timedelta = timedelta()
    """By how much its clock is fast."""
    used: Counter[str] = field(default_factory=Counter)
    """Access key -> number of accepted requests."""
    most_uses: int | None = None
    """After so many requests, a key has expired."""
    refused: list[str] = field(default_factory=list)

    def refuse(self, request: Request) -> Reply | None:
        """403 for a request whose signature is not valid."""
        if why := self.refusal(request):
            self.refused.append(why)
            return Reply.of(403, {"message": why})
        return None

    def sent(self, request: Request) -> Request:
        """Without the signature, which the server would take for a login."""
        headers = {name: value for name, value in request.headers.items() if name != "authorization"}
        return replace(request, headers=headers)

    def refusal(self, request: Request) -> str:
        """Why the signature is refused; empty if it is not."""
        headers, words = request.headers, request.headers.get("authorization", "")
        if not words.startswith("AWS4-HMAC-SHA256 "):
            return "User: anonymous is not authorized to perform: es:ESHttpGet"
        given = dict(one.strip().split("=", 1) for one in words.partition(" ")[2].split(","))
        key, day, region, service, _ = given["Credential"].split("/")
        names = given["SignedHeaders"].split(";")
        now = datetime.now(timezone.utc) + self.fast
        signed = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        if key not in self.keys or self.used[key] == self.most_uses:
            return "The security token included in the request is expired"
        if abs(now - signed) > _VALID or not headers["x-amz-date"].startswith(day):
            return f"Signature expired: {signed} is now earlier than {now}"
        if (region, service) != (REGION, self.service) or not set(names) >= _SIGNED or "content-length" in names:
            return "Credential should be scoped to a valid region"
        if headers["x-amz-content-sha256"] != hashlib.sha256(request.body).hexdigest():
            return "The provided hash does not match the body"
        path, _, query = request.target.partition("?")
        url = f"http://{headers['host']}{path}?{encoded(query)}"
        signed_headers = {name: headers[name] for name in names}
        checked = AWSRequest(request.method, url, headers=signed_headers, data=request.body)
        checked.context["timestamp"] = headers["x-amz-date"]
        auth = SigV4Auth(self.keys[key], service, region)
        expected = auth.signature(auth.string_to_sign(checked, auth.canonical_request(checked)), checked)
        if given["Signature"] != expected or headers.get("x-amz-security-token") != self.keys[key].token:
            return "The request signature we calculated does not match the signature you provided"
        self.used[key] += 1
        return ""


def encoded(query: str) -> str:
    """A query as Amazon reads it: decoded, and encoded by RFC 3986."""
    pairs = [one.partition("=") for one in query.split("&") if one]
    return "&".join("=".join(quote(unquote(part), safe="-_.~") for part in (one[0], one[2])) for one in pairs)


_P = TypeVar("_P", bound=Proxy)


@contextlib.contextmanager
def served(proxy: _P) -> Iterator[_P]:
    """A proxy with its ``url``, for the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: otherwise each answer waits for an acknowledgement

        def handle_one_request(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().handle_one_request()

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = proxy.reply(Request(self.command, self.path, headers, body))
            self.send_response_only(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else reply.body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
