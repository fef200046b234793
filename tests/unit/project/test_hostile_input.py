"""Hostile names, values, files and requests: refused in one clean line, or taken as what they are."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import unquote

import pytest
from conftest import Cli
from hostile import Page, check_json, check_shown
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe import Settings
from es_neardupe.cli.output import as_json_text
from es_neardupe.display_text import shown
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.folders import check_file
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name
from es_neardupe.index.storage.sidecar.indices import sidecar_name
from es_neardupe.index.target import IndexTarget, check_name
from es_neardupe.readers import files as input_files
from es_neardupe.readers import streams as input_streams
from es_neardupe.server.client import path

NAMES = ["../_cluster/settings", "a/b", "a?x", "a#x", "_all", "a,_all", "-x", "<log-{now/d}>", "a,,b", "", "..", "a\n"]


@pytest.mark.parametrize("name", [*NAMES, "a,..", "\x1b[31m", "+a", "a b"])
def test_names_that_leave_the_path(name: str) -> None:
    with pytest.raises(SettingsError):
        check_name(name)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_path_keeps_its_parts(part: str) -> None:
    """Whatever an id or a name holds, it is one step of the path, also for who decodes it once and walks it."""
    made = path("index", "_doc", part)
    assert made.isascii()
    assert made.split("/")[1:3] == ["index", "_doc"]
    assert made.count("/") == 3
    assert not set("?#\\ \r\n") & set(made)
    last = made.split("/")[3]
    assert unquote(last) == part
    assert last not in (".", "..")


_OTHERS = [
    ".日",
    "über",
    "ünder",
    "новости",
    "日本",
    "本日",
    "ü_x",
    "日-x",
    "é+x",
    "é" * 127,
    "n" * 255,
    "n" * 254 + "m",
]


@pytest.mark.parametrize("write", [lambda name: name, lambda name: f"{name[:120]}-000001"])
def test_names_of_hidden_indices_are_valid(write: Callable[[str], str]) -> None:
    """For each name that an index can have; also for the families of such names."""
    others = list(dict.fromkeys(map(write, _OTHERS)))
    names = [sidecar_name(one, "neardupe") for one in others]
    for one in others:
        for indices in ((one,), ("a", "b")):
            target = SimpleNamespace(indices=indices, name=one, settings=Settings(("t",)), rollover_alias=None)
            names += [hidden_index_name(cast("IndexTarget", target), kind) for kind in HiddenIndex]
    assert len(set(names)) == len(others) * (1 + 2 * len(HiddenIndex))
    assert [name for name in names if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,254}", name)] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("\x1b]0;x\x07\u202e",),
        ("stats", "a", "\x1b[2J"),
        ("stats", "a", "--\x9b31m"),
        ("bands", "--threshold", "\x1b[2J\u2066"),
        ("watch", "a", "--every", "\x1b[2J"),
        ("stats", "\x1b[2J\u202e[red]"),
        ("enrich", "a", "--query", "@/\x1b[2J"),
        ("enrich", "a", "--since", "\x1b[2J"),
        ("compare", "\x1b[2J", "\u202e"),
        ("duplicates", "a", "--request", "\x1b[2J"),
        ("similar", "a", "--file", "\x1b[2J", "--url", "http://\x1b[2J:1"),
    ],
)
def test_wrong_usage_is_repeated_without_harm(arguments: tuple[str, ...], cli: Cli, monkeypatch: Any) -> None:
    monkeypatch.setenv("ES_NEARDUPE_URL", "http://127.0.0.1:1")
    done = cli(*arguments)
    assert done.code in (1, 2)
    assert "Traceback" not in done.err
    check_shown(done.out + done.err)


def test_json_has_no_control_and_no_number_that_is_none() -> None:
    value = {"a\x7f\u202e": [float("inf"), float("nan"), 1e308, "\x7f\x9b\x1b"]}
    (found,) = check_json(as_json_text(value))
    assert found == {"a\x7f\u202e": [None, None, 1e308, "\x7f\x9b\x1b"]}


def test_pages_show_what_steers_text() -> None:
    assert shown("a\u202eb\u2066c\u200fd\x9be\x7f") == "a\ufffdb\ufffdc\ufffdd\ufffde\ufffd"
    page = Page("<p onclick=x>a</p>")
    with pytest.raises(AssertionError):
        page.check()


def usage(err: str) -> str:
    """The words of an error of usage, which is in a box."""
    return " ".join(err.replace("│", " ").split())


def test_what_is_read_is_not_written_over(tmp_path: Path, cli: Cli) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"one two three four five six {name}")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    for target in ("a", "b", "link", "./../" + tmp_path.name + "/a"):
        done = cli("compare", str(tmp_path / "a"), str(tmp_path / "b"), "--html", str(tmp_path / target))
        assert (done.code, "is an input file" in usage(done.err)) == (2, True)
    with pytest.raises(InputError, match="cannot be written: "):
        check_file(Path("/proc/a"))  # also for root
    assert (tmp_path / "a").read_text().endswith("six a")


def test_files_of_folders_and_queries_are_not_written_over(tmp_path: Path, cli: Cli) -> None:
    for name in ("a.jsonl", "b.jsonl", "query"):
        (tmp_path / name).write_text("{}\n")
    a, b, query = (str(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "query"))
    for line in (
        ["load", "i", str(tmp_path), "--failures", b],
        ["load", "i", str(tmp_path), "--on-match", "pass", "--report", b],
        ["load", "i", a, "--summary", a],
        ["load", "i", a, "--log-file", a],
        ["similar", "i", "--id", "1", "--query", f"@{query}", "--output", query],
        ["demo", "--file", a, "--bulk", a],
    ):
        done = cli(*line)
        assert (done.code, "is an input file" in usage(done.err)) == (2, True), line
    assert Path(a).read_text() == Path(b).read_text() == Path(query).read_text() == "{}\n"


def test_two_results_are_not_written_to_one_file(tmp_path: Path, cli: Cli) -> None:
    new = str(tmp_path / "new.csv")
    for line in (
        ["load", "i", "a.jsonl", "--on-match", "skip", "--report", new, "--failures", new],
        ["groups", "i", "--suggest-keep", "--bulk", new, "--output", str(tmp_path / "." / "new.csv")],
        ["pairs", "i", "--output", new, "--summary", new],
        ["duplicates", "i", "--request", "r", "--html", new, "--output", new],
    ):
        done = cli(*line)
        assert (done.code, "Two results would be written to" in usage(done.err)) == (2, True), line


def test_lines_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that unpacks to a huge line is read in bounded memory: it is a problem, the next one is not."""
    for module in (input_streams, input_files):
        monkeypatch.setattr(module, "MAX_EXPANDED", 1000)
    good = json.dumps({"id": "a", "text": "x"}).encode()
    for name, packed in (("a.jsonl", bytes), ("a.jsonl.gz", gzip.compress)):
        file = tmp_path / name
        file.write_bytes(packed(b'{"t": "' + b"x" * 5_000_000 + b'"}\n' + good + b"\n" + b"y" * 2000))
        bad, fine, last = input_files.read_records([str(file)], text_field="text")
        assert isinstance(fine, input_files.FileRecord)
        assert [one.place.rpartition(":")[2] for one in (bad, fine, last)] == ["1", "2", "3"]
        assert isinstance(bad, input_files.Problem)
        assert "longer than" in bad.why
        with pytest.raises(InputError, match="longer than"):
            input_files.read_text_file(str(file))
        with pytest.raises(InputError, match="longer than"):
            list(input_files.read_lines(str(file)))
    file = tmp_path / "a.csv"
    file.write_bytes(b"id,text\n" + b"x" * 3000 + b'\nb,"' + b"y\n" * 2000 + b'"\n')
    limit = csv.field_size_limit()
    found = list(input_files.read_records([str(file)], text_field="text"))
    assert csv.field_size_limit() == limit
    assert all(isinstance(one, input_files.Problem) for one in found[:1])
