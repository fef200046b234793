"""Proxy on the loopback interface between a client and a real server, which simulates the faults of networks and busy
servers.

A `Fault` defines what happens to which requests. All other traffic is forwarded unchanged.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from es_neardupe.server.parallel import pause

EVERYTHING = ""
WRITES = r"/_(bulk|doc|create|update)\b|^(PUT|DELETE) /[^_]"
BULK = r"/_bulk\b"
SEARCHES = r"/_search\b"

_OF_ONE_CONNECTION = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
_RESET = struct.pack("ii", 1, 0)
"""Linger of zero: closing a socket resets its connection."""


@dataclass(frozen=True)
class Request:
    """A request of the client."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def line(self) -> str:
        """Method and target, which the patterns of faults are matched with."""
        return f"{self.method} {self.target}"

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else {}


@dataclass(frozen=True)
class Reply:
    """The answer that the client gets: all of it, or the first bytes of the body, followed by the end of the
    connection."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    maximum: int | None = None
    pause: float = 0
    """Seconds between two bytes."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def with_json(self, value: Any) -> Reply:
        return replace(self, body=json.dumps(value).encode())


Forward = Callable[[Request], Reply]
"""Sends the request to the server."""

Trouble = Callable[[Request, Forward], Reply | None]
"""The effect on a request; None: the connection ends without an answer."""


@dataclass
class Fault:
    """An effect on requests that match ``on``: on the ``numbers``-th of them (the first is 1) or, if ``each`` is true,
    on each when it is sent for the first time."""

    trouble: Trouble
    on: str = EVERYTHING
    numbers: Container[int] = (1,)
    each: bool = False
    matched: int = 0
    """Number of requests compared with ``on``."""
    met: int = 0
    """Number of times that it happened."""
    seen: set[tuple[str, bytes]] = field(default_factory=set)

    def hits(self, request: Request) -> bool:
        if not re.search(self.on, request.line):
            return False
        self.matched += 1
        # The next page of a scroll is never requested twice; that of another scroll is requested instead.
        what = (request.line, b"" if "/_search/scroll" in request.line else request.body)
        new = what not in self.seen
        self.seen.add(what)
        hit = new if self.each else self.matched in self.numbers
        self.met += hit
        return hit


class FaultProxy:
    """The proxy; ``faults`` may be changed at any time."""

    def __init__(self, server_url: str, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(server_url)
        self.server = (parts.hostname or "", parts.port or 80)
        self.faults: list[Fault] = []
        self.asked: list[str] = []
        self._tls = tls
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._listener: ThreadingHTTPServer | None = None
        self._listen(0)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"

    def _listen(self, port: int) -> None:
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._listener = _Listener(("127.0.0.1", port), Handler)
        if self._tls is not None:
            self._listener.socket = self._tls.wrap_socket(
                self._listener.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._listener.server_port
        threading.Thread(target=self._listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def away(self) -> bool:
        """Whether the port is closed."""
        return self._listener is None

    def secure(self, tls: ssl.SSLContext) -> None:
        """Present another certificate on new connections; existing ones end."""
        self.leave()
        self._tls = tls
        self.come_back()

    def leave(self) -> None:
        """Refuse connections, and end existing ones at their next request."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown()
            listener.server_close()

    def come_back(self) -> None:
        """Listen again at the same address."""
        if not self._closed.is_set():
            self._listen(self.port)

    def close(self) -> None:
        self._closed.set()
        self.leave()

    def set(self, *faults: Fault) -> None:
        """Replace the faults."""
        with self._lock:
            self.faults = list(faults)
            self.asked = []

    def trouble_of(self, request: Request) -> Trouble | None:
        """The fault for a request, if any; the first one that matches counts."""
        with self._lock:
            self.asked.append(request.line)
            return next((fault.trouble for fault in self.faults if fault.hits(request)), None)

    def wait(self, seconds: float) -> None:
        """Wait, but not longer than the proxy runs."""
        self._closed.wait(seconds)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:  # a client that has disconnected is expected here
        pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    owner: FaultProxy

    def handle_any(self) -> None:
        request = Request(
            self.command,
            self.path,
            {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_CONNECTION},
            self.rfile.read(int(self.headers.get("content-length", 0))),
        )
        trouble = self.owner.trouble_of(request)
        reply = None if self.owner.away else trouble(request, self._forward) if trouble else self._forward(request)
        if reply is None:
            self._reset()
        else:
            self._answer(reply)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_any  # noqa: N815

    def _forward(self, request: Request) -> Reply:
        """The server's answer."""
        with contextlib.closing(HTTPConnection(*self.owner.server, timeout=60)) as server:
            server.request(request.method, request.target, request.body or None, dict(request.headers))
            found = server.getresponse()
            headers = {name: value for name, value in found.getheaders() if name.lower() not in _OF_ONE_CONNECTION}
            return Reply(found.status, headers, found.read())

    def _answer(self, reply: Reply) -> None:
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        body = b"" if self.command == "HEAD" else reply.body[: reply.maximum]
        for piece in self._pieces(body, reply.pause):
            self.wfile.write(piece)
            self.wfile.flush()
        if reply.maximum is not None:
            self._reset()

    def _pieces(self, body: bytes, pause: float) -> Iterator[bytes]:
        if not pause:
            yield body
            return
        for k in range(len(body)):
            yield body[k : k + 1]
            self.owner.wait(pause)

    def _reset(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def log_message(self, *_: Any) -> None:
        pass


def short_waits(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.02) -> None:
    """Waits before retries are short."""
    monkeypatch.setattr("es_neardupe.server.pacing.pause", lambda wanted: pause(min(wanted, seconds)))


# ---- kinds of faults


def dropped(request: Request, forward: Forward) -> None:
    """The connection is reset before the server receives the request."""


def lost_answer(request: Request, forward: Forward) -> None:
    """The request succeeds; its answer is lost."""
    forward(request)


def cut_off(request: Request, forward: Forward) -> Reply:
    """The request succeeds; the connection ends in the middle of the answer."""
    reply = forward(request)
    return replace(reply, maximum=len(reply.body) // 2)


def cut_short(request: Request, forward: Forward) -> Reply:
    """The request succeeds; half of the answer is passed on as if it were complete."""
    reply = forward(request)
    return replace(reply, body=reply.body[: len(reply.body) // 2])


def garbled(request: Request, forward: Forward) -> Reply:
    """The request succeeds; the answer is not JSON, although its content type says so."""
    return replace(forward(request), body=b'{"took": 3, "err\xff\x00')


def emptied(request: Request, forward: Forward) -> Reply:
    """The request succeeds; the answer is a success without a body."""
    return replace(forward(request), status=200, body=b"")


def vanishing(proxy: FaultProxy, seconds: float) -> Trouble:
    """The port is closed for a while: connections are refused."""

    def trouble(request: Request, forward: Forward) -> None:
        proxy.leave()
        threading.Timer(seconds, proxy.come_back).start()

    return trouble


def delayed(seconds: float) -> Trouble:
    """The request succeeds at once; its answer is delayed."""

    def trouble(request: Request, forward: Forward) -> Reply:
        reply = forward(request)
        threading.Event().wait(seconds)
        return reply

    return trouble


def dribbling(pause: float) -> Trouble:
    """The request succeeds at once; the answer is sent byte by byte."""
    return lambda request, forward: replace(forward(request), pause=pause)


def refused(status: int, type_: str, *, done: bool = False) -> Trouble:
    """An error for the whole request; ``done``: the request succeeds all the same."""

    def trouble(request: Request, forward: Forward) -> Reply:
        if done:
            forward(request)
        return _error(status, type_)

    return trouble


def too_large(maximum: int) -> Trouble:
    """A gateway rejects larger requests with an HTML page."""

    def trouble(request: Request, forward: Forward) -> Reply:
        if len(request.body) <= maximum:
            return forward(request)
        return Reply(413, {"Content-Type": "text/html"}, b"<html><body>413 Request Entity Too Large</body></html>")

    return trouble


def without_memory(maximum: int) -> Trouble:
    """A circuit breaker of the server rejects larger requests, as often as they are sent."""
    return lambda request, forward: forward(request) if len(request.body) <= maximum else _error(429, BREAKER)


def gateway(request: Request, forward: Forward) -> Reply:
    """The request succeeds; a gateway times out and answers with an HTML page."""
    forward(request)
    return Reply(504, {"Content-Type": "text/html"}, b"<html><body>504 Gateway Time-out</body></html>")


def items_refused(status: int, type_: str) -> Trouble:
    """Every second item of a bulk request is rejected; the server receives the others."""
    item = {"status": status, "error": {"type": type_, "reason": "no room"}}
    return lambda request, forward: _without_items(request, forward, item, lambda place: place % 2 == 0)


class Queue:
    """A server that accepts a limited number of documents at a time: it rejects each further one, and counts them."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.under_way = self.maximum = 0
        self.refused: list[int] = []
        """Number of rejected documents of each request."""
        self._lock = threading.Lock()

    def __call__(self, request: Request, forward: Forward) -> Reply:
        number = sum(1 for _ in _actions(request.body))
        with self._lock:
            taken = min(number, max(0, self.room - self.under_way))
            self.under_way += number
            self.maximum = max(self.maximum, self.under_way)
            self.refused.append(number - taken)
        try:
            item = {"status": 429, "error": {"type": REJECTED, "reason": "queue full"}}
            return _without_items(request, forward, item, lambda place: place >= taken)
        finally:
            with self._lock:
                self.under_way -= number


def _without_items(request: Request, forward: Forward, item: Any, gone: Callable[[int], bool]) -> Reply:
    """The server receives a bulk request without some of its items, for which ``item`` is the answer."""
    actions = list(_actions(request.body))
    passed = [lines for place, (_, lines) in enumerate(actions) if not gone(place)]
    reply = forward(replace(request, body=b"".join(passed))) if passed else _no_items(request, forward)
    answer = reply.json
    kept = iter(answer.get("items", []))
    answer["items"] = [{op: item} if gone(place) else next(kept) for place, (op, _) in enumerate(actions)]
    answer["errors"] |= len(passed) < len(actions)
    return reply.with_json(answer)


def some_items(request: Request, forward: Forward) -> Reply:
    """The request succeeds; the answer is valid JSON, but incomplete."""
    reply = forward(request)
    return _changed(reply, items=reply.json["items"][:-1])


def shards_failed(request: Request, forward: Forward) -> Reply:
    """Some of the shards have failed."""
    reply = forward(request)
    failure = {"reason": {"type": "es_rejected_execution_exception", "reason": "rejected execution: queue full"}}
    return _changed(reply, _shards={"total": 2, "successful": 1, "failed": 1, "failures": [failure]})


def timed_out(request: Request, forward: Forward) -> Reply:
    """The search timed out."""
    return _changed(forward(request), timed_out=True)


def expired(request: Request, forward: Forward) -> Reply:
    """The snapshot being read is closed before the request for its next page arrives."""
    asked = request.json
    if "pit" in asked:
        for target, body in (
            ("/_pit", {"id": asked["pit"]["id"]}),
            ("/_search/point_in_time", {"pit_id": [asked["pit"]["id"]]}),
        ):
            forward(_to_close(request, target, body))  # one of them is named after the product
    elif "scroll_id" in asked:
        forward(_to_close(request, "/_search/scroll", {"scroll_id": [asked["scroll_id"]]}))
    return forward(request)


def _to_close(request: Request, target: str, body: Any) -> Request:
    return replace(request, method="DELETE", target=target, body=json.dumps(body).encode())


def _changed(reply: Reply, **parts: Any) -> Reply:
    answer = reply.json
    return reply.with_json({**answer, **parts}) if reply.status == 200 else reply


def _error(status: int, type_: str) -> Reply:
    cause = {"type": type_, "reason": "[parent] Data too large, or no room in a queue"}
    body = {"error": {"root_cause": [cause], **cause}, "status": status}
    return Reply(status, {"Content-Type": "application/json"}, json.dumps(body).encode())


def _actions(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Operation and lines of each action of a bulk request."""
    lines = iter(body.splitlines(keepends=True))
    for head in lines:
        (op,) = json.loads(head)
        yield op, head if op == "delete" else head + next(lines)


def _no_items(request: Request, forward: Forward) -> Reply:
    """An answer with the headers that the server sends."""
    root = forward(replace(request, method="GET", target="/_cluster/health", body=b"", headers={}))
    return root.with_json({"errors": True, "items": []})


REJECTED = "es_rejected_execution_exception"
BREAKER = "circuit_breaking_exception"
UNAVAILABLE = "unavailable_shards_exception"

PASSING: dict[str, tuple[Trouble, str]] = {
    "dropped": (dropped, EVERYTHING),
    "lost answer": (lost_answer, EVERYTHING),
    "cut off": (cut_off, EVERYTHING),
    "cut short": (cut_short, EVERYTHING),
    "garbled": (garbled, EVERYTHING),
    "emptied": (emptied, EVERYTHING),
    "rejected": (refused(429, REJECTED), EVERYTHING),
    "circuit breaker": (refused(429, BREAKER), EVERYTHING),
    "unavailable, but done": (refused(503, UNAVAILABLE, done=True), EVERYTHING),
    "gateway": (gateway, EVERYTHING),
    "items rejected": (items_refused(429, REJECTED), BULK),
    "items unavailable": (items_refused(503, UNAVAILABLE), BULK),
    "items without memory": (items_refused(429, BREAKER), BULK),
}
"""Faults that are overcome by retries, and the requests that they apply to."""


def in_turn(kinds: Mapping[str, tuple[Trouble, str]]) -> Trouble:
    """One kind after the other, of those that can happen to a request."""
    waiting = deque(kinds.values())

    def trouble(request: Request, forward: Forward) -> Reply | None:
        chosen = next(kind for kind in list(waiting) if re.search(kind[1], request.line))
        waiting.remove(chosen)
        waiting.append(chosen)
        return chosen[0](request, forward)

    return trouble


ENDING: dict[str, tuple[Trouble, str]] = {
    "shards failed": (shards_failed, r"/(_search|_refresh)\b"),
    "timed out": (timed_out, SEARCHES),
    "expired": (expired, r"^POST /_search(/scroll)?(\?|$)"),
    "failed": (refused(500, "null_pointer_exception"), EVERYTHING),
    "failed, but done": (refused(500, "null_pointer_exception", done=True), EVERYTHING),
    "items failed": (items_refused(500, "null_pointer_exception"), BULK),
    "some items only": (some_items, BULK),
}
"""Faults that end a run, which must be started again, or leave documents to another run."""
