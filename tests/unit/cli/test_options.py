"""Options of the command line, and the commands with the library functions of the same names."""

from __future__ import annotations

import errno
import inspect
import json
import os
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from conftest import Cli
from unit_tools import FakeClient

from es_neardupe import NearDupe, Settings
from es_neardupe.cli import connection, run_log
from es_neardupe.cli.app import _OTHER_NAMES as OTHER_COMMANDS
from es_neardupe.cli.app import app
from es_neardupe.cli.command import _CHOSEN_BY_INIT, _OTHER_NAMES, ConnectedCommand, UsageError, shared_parameters
from es_neardupe.cli.plain_values import PlainValues
from es_neardupe.commands.bands import bands
from es_neardupe.commands.watch import parse_duration
from es_neardupe.errors import SettingsError
from es_neardupe.options import parse_fraction, parse_query, parse_since
from es_neardupe.signatures import option_of, option_parameters, signature_of

CONNECTION = set(inspect.signature(connection.options).parameters)
OF_RUNS = set(inspect.signature(run_log.options).parameters)
OF_LOAD = {"max_rate", "max_load"}
PROGRAM: Any = typer.main.get_command(app)
DATA_COMMANDS = sorted(set(PROGRAM.commands) - {"demo", "node", "help", "mcp", "serve"})


def function_of(name: str) -> Callable[..., None]:
    """The function behind a command of the command line."""
    word = name.replace("-", "_")
    found: Callable[..., None] = getattr(import_module(f"es_neardupe.cli.commands.{word}"), word)
    return found


@pytest.mark.parametrize(
    ("text", "query"),
    [
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
    with pytest.raises(typer.BadParameter, match="query"):
        parse_query(text)


def test_query_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "query.json"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(typer.BadParameter, match="query"):
        parse_query(f"@{file}")


@pytest.mark.parametrize("text", ["updated", "=2024", "updated=", ""])
def test_since_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="FIELD=DATE"):
        parse_since(text)


def test_since() -> None:
    assert parse_since("updated=now-1d") == ("updated", "now-1d")
    assert parse_since("a.b=2024-05-01T00:00:00+01:00=x") == ("a.b", "2024-05-01T00:00:00+01:00=x")


@pytest.mark.parametrize(("text", "seconds"), [("1s", 1), ("30s", 30), ("5m", 300), ("24h", 86_400), (2.5, 2.5)])
def test_durations(text: Any, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("fails", [False, True])
def test_the_connection_of_a_command(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """It is made of the options of connection, which the command does not see, and closed also after an error."""
    given: dict[str, Any] = {}
    closed, client = [], FakeClient()
    monkeypatch.setattr(client, "close", lambda: closed.append(True))
    monkeypatch.setattr(connection, "connect_to", lambda **flags: (given.update(flags), client)[1])
    program = typer.Typer(add_completion=False)

    @program.command(cls=ConnectedCommand)
    def example(name: str, *, own: int = 3) -> None:
        """What it says."""
        opened = connection.open_index(name)
        assert (opened.name, opened.client, own) == ("i", client, 5)
        if fails:
            raise SettingsError("five")

    command: Any = typer.main.get_command(program)
    assert {one.name for one in command.params} == {"name", "own"} | CONNECTION | OF_RUNS
    words = ["i", "--own", "5", "--url", "http://x", "--insecure"]
    with pytest.raises(SettingsError, match="five") if fails else nullcontext():
        command.main(words, standalone_mode=False)
    run_log.end(0)
    assert closed == [True]
    assert callable(given.pop("local_url"))
    assert given == dict.fromkeys(CONNECTION) | {"url": "http://x", "insecure": True}


def test_connection_options_are_those_that_are_resolved() -> None:
    from es_neardupe.server.login.resolve import resolve_settings

    assert set(option_parameters(resolve_settings)) == CONNECTION
    with pytest.raises(TypeError, match="unexpected keyword argument 'profil'"):
        resolve_settings(profil="a")  # type: ignore[call-arg]


OF_OPTIONS = {"group_history", "moved_all", "search_request", "suggest_keep"}
"""Functions behind options of groups, moved and search."""


def test_every_command_has_a_library_function_of_its_name() -> None:
    methods = {name for name, value in vars(NearDupe).items() if not name.startswith("_") and callable(value)}
    words = {name.replace("-", "_") for name in DATA_COMMANDS}
    assert words - {"bands"} == methods - OF_OPTIONS - {
        "close",
        "decide",
        "decisions",
        "fingerprinted",
        "screened",
        "withdraw",
    }
    assert all(getattr(NearDupe, name).__doc__ for name in words - {"bands"})


GOLDEN = Path(__file__).with_name("golden_options.json")


def shown_options(parameters: list[Any]) -> dict[str, Any]:
    """Parameter -> what users see of its option: flags, help, default, panel and values."""
    seen = ("opts", "secondary_opts", "help", "metavar", "required", "multiple", "nargs", "min", "max", "show_default")
    return {
        one.name: {
            **{name: getattr(one, name, None) for name in seen},
            "panel": one.rich_help_panel,
            "default": None if callable(one.default) else str(one.default),
        }
        for one in parameters
    }


def test_all_options_are_as_before(request: pytest.FixtureRequest) -> None:
    """If an option is changed on purpose, run this test with ``--record``, and check the difference."""
    shared = {one.name for one in shared_parameters()}
    commands = {
        name: shown_options([one for one in command.params if one.name not in shared])
        for name, command in {**PROGRAM.commands, **PROGRAM.commands["node"].commands}.items()
    }
    now = json.dumps({**commands, "shared": shown_options(shared_parameters())}, indent=1, sort_keys=True) + "\n"
    if request.config.getoption("--record"):
        GOLDEN.write_text(now, "utf-8")
    assert now == GOLDEN.read_text("utf-8")


@pytest.mark.parametrize("name", DATA_COMMANDS)
def test_every_command_takes_json(cli: Cli, name: str) -> None:
    shown = cli(name, "--help")
    assert shown.code == 0
    assert "--json" in shown.out


def defaults_of(function: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """Parameter -> its option and its default, for those with an option."""
    return {name: (option_of(one.annotation), one.default) for name, one in option_parameters(function).items()}


def library_function(name: str) -> Callable[..., Any]:
    """The function of the library with the options of a command."""
    return bands if name == "bands" else getattr(NearDupe, name.replace("-", "_"))


@pytest.mark.parametrize("name", DATA_COMMANDS)
def test_a_command_has_all_options_of_its_library_function(name: str) -> None:
    """By the same name, with the same default, and the same as those of `NearDupe` itself."""
    library, own = defaults_of(library_function(name)), defaults_of(function_of(name))
    assert {key: own[key][0] for key in library} == {key: option for key, (option, _) in library.items()}
    for key, (_, default) in library.items():
        assert (own[key][1] or None) == (default or None), key  # a list that is not given is None, or ()
    shared = defaults_of(NearDupe.__init__)
    assert {key: own[key] for key in own.keys() & shared} == {key: shared[key] for key in own.keys() & shared}


def test_options_of_other_functions() -> None:
    groups, advice = defaults_of(function_of("groups")), defaults_of(NearDupe.suggest_keep)
    assert groups["keep_policy"] == advice["policy"]
    assert {key: groups[key] for key in ("min_size", "top", "group")} == {
        key: advice[key] for key in ("min_size", "top", "group")
    }
    assert defaults_of(NearDupe.moved) == defaults_of(NearDupe.moved_all)
    search = defaults_of(NearDupe.search)
    del search["related"]  # not a part of the request
    assert search == defaults_of(NearDupe.search_request)


@pytest.mark.parametrize("name", ["threshold", "detection", "shingle", "permutations", "agree"])
def test_defaults_of_settings_that_are_shown(name: str) -> None:
    option = defaults_of(function_of("init"))[name][0]
    assert option.show_default == str(getattr(Settings, name))


@pytest.mark.parametrize("name", DATA_COMMANDS)
def test_connection_options_of_commands(name: str) -> None:
    assert ({one.name for one in PROGRAM.commands[name].params} >= CONNECTION | OF_RUNS) == (name != "bands")


def test_every_option_is_explained() -> None:
    for name in (*DATA_COMMANDS, "demo", "help"):
        for parameter in PROGRAM.commands[name].params:
            assert parameter.help, f"{name} {parameter.name}"
            assert "`" not in parameter.help.replace("`es-neardupe", "").replace("`contained`", "").replace(
                "`group --principal`", ""
            ), f"{name} {parameter.name}"


def test_python_shows_the_options_of_a_command() -> None:
    """All of them with their meaning, each once; the signature stays what type checkers see."""
    shown = inspect.getdoc(NearDupe.group) or ""
    words = " ".join(shown.split())
    assert shown.count("\nOptions:\n") == 1
    for name, (option, _) in defaults_of(NearDupe.group).items():
        assert f"{name}: {option.help}" in words
    assert "min: Minimum similarity, in (0, 1]. Default: as in the last run." in words
    assert get_args(signature_of(NearDupe.group).parameters["workers"].annotation)[0] is int


@pytest.mark.parametrize("name", ["audit", "enrich", "group", "load", "migrate", "pairs"])
def test_an_unknown_keyword_is_an_error(name: str) -> None:
    """As in any function of Python, though ``**run`` takes any; also one that another command has."""
    neardupe = NearDupe("i", FakeClient())
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'sise'"):
        getattr(neardupe, name)(sise=3)


@pytest.mark.parametrize("client", [None, FakeClient()])
def test_an_unknown_keyword_of_the_connection_is_an_error(client: object) -> None:
    with pytest.raises(TypeError, match=r"NearDupe.__init__\(\) got an unexpected keyword argument 'usr'"):
        NearDupe("i", client, usr="http://127.0.0.1:9")  # type: ignore[call-arg]


def test_help_of_the_class_names_the_options_of_the_connection_once() -> None:
    shown = pydoc.plain(pydoc.render_doc(NearDupe))
    assert shown.count("url: Address of the server.") == 1
    assert "max_load: int | None = None, url: str | None = None, api_key_file: str | None = None, " in shown
    assert set(option_parameters(NearDupe.__init__)) >= CONNECTION


def test_help_of_methods_is_readable() -> None:
    """Description, example and options, below a signature with plain types and defaults."""
    shown = pydoc.plain(pydoc.render_doc(NearDupe.screened))
    assert "screened(self, actions: Iterable[Mapping[str, Any]], *, on_match: OnMatch | str | Callable" in shown
    assert "= 'mark', measure: str | None = None" in shown
    assert shown.index("Add the keys") < shown.index(">>> ") < shown.index("Options:")
    for name, method in vars(NearDupe).items():
        if inspect.isfunction(method) and (name[0] != "_" or name == "__init__"):
            signature = pydoc.render_doc(method).splitlines()[2]
            assert not re.search(r"options\.|Annotated|<|es_neardupe|typing\.", signature), name


@pytest.mark.parametrize("name", DATA_COMMANDS)
def test_help_has_one_line_for_the_shared_options(cli: Cli, name: str) -> None:
    shown = cli(name, "--help").out
    assert ("es-neardupe help connection" in shown) == (name != "bands")
    assert "Address of the server." not in shown
    assert ("Rows per band" in shown) == (name in ("bands", "init", "migrate", "shingles"))


def test_help_of_the_shared_options(cli: Cli) -> None:
    shown = cli("help", "connection")
    assert shown.code == 0
    for parameter in shared_parameters():
        assert parameter.opts[0] in shown.out
    assert "--min" in cli("help", "group").out
    assert "Prepare" in cli("help").out
    assert cli("help", "nothing").code == 2


def test_commands_are_in_panels(cli: Cli) -> None:
    shown = cli("--help").out
    places = [shown.index(f"─ {panel} ─") for panel in ("Prepare", "Find", "Group", "Inspect")]
    assert places == sorted(places)
    for name in PROGRAM.commands:
        assert f"│ {name} " in shown


def test_paragraphs_of_help_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only examples have line breaks, one line for each."""
    for name in (*DATA_COMMANDS, "demo", "help"):
        text = PROGRAM.commands[name].help
        for paragraph in text.split("\n\n"):
            lines = paragraph.split("\n")
            assert all("es-neardupe " in line for line in lines[1:]), name


HEAVY = ("numpy", "scipy", "pydantic", "xxhash", "elasticsearch", "opensearchpy")


LIGHT = """
import sys
from es_neardupe.cli.app import main
for words in {lines!r}:
    sys.argv = ["es-neardupe", *words]
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, words
print([one for one in {heavy!r} if one in sys.modules], file=sys.stderr)
"""


def started(lines: list[list[str]], **environment: str) -> subprocess.CompletedProcess[str]:
    """What a new process prints that runs the command line with these arguments, one after the other."""
    code = LIGHT.format(lines=lines, heavy=HEAVY)
    together = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=together, check=False)


@pytest.mark.parametrize(
    "lines",
    [[["--version"]], [["--help"]], [[name, "--help"] for name in sorted(PROGRAM.commands)]],
    ids=["version", "help", "commands"],
)
def test_the_program_starts_without_heavy_libraries(lines: list[list[str]]) -> None:
    done = started(lines)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")
    assert done.stdout


def test_commands_without_a_server_load_no_more_than_numpy(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"one two three four five six seven {name}")
    files = [str(tmp_path / name) for name in ("a", "b")]
    done = started([["bands", "--threshold", ".8", "--permutations", "128"], ["compare", *files, "--context", "5"]])
    assert (done.returncode, done.stderr.strip()) == (0, "['numpy', 'xxhash']")


def test_values_are_converted_as_by_typer() -> None:
    tried = 0
    for name in sorted(set(PROGRAM.commands) - {"node"}):
        command = PROGRAM.commands[name]
        context = command.make_context(name, [], resilient_parsing=True)
        for parameter in command.get_params(context):
            if not isinstance(getattr(parameter, "_runtime_param", None), PlainValues):
                continue
            tried += 1
            ours, parameter._runtime_param = parameter._runtime_param, None
            for word in ("5", "0", "-1", "1.5", ".8", "50%", "07", "1e3", "x", "", "literal", "auto", "a:b", None):
                value = [word, "7"] if parameter.multiple or parameter.nargs == -1 else word
                assert result(ours, parameter, context, value) == result(
                    parameter.get_runtime_param(), parameter, context, value
                ), (name, parameter.name, word)
    assert tried > 100


def result(converter: Any, parameter: Any, context: Any, value: Any) -> Any:
    """What a value is converted to, or the error message."""
    try:
        return converter.coerce(value, parameter, context)
    except UsageError as error:
        return error.message


def completed(words: str, **environment: str) -> list[str]:
    """What bash is offered after these words."""
    number = len(words.split(" ")) - 1
    shell = {"_ES_NEARDUPE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(number)}
    done = started([[]], **shell, **environment)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")
    return done.stdout.split()


def test_completion_without_heavy_libraries() -> None:
    assert set(completed("es-neardupe ")) >= set(PROGRAM.commands)
    assert {"--min", "--url", "--log-level"} <= set(completed("es-neardupe group --"))
    assert completed("es-neardupe group --workers 3 x --measure con") == ["containment", "containment-longer"]
    assert completed("es-neardupe similar --measure S_") == ["S_R", "S_J", "S_L"]
    assert completed("es-neardupe distribution x --measure S_") == ["S_R", "S_J", "S_L"]
    assert completed("es-neardupe group x --linkage c") == ["chain", "complete"]
    assert completed("es-neardupe bands --preset ") == ["strict", "reader", "supershingles", "scans", "logs"]
    assert completed("es-neardupe init x --preset ") == ["strict", "reader", "supershingles", "scans", "short", "logs"]
    assert completed("es-neardupe init x --measure ") == ["jaccard", "containment-longer", "S_J", "S_L"]
    assert "near-identical-titles" in completed("es-neardupe duplicates --example near")


# -- the command line itself ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["bands", "--threshold", "1.5"], 2, "1.5"),
        (["bands", "--threshold", "0"], 2, "threshold"),
        (["bands", "--bands", "17", "--rows", "8"], 2, "136"),
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
    monkeypatch.setattr(connection, "local_url", lambda: None)
    run = cli("stats", "i")
    assert (run.code, run.out) == (1, "")
    assert "node start" in run.err


def test_version(cli: Cli) -> None:
    run = cli("--version")
    assert run.code == 0
    assert run.out.startswith("es-neardupe 0.")


def test_json_of_errors_is_no_output(cli: Cli) -> None:
    run = cli("bands", "--threshold", "2", "--json")
    assert (run.code, run.out) == (2, "")


# -- messages in the words of the command line ------------------------------------------------------------------------


def test_a_wrong_setting_is_wrong_usage_in_the_words_of_the_command_line(cli: Cli) -> None:
    for arguments, words in (
        (["init", "i", "--field", "a", "--min", "1"], "--min"),
        (["pairs", "i", "--min", "1.5"], "--min"),
        (["group", "i", "--measure", "foo"], "'foo' is not one of resemblance, jaccard"),
        (["group", "i", "--linkage", "foo"], "'foo' is not one of star, chain, complete"),
        (["bands", "--preset", "foo"], "'foo' is not one of strict, reader, supershingles, scans"),
        (["duplicates", "--example", "foo"], "foo"),
        (["what-if", "i", "--min", "0.5,x"], "is not a list of numbers"),
    ):
        run = cli(*arguments)
        assert (run.code, run.out) == (2, ""), arguments
        assert words in " ".join(run.err.replace("│", " ").split())


@pytest.mark.parametrize("words", ["bands", "bands --json", "--help", "duplicates --schema", "--version"])
def test_a_closed_pipe_is_no_error(words: str) -> None:
    """The reader has gone before anything is written."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "es_neardupe", *words.split()]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("prefix", ["", "_own", "a.b"])
def test_a_prefix_that_no_index_can_have(prefix: str, cli: Cli) -> None:
    """No command names `init` for it, which would refuse it."""
    for command in ("group", "doctor"):
        run = cli(command, "i", "--prefix", prefix, "--url", "http://127.0.0.1:9")
        assert (run.code, f"The prefix {prefix!r} is not valid" in run.err) == (2, True), run.err
    with pytest.raises(SettingsError, match="is not valid"):
        NearDupe("i", url="http://127.0.0.1:9", prefix=prefix)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "es_neardupe", "bands"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        f"error: The output cannot be written: {os.strerror(errno.ENOSPC)}.\n",
    )


def test_a_closed_stdout_is_no_error() -> None:
    """As schedulers start programs: Python has None for such a stream."""
    command = ["sh", "-c", '"$0" -m es_neardupe bands >&-', sys.executable]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_characters_that_the_encoding_of_stdout_lacks(tmp_path: Path) -> None:
    """In the C locale of a scheduler, or in a file on Windows."""
    names = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    for name in names:
        Path(name).write_text("Yeni köprü için ihale", "utf-8")
    command = [sys.executable, "-m", "es_neardupe", "compare", *names, "--shingle", "1"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"Yeni k\xf6pr\xfc i\xe7in ihale" in done.stdout


def _commands() -> Iterator[tuple[str, Any]]:
    """All commands, also those of `node`."""
    for name, command in sorted(PROGRAM.commands.items()):
        inner = getattr(command, "commands", None)
        yield from ((f"{name} {one}", inner[one]) for one in inner) if inner else [(name, command)]


def _options_with_one_value() -> Iterator[tuple[str, Any]]:
    for name, command in _commands():
        for one in command.params:
            if one.param_type_name == "option" and not one.multiple and (not one.is_flag or one.secondary_opts):
                yield name, one


@pytest.mark.parametrize(("command", "option"), [(name, one.opts[0]) for name, one in _options_with_one_value()])
def test_an_option_that_is_given_twice(command: str, option: str, cli: Cli) -> None:
    """Neither value counts silently, whichever of its names is used, and however the value is written."""
    (one,) = (each for name, each in _options_with_one_value() if (name, each.opts[0]) == (command, option))
    names = [*dict.fromkeys((*one.opts, *one.secondary_opts))]
    for first, last in product(names, names):
        given = [first, last] if one.is_flag else [first, "1", f"{last}=2" if last.startswith("--") else f"{last}2"]
        run = cli(*command.split(), *given)
        assert (run.code, run.out) == (2, "")
        assert f"{option} is given 2 times: give it once." in " ".join(run.err.replace("│", " ").split())


def test_an_option_overrides_its_variable(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is no second value on the command line."""
    with_variable = [(name, one) for name, one in _options_with_one_value() if one.envvar]
    assert {one.opts[0] for _, one in with_variable} == {"--log-format", "--log-level", "--token"}
    monkeypatch.setenv("ES_NEARDUPE_LOG_LEVEL", "error")
    monkeypatch.setenv("ES_NEARDUPE_LOG_FORMAT", "json")
    run = cli("version", "--url", "http://127.0.0.1:9", "--log-format", "text", "--log-level", "info")
    assert (run.code, run.err[:15]) == (0, "The version of ")


def test_flags_and_lists_that_are_given_twice(cli: Cli) -> None:
    assert cli("bands", "--json", "--json").code == 0
    assert "given" not in cli("init", "news", "--field", "a", "--field", "b", "--url", "http://127.0.0.1:9").err


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("80", "80 is not in (0, 1]. Write 0.8 for 80 %."),
        ("80%", "'80%' is not a number. Write 0.8 for 80%."),
        ("0,8", "'0,8' is not a number. Write 0.8 for 0,8."),
        ("150%", "'150%' is not a number."),
        ("0", "0 is not in (0, 1]."),
        ("101", "101 is not in (0, 1]."),
        ("high", "'high' is not a number."),
    ],
)
def test_similarities_that_are_percentages(value: str, message: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        parse_fraction(value)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ("init news --num-perm 128", "--permutations"),
        ("init news --ngram_size 5", "--shingle"),
        ("init news --min 0.8", "--threshold"),
        ("init news --num-bands 14", "--bands"),
        ("group news --threshold 0.8", "--min"),
        ("group news --minimum_should_match 80%", "--min"),
        ("group news --num_perm 128", "--permutations of `es-neardupe init`"),
        ("compare a b --ngram-size 5", "--shingle"),
        ("init news --b 9", "--bands"),
        ("init news --r 13", "--rows"),
        ("init news --jaccard-threshold 0.8", "--threshold"),
        ("init news --text-column body", "--field"),
        ("init news --host http://localhost:9200", "--url"),
        ("group news --cutoff 0.8", "--min"),
        ("group news --column body", "--field of `es-neardupe init`"),
        ("group news --n_jobs 2", "--workers"),
        ("group news --keep newest", "--principal"),
        ("groups news --keep newest", "--keep-policy"),
        ("groups news --min-cluster-size 3", "--min-size"),
        ("pairs news --limit 10", "--top"),
        ("pairs news --format csv", "--output"),
        ("search news bridge --limit 10", "--size"),
        ("similar news --doc-id 1001", "--id"),
        ("similar news --id 1001 --filter x", "--query"),
        ("enrich news --batch-size 100", "--batch"),
        ("enrich news --requests-per-second 100", "--max-rate"),
        ("clean news --force", "--yes"),
    ],
)
def test_parameters_of_other_tools(cli: Cli, arguments: str, option: str) -> None:
    run = cli(*arguments.split())
    assert run.code == 2
    words = " ".join(run.err.replace("│", " ").split())
    assert f"The option for this is {option}." in words


@pytest.mark.parametrize("arguments", ["group news --colour red", "bands --limit 10"])
def test_an_unknown_option_of_no_tool(cli: Cli, arguments: str) -> None:
    assert "The option for this is" not in cli(*arguments.split()).err


def test_an_option_that_is_cut_off(cli: Cli) -> None:
    assert "No such option: --dry (Possible options: --dry-run)" in cli("group", "news", "--dry").err
    assert "No such option: --id (Possible options: --id-field)" in cli("load", "news", "ads.jsonl", "--id", "url").err


@pytest.mark.parametrize("command", ["similar", "contained"])
def test_an_id_without_its_option(cli: Cli, command: str) -> None:
    run = cli(command, "news", "1001")
    assert run.code == 2
    assert "(1001). The id of a document is given by --id." in " ".join(run.err.replace("│", " ").split())


def test_other_names_lead_to_options() -> None:
    """Each option is one of some command; what the keys depend on is explained on the page of other tools."""
    options = {name: {one for option in PROGRAM.commands[name].params for one in option.opts} for name in DATA_COMMANDS}
    page = (Path(__file__).parents[3] / "docs" / "parameters.md").read_text("utf-8")
    assert options["init"] >= _CHOSEN_BY_INIT
    for name, found in _OTHER_NAMES.items():
        assert set().union(*options.values()) >= set(found), name
        assert not _CHOSEN_BY_INIT & set(found) or any(option in page for option in found), name


@pytest.mark.parametrize(
    ("word", "command"), [("dedupe", "group"), ("undo", "clean"), ("index", "load"), ("decisions", "serve")]
)
def test_commands_of_other_tools(cli: Cli, word: str, command: str) -> None:
    run = cli(word, "news")
    assert run.code == 2
    assert f"No such command '{word}'. The command for this is {command}." in " ".join(run.err.split())


def test_other_names_of_commands_lead_to_commands() -> None:
    assert set(OTHER_COMMANDS.values()) <= set(PROGRAM.commands)
    assert not set(OTHER_COMMANDS) & set(PROGRAM.commands)
