"""Proxy on the loopback interface that checks the signature of each request with botocore's own code, as Amazon does in
front of a domain, and forwards it to a real server."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

REGION = "eu-central-1"
_SIGNED = {"host", "x-amz-date", "x-amz-content-sha256"}
_LARGEST = 10 * 2**20
_VALID = timedelta(minutes=5)


@dataclass
class SignatureProxy:
    """What the proxy accepts, and what it saw."""

    upstream: str
    url: str = ""
    keys: dict[str, Credentials] = field(default_factory=dict)
    """Access key -> the credentials that are valid now."""
    denied: tuple[str, ...] = ()
    """Beginnings of paths that are answered by 401."""
    fast: timedelta = timedelta()
    """By how much its clock is fast."""
    used: set[str] = field(default_factory=set)
    """Access keys of accepted requests."""
    refused: list[str] = field(default_factory=list)

    def refusal(self, method: str, target: str, headers: dict[str, str], body: bytes) -> str:
        """Why a request is refused; empty if it is not."""
        words = headers.get("authorization", "")
        if not words.startswith("AWS4-HMAC-SHA256 "):
            return "User: anonymous is not authorized to perform: es:ESHttpGet"
        given = dict(one.strip().split("=", 1) for one in words.partition(" ")[2].split(","))
        key, day, region, service, _ = given["Credential"].split("/")
        names = given["SignedHeaders"].split(";")
        now = datetime.now(timezone.utc) + self.fast
        signed = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        if key not in self.keys:
            return "The security token included in the request is expired"
        if abs(now - signed) > _VALID or not headers["x-amz-date"].startswith(day):
            return f"Signature expired: {signed} is now earlier than {now}"
        if (region, service) != (REGION, "es") or not set(names) >= _SIGNED or "content-length" in names:
            return "Credential should be scoped to a valid region"
        if headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            return "The provided hash does not match the body"
        path, _, query = target.partition("?")
        url = f"http://{headers['host']}{path}?{encoded(query)}"
        request = AWSRequest(method, url, headers={name: headers[name] for name in names}, data=body)
        request.context["timestamp"] = headers["x-amz-date"]
        auth = SigV4Auth(self.keys[key], service, region)
        expected = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        if given["Signature"] != expected or headers.get("x-amz-security-token") != self.keys[key].token:
            return "The request signature we calculated does not match the signature you provided"
        self.used.add(key)
        return ""


def encoded(query: str) -> str:
    """A query as Amazon reads it: decoded, and encoded by RFC 3986."""
    pairs = [one.partition("=") for one in query.split("&") if one]
    return "&".join("=".join(quote(unquote(part), safe="-_.~") for part in (one[0], one[2])) for one in pairs)


@contextlib.contextmanager
def signature_proxy(upstream: str) -> Iterator[SignatureProxy]:
    """A proxy in front of a server, for the block."""
    proxy = SignatureProxy(upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().handle_one_request()

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            path = self.path.partition("?")[0]
            if len(body) > _LARGEST:
                self.reply(413, {"Message": f"Request size exceeded {_LARGEST} bytes"})
            elif path.startswith(proxy.denied):
                self.reply(401, {"Message": f"Your request: '{path}' is not allowed."})
            elif why := proxy.refusal(self.command, self.path, headers, body):
                proxy.refused.append(why)
                self.reply(403, {"message": why})
            else:
                self.forward(headers, body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

        def forward(self, headers: dict[str, str], body: bytes) -> None:
            kept: dict[str, str] = {
                name: headers[name] for name in ("accept", "content-type", "x-opaque-id") if name in headers
            }
            connection = HTTPConnection(urlsplit(proxy.upstream).netloc, timeout=60)
            connection.request(self.command, self.path, body or None, kept)
            answer = connection.getresponse()
            self.send(answer.status, answer.read(), answer.getheader("content-type") or "application/json")
            connection.close()

        def reply(self, status: int, body: dict[str, str]) -> None:
            self.send(status, json.dumps(body).encode(), "application/json")

        def send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.send_header("x-amzn-requestid", "1")
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

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
