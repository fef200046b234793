"""The documentation says what the program does: commands, options, settings, shapes, links, examples. No server."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from docs_pages import DOCS, FENCE, blocks, section, sections, table

import es_neardupe
from es_neardupe import NearDupe, Scheme, Settings, features, fingerprints, tokenize
from es_neardupe.candidates.detection import Detection
from es_neardupe.cli.app import app
from es_neardupe.commands.audit.report import AuditReport, LostPairs, MissedPair, Recall, RecallPart
from es_neardupe.commands.bands import bands
from es_neardupe.commands.bands.report import BandsReport
from es_neardupe.commands.clean.report import CleanReport
from es_neardupe.commands.contained.report import ContainedHit, ContainedReport, SampledDetection
from es_neardupe.commands.distribution.report import (
    CrossValidation,
    Distribution,
    DistributionReport,
    FactsExample,
    FactsReport,
    FactsValue,
    LabelCounts,
    LabelLevel,
    LabelsReport,
    Recommendation,
    SimilarityExample,
    ThresholdLevel,
)
from es_neardupe.commands.doctor.checks import Check
from es_neardupe.commands.documents.report import DocumentsReport
from es_neardupe.commands.fold.report import FoldReport
from es_neardupe.commands.group.report import (
    DecisionCounts,
    GroupCounts,
    GroupReport,
    GroupScope,
    GroupsLookedAt,
    PairCounts,
)
from es_neardupe.commands.init.report import InitReport
from es_neardupe.commands.load.report import LoadReport, LoadScope
from es_neardupe.commands.migrate.report import MigrateReport, MigrateWrites
from es_neardupe.commands.moved.report import MovedReport, NewPlace
from es_neardupe.commands.pipeline.report import PipelineReport
from es_neardupe.commands.search.report import Copy, SearchHit, SearchReport
from es_neardupe.commands.shingles import shingles_of
from es_neardupe.commands.shingles.report import ShinglesReport
from es_neardupe.commands.similar.report import SimilarHit, SimilarReport
from es_neardupe.commands.stats.report import GroupSizes, LargestBuckets, StatsReport, StatsScope
from es_neardupe.commands.version import VersionReport
from es_neardupe.commands.watch.rounds import Round, RoundPairs, RoundScope, RoundWrites
from es_neardupe.commands.what_if.report import Threshold, WhatIfReport
from es_neardupe.groups.compare_groupings import GroupChanges
from es_neardupe.json_results import plain, similar_json
from es_neardupe.options import PRESETS_IN_WORDS
from es_neardupe.records import State
from es_neardupe.report_parts import EnrichReport, EnrichScope, FingerprintWrites, WriteCounts
from es_neardupe.server.login.resolve import _PROFILE_TYPES, own_source, usual_sources
from es_neardupe.signatures import signature_of
from es_neardupe.similarity.comparison import Block, CompareReport, Difference, Matched
from es_neardupe.similarity.explained_scores import Score
from es_neardupe.similarity.facts.differing import Fact
from es_neardupe.similarity.histogram import Histogram
from es_neardupe.similarity.pair_relation import Relation

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
PAGES = sorted(DOCS.glob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *PAGES]

OPTION = re.compile(r"--[a-z][a-z-]*")
VARIABLE = re.compile(r"\b(?:ES|ELASTIC|ELASTICSEARCH|OPENSEARCH)(?:_[A-Z]+)+\b")

PROGRAM: Any = typer.main.get_command(app)

every_text = pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.name)


# What the program has


def commands(group: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """(name, command) of the program, such as ``node start``; the program itself as ``""``."""
    group = group or PROGRAM
    if not name:
        yield "", group
    for word, command in group.commands.items():
        full = f"{name} {word}".strip()
        if hasattr(command, "commands"):
            yield from commands(command, full)
        else:
            yield full, command


def options(command: Any) -> set[str]:
    """The long options of a command, without those that completion adds to each of them."""
    return {name for one in command.params for name in one.opts if OPTION.fullmatch(name)} - {"--help"}


COMMANDS = dict(commands())
CONNECTION = options(COMMANDS["init"]) & options(COMMANDS["doctor"]) - {"--prefix", "--json"}


# What the pages have


def option_sections() -> dict[str, str]:
    """Command -> the text below ``Options of `es-neardupe ...` ``."""
    found: dict[str, str] = {}
    for page in PAGES:
        for title, text in sections(page):
            if named := re.fullmatch(r"Options of `es-neardupe ?([a-z -]*)`", title):
                assert named[1] not in found, f"{page.name}: a second section for {named[1]!r}"
                found[named[1]] = text
    return found


def option_rows(text: str) -> list[tuple[list[str], list[str]]]:
    """(options, other cells) of the rows of all tables in a text."""
    return [(OPTION.findall(row[0]), row[1:]) for row in table(text)]


def common_options(text: str) -> list[str]:
    """The options that the text names with a link to the common options."""
    named = re.findall(r"\[common\s+options?\]\(settings\.md#common-options\)((?:,?\s`--[a-z-]+`)*)", text)
    return [option for names in named for option in OPTION.findall(names)]


# Commands and options


@pytest.mark.parametrize("word", sorted({name.split()[0] for name in COMMANDS if name} - {"help"}))
def test_each_command_has_a_page_and_tests_of_its_name(word: str) -> None:
    assert (DOCS / f"{word}.md").read_text("utf-8").startswith(f"# {word}\n\n`")
    name = word.replace("-", "_")
    assert (ROOT / "es_neardupe" / "cli" / "commands" / f"{name}.py").exists()
    assert (ROOT / "tests" / "commands" / f"test_{name}.py").exists()


def test_each_command_has_its_section() -> None:
    assert sorted(option_sections()) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_sections_have_all_options_and_no_others(name: str) -> None:
    """Each option once: in a table, or as a common option."""
    expected = options(COMMANDS[name]) - CONNECTION
    if name == "":
        expected |= {"--help"}
    if name == "demo":
        expected |= {"--url"}
    text = option_sections()[name]
    documented = [option for named, _ in option_rows(text) for option in named] + common_options(text)
    assert sorted(documented) == sorted(expected)
    connected = options(COMMANDS[name]) >= CONNECTION
    assert ("(settings.md#options-of-the-connection)" in text) == connected


def test_common_options() -> None:
    """They are those that several pages name, and a page says of one only what is particular there."""
    meanings = {
        option: cells for named, cells in option_rows(section("settings.md", "Common options")) for option in named
    }
    texts = option_sections().values()
    pages = Counter(option for text in texts for option in common_options(text))
    assert set(pages) == set(meanings)
    assert min(pages.values()) > 1
    said_again = [row for text in texts for row in option_rows(text) if row[1] in meanings.values()]
    assert said_again == []


def test_options_of_the_connection() -> None:
    text = section("settings.md", "Options of the connection")
    assert sorted(name for row in table(text) for name in OPTION.findall(row[0])) == sorted(CONNECTION)
    connected = {name for name, command in COMMANDS.items() if options(command) >= CONNECTION}
    assert {name for name in COMMANDS if f"`{name}`" in text} == connected


@every_text
def test_options_in_running_text_exist(file: Path) -> None:
    others = {
        "--servers",
        "--docker",
        "--matrix",
        "--clients",
        "--services",
        "--record",
        "--smoke",
        "--quick",
        "--env-file",
        "--tag",
        "--cap-drop",
        "--network",
        "--no-healthcheck",
    }  # of pytest, docker and scripts/release
    negations = {name for one in COMMANDS.values() for option in one.params for name in option.secondary_opts}
    known = set().union(*map(options, COMMANDS.values())) | negations | others | {"--help"}
    prose = FENCE.sub("", file.read_text("utf-8"))
    assert set(re.findall(r"`(--[a-z][a-z-]*)", prose)) <= known


def shown_commands(file: Path) -> Iterator[list[str]]:
    """The words after ``es-neardupe`` of each command in the shell blocks of a page."""
    for block in blocks(file, "sh", "console"):
        for line in block.splitlines():
            prompt = line.removeprefix("$ ")
            if prompt.startswith(("scripts/", "es-neardupe", ".venv/")) and (block.count("$ ") == 0 or prompt != line):
                for part in re.split(r"&&|;", prompt):
                    words = shlex.split(part, comments=True)
                    if words and words[0] in ("es-neardupe", "scripts/demo"):
                        yield ["demo", *words[1:]] if words[0] == "scripts/demo" else words[1:]


@every_text
def test_commands_in_examples_can_be_parsed(file: Path) -> None:
    """As click parses them: commands, options and values; nothing is run."""
    for words in shown_commands(file):
        command = PROGRAM
        left = list(words)
        while hasattr(command, "commands"):
            assert left[0] in command.commands, f"{file.name}: no command {' '.join(words)}"
            command = command.commands[left.pop(0)]
        command.make_context("es-neardupe", left)


def test_managed_services_have_every_command() -> None:
    """Each command once, and each cell says how it is known."""
    rows = table(section("managed.md", "Commands"))
    listed = [word for row in rows for word in re.findall(r"`([a-z][a-z-]*)`", row[0])]
    assert set(listed) == {name.split()[0] for name in COMMANDS if name} | {"decide"}
    ways = r"need no server|from the specification|tried|unknown|refuses|Elasticsearch has no"
    assert [cell for row in rows for cell in row[1:] if not re.match(ways, cell)] == []


def test_examples_are_many() -> None:
    """The parser of examples finds them: every command is shown somewhere."""
    shown = {" ".join(words[: 2 if words[0] == "node" else 1]) for file in TEXTS for words in shown_commands(file)}
    assert shown >= set(COMMANDS) - {""}


# Settings and variables


class Recorder(dict[str, str]):
    """An empty environment that notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return default


@cache
def variables_read() -> set[str]:
    """The environment variables that clients and node read, from the sources and by trying them."""
    asked = Recorder()
    own_source(asked)
    usual_sources(asked)
    return asked.asked | {
        node.value
        for file in (ROOT / "es_neardupe").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and VARIABLE.fullmatch(node.value)
    }


def test_environment_variables() -> None:
    documented = {name for row in table(section("settings.md", "Environment variables")) for name in row}
    documented = {name for cell in documented for name in VARIABLE.findall(cell)}
    assert len(documented) > 20
    assert documented == variables_read()


@every_text
def test_variables_in_running_text_exist(file: Path) -> None:
    sources = [
        *(one for one in ROOT.glob("docker/*") if one.is_file()),
        ROOT / "tests" / "tools" / "shared_servers.py",
        ROOT / "setup.py",
    ]
    known = variables_read() | {name for one in sources for name in VARIABLE.findall(one.read_text("utf-8"))}
    assert set(VARIABLE.findall(file.read_text("utf-8"))) <= known


def test_fields_of_settings() -> None:
    documented = [row[0].strip("`") for row in table(section("settings.md", "Fields of `Settings`"))]
    assert documented == [field.name for field in fields(Settings)]


def test_profile_keys() -> None:
    text = section("connecting.md", "Profiles")
    (listed,) = re.findall(r"^Keys: (.*?)\. ", text, re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(_PROFILE_TYPES)


def test_presets() -> None:
    """The page begins with the words of `--help`, and may add to them after a semicolon."""
    rows = table(section("init.md", "Presets"))
    plain_rows = [[re.sub(r"\[(.*?)\]\(.*?\)", r"\1", cell).replace("`", "") for cell in row] for row in rows]
    assert [row[0] for row in plain_rows] == list(PRESETS_IN_WORDS)
    for preset, finds, keys in plain_rows:
        assert f"{finds}: {keys};".startswith(f"{PRESETS_IN_WORDS[preset]};")


def test_choice_of_bands() -> None:
    rows = table(section("init.md", "Choose a threshold"))
    assert len(rows) > 3
    for threshold, product, size, found in rows:
        report = bands(float(threshold))
        assert (product, size, found) == (
            f"{report.bands} x {report.rows}",
            str(report.key_bytes),
            f"{report.detection:.4f}",
        )


def test_bands_of_other_tools() -> None:
    rows = [row for row in table(section("parameters.md", "`threshold`")) if "--" not in row[0]]
    assert len(rows) == 4
    for settings, size, found, _ in rows:
        number, width = map(int, size.split(" x "))
        (threshold,) = re.findall(r"0\.\d+", settings)
        assert bands(float(threshold), bands=number, rows=width).detection == pytest.approx(float(found), abs=1e-4)


# What is stored, and what is printed


def test_mapping() -> None:
    text = section("fields.md", "Mapping")
    stored = json.loads((ROOT / "mappings" / "fields.json").read_text("utf-8"))
    (document,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL))
    listed = {row[0].strip("`"): row[1] for row in table(text)}
    assert listed == {name: field["type"] for name, field in stored["properties"].items()}
    assert set(document) == set(stored["properties"]) - {"samples"}


def test_stored_settings() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", section("fields.md", "Stored settings"), re.DOTALL)
    assert json.loads(block) == {"neardupe": Settings(("body",)).to_meta()}


def test_states() -> None:
    assert [row[0].strip("`") for row in table(section("fields.md", "States"))] == [state.value for state in State]


SHAPES: dict[str, Any] = {
    "init": InitReport,
    "bands": BandsReport,
    "load": LoadReport,
    "enrich": EnrichReport,
    "group": GroupReport,
    "watch": Round,
    "similar": SimilarReport,
    "search": SearchReport,
    "moved": MovedReport,
    "contained": ContainedReport,
    "documents": DocumentsReport,
    "compare": CompareReport,
    "distribution": DistributionReport,
    "audit": AuditReport,
    "what-if": WhatIfReport,
    "stats": StatsReport,
    "shingles": ShinglesReport,
    "migrate": MigrateReport,
    "clean": CleanReport,
    "fold": FoldReport,
    "pipeline": PipelineReport,
    "version": VersionReport,
}


@pytest.mark.parametrize("name", SHAPES)
def test_json_shapes(name: str) -> None:
    (block,) = re.findall(r"```json\n(.*?)```", section("json.md", f"`{name}`"), re.DOTALL)
    shape = SHAPES[name]
    names = (field.name for field in fields(shape) if field.name[0] != "_")
    assert list(json.loads(block)) == [*getattr(shape, "JSON_PROPERTIES", ()), *names]


PARTS: list[tuple[str, str, Any]] = [
    ("load", "scope", LoadScope),
    ("load", "writes", FingerprintWrites),
    ("enrich", "scope", EnrichScope),
    ("enrich", "writes", FingerprintWrites),
    ("group", "scope", GroupScope),
    ("group", "pairs", PairCounts),
    ("group", "decisions", DecisionCounts),
    ("group", "groups", GroupCounts),
    ("group", "writes", WriteCounts),
    ("watch", "scope", RoundScope),
    ("watch", "pairs", RoundPairs),
    ("watch", "writes", RoundWrites),
    ("stats", "scope", StatsScope),
    ("stats", "groups", GroupSizes),
    ("stats", "buckets", LargestBuckets),
    ("migrate", "groups", GroupChanges),
    ("migrate", "writes", MigrateWrites),
    ("clean", "writes", WriteCounts),
]


@pytest.mark.parametrize(("name", "part", "kind"), PARTS)
def test_json_shapes_of_report_parts(name: str, part: str, kind: Any) -> None:
    (block,) = re.findall(r"```json\n(.*?)```", section("json.md", f"`{name}`"), re.DOTALL)
    assert list(json.loads(block)[part]) == [field.name for field in fields(kind)]


def test_json_shape_of_the_groups_looked_at() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", section("json.md", "`group`"), re.DOTALL)
    assert list(json.loads(block)["groups"]["looked_at"]) == [field.name for field in fields(GroupsLookedAt)]


def test_json_shapes_of_parts() -> None:
    (hits,) = re.findall(r"```json\n(.*?)```", section("json.md", "`similar`"), re.DOTALL)
    (checks,) = re.findall(r"```json\n(.*?)```", section("json.md", "`doctor`"), re.DOTALL)
    names = ["index", "id", "measure", "similarity", "shared_bands", "group", "copies", "fields"]
    for measure, shown in (("resemblance", json.loads(hits)["hits"][0]), ("edit", names)):
        hit = SimilarHit("news", "1", 0.9, 1, None, 0, measure)
        detection = Detection(0.5, None, (), keys_made_for=True)
        answer = SimilarReport({}, (hit,), 1, 1, 0, detection, measure, 1.0, None, ("news",))
        assert list(similar_json(answer)["hits"][0]) == list(shown)
    (compared,) = re.findall(r"```json\n(.*?)```", section("json.md", "`compare`"), re.DOTALL)
    for kind, part in (
        (Score, json.loads(compared)["measures"][0]),
        (Matched, json.loads(compared)["matchings"]["literal"]),
        (Block, json.loads(compared)["matchings"]["literal"]["blocks"][0]),
        (Fact, json.loads(compared)["facts"][0]),
        (Difference, json.loads(compared)["differences"][0]),
    ):
        assert list(part) == [field.name for field in fields(kind) if field.name[0] != "_"]
    assert list(json.loads(checks)["checks"][0]) == [field.name for field in fields(Check)]


def test_json_shapes_of_hits_and_places() -> None:
    (found,), (place, _) = (
        json.loads(re.findall(r"```json\n(.*?)```", section("json.md", name), re.DOTALL)[0])[part]
        for name, part in (("`search`", "hits"), ("`moved`", "places"))
    )
    for kind, shown in ((SearchHit, found), (Copy, found["members"][0]), (NewPlace, place)):
        assert list(shown) == [field.name for field in fields(kind)]


def test_json_shape_of_a_distribution() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", section("json.md", "`distribution`"), re.DOTALL)
    shown = json.loads(block)
    (one,), (value,) = shown["distributions"], shown["facts"]["values"]
    parts: list[tuple[Any, Any]] = [
        (Distribution, one),
        (Histogram, one["sample"]),
        (ThresholdLevel, one["levels"][0]),
        (SimilarityExample, one["above"][0]),
        (FactsReport, shown["facts"]),
        (FactsValue, value),
        (FactsExample, value["examples"][0]),
    ]
    for kind, shown in parts:
        assert list(shown) == [field.name for field in fields(kind)]
    counted, labelled = re.findall(r"```text\n(.*?)```", section("json.md", "`distribution`"), re.DOTALL)
    counts, recommended = map(json.loads, counted.splitlines())
    results = json.loads(labelled)
    more = (
        (LabelCounts, counts),
        (Recommendation, recommended),
        (LabelsReport, results),
        (LabelLevel, results["levels"][0]),
        (LabelLevel, results["best"]),
        (CrossValidation, results["validated"]),
    )
    for kind, shown in more:
        assert list(shown) == [field.name for field in fields(kind)]


def test_json_shape_of_what_is_contained() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", section("json.md", "`contained`"), re.DOTALL)
    shown = json.loads(block)
    parts = ((ContainedHit, shown["hits"][0]), (SampledDetection, shown["detection"]))
    for kind, part in (*parts, (Block, shown["hits"][0]["passages"][0])):
        assert list(part) == [field.name for field in fields(kind)]


def test_json_of_the_steps_to_the_keys() -> None:
    """The values shown are those of the text, and a part of each list is shown."""
    (block,) = re.findall(r"```json\n(.*?)```", section("json.md", "`shingles`"), re.DOTALL)
    text = "The quick brown fox jumps over the lazy dog."
    shown, made = json.loads(block), plain(shingles_of(text, Scheme.for_threshold(0.8), name="fox.txt"))
    for name, value in shown.items():
        if isinstance(value, list):
            assert value == made[name][: len(value)], name
            assert value, name
        else:
            assert value == made[name], name


def test_json_shape_of_a_threshold() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", section("json.md", "`what-if`"), re.DOTALL)
    shapes = {tuple(shown) for shown in json.loads(block)["thresholds"]}
    assert shapes == {tuple(field.name for field in fields(Threshold))}


def test_what_evidence_holds() -> None:
    properties = json.loads((ROOT / "mappings" / "pairs.json").read_text("utf-8"))["properties"]
    stored = {name: one["type"] for name, one in properties.items() if "type" in one}
    stored |= {f"{side}.{name}": one["type"] for side in "ab" for name, one in properties[side]["properties"].items()}
    listed = {
        name: row[1].strip("`")
        for row in table(section("evidence.md", "Stored fields"))
        for name in re.findall(r"`([\w.]+)`", row[0])
    }
    assert listed == stored
    rules = [row[0].strip("`") for row in table(section("evidence.md", "Relations"))][: len(Relation)]
    assert rules == [one.value for one in Relation]


def test_json_shape_of_an_audit() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", section("json.md", "`audit`"), re.DOTALL)
    one = json.loads(block)
    lost = one["lost"][-1]
    parts = (
        (Recall, one["recall"]),
        (RecallPart, one["lengths"][0]),
        (LostPairs, lost),
        (MissedPair, lost["examples"][0]),
    )
    for kind, shown in parts:
        assert list(shown) == [field.name for field in fields(kind)]


def test_every_command_has_its_json() -> None:
    titles = " ".join(title for title, _ in sections(DOCS / "json.md"))
    with_json = {name for name, command in COMMANDS.items() if "--json" in options(command)}
    assert set(re.findall(r"`([a-z -]+)`", titles)) == with_json


def test_worked_example() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", section("scheme.md", "A worked example"), re.DOTALL)
    text = "The quick brown fox jumps over the lazy dog."
    assert text in section("scheme.md", "A worked example")
    scheme = Scheme.for_threshold(0.8)
    (fingerprint,), (found,) = fingerprints([text], scheme), features([text], scheme.shingle)
    assert json.loads(block) == {
        "tokens": tokenize(text),
        "content": fingerprint.content,
        "features": [f"{one:016x}" for one in found.tolist()],
        "first slots": list(fingerprint.signature[:12]),
        "first bands": list(fingerprint.bands[:4]),
    }


# Python


@every_text
def test_python_blocks_compile(file: Path) -> None:
    for block in blocks(file, "python"):
        compile(block, file.name, "exec")


def test_python_results_are_true() -> None:
    """The block that needs no server is run; a comment that begins with a value says what the line gives."""
    (block,) = re.findall(r"```python\n(.*?)```", section("python.md", "Without a server"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "python.md", "exec"), names)
    compared = 0
    for line in block.splitlines():
        code, _, comment = line.partition("  # ")
        if value := re.search(r"(?:^|: )(\[.*\]|'.*'|[\d.]+)$", comment):
            assert eval(code, names) == ast.literal_eval(value[1]), line
            compared += 1
    assert compared == 4


def test_methods() -> None:
    documented = {
        name: set(re.findall(r"`(\w+)`", row[1]))
        for row in table(section("python.md", "Methods"))
        for name in re.findall(r"^`(\w+)\(", row[0])
    }
    public = {name for name in vars(NearDupe) if not name.startswith("_")}
    assert set(documented) == public
    for name, listed in documented.items():
        function = getattr(NearDupe, name)
        given = {"client", "index", "prefix", "settings", "paths", "self", "actions", "return"}
        assert listed == set(signature_of(function).parameters) - given, name


# Pages, links, blocks, words


def test_first_screen_of_the_readme() -> None:
    """One sentence, a picture, three commands, and the picture of the page for reviews with its sentence."""
    title, sentence, picture, commands, review, page = (ROOT / "README.md").read_text("utf-8").split("\n\n")[:6]
    assert title == "# es-neardupe"
    assert re.fullmatch(r"[^.]+\.", sentence.replace("\n", " "))
    assert [re.findall(r"pictures/([\w-]+)", one) for one in (picture, page)] == [["search"], ["review-group"]]
    ((_, block),) = FENCE.findall(commands + "\n")
    assert [line.split()[1] for line in block.splitlines()] == ["init", "enrich", "group"]
    assert "es-neardupe serve" in review


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([\w.-]+\.md)\)", (DOCS / "README.md").read_text("utf-8")))
    assert linked == {page.name for page in PAGES} - {"README.md"}


def anchors(file: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title, _ in sections(file)}


@every_text
def test_links_resolve(file: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", file.read_text("utf-8"))):
        if "://" in target:
            continue
        place, _, anchor = target.partition("#")
        there = (file.parent / place).resolve() if place else file
        assert there.exists(), f"{file.name}: {target}"
        assert there.is_relative_to(ROOT.resolve()), f"{file.name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{file.name}: {target}"


@every_text
def test_named_scripts_can_be_run(file: Path) -> None:
    for name in set(re.findall(r"\bscripts/[a-z_]+(?:\.py)?", file.read_text("utf-8"))):
        assert (ROOT / name).is_file(), f"{file.name}: {name}"
        assert name.endswith(".py") or os.access(ROOT / name, os.X_OK), f"{file.name}: {name}"


@every_text
def test_json_blocks_parse(file: Path) -> None:
    for block in blocks(file, "json"):
        json.loads(block)
    for block in blocks(file, "jsonl"):
        assert all(isinstance(json.loads(line), dict) for line in block.splitlines())
    for block in blocks(file, "http"):
        head, _, body = block.partition("\n")
        assert re.fullmatch(r"(GET|POST|PUT) /\S+", head), head
        assert isinstance(json.loads(body), dict)


def names_of_ours(value: Any) -> Iterator[str]:
    """Every string below ``value``, names and values alike, that names a field of ours."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for one in value:
            yield from names_of_ours(one)
    elif isinstance(value, str) and value.startswith("neardupe."):
        yield value.partition(".")[2]


def test_requests_name_fields_that_exist() -> None:
    properties = json.loads((ROOT / "mappings" / "fields.json").read_text("utf-8"))["properties"]
    bodies = [json.loads(block.partition("\n")[2]) for file in TEXTS for block in blocks(file, "http")]
    used = [name for body in bodies for name in names_of_ours(body)]
    assert len(used) > 10
    assert set(used) <= set(properties)


def test_example_documents() -> None:
    lines = (DOCS / "articles.jsonl").read_text("utf-8").splitlines()
    assert [list(json.loads(line)) for line in lines] == [["id", "title", "body", "date"]] * 9


@every_text
def test_blocks_have_a_language(file: Path) -> None:
    known = {"console", "http", "ini", "json", "jsonl", "python", "sh", "text", "toml", "yaml"}
    text = file.read_text("utf-8")
    assert {language for language, _ in FENCE.findall(text)} <= known
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(FENCE.findall(text))


FORBIDDEN = re.compile(
    r"/work\b|/root\b|/tmp/|shared/data|\bTODO\b|\bFIXME\b|\blorem\b|\bsimply\b|\bblazing\b|\bjust works\b",
    re.IGNORECASE,
)


@every_text
def test_no_forbidden_words(file: Path) -> None:
    assert FORBIDDEN.findall(file.read_text("utf-8")) == []


@every_text
def test_duplicate_is_said_of_verified_pairs_only(file: Path) -> None:
    """Near-duplicates, the names of a count and of a command, and the rule itself; anything else claims too much."""
    prose = re.sub(r"\]\(https?://[^)]*\)|<!-- search: .* -->", "", FENCE.sub("", file.read_text("utf-8")))
    ways = r"`(?:es-neardupe |scripts/bench )?duplicates\b|`DuplicatesReport`"
    command = rf"{ways}|^# duplicates$|\[duplicates\]|duplicates\.md|#duplicates"
    allowed = re.compile(
        rf'near-duplicates?|\+ duplicates|"Duplicate" is said|{command}|documentPairs:duplicates',
        re.IGNORECASE | re.MULTILINE,
    )
    assert re.findall(r".*\bduplicat\w*.*", allowed.sub("", prose), re.IGNORECASE) == []


# The changelog

VERBS = {"Added", "Changed", "Deprecated", "Fixed", "Removed"}
INDEX = re.compile(r"Index: (first scheme|compatible|re-enrich needed)")


def test_changelog() -> None:
    releases = [(title, text) for title, text in sections(ROOT / "CHANGELOG.md") if title != "Changelog"]
    assert releases
    for title, text in releases:
        assert re.fullmatch(r"\d+\.\d+\.\d+|Unreleased", title), title
        lines = [line for line in text.splitlines() if line.strip()]
        assert INDEX.match(lines[0]), f"{title} does not begin with its Index: line"
        entries = [line for line in lines[1:] if line.startswith("- ")]
        assert entries
        assert [entry for entry in entries if not re.match(rf"- ({'|'.join(VERBS)})\b", entry)] == []
    first = releases[-1][1]
    assert "first scheme" in first
    assert re.findall(r"^- (?!Added)", first, re.MULTILINE) == [], "nothing was there before the first release"


def test_contributors_find_every_room() -> None:
    """The table of layers has each room of the package, and no others."""
    folder = Path(es_neardupe.__file__).parent
    there = {one.stem for one in folder.iterdir() if one.suffix == ".py" or (one / "__init__.py").exists()}
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (layers,) = re.findall(r"^## Layers\n(.*?)^## ", text, re.M | re.S)
    named = {name for row in table(layers) for name in re.findall(r"`(\w+)`", row[0])}
    assert named == there - {"__init__", "__main__"}


def test_contributors_see_the_layers_as_they_are() -> None:
    """The block of layers is that of import-linter."""
    linted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = [one["layers"] for one in linted if one["type"] == "layers"]
    block = re.search(r"^## Layers\n.*?```text\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M | re.S)
    assert block
    assert block[1].splitlines() == layers


def test_contributors_can_follow_the_walkthroughs() -> None:
    """Each file is there, and each `file.py`, `name` or `name` (`file.py`) is defined in it. A file without a folder is
    in that of the one before."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (walks,) = re.findall(r"^## Code walkthroughs\n(.*?)^## ", text, re.M | re.S)
    package = Path(es_neardupe.__file__).parent
    folder, wrong = package, []
    found = re.findall(r"(?:`([\w.]+)` \()?`([\w/]+\.py)`(?:,\s+`([\w.]+)`)?", walks)
    for before, name, after in found:
        file = package / name if "/" in name else folder / name
        folder = file.parent
        nodes = list(ast.walk(ast.parse(file.read_text("utf-8")))) if file.exists() else []
        defined = {one.name for one in nodes if isinstance(one, ast.FunctionDef | ast.ClassDef)}
        if not nodes or not {part for part in (before or after).split(".") if part} <= defined:
            wrong.append((name, before or after))
    assert wrong == []
    assert len(found) > 20


def test_changelog_has_the_version() -> None:
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert version in [title for title, _ in sections(ROOT / "CHANGELOG.md")]
