"""What a command prints never holds a secret. The server here is a small one of our own, which refuses every login."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import Cli
from server_tools import one_line

SECRET = "s3cret-Pa55word"
KEY = "c2VjcmV0LWlkOnNlY3JldC1rZXk="


class Refusing(BaseHTTPRequestHandler):
    """Answers 401 and repeats the login that it got, as a careless proxy would."""

    seen: list[str]

    def _refuse(self) -> None:
        login = self.headers.get("Authorization", "")
        self.seen.append(login)
        body = b'{"error":{"type":"security_exception","reason":"unable to authenticate"},"status":401}'
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_HEAD = do_PUT = _refuse  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """No lines on stderr."""


@pytest.fixture
def refusing() -> Iterator[int]:
    """The port of the server."""
    Refusing.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    "command", [("stats",), ("enrich",), ("similar", "--text", "x"), ("doctor",), ("group", "--json")]
)
@pytest.mark.parametrize("how", ["key file", "key", "url", "password file", "environment"])
def test_a_refused_login(
    how: str,
    command: tuple[str, ...],
    refusing: int,
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ES_NEARDUPE_HOME", str(tmp_path))
    file = tmp_path / "secret"
    file.write_text((KEY if "key" in how else SECRET) + "\n", "utf-8")
    file.chmod(0o600)
    url = f"http://127.0.0.1:{refusing}"
    options = ["--url", url]
    if how == "key file":
        options += ["--api-key-file", str(file)]
    elif how == "key":
        monkeypatch.setenv("ES_NEARDUPE_URL", url)
        monkeypatch.setenv("ES_NEARDUPE_API_KEY", KEY)
        options = []
    elif how == "url":
        options = ["--url", f"http://anna:{SECRET}@127.0.0.1:{refusing}"]
    elif how == "password file":
        options += ["--username", "anna", "--password-file", str(file)]
    else:
        monkeypatch.setenv("ES_NEARDUPE_URL", url)
        monkeypatch.setenv("ES_NEARDUPE_USERNAME", "anna")
        monkeypatch.setenv("ES_NEARDUPE_PASSWORD", SECRET)
        options = []
    done = cli(command[0], "news", *command[1:], *options)
    assert (done.code, done.out) == (1, "")
    assert "401" in one_line(done.err)
    assert any(Refusing.seen)  # the login was sent
    for secret in (SECRET, KEY, *(login.partition(" ")[2] for login in Refusing.seen if login)):
        assert secret not in done.err + done.out
