"""Fake HTTP servers on the loopback interface, with a list of replies for each request."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from es_neardupe.records import Product
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings, Retries

Reply = tuple[int, dict[str, str], bytes] | None  # None: the connection is dropped

AT_ONCE = Retries(attempts=6, wait=0)
ELASTIC = {"X-Elastic-Product": "Elasticsearch", "Content-Type": "application/json"}


JSON = {"Content-Type": "application/json; charset=UTF-8"}


HTML = {"Content-Type": "text/html"}


OPENSEARCH_ROOT = {"version": {"distribution": "opensearch", "number": "3.8.0", "lucene_version": "10"}}


def reply(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status, headers or JSON, data


ROOT = {
    Product.OPENSEARCH: reply(OPENSEARCH_ROOT),
    Product.ELASTICSEARCH: reply({"version": {"number": "9.1.0"}}, headers=ELASTIC),
}
"""The answer of each product at the root path."""


def error(status: int, type_: str, reason: str = "because") -> Reply:
    return reply({"error": {"type": type_, "reason": reason, "root_cause": []}, "status": status}, status)


class Fake:
    """Answers ``METHOD /path`` from lists of replies; the last reply of a list is repeated."""

    def __init__(self) -> None:
        self.replies: dict[str, list[Reply]] = {}
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.queries: list[str] = []
        """The query of the URL of each request."""
        self.url = ""

    def on(self, request: str, *replies: Reply) -> None:
        self.replies[request] = list(replies)

    def answer(self, request: str, headers: dict[str, str], body: bytes) -> Reply:
        self.seen.append((request, headers, body))
        replies = self.replies.get(request) or [reply({"error": "no such path", "status": 404}, 404)]
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def count(self, request: str) -> int:
        return sum(seen == request for seen, _, _ in self.seen)


@contextmanager
def fake_servers() -> Iterator[Callable[..., Fake]]:
    """Start servers, with or without a TLS context, and stop them at the end of the block."""
    servers: list[ThreadingHTTPServer] = []

    def run(tls: ssl.SSLContext | None = None) -> Fake:
        fake = Fake()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                path, _, query = self.path.partition("?")
                fake.queries.append(query)
                headers = {k.lower(): v for k, v in self.headers.items()}
                answered = fake.answer(f"{self.command} {path}", headers, body)
                if answered is None:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                status, sent, data = answered
                self.send_response(status)
                for name, value in sent.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_any  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:  # a rejected certificate is expected here
                pass

        server = Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            # With the handshake in the thread of the connection: one that waits must not block another.
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        fake.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
        return fake

    yield run
    for server in servers:
        server.shutdown()
        server.server_close()


def opened(fake: Fake, **settings: Any) -> Client:
    return connect(ConnectionSettings(fake.url, retries=AT_ONCE, timeout=60, **settings))
