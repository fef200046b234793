"""Every command with the options that show most, so that a test can run them all and none is missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from typer.main import get_command

from es_neardupe.cli.app import app

NOT_RUN = {"demo", "help", "node start", "node stop", "node status", "mcp", "serve"}
"""Commands that start and stop servers of their own, or only explain, and read no existing index. ``serve`` runs until
it is stopped: its own tests read an index of hostile documents by it."""

LOOKING: Mapping[str, list[list[str]]] = {
    "stats": [["INDEX", "--buckets", "10", "--disk-usage"]],
    "doctor": [["INDEX"]],
    "fold": [["INDEX"]],
    "pipeline": [["INDEX"]],
    "groups": [["INDEX"], ["INDEX", "--suggest-keep"], ["INDEX", "--group", "GROUP"], ["INDEX", "--history", "GROUP"]],
    "pairs": [["INDEX"]],
    "documents": [["INDEX", "--by", "url"]],
    "similar": [["INDEX", "--id", "ID", "--min", "0.1"], ["INDEX", "--text", "TEXT", "--min", "0.1"]],
    "contained": [["INDEX", "--id", "ID", "--min", "0.1"], ["INDEX", "--text", "TEXT", "--min", "0.1"]],
    "search": [
        ["INDEX", "*", "--field", "NAME", "--expand"],
        ["INDEX", "*", "--field", "NAME", "--show-request"],
        ["INDEX", "--dsl", "DSL", "--expand"],
    ],
    "moved": [["INDEX", "ADDRESS"], ["INDEX", "--gone", "ADDRESSES"]],
    "compare": [["INDEX", "ID", "ID2"], ["INDEX", "ID", "ID2", "--html", "OUT"], ["FILE", "FILE2"]],
    "distribution": [["INDEX"]],
    "what-if": [["INDEX", "--min", "0.5,0.8"]],
    "audit": [["INDEX"]],
    "duplicates": [
        ["INDEX", "--request", "REQUEST", "--explain"],
        ["INDEX", "--request", "REQUEST", "--stage", "similarPairs", "--pairs-only"],
        ["INDEX", "--request", "REQUEST", "--stage", "similarPairs", "--html", "OUT"],
    ],
    "bands": [[]],
    "shingles": [["INDEX", "ID"], ["FILE", "--permutations", "8", "--bands", "2", "--rows", "4"]],
    "version": [[], ["--no-server"]],
}
"""Command -> the arguments of each call. The test replaces the words in capitals."""

WRITING: Mapping[str, list[list[str]]] = {
    "init": [["INDEX", "--field", "NAME", "--prefix", "other", "--dry-run"]],
    "load": [["INDEX", "LINES"]],
    "enrich": [["INDEX"], ["INDEX", "--all"]],
    "group": [["INDEX", "--evidence"], ["INDEX", "--check"], ["INDEX", "--rebuild"]],
    "watch": [["INDEX", "--once"]],
    "migrate": [["INDEX", "--threshold", "0.4", "--evidence", "--yes"]],
    "clean": [["INDEX", "--yes"]],
}
"""The same for commands that write, in the order of their calls."""


def names() -> list[str]:
    """All commands; those of groups with the name of the group first."""
    return list(_names(get_command(app), ""))


def _names(command: Any, name: str) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield name
        return
    for inner, one in command.commands.items():
        yield from _names(one, f"{name} {inner}".strip())


def command_lines(table: Mapping[str, list[list[str]]], values: Mapping[str, str]) -> Iterator[list[str]]:
    """Each call of the table, with values in place of the words in capitals."""
    for name, calls in table.items():
        for call in calls:
            yield [*name.split(), *(values.get(word, word) for word in call)]
