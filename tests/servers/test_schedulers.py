"""The examples of docs/schedulers.md: each block is valid, and its commands, run in their order, do a nightly run."""

from __future__ import annotations

import ast
import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Cli
from docs_pages import DOCS, blocks, sections
from server_tools import family, make_index, ours, put

from es_neardupe import NearDupe
from es_neardupe.server.client import Client

PAGE = DOCS / "schedulers.md"
SCHEDULERS = ["cron", "systemd", "Airflow", "Dagster", "Prefect", "Argo Workflows"]
_COMMAND = re.compile(r"(?:/opt/es-neardupe/bin/)?es-neardupe ((?:enrich|group) news[^\"'&\n,]*)")
_NUMBER = re.compile(r"\{number\}|\{\{item\}\}")


def commands(scheduler: str) -> list[list[str]]:
    """The words after ``es-neardupe`` in an example, once for each slice."""
    (text,) = (text for title, text in sections(PAGE) if title == scheduler)
    found: list[list[str]] = []
    for words in _COMMAND.findall(text):
        numbers = range(1, 5) if _NUMBER.search(words) else [0]
        found += [shlex.split(_NUMBER.sub(str(number), words)) for number in numbers]
    return found


def test_each_example_has_its_commands() -> None:
    assert [title for title, _ in sections(PAGE) if title != "Schedulers"] == SCHEDULERS
    for scheduler in SCHEDULERS:
        found = commands(scheduler)
        sliced = [words[3] for words in found if "--slice" in words]
        assert sliced == ([] if scheduler in ("cron", "systemd") else ["1/4", "2/4", "3/4", "4/4"])
        assert [words[0] for words in found if "--slice" not in words] == ["enrich", "group"]


@pytest.mark.either("scheduler")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_commands_of_each_example(
    client: Client, index_name: str, server_cli: Cli, tmp_path: Path, scheduler: str
) -> None:
    make_index(client, index_name)
    put(client, index_name, {f"d{n}": {"text": text} for n, text in enumerate(family("nightly", 6))})
    server_cli("init", index_name, "--field", "text")
    for words in commands(scheduler):
        here = [index_name if one == "news" else one.replace("/var/lib/es-neardupe", str(tmp_path)) for one in words]
        here = [one.replace("~", str(tmp_path)) for one in here]
        assert server_cli(*here).code == 0
    assert len({fields["group"] for fields in ours(client, index_name).values()}) == 1
    assert NearDupe(index_name, client).stats().groups.count == 1


def test_python_can_be_compiled() -> None:
    python = blocks(PAGE, "python")
    assert len(python) == 3
    for block in python:
        ast.parse(block)


def test_the_workflow_of_argo() -> None:
    """Each step has a template, each parameter is used."""
    (block,) = blocks(PAGE, "yaml")
    spec: dict[str, Any] = yaml.safe_load(block)["spec"]["workflowSpec"]
    templates = {one["name"]: one for one in spec["templates"]}
    steps = [step for group in templates[spec["entrypoint"]]["steps"] for step in group]
    assert {step["template"] for step in steps} == set(templates) - {spec["entrypoint"]}
    for step in steps:
        wanted = [one["name"] for one in templates[step["template"]]["inputs"]["parameters"]]
        assert [one["name"] for one in step["arguments"]["parameters"]] == wanted
    used = set(re.findall(r"\{\{inputs\.parameters\.(\w+)\}\}", block))
    assert used == {one["name"] for one in templates["run"]["inputs"]["parameters"]}


def test_the_line_of_cron() -> None:
    (block,) = blocks(PAGE, "text")
    (line,) = block.splitlines()
    assert re.match(r"0 3 \* \* \* ", line)
    assert "%" not in line  # a line break, for cron
    subprocess.run(["sh", "-n", "-c", line.split(" ", 5)[5]], check=True)


def test_the_units_of_systemd(tmp_path: Path) -> None:
    units = blocks(PAGE, "ini")
    for unit in units:
        name = Path(unit.splitlines()[0].removeprefix("# ")).name
        # Verified without the program, which is elsewhere in tests.
        (tmp_path / name).write_text(unit.replace("/opt/es-neardupe/bin/es-neardupe", "/bin/true"))
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read_string(unit)
        assert set(parser.sections()) <= {"Unit", "Service", "Timer", "Install"}
    assert len(list(tmp_path.iterdir())) == 2
    if shutil.which("systemd-analyze"):
        files = sorted(map(str, tmp_path.iterdir()))
        done = subprocess.run(["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False)
        ours_only = [line for line in done.stderr.splitlines() if "es-neardupe" in line]
        assert (done.returncode, ours_only) == (0, [])
