"""`bands`: the chosen bands, and the probability of a candidate; no server."""

from __future__ import annotations

import re
import shlex
from math import comb

import pytest
from bad_input import refused
from conftest import Cli
from docs_pages import DOCS, blocks


def test_figures_and_curve(cli: Cli) -> None:
    run = cli("bands", "--threshold", "0.5", "--json")
    assert (run.code, run.err) == (0, "")
    assert (run.json["bands"], run.json["rows"], run.json["key_bytes"]) == (35, 3, 280)
    assert run.json["step"] == pytest.approx((1 / 35) ** (1 / 3))
    shown = cli("bands")
    assert shown.code == 0
    assert "16 bands x 6 rows of 128 slots: 128 bytes of keys" in shown.out
    assert "probability 0.9923" in shown.out
    assert "rises most steeply near (1/16)^(1/6) = 0.6300." in shown.out
    assert "^ threshold 0.8" in shown.out


def test_weak_bands_are_said_to_be_weak(cli: Cli) -> None:
    run = cli("bands", "--bands", "4", "--rows", "8")
    assert run.code == 0
    assert "less than --detection 0.99" in run.err


def test_the_curve_of_supershingles(cli: Cli) -> None:
    run = cli("bands", "--preset", "supershingles", "--json")
    assert (run.code, run.err) == (0, "")
    assert {name: run.json[name] for name in ("threshold", "bands", "rows", "agree", "permutations", "key_bytes")} == {
        "threshold": 0.976,
        "bands": 6,
        "rows": 14,
        "agree": 2,
        "permutations": 84,
        "key_bytes": 48,
    }
    for similarity, probability in run.json["curve"]:
        shared = similarity**14
        assert probability == pytest.approx(
            sum(comb(6, k) * shared**k * (1 - shared) ** (6 - k) for k in range(2, 7)), abs=1e-12
        )
    shown = cli("bands", "--preset", "supershingles")
    for said in (
        "6 bands x 14 rows of 84 slots",
        "if 2 of their bands agree",
        "exactly 0.976",
        "(2/6)^(1/14)",
        "^ threshold 0.976",
    ):
        assert said in shown.out
    low = cli("bands", "--preset", "supershingles", "--threshold", "0.8")
    assert "exactly 0.8 similar becomes a candidate with probability 0.0258" in low.out
    assert "less than --detection 0.99" in low.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "supershingles", "--permutations", "128"], "leave out either --preset or --permutations"),
        (["--preset", "supershingles", "--agree", "1"], "has agree 2, not 1"),
        (["--preset", "default"], "'default' is not one of strict, reader, supershingles, scans"),
        (["--agree", "2"], "agree requires bands and rows"),
    ],
)
def test_wrong_presets(cli: Cli, options: list[str], message: str) -> None:
    refused(cli("bands", *options), message, code=2)


@pytest.mark.parametrize("page", ["bands", "supershingles"])
def test_what_the_pages_show_is_printed(page: str, cli: Cli) -> None:
    tried = 0
    for block in blocks(DOCS / f"{page}.md", "console"):
        line, _, output = block.removeprefix("$ ").partition("\n")
        program, *words = shlex.split(line)
        if words[0] == "bands":
            tried += 1
            run = cli(*words)
            printed = [re.sub(r"\s+", " ", one).strip() for one in (run.out + run.err).splitlines()]
            shown = [re.sub(r"\s+", " ", one).strip() for one in output.splitlines()]
            assert program == "es-neardupe"
            assert [one for one in shown if one.strip("─. ") and one not in printed] == []
    assert tried
