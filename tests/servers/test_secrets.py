"""Output of commands never contains a secret. Logins are tried on a small fake server that rejects all of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
from bad_input import fill
from conftest import Cli

from es_neardupe import NearDupe, Settings
from es_neardupe.cli.app import app
from es_neardupe.commands.duplicates.request_json import example
from es_neardupe.errors import SettingsError
from es_neardupe.server.client import Client

SECRET = "s3cret-Pa55word"
KEY = "c2VjcmV0LWlkOnNlY3JldC1rZXk="
TOKEN = "s3cret.bearer-token"


class Refusing(BaseHTTPRequestHandler):
    """Answers 401 and repeats the received credentials, as a careless proxy would."""

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


ARGUMENTS = {
    "similar": ("--text", "x"),
    "contained": ("--text", "x"),
    "search": ("x",),
    "init": ("--field", "text"),
    "load": ("FILE",),
    "moved": ("/x",),
    "duplicates": ("--request", "REQUEST"),
    "documents": ("--by", "url"),
    "compare": ("a", "b"),
    "shingles": ("a",),
    "clean": ("--yes",),
    "what-if": ("--min", "0.9"),
    "watch": ("--once",),
    "migrate": ("--threshold", "0.7", "--yes"),
}
"""Arguments of each command, besides the index."""


def connected() -> list[str]:
    """All commands with options for credentials."""
    program: Any = typer.main.get_command(app)
    return [
        name
        for name, one in program.commands.items()
        if "password_file" in {p.name for p in getattr(one, "params", ())}
    ]


def test_commands_are_found() -> None:
    assert len(connected()) > 15


LOGINS = {
    "key file": ("--api-key-file", "FILE"),
    "token file": ("--bearer-token-file", "FILE"),
    "password file": ("--username", "anna", "--password-file", "FILE"),
    "key": {"API_KEY": KEY},
    "token": {"BEARER_TOKEN": TOKEN},
    "password": {"USERNAME": "anna", "PASSWORD": SECRET},
    "url": (),
    "profile": (),
}
"""Ways to pass credentials: options of the command line, environment variables, or neither."""


@pytest.mark.parametrize("how", LOGINS)
def test_a_refused_login(
    how: str,
    refusing: int,
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The secret is in no command's output, in no driver log at any level, and in no file except its source."""
    caplog.set_level(logging.DEBUG)
    for name in ("ES_NEARDUPE_HOME", "ES_NEARDUPE_CACHE", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    url = f"http://127.0.0.1:{refusing}"
    file = tmp_path / "secret"
    file.write_text({"k": KEY, "t": TOKEN}.get(how[0], SECRET) + "\n", "utf-8")
    request = tmp_path / "request.json"
    request.write_text(example("identical-titles"), "utf-8")
    profiles = tmp_path / "es-neardupe" / "profiles.toml"
    given = LOGINS[how]
    options = ["--url", url]
    if how == "url":
        options = ["--url", f"http://anna:{SECRET}@127.0.0.1:{refusing}"]
    elif how == "profile":
        profiles.parent.mkdir()
        profiles.write_text(f'[mine]\nurl = "{url}"\nusername = "anna"\npassword = "{SECRET}"\n', "utf-8")
        profiles.chmod(0o600)
        options = ["--profile", "mine"]
    elif isinstance(given, dict):
        for name, value in (given | {"URL": url}).items():
            monkeypatch.setenv(f"ES_NEARDUPE_{name}", value)
        options = []
    else:
        options += [str(file) if one == "FILE" else one for one in given]
    for command in connected():
        Refusing.seen.clear()
        words = [{"FILE": str(file), "REQUEST": str(request)}.get(one, one) for one in ARGUMENTS.get(command, ())]
        if command == "version":  # the only one that works without a server
            done = cli(command, *options)
            assert done.code == 0
        else:
            done = cli(command, "news", *words, *options)
            assert (done.code, done.out) == (1, ""), (command, done)
        *warnings, last = done.err.splitlines()
        assert "401" in last
        assert len(warnings) == (how == "url")
        logins = {login.partition(" ")[2] for login in Refusing.seen}
        assert logins - {""}  # it was sent
        kept = [one.read_text("utf-8") for one in tmp_path.rglob("*") if one.is_file() and one not in (file, profiles)]
        found = "".join((done.out, done.err, caplog.text, *kept))
        assert [one for one in (SECRET, KEY, TOKEN, *logins) if one in found] == [], command
    assert caplog.records


def test_a_password_on_the_command_line_is_warned_of(refusing: int, cli: Cli) -> None:
    run = cli("stats", "news", "--url", f"http://anna:{SECRET}@127.0.0.1:{refusing}")
    assert "process lists" in run.err
    assert SECRET not in run.err


URL = f"https://anna:{SECRET}@elastic.example:9200"

MISPLACED = [
    (URL,),
    (f"--{URL}",),
    ("stats", URL),
    ("stats", "news", URL),
    ("stats", "news", f"--{URL}"),
    ("stats", "news", "--timeout", URL),
    ("stats", "news", "--prefix", URL),
    ("stats", "news", "--profile", URL),
    ("stats", "news", "--log-file", URL),
    ("stats", "news", "--log-level", URL),
    ("stats", "news", "--summary", f"{URL}/x/y"),
    ("stats", "news", "--api-key-file", URL),
    ("stats", "news", "--ca-certs", URL),
    ("help", URL),
    ("node", "start", "--server", URL),
    ("node", "start", "--heap", URL),
    ("compare", URL, f"{URL}/b"),
    ("doctor", URL),
    ("clean", URL),
    ("init", "INDEX", "--field", URL),
    ("init", "INDEX", "--field", "text", "--prefix", URL),
    ("load", "INDEX", URL),
    ("similar", "INDEX", "--id", URL),
    ("similar", "INDEX", "--field", URL, "--id", "d0"),
    ("search", "INDEX", "x", "--dsl", URL),
    ("moved", "INDEX", URL),
    ("duplicates", "INDEX", "--request", URL),
    ("compare", "INDEX", "d0", URL),
    ("group", "INDEX", "--linkage", URL),
    ("groups", "INDEX", "--group", URL),
    ("groups", "INDEX", "--history", URL),
]
"""A URL where something else is expected. INDEX: an enriched index."""


@pytest.mark.parametrize("words", MISPLACED, ids=lambda words: " ".join(words).replace(URL, "URL"))
def test_a_url_in_the_wrong_place(
    words: tuple[str, ...],
    client: Client,
    index_name: str,
    server_cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its password is in no output, no log and no file, however the command ends."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")  # a password in two lines would not be found
    for name in ("ES_NEARDUPE_HOME", "ES_NEARDUPE_CACHE", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    if "INDEX" in words:
        fill(client, index_name)
        NearDupe(index_name, client).init(Settings(("text",)))
        NearDupe(index_name, client).enrich()
    words = tuple(index_name if one == "INDEX" else one for one in words)
    logs = ["", "--log-format json --log-level debug", "--log-file log --log-level debug", "--summary summary"]
    for more in logs if words[0] in connected() else [""]:
        done = server_cli(*words, *more.split())
        assert done.out + done.err
        kept = [one.read_text("utf-8") for one in tmp_path.rglob("*") if one.is_file()]
        assert [one for one in (done.out, done.err, *kept) if SECRET in one] == []


def test_an_error_of_the_python_interface_shows_no_password(client: Client) -> None:
    with pytest.raises(SettingsError, match=r"https://anna:\*\*\*@elastic") as caught:
        NearDupe(URL, client).stats()
    assert SECRET not in repr(caught.value)
