"""Options of the command line, and the commands beside the library functions."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from conftest import Cli
from es_neardupe.cli.options import connected, parse_query
from unit_tools import FakeClient

from es_neardupe import NearDupe
from es_neardupe.cli import options
from es_neardupe.cli.app import app
from es_neardupe.cli.commands.enrich import parse_since
from es_neardupe.commands.bands import bands
from es_neardupe.errors import SettingsError

CONNECTION = {
    "url",
    "api_key_file",
    "username",
    "password_file",
    "bearer_token_file",
    "ca_certs",
    "cert_fingerprint",
    "client_cert",
    "client_key",
    "insecure",
    "timeout",
    "profile",
}
OF_RUNS = {"log_format", "log_level", "log_file", "summary"}
OF_LOAD = {"max_rate", "max_load"}
COMMANDS = {command.callback.__name__: command.callback for command in app.registered_commands if command.callback}
DATA_COMMANDS = sorted(set(COMMANDS) - {"demo"})


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (None, None),
        ('{"term": {"a": 1}}', {"term": {"a": 1}}),
        ('{"query": {"term": {"a": 1}}}', {"term": {"a": 1}}),
        ('{"query": {"match_all": {}}}', {"match_all": {}}),
    ],
)
def test_parse_query(text: str | None, query: Any) -> None:
    assert parse_query(text) == query


def test_parse_query_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "query.json"
    file.write_text('{"term": {"a": "é"}}', "utf-8")
    assert parse_query(f"@{file}") == {"term": {"a": "é"}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "{}",
        "[]",
        "5",
        "null",
        '"match_all"',
        '{"query": {}}',
        '{"query": 5}',
        '{"query": null}',
        '{"query": [{"term": {}}]}',
        '{"range": {"n": {"gte": NaN}}}',
        "[" * 100_000,
        "@",
        "@/no/such/file",
        "@/",
    ],
)
def test_queries_that_are_none(text: str) -> None:
    """A scope that cannot be understood must not become the whole index."""
    with pytest.raises(SettingsError, match="--query"):
        parse_query(text)


def test_query_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "query.json"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="--query"):
        parse_query(f"@{file}")


@pytest.mark.parametrize("text", ["updated", "=2024", "updated=", ""])
def test_since_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--since takes FIELD=DATE"):
        parse_since(text)


def test_since() -> None:
    assert parse_since(None) is None
    assert parse_since("updated=now-1d") == ("updated", "now-1d")
    assert parse_since("a.b=2024-05-01T00:00:00+01:00=x") == ("a.b", "2024-05-01T00:00:00+01:00=x")


def example(client: Any, index: str, *, own: int = 3) -> None:
    """What it says."""
    assert index == "i"
    client.bulks.append(own)
    if own == 5:
        raise SettingsError("five")


@pytest.mark.parametrize("own", [3, 5])
def test_connected(monkeypatch: pytest.MonkeyPatch, own: int) -> None:
    """The client goes in front, is made of the connection options, and is closed also after an error."""
    given, closed, client = {}, [], FakeClient()
    monkeypatch.setattr(client, "close", lambda: closed.append(True))
    monkeypatch.setattr(options, "connect_to", lambda **flags: (given.update(flags), client)[1])
    run = connected(example)
    parameters = inspect.signature(run).parameters
    assert list(parameters)[:2] == ["index", "own"]
    assert set(parameters) == {"index", "own"} | CONNECTION | OF_RUNS
    assert run.__doc__ == "What it says."
    flags: dict[str, Any] = dict.fromkeys(CONNECTION) | {"url": "http://x", "insecure": True}
    of_run = {one: parameters[one].default for one in OF_RUNS}
    if own == 5:
        with pytest.raises(SettingsError, match="five"):
            run(index="i", own=own, **flags, **of_run)
    else:
        run(index="i", own=own, **flags, **of_run)
    assert (client.bulks, closed) == ([own], [True])
    local = given.pop("local_url")
    assert callable(local)
    assert given == flags


def test_connection_options_are_those_that_are_resolved() -> None:
    from es_neardupe.server.login.resolve import resolve_settings

    assert set(inspect.signature(resolve_settings).parameters) >= CONNECTION


OF_OPTIONS = {"group_history", "moved_all", "search_request", "suggest_keep"}
"""Functions behind options of groups, moved and search."""


def test_every_command_has_a_library_function_of_its_name() -> None:
    methods = {name for name, value in vars(NearDupe).items() if not name.startswith("_") and callable(value)}
    assert set(DATA_COMMANDS) - {"bands"} == methods - OF_OPTIONS - {"close", "fingerprinted"}
    for name in set(DATA_COMMANDS) - {"bands"}:
        assert callable(getattr(NearDupe, name))
        assert getattr(NearDupe, name).__doc__


def flags_of(callback: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(callback).parameters)


@pytest.mark.parametrize("name", DATA_COMMANDS)
def test_every_command_takes_json(cli: Cli, name: str) -> None:
    assert "as_json" in flags_of(COMMANDS[name])
    shown = cli(name.replace("_", "-"), "--help")
    assert shown.code == 0
    assert "--json" in shown.out


@pytest.mark.parametrize("name", DATA_COMMANDS)
def test_options_reach_the_library(name: str) -> None:
    """Each option of a command is a parameter of the function of the same name, with the same default."""
    function = dict(inspect.signature(bands if name == "bands" else getattr(NearDupe, name)).parameters)
    function["prefix"] = inspect.signature(NearDupe).parameters["prefix"]
    own = {key: one for key, one in flags_of(COMMANDS[name]).items() if key not in CONNECTION | OF_RUNS | OF_LOAD}
    elsewhere = {"as_json", "yes", "file", "files", "field", "fields", "shingle", "top"}
    if name == "compare":  # what is printed, and how the two documents are named
        elsewhere |= {"what", "matching", "context", "html", "no_color"}
    if name == "version":
        elsewhere |= {"no_server"}
    if name == "moved":  # whose lists are another function's
        elsewhere |= {"gone"}
    if name == "search":
        elsewhere |= {"dsl", "show_request"}
    if name == "duplicates":  # what is printed, and where
        elsewhere |= {"explain", "example", "schema", "stage", "pairs_only", "csv", "html"}
    if name == "watch":  # which passes on the options of group, and takes seconds where people write 30s
        function = {**inspect.signature(NearDupe.group).parameters, **function}
        elsewhere |= {"every", "metrics_port", "metrics_host"}
    if name == "migrate":  # which passes on the options of group
        function = {**inspect.signature(NearDupe.group).parameters, **function}
    if name == "groups":
        elsewhere |= {"history", "suggest_keep", "keep_policy"}
    if name == "init":
        from es_neardupe.index.settings import Settings

        settings = inspect.signature(Settings).parameters
        for key in ("threshold", "detection", "shingle", "permutations", "bands", "rows", "agree", "prefix"):
            assert own.pop(key).default in (None, settings[key].default)  # None: as the preset or `Settings` has it
        assert own.pop("sample_mod").default == settings["sample_mod"].default
        assert own.pop("preset").default is None
        assert own.pop("relation").default is None
    for key, parameter in own.items():
        if key in elsewhere:
            continue
        assert key in function
        if parameter.default is not inspect.Parameter.empty and function[key].default is not inspect.Parameter.empty:
            assert parameter.default == function[key].default


@pytest.mark.parametrize("name", DATA_COMMANDS)
def test_connection_options_of_commands(name: str) -> None:
    assert (set(flags_of(COMMANDS[name])) >= CONNECTION) == (name != "bands")


def test_every_option_is_explained() -> None:
    for name, callback in COMMANDS.items():
        for key, parameter in inspect.signature(callback, eval_str=True).parameters.items():
            found = [one for one in get_args(parameter.annotation)[1:] if isinstance(one, typer.models.ParameterInfo)]
            assert [bool(one.help) for one in found] == [True], f"{name} {key}"


@pytest.mark.parametrize("name", DATA_COMMANDS)
def test_options_that_may_be_missing_are_explained_too(cli: Cli, name: str) -> None:
    """Python 3.10 once hid what is said of options with the default None."""
    shown = cli(name.replace("_", "-"), "--help").out
    assert ("Address of the server." in shown) == (name != "bands")
    assert ("Bands, instead of the chosen ones" in shown) == (name in ("bands", "init"))


# -- the command line itself ------------------------------------------------------------------------------------------


def test_bands(cli: Cli) -> None:
    run = cli("bands", "--threshold", "0.5", "--json")
    assert (run.code, run.err) == (0, "")
    assert (run.json["bands"], run.json["rows"], run.json["key_bytes"]) == (35, 3, 280)
    shown = cli("bands")
    assert shown.code == 0
    assert "16 bands x 6 rows of 128 slots: 128 bytes of keys" in shown.out
    assert "probability 0.9923" in shown.out
    assert "^ threshold 0.8" in shown.out


def test_weak_bands_are_said_to_be_weak(cli: Cli) -> None:
    run = cli("bands", "--bands", "4", "--rows", "8")
    assert run.code == 0
    assert "less than the detection of 0.99 asked for" in run.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["bands", "--threshold", "1.5"], 1, "1.5"),
        (["bands", "--threshold", "0"], 1, "threshold"),
        (["bands", "--bands", "17", "--rows", "8"], 1, "136"),
        (["bands", "--threshold", "much"], 2, "--threshold"),
        (["nonsense"], 2, "nonsense"),
        (["init", "i"], 2, "--field"),
        (["group"], 2, "INDEX"),
        (["group", "i", "--max-bucket", "1"], 2, "max-bucket"),
        (["groups", "i", "--top", "0"], 2, "--top"),
        (["enrich", "i", "--workers", "0"], 2, "workers"),
    ],
)
def test_errors(cli: Cli, arguments: list[str], code: int, words: str) -> None:
    """One line and exit code 1, or the usage and 2; nothing on stdout, no traceback."""
    run = cli(*arguments)
    assert run.code == code
    assert run.out == ""
    assert words in run.err
    assert "Traceback" not in run.err
    if code == 1:
        assert run.err.startswith("error: ")
        assert len(run.err.splitlines()) == 1


def test_no_server(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ES_NEARDUPE_URL", "ELASTICSEARCH_URL", "OPENSEARCH_URL", "ES_URL", "ELASTIC_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(options, "_local_url", lambda: None)
    run = cli("stats", "i")
    assert (run.code, run.out) == (1, "")
    assert "node start" in run.err


def test_version(cli: Cli) -> None:
    run = cli("--version")
    assert run.code == 0
    assert run.out.startswith("es-neardupe 0.")


def test_json_of_errors_is_no_output(cli: Cli) -> None:
    run = cli("bands", "--threshold", "2", "--json")
    assert (run.code, run.out) == (1, "")
