"""Options that would have no effect together are refused, before anything is written."""

from __future__ import annotations

import re

import pytest
from conftest import Cli

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("enrich INDEX --insecure-engine", "--insecure-engine is for --engine: give it too."),
        ("enrich INDEX --check --all", "--check and --all are given: omit one of them."),
        ("enrich INDEX --check --since day=2026", "--check and --since are given: omit one of them."),
        ("enrich INDEX --all --since day=2026", "--all and --since are given: omit one of them."),
        ("enrich INDEX --new-only --all", "--new-only and --all are given: omit one of them."),
        ("groups INDEX --suggest-keep --related --group a", "--suggest-keep is about one group, or about all"),
        ("groups INDEX --history a --related", "--history shows one group: leave out"),
        ("fold INDEX --oversample 9", "--oversample is an option of the action install."),
        ("fold INDEX remove --oversample 9", "--oversample is an option of the action install."),
        ("watch INDEX --once --every 5s", "--every is for several rounds, and --once runs one: omit one of them."),
        ("watch INDEX --once --check-every 2", "--check-every is for several rounds, and --once runs one"),
        ("watch INDEX --once --metrics-host 0.0.0.0", "--metrics-host requires --metrics-port."),
        (
            "distribution INDEX --matching information",
            "--matching is for the measures jaccard, containment, containment-longer.",
        ),
        ("distribution INDEX --measure edit --shingle 3", "--shingle is for the measures resemblance, jaccard,"),
    ],
)
def test_refused(line: str, message: str, client: Client, index_name: str, server_cli: Cli) -> None:
    NearDupe(index_name, client).init(Settings(("text",)), create=True)
    done = server_cli(*line.replace("INDEX", index_name).split())
    said = " ".join(re.sub("[─│╭╮╰╯]", "", done.err).split())
    assert (done.code, message in said) == (2, True), done.err


@pytest.mark.parametrize("line", ["watch INDEX --once --check-every 1", "watch INDEX --once --every 30s"])
def test_what_has_an_effect_or_is_the_default(line: str, client: Client, index_name: str, server_cli: Cli) -> None:
    NearDupe(index_name, client).init(Settings(("text",)), create=True)
    assert server_cli(*line.replace("INDEX", index_name).split()).code == 0
