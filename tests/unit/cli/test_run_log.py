"""Logs, summaries, exit codes, dry runs: what an operator sees of a run. No server."""

from __future__ import annotations

import json
import logging
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import Cli
from unit_tools import FakeClient

from es_neardupe import log_events
from es_neardupe.cli import output, run_log
from es_neardupe.cli.messages import show_first
from es_neardupe.cli.output import ExitCode, say, warn
from es_neardupe.cli.run_log import LogFormat, LogLevel, configure, reset
from es_neardupe.compiled import MODULES
from es_neardupe.errors import NotFound, SettingsError, Unreachable
from es_neardupe.server.drivers.driver import TracedDriver
from es_neardupe.server.dry_run import DryRunClient, ShownRequest
from es_neardupe.server.responses import Answer

NOWHERE = "http://127.0.0.1:9"
DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(autouse=True)
def _no_configuration() -> Any:
    yield
    reset()


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# Logs


def test_every_line_is_json_and_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure(LogFormat.JSON, LogLevel.DEBUG, None, {"run": "r1", "command": "enrich", "index": "a\x1b[2Jb"})
    say("one\nline \x1b[31m\u202e é")
    warn("careful")
    log_events.log_event(logging.DEBUG, "request", path="/x\r\n{}", status=200)
    logging.getLogger("es_neardupe.other").info("from %s", "elsewhere")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"[ -~\n]*", printed.err)
    first, second, third, fourth = lines(printed.err)
    assert (first["level"], first["event"], first["run"], first["command"]) == ("info", "message", "r1", "enrich")
    assert first["index"] == "a\x1b[2Jb"
    assert (second["level"], second["message"]) == ("warning", "careful")
    assert (third["event"], third["path"], third["status"]) == ("request", "/x\r\n{}", 200)
    assert (fourth["event"], fourth["message"]) == ("log", "from elsewhere")


@pytest.mark.parametrize(
    ("level", "expected"), [("debug", "dmw"), ("info", "mw"), ("warning", "w"), ("error", "")], ids=lambda x: x
)
@pytest.mark.parametrize("format", LogFormat)
def test_levels(capsys: pytest.CaptureFixture[str], format: LogFormat, level: str, expected: str) -> None:
    configure(format, LogLevel(level), None, {})
    log_events.log_event(logging.DEBUG, "d-event")
    say("m-message")
    warn("w-message")
    shown = capsys.readouterr().err
    assert "".join(letter for letter in "dmw" if f"{letter}-" in shown) == expected


def test_a_file_takes_the_log_and_leaves_the_messages(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "log"
    for run in ("r1", "r2"):
        configure(LogFormat.JSON, LogLevel.INFO, file, {"run": run})
        say("hello")
        reset()
        say("nobody logs this")
    assert capsys.readouterr().err == "hello\nnobody logs this\n" * 2
    assert [(one["run"], one["message"]) for one in lines(file.read_text())] == [("r1", "hello"), ("r2", "hello")]


def test_libraries_see_the_events_by_logging_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="es_neardupe"):
        log_events.log_event(logging.DEBUG, "request", path="/_bulk", status=200)
    (record,) = caplog.records
    assert record.getMessage() == 'request path="/_bulk" status=200'
    assert log_events.fields_of(record) == ("request", {"path": "/_bulk", "status": 200})


def test_progress_is_told_seldom(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    progress = log_events.logged_progress(lambda: now[0])
    with caplog.at_level(logging.INFO, logger="es_neardupe"):
        for number in range(0, 1001):
            now[0] += 0.03
            progress("reading", number, 1000)
        progress("nothing", 0, 0)
    shown = [log_events.fields_of(record)[1] for record in caplog.records]
    done = [one["done"] for one in shown]
    assert (len(done), done[0], done[-1]) == (4, 0, 1000)  # the beginning, two times ten seconds, the end
    assert {one["stage"] for one in shown} == {"reading"}


def test_no_bars_where_the_log_is_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(output.messages, "_force_terminal", True)
    configure(LogFormat.JSON, LogLevel.INFO, None, {})
    with output.progress_bars() as progress:
        progress("reading", 5, 5)
    assert [(one["event"], one["stage"]) for one in lines(capsys.readouterr().err)] == [("progress", "reading")]


# Names of requests


class Driver:
    """Answers with what it was given."""

    url, login = "http://fake", ""

    def send(self, method: str, target: str, body: Any, headers: Any) -> Answer:
        if target == "/gone":
            raise Unreachable("no answer in time.")
        return Answer(200, {}, dict(headers))

    def close(self) -> None:
        pass


def test_requests_are_named_and_numbered(caplog: pytest.LogCaptureFixture) -> None:
    traced = TracedDriver(Driver(), "nightly.1")
    with caplog.at_level(logging.DEBUG, logger="es_neardupe"):
        answer = traced.send("GET", "/i/_doc/1?secret=word", None, {"accept": "x"})
        with pytest.raises(Unreachable, match=r"in time\. \[request es-neardupe/nightly\.1/2\]$"):
            traced.send("GET", "/gone", None, {})
    assert answer.request == "es-neardupe/nightly.1/1"
    assert answer.body == {"accept": "x", "x-opaque-id": "es-neardupe/nightly.1/1"}
    first, second = (log_events.fields_of(record)[1] for record in caplog.records)
    assert (first["method"], first["path"], first["status"]) == ("GET", "/i/_doc/1", 200)
    assert (second["request"], second["error"]) == ("es-neardupe/nightly.1/2", "Unreachable")
    assert "secret" not in caplog.text
    assert (
        TracedDriver(Driver()).send("GET", "/", None, {}).request
        != TracedDriver(Driver()).send("GET", "/", None, {}).request
    )


@pytest.mark.parametrize("run", ["", "a b", "a\r\nX-Evil: 1", "é", "x" * 65, "../x"])
def test_names_of_runs_that_are_refused(run: str) -> None:
    with pytest.raises(SettingsError, match="not a valid run name"):
        TracedDriver(Driver(), run)


def test_an_error_without_a_request_says_nothing_of_one() -> None:
    error = NotFound("There is none.", status=404)
    assert str(error) == "There is none."
    error.request = "es-neardupe/r/7"
    assert str(error) == "There is none. [request es-neardupe/r/7]"


# Summaries and exit codes


def test_a_summary_of_a_run_that_found_no_server(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    run = cli("enrich", "news", "--url", "http://user:hunter2@127.0.0.1:9", "--summary", str(file))
    summary = json.loads(file.read_text())
    assert (run.code, summary["exit_code"], summary["command"], summary["index"]) == (1, 1, "enrich", "news")
    assert summary["error"]["kind"] == "Unreachable"
    assert summary["error"]["message"] in run.err
    assert (summary["server"], summary["result"], summary["scheme"]) == (None, None, None)
    assert summary["arguments"]["url"] == NOWHERE
    assert "hunter2" not in file.read_text() + run.err


def test_arguments_are_told_without_texts_and_secrets(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    cli("similar", "news", "--text", "a private text", "--url", "http://u:hunter2@127.0.0.1:9", "--summary", str(file))
    assert json.loads(file.read_text())["arguments"]["text"] == "(14 characters)"
    found = run_log._arguments(
        {"api_key": "k", "bearer_token": "k", "token_file": "f", "url": "k://", "top": 3, "id": None}
    )
    assert found == {
        "api_key": "(hidden)",
        "bearer_token": "(hidden)",
        "token_file": "f",
        "url": "(unreadable)",
        "top": 3,
    }


def test_a_summary_that_cannot_be_written_is_told_before_the_work(cli: Cli, tmp_path: Path) -> None:
    run = cli("enrich", "news", "--url", NOWHERE, "--summary", str(tmp_path / "no" / "run.json"))
    assert run.code == ExitCode.FAILED
    assert "its folder does not exist" in run.err
    assert "no connection" not in run.err


def test_a_log_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    run = cli("enrich", "news", "--url", NOWHERE, "--log-file", str(tmp_path))
    assert run.code == ExitCode.FAILED
    assert "--log-file" in run.err


def _fails(error: BaseException) -> Any:
    def opened(**options: Any) -> Any:
        raise error

    return opened


def test_an_interrupt(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from es_neardupe.cli import connection

    monkeypatch.setattr(connection, "connect_to", _fails(KeyboardInterrupt()))
    run = cli("enrich", "news", "--log-format", "json", "--summary", str(tmp_path / "run.json"))
    assert run.code == ExitCode.INTERRUPTED
    *_, message, finished = lines(run.err.strip())
    assert message["message"].startswith("Interrupted. What was written stays")
    assert (finished["event"], finished["exit_code"]) == ("finished", 130)
    assert json.loads((tmp_path / "run.json").read_text())["exit_code"] == 130


def test_a_bug_is_in_the_summary_too(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from es_neardupe.cli import connection

    monkeypatch.setattr(connection, "connect_to", _fails(ZeroDivisionError("a secret text")))
    with pytest.raises(ZeroDivisionError):
        cli("enrich", "news", "--summary", str(tmp_path / "run.json"))
    summary = json.loads((tmp_path / "run.json").read_text())
    assert (summary["exit_code"], summary["error"]["kind"], summary["error"]["message"]) == (1, "ZeroDivisionError", "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["bands"], ExitCode.DONE),
        (["version", "--url", NOWHERE], ExitCode.DONE),
        (["bands", "--threshold", "2"], ExitCode.USAGE),
        (["enrich", "i", "--url", NOWHERE], ExitCode.FAILED),
        (["enrich", "i", "--max-load", "0"], ExitCode.USAGE),
        (["enrich", "i", "--log-level", "loud"], ExitCode.USAGE),
        (["enrich"], ExitCode.USAGE),
    ],
)
def test_exit_codes(cli: Cli, arguments: list[str], code: ExitCode) -> None:
    assert cli(*arguments).code == code


def test_exit_codes_are_documented() -> None:
    (text,) = re.findall(r"^## Exit codes\n(.*?)^#", (DOCS / "operations.md").read_text() + "\n#", re.M | re.S)
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.M)] == list(ExitCode)


@pytest.mark.parametrize("name", MODULES)
def test_version_shows_which_modules_in_c_were_built(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for module, words in ((ModuleType("built"), "compiled"), (None, "not compiled")):
        monkeypatch.setitem(sys.modules, f"es_neardupe.{name}", module)
        assert re.search(rf"^ {name} +{words} *$", cli("version", "--no-server").out, re.M)


def test_the_environment_chooses_the_log(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ES_NEARDUPE_LOG_FORMAT", "json")
    assert [one["event"] for one in lines(cli("stats", "i", "--url", NOWHERE).err)][-2:] == ["error", "finished"]
    assert cli("stats", "i", "--url", NOWHERE, "--log-format", "text").err.startswith("error: ")


# Dry runs that show requests


def test_requests_are_shown_as_json_and_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    body = '{"a":"x\u2028y\u202e\x7f\u0085 z"}\n{"b":1}\n'
    show_first([ShownRequest("POST", "/_bulk", body)])
    head, first, second = capsys.readouterr().out.split("\n")[:3]
    assert head == "POST /_bulk"
    assert json.loads(first) == json.loads(body.split("\n", maxsplit=1)[0])
    assert not re.search("[\u202e\x7f\u0085]", first)
    assert second == '{"b":1}'


def test_requests_are_shown_of_dry_runs_only() -> None:
    with pytest.raises(SettingsError, match="needs `dry_run`"):
        DryRunClient(FakeClient(), 1, dry_run=False)


def test_a_rehearsal_sends_nothing() -> None:
    client = FakeClient()
    rehearsal = DryRunClient(client, 2, dry_run=True)
    answer = rehearsal.bulk(b'{"delete":{"_id":"1"}}\n{"index":{"_id":"2"}}\n{"delete":{}}\n', params={"a": "b,c"})
    assert [next(iter(item)) for item in answer["items"]] == ["delete", "index"]
    for _ in range(2):
        rehearsal.request("PUT", "/i/_mapping", body={"é": 1})
    assert client.bulks == []
    assert rehearsal.shown == (
        ShownRequest("POST", "/_bulk?a=b,c", '{"delete":{"_id":"1"}}\n{"index":{"_id":"2"}}\n{"delete":{}}\n'),
        ShownRequest("PUT", "/i/_mapping", '{"é":1}'),
    )


def test_a_rehearsal_reads_what_was_put_into_mappings() -> None:
    """Of every index behind a name; fields are added, and the last ``_meta`` counts."""
    stored = {"properties": {"text": {"type": "text"}}, "_meta": {"yours": 1}}
    client = FakeClient()
    client.request = lambda *_, **__: {"a": {"mappings": stored}, "b": {"mappings": {}}}  # type: ignore[method-assign]  # of this one client
    rehearsal = DryRunClient(client, 0, dry_run=True)
    assert rehearsal.request("GET", "/all/_mapping")["a"]["mappings"] == stored
    for number in (1, 2):
        body = {"properties": {f"k{number}": {"type": "object"}}, "_meta": {"yours": 1, "ours": number}}
        rehearsal.request("PUT", "/a/_mapping", body=body)
    read = rehearsal.request("GET", "/all/_mapping")
    assert read["a"]["mappings"]["properties"].keys() == {"text", "k1", "k2"}
    assert read["a"]["mappings"]["_meta"] == {"yours": 1, "ours": 2}
    assert not read["b"]["mappings"].get("_meta")


def test_events_are_documented() -> None:
    """The table of docs/logs.md lists the events that the program logs, and no others."""
    logged = {"message", "error"}
    for file in Path(log_events.__file__).parent.rglob("*.py"):
        logged |= set(re.findall(r'\blog_event\(\s*logging\.[A-Z]+,\s*"(\w+)"', file.read_text("utf-8")))
    (text,) = re.findall(r"^## Logs\n(.*?)^## ", (DOCS / "logs.md").read_text("utf-8"), re.M | re.S)
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == logged
