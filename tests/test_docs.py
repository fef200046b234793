"""The documentation says what the program does: commands, options, settings, shapes, links, examples. No server."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

import es_neardupe
from es_neardupe import Scheme, Settings, features, fingerprints, pipeline, tokenize
from es_neardupe.api import NearDupe
from es_neardupe.audits import AuditReport, Lost, Missed, Part, Recall
from es_neardupe.cli import app
from es_neardupe.cli.looking import similar_json
from es_neardupe.clients.profiles import _PROFILE_TYPES
from es_neardupe.clients.sources import own_source, usual_sources
from es_neardupe.comparison import Block, Comparison, Matched
from es_neardupe.distributions import Distribution, DistributionReport, Example, Histogram, Level
from es_neardupe.facts import Fact
from es_neardupe.pipeline.bands import BandsReport
from es_neardupe.pipeline.clean import CleanReport
from es_neardupe.pipeline.contained import Contained, ContainedHit, SampledDetection
from es_neardupe.pipeline.doctor import Check
from es_neardupe.pipeline.enrich import EnrichReport
from es_neardupe.pipeline.group import GroupReport
from es_neardupe.pipeline.init import InitReport
from es_neardupe.pipeline.load import LoadReport
from es_neardupe.pipeline.places import Moved, Place
from es_neardupe.pipeline.rounds import Round
from es_neardupe.pipeline.search import Copy, Found, SearchHit
from es_neardupe.pipeline.similar import Detection, Similar, SimilarHit
from es_neardupe.pipeline.stats import Stats
from es_neardupe.pipeline.what_if import Threshold, WhatIf
from es_neardupe.records import State
from es_neardupe.relations import Relation
from es_neardupe.scores import Score

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *PAGES]

OPTION = re.compile(r"--[a-z][a-z-]*")
VARIABLE = re.compile(r"\b(?:ES|ELASTIC|ELASTICSEARCH|OPENSEARCH)(?:_[A-Z]+)+\b")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

every_text = pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.name)


# What the program has


def commands(group: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """(name, command) of the program, such as ``node start``; the program itself as ``""``."""
    group = group or typer.main.get_command(app)
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


def blocks(file: Path, *languages: str) -> list[str]:
    """The fenced blocks of these languages."""
    return [text for language, text in FENCE.findall(file.read_text("utf-8")) if language in languages]


def sections(file: Path) -> Iterator[tuple[str, str]]:
    """(heading, text up to the next heading) of a page; fenced blocks are no headings."""
    bare = FENCE.sub(lambda block: re.sub(r"^#", " #", block.group(0), flags=re.MULTILINE), file.read_text("utf-8"))
    parts = re.split(r"^#+ (.*)$", bare, flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def section(page: str, heading: str) -> str:
    """The text below a heading, which must be there once."""
    (found,) = (text for title, text in sections(DOCS / page) if title == heading)
    return found


def table(text: str) -> list[list[str]]:
    """The cells of the rows of the tables in a text, without their heads."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", text, re.M)]
    rules = {place for place, row in enumerate(rows) if set("".join(row)) <= set("-: ")}
    return [row for place, row in enumerate(rows) if place not in rules and place + 1 not in rules]


def option_tables() -> dict[str, list[str]]:
    """Command -> the options in the tables below ``Options of `es-neardupe ...` ``."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for title, text in sections(page):
            if named := re.fullmatch(r"Options of `es-neardupe ?([a-z -]*)`", title):
                assert named[1] not in found, f"{page.name}: a second table for {named[1]!r}"
                found[named[1]] = [name for row in table(text) for name in OPTION.findall(row[0])]
    return found


# Commands and options


def test_each_command_has_its_table() -> None:
    assert sorted(option_tables()) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_option_tables_have_all_options_and_no_others(name: str) -> None:
    expected = options(COMMANDS[name]) - CONNECTION
    if name == "":
        expected |= {"--help"}
    if name == "demo":
        expected |= {"--url"}
    assert sorted(option_tables()[name]) == sorted(expected)


def test_options_of_the_connection() -> None:
    text = section("settings.md", "Options of the connection")
    assert sorted(name for row in table(text) for name in OPTION.findall(row[0])) == sorted(CONNECTION)
    connected = {name for name, command in COMMANDS.items() if options(command) >= CONNECTION}
    assert {name for name in COMMANDS if f"`{name}`" in text} == connected


def test_shared_options() -> None:
    documented = [name for row in table(section("settings.md", "Options that several commands share")) for name in row]
    known = set().union(*map(options, COMMANDS.values()))
    assert {name for cell in documented for name in OPTION.findall(cell)} <= known


@every_text
def test_options_in_running_text_exist(file: Path) -> None:
    others = {"--servers", "--docker", "--env-file"}  # of pytest and docker
    known = set().union(*map(options, COMMANDS.values())) | others | {"--help"}
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
        ways = r"`(?:es-neardupe |scripts/bench )?duplicates\b|`DuplicatesReport`"
    command = rf"{ways}|^# duplicates$|\[duplicates\]|duplicates\.md|#duplicates"
    allowed = re.compile(
        rf'near-duplicates?|\+ duplicates|"Duplicate" is said|{command}|documentPairs:duplicates',
        re.IGNORECASE | re.MULTILINE,
    )
    assert re.findall(r".*\bduplicat\w*.*", allowed.sub("", prose), re.IGNORECASE) == []


# The changelog

VERBS = {"Add", "Change", "Deprecate", "Fix", "Freeze", "Raise", "Refuse", "Remove", "Rename", "Support", "Warn"}
INDEX = re.compile(r"Index: (first scheme|compatible|re-enrich needed)")


def test_changelog() -> None:
    releases = [(title, text) for title, text in sections(ROOT / "CHANGELOG.md") if title != "Changelog"]
    assert releases
    for title, text in releases:
        assert re.fullmatch(r"\d+\.\d+\.\d+|Unreleased", title), title
        lines = [line for line in text.splitlines() if line.strip()]
        assert INDEX.match(lines[0]), f"{title} does not begin with its Index: line"
        entries = [line for line in lines[1:] if not line.startswith("  ")]
        assert entries
        assert [entry for entry in entries if not re.match(rf"- ({'|'.join(VERBS)})\b", entry)] == []


def test_changelog_has_the_version() -> None:
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert version in [title for title, _ in sections(ROOT / "CHANGELOG.md")]
