"""Comparison of two texts: measures, passages in the original texts, changes, rows, and the command with files."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import Cli
from hypothesis import given
from hypothesis import strategies as st
from server_tools import one_line
from unit_tools import in_seconds, words

from es_neardupe.errors import InputError, SettingsError
from es_neardupe.keys.text import tokenize
from es_neardupe.options import Matching, MeasureName
from es_neardupe.pages.panes import segments, visible_changes
from es_neardupe.pages.terminal_rows import rows
from es_neardupe.similarity.comparison import CompareReport, compare_texts
from es_neardupe.similarity.differences import changes
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import Measure

WORDS = ["a", "Ä", "e\u0301", "𝔘ni", "東", "x1", "don't", "İ", "STRASSE", "ﬁn", "日本"]
GAPS = [" ", "\n", "\r\n", " 😀 ", "-", "\t", ", ", "\0", "\ud800", "👩‍👩‍👧 "]
TEXT = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=30).map(
    lambda pairs: "".join(word + gap for word, gap in pairs)
)
every_matching = pytest.mark.parametrize("matching", list(Matching))


def seed(a: Sequence[str], b: Sequence[str], shingle: int = 5) -> CompareReport:
    return compare_texts(" ".join(a), " ".join(b), shingle=shingle)


# The passages, in characters


@given(TEXT, TEXT, st.integers(1, 6))
def test_passages_in_characters(a: str, b: str, w: int) -> None:
    """The ranges of a block have the same words in both original texts, and their number is right."""
    found = compare_texts(a, b, shingle=w)
    for matched in found.matchings.values():
        for block in matched.blocks:
            here, there = a[slice(*block.a)], b[slice(*block.b)]
            assert tokenize(here) == tokenize(there)
            assert len(tokenize(here)) == block.words
            assert block.words >= min(w, found.a.words)
        assert matched.chunks == len(matched.blocks)
    literal = found.matchings["literal"]
    assert sum(block.words for block in literal.blocks) == literal.common


@pytest.mark.parametrize(
    "text", ["Grüße aus 東京 😀, e\u0301te\u0301!\r\nZweite Zeile 👩‍👩‍👧 hier", "one\u2028two\x85three four five"]
)
def test_a_copy_is_one_passage_without_its_edges(text: str) -> None:
    found = compare_texts(f"…{text}…", text)
    (block,) = found.matchings["literal"].blocks
    assert f"…{text}…"[slice(*block.a)] == text[slice(*block.b)] == text
    assert found.value(MeasureName.RESEMBLANCE) == 1


def test_places_are_exact_in_a_worked_example() -> None:
    a = "Ah 😀 — we  met in\r\nZürich last May. Bye"
    b = "Yes: WE MET IN ZÜRICH, LAST MAY"
    (block,) = compare_texts(a, b).matchings["literal"].blocks
    assert (a[slice(*block.a)], b[slice(*block.b)]) == ("we  met in\r\nZürich last May", "WE MET IN ZÜRICH, LAST MAY")
    assert (block.a, block.b, block.words) == ((7, 34), (5, 31), 6)


# Measures


def test_measures_are_those_of_the_commands() -> None:
    a, b = words(0, 60), f"{words(0, 30)} other {words(31, 40)}"
    weights = Weights(3, np.empty(0, np.uint64), np.empty(0, np.int64))
    found = compare_texts(a, b, weights=weights)
    assert found.left_out == {}
    assert {one.measure for one in found.measures} == set(MeasureName)
    for one in found.measures:
        chosen = weights if one.measure is MeasureName.WEIGHTED else None
        measure = Measure(one.measure, one.matching or Matching.LITERAL, weights=chosen)
        assert one.value == measure.score(*measure.prepare([a, b])), one.measure
        if one.filled and "=" not in one.filled:
            assert eval(one.filled) == pytest.approx(one.value), one.filled


def test_the_relation_is_filled_in_where_it_holds() -> None:
    """The first worked example: 100 and 97 words, two passages with 85 words, one word between them changed."""
    a = f"{words(0, 40)} here {words(40, 45)} {words(0, 14, 'p')}".split()
    b = f"{words(0, 40)} there {words(40, 45)} {words(0, 11, 'q')}".split()
    found = seed(a, b)
    resemblance = found.measures[0]
    assert resemblance.formula.endswith("(C - n(w-1)) / (L + S - C + (n-2)(w-1))")
    assert resemblance.filled == "77 / 112 = (85 - 2*4) / (100 + 97 - 85 + 0*4)"
    assert [
        f"{found.value(name, Matching.LITERAL):.0%}" for name in (MeasureName.CONTAINMENT_LONGER, MeasureName.JACCARD)
    ] == ["85%", "76%"]
    assert f"{found.value(MeasureName.RESEMBLANCE):.0%}" == "69%"


def test_symbols_of_the_measures(cli: Cli, tmp_path: Path) -> None:
    """S_R, S_J and S_L are beside the names, in each matching, in the table and in JSON."""
    for name, text in (("a", words(0, 40)), ("b", words(3, 40))):
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in "ab"]
    scores = cli("compare", *files, "--json").json["measures"]
    symbols: dict[tuple[str, str | None], str] = {
        **{("jaccard", matching.value): "S_J" for matching in Matching},
        **{("containment-longer", matching.value): "S_L" for matching in Matching},
    }
    assert {(one["measure"], one["matching"]): one["symbol"] for one in scores if one["symbol"]} == {
        ("resemblance", None): "S_R",
        **symbols,
    }
    shown = cli("compare", *files).out
    for name, count in (("resemblance (S_R)", 1), ("jaccard (S_J)", 2), ("containment-longer (S_L)", 2)):
        assert shown.count(name) == count
    assert max(map(len, shown.splitlines())) <= 140


def test_the_relation_is_left_out_where_it_does_not_hold() -> None:
    """16 words, pasted twice: resemblance 75 %."""
    found = compare_texts(words(0, 16), f"{words(0, 16)} {words(0, 16)}")
    assert (found.measures[0].value, found.measures[0].filled) == (0.75, "12 / 16")
    assert found.value(MeasureName.JACCARD, Matching.LITERAL) == 0.5
    assert found.value(MeasureName.JACCARD, Matching.INFORMATION) == 1


@pytest.mark.parametrize(("a", "b", "wanted"), [("", "", 1.0), ("", "word", 0.0), ("!?", " \n", 1.0)])
def test_texts_without_words(a: str, b: str, wanted: float) -> None:
    found = compare_texts(a, b)
    assert {one.value for one in found.measures} == {wanted}
    assert all(one.interval is None for one in found.measures)
    assert found.facts == ()


def test_what_is_refused() -> None:
    with pytest.raises(SettingsError, match="1 word or more, not 0"):
        compare_texts("a", "b", shingle=0)
    with pytest.raises(
        InputError, match=r"big is too large to compare: 10,000,001 characters, the maximum is 10,000,000\."
    ):
        compare_texts("x" * 10_000_001, "b", names=("big", "small"))


# Changes


def test_words_between_passages() -> None:
    a = tokenize("the quick brown fox jumps over the lazy dog and runs into the deep dark wood")
    b = tokenize("the quick brown fox jumps over one sleepy dog and runs into the deep dark green wood")
    compared = seed(a, b, shingle=3)
    found = [(a[slice(*one.a)], b[slice(*one.b)]) for one in compared.changes]
    assert found == [(["the", "lazy"], ["one", "sleepy"]), ([], ["green"])]
    assert [(one.words_a, one.words_b) for one in compared.differences] == [("the lazy", "one sleepy"), ("", "green")]


def test_words_in_common_inside_a_gap_are_no_change() -> None:
    a = [*words(0, 10).split(), "sold", "in", "Rome", *words(10, 10).split()]
    b = [*words(0, 10).split(), "bought", "in", "Oslo", *words(10, 10).split()]
    assert [(a[slice(*one.a)], b[slice(*one.b)]) for one in seed(a, b).changes] == [
        (["sold"], ["bought"]),
        (["Rome"], ["Oslo"]),
    ]


def test_moved_passages_are_no_change() -> None:
    one, two = words(0, 10), words(0, 10, "v")
    assert compare_texts(f"{one} {two}", f"{two} {one}").changes == ()
    found = compare_texts(f"{one} extra {two}", f"{two} {one}")
    assert [one.a for one in found.changes] == [(10, 11)]


@given(TEXT, TEXT, st.integers(1, 5))
def test_changes_and_passages_never_overlap(a: str, b: str, w: int) -> None:
    """Every word is in a passage, in a change, or next to a change and equal; changes are in order."""
    found = compare_texts(a, b, shingle=w)
    blocks = found.matchings["literal"].alignment.blocks.tolist()
    for side in (0, 1):
        used = [0] * found.sides[side].words
        for block in blocks:
            for k in range(block[side], block[side] + block[2]):
                used[k] += 1
        for change in found.changes:
            for k in range(*change[side]):
                used[k] += 1
        assert max(used, default=0) <= 1
        left = [found.hashes[side][k] for k, times in enumerate(used) if not times]
        assert set(left) <= set(found.hashes[1 - side])
    assert list(found.changes) == sorted(found.changes)
    assert list(found.changes) == changes(*found.hashes, found.matchings["literal"].alignment)


# Segments and rows


@every_matching
@given(a=TEXT, b=TEXT, w=st.integers(1, 5))
def test_segments_are_the_whole_text(matching: Matching, a: str, b: str, w: int) -> None:
    found = compare_texts(a, b, shingle=w)
    seen = visible_changes(found, matching)
    for side, text in enumerate((a, b)):
        cut = list(segments(found, matching, seen, side))
        assert "".join(text[one.start : one.end] for one in cut) == text
        assert all(one.end == other.start for one, other in pairwise(cut))
        assert not any(one.blocks and one.change for one in cut)
        marked = {k for one in cut for k in one.blocks}
        assert marked == set(range(1, found.matchings[matching].chunks + 1))
        assert {one.change for one in cut} - {None} == set(seen)
        assert len(cut) <= 2 * (len(marked) + sum(len(parts[side]) for parts in seen.values())) + 1


def test_a_repeat_is_no_difference_for_information() -> None:
    found = compare_texts(words(0, 16), f"{words(0, 16)} {words(0, 16)}")
    assert len(visible_changes(found, Matching.LITERAL)) == 1
    assert visible_changes(found, Matching.INFORMATION) == {}


@every_matching
@given(a=TEXT, b=TEXT, context=st.integers(0, 8))
def test_rows_show_or_count_every_word(matching: Matching, a: str, b: str, context: int) -> None:
    found = compare_texts(a, b, shingle=2)
    made = list(rows(found, matching, context))
    for side, text in ((0, a), (1, b)):
        parts = [part for row in made for part in (row.a, row.b)[side]]
        shown = sum(len(tokenize(part.text)) for part in parts)
        assert shown + sum(part.left_out for part in parts) == found.sides[side].words
        if not any(part.left_out for part in parts):
            assert "".join(part.text for part in parts) == text
    wide = [part.text for row in rows(found, matching, 1000) for part in row.a]
    assert "".join(wide) == a


@given(st.permutations(range(6)), st.lists(st.integers(5, 9), min_size=6, max_size=6))
def test_rows_are_in_step_with_as_many_words_as_can_be(order: Sequence[int], sizes: Sequence[int]) -> None:
    """Moved passages: those in the same order in both texts, with the most words together, are side by side."""
    passages = [words(0, size, f"p{number}_") for number, size in enumerate(sizes)]
    found = compare_texts(" ".join(passages), " ".join(passages[k] for k in order))
    chains = (one for n in range(1, 7) for one in combinations(range(6), n))
    best = max(sum(sizes[k] for k in one) for one in chains if [k for k in order if k in one] == list(one))
    beside = 0
    for row in rows(found, Matching.LITERAL, 1000):
        here, there = (set(tokenize("".join(part.text for part in parts))) for parts in (row.a, row.b))
        beside += len(here & there)
    assert beside >= best


def test_context() -> None:
    a = words(0, 200)
    b = a.replace("w100 ", "changed ")
    made = list(rows(compare_texts(a, b), Matching.LITERAL, 7))
    assert [part.left_out for row in made for part in row.a if part.left_out] == [93, 92]
    assert sum(row.changes for row in made) == 1
    assert "w93 w94 w95 w96 w97 w98 w99 w100 w101 w102 w103 w104 w105 w106 w107 " in "".join(
        part.text for row in made for part in row.a
    )


# The command on files


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    texts = [words(0, 60), words(0, 60).replace("w30 ", "not 4,000 ")]
    names = [str(tmp_path / name) for name in ("old.txt", "new.txt")]
    for name, text in zip(names, texts, strict=True):
        Path(name).write_text(text, "utf-8")
    return names


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens at this URL: connecting fails."""
    monkeypatch.setenv("ES_NEARDUPE_URL", "http://127.0.0.1:9")


def test_two_files_need_no_server(files: list[str], cli: Cli) -> None:
    done = cli("compare", *files, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["a"] == {
        "name": files[0],
        "characters": len(words(0, 60)),
        "words": 60,
        "as_prepared": False,
        "fields": {},
    }
    assert [fact["kinds"] for fact in done.json["facts"]] == [["number", "code", "negation"]]
    assert list(done.json["matchings"]) == ["literal", "information"]
    text = Path(files[0]).read_text("utf-8")
    blocks = done.json["matchings"]["literal"]["blocks"]
    assert [tokenize(text[slice(*block["a"])]) for block in blocks] == [words(0, 30).split(), words(31, 29).split()]
    assert done.json["left_out"] == {"weighted": "it needs the frequencies of shingles in an index"}
    assert cli("compare", "index", "1", "2").code == 1


def test_terminal(files: list[str], cli: Cli) -> None:
    done = cli("compare", *files)
    assert done.code == 0
    for measure in MeasureName:
        assert measure.value in done.out
    assert "Same form, different facts: 1 place " in done.out
    assert "{w30}" in done.out
    assert "{not 4,000}" in done.out
    assert "[1 w0 w1" in done.out
    assert "w29]" in done.out.replace("\n", " ")
    few = cli("compare", *files, "--context", "3", "--matching", "information").out
    assert "... 27 words ..." in few
    assert "{w30}" in few


@pytest.mark.parametrize(("width", "rows_of_both"), [(140, True), (60, False)])
def test_width(files: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int, rows_of_both: bool) -> None:
    monkeypatch.setattr("es_neardupe.cli.commands.compare.results._width", width)
    lines = cli("compare", *files, "--context", "3").out.splitlines()
    both = [line for line in lines if "{w30}" in line and "{not 4,000}" in line]
    assert bool(both) is rows_of_both
    assert all(len(line) <= width for line in lines if "w29" in line)


def test_colours(files: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("es_neardupe.cli.commands.compare.results._force_terminal", True)
    monkeypatch.setattr("es_neardupe.cli.commands.compare.results._color_system", 1)
    cyan = "\x1b[36m"
    assert cyan in cli("compare", *files).out
    assert cyan not in cli("compare", *files, "--no-color").out
    assert cyan in cli("compare", *files).out


@pytest.mark.parametrize("shingle", ["2", "4c"])
def test_passages_apart_from_shingles(shingle: str, files: list[str], cli: Cli) -> None:
    """Passages are those of `--shingle 31`, and all that counts shingles is that of the shingles."""
    found, usual, wide = (
        cli("compare", *files, *given, "--json").json
        for given in (("--shingle", shingle, "--passage", "31"), ("--shingle", shingle), ("--shingle", "31"))
    )
    assert (found["passage"], found["shingle"], found["unit"]) == (31, usual["shingle"], usual["unit"])
    assert found["matchings"] == wide["matchings"] != usual["matchings"]
    values = [
        {(one["measure"], one["matching"]): one["value"] for one in run["measures"]} for run in (found, usual, wide)
    ]
    for key, value in values[0].items():
        assert value == values[2 if key[1] else 1][key]
    shown = cli("compare", *files, "--shingle", shingle, "--passage", "31")
    assert "Passages of 31 words or more" in shown.out
    assert cli("compare", *files, "--passage", "0").code == 2


def test_shingle(files: list[str], cli: Cli) -> None:
    found = cli("compare", *files, "--shingle", "31", "--json").json
    assert (found["shingle"], found["matchings"]["literal"]["chunks"]) == (31, 0)
    assert cli("compare", *files, "--shingle", "0").code == 2


def test_standard_input(files: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(Path(files[1]).read_bytes())))
    assert cli("compare", files[0], "-", "--json").json["b"]["words"] == 62
    assert "Only one text can come from stdin" in one_line(cli("compare", "-", "-").err)


def test_wrong_usage(files: list[str], cli: Cli, tmp_path: Path) -> None:
    for wrong in (
        files[:1],
        [*files, "c", "d"],
        [files[0], "--file", files[1]],
        [*files, "--weighted"],
        [*files, "--matching", "loose"],
        [*files, "--context", "-1"],
    ):
        done = cli("compare", *wrong)
        assert (done.code, done.out) == (2, ""), wrong
    assert "File 'news' does not exist." in one_line(cli("compare", "news", "1001").err)
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    assert "is not UTF-8" in one_line(cli("compare", files[0], str(tmp_path / "latin")).err)
    assert "cannot be read" in one_line(cli("compare", files[0], str(tmp_path)).err)


def test_a_text_without_words_is_told(files: list[str], cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(" … \n", "utf-8")
    done = cli("compare", files[0], str(tmp_path / "empty"))
    assert done.code == 0
    assert "has no words: it is empty." in done.err


def test_control_characters_do_not_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    for name, text in (("a", "\x1b[31mred \u202eone two three four five"), ("b", "one two three four five\x07 [bold]")):
        (tmp_path / name).write_text(text, "utf-8")
    done = cli("compare", str(tmp_path / "a"), str(tmp_path / "b"))
    assert not set("\x1b\x07\u202e") & set(done.out)
    assert "{bold}" in done.out


@pytest.mark.parametrize("times", [250_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_one_word_many_times(times: int, cli: Cli, tmp_path: Path) -> None:
    """In seconds; page and terminal show the beginning and say so."""
    names = [str(tmp_path / name) for name in "ab"]
    fewer = times * 9 // 10
    for name, number in zip(names, (times, fewer), strict=True):
        Path(name).write_text("word " * number, "utf-8")
    with in_seconds(20):
        shown = cli("compare", *names)
        page = cli("compare", *names, "--html", str(tmp_path / "page.html"))
    assert len(shown.out) < 20_000
    assert f"... {fewer - 30:,} words ..." in shown.out.replace("\n", " ")
    assert f"{times - fewer - 120:,} words" in " ".join(shown.out.split())
    assert "Omitted: edit, because the texts are too long" in shown.out
    assert page.err.count("The page shows the first 1,000,000 of") == 2
    assert (tmp_path / "page.html").stat().st_size < 6_000_000


def test_many_differences_are_cut_and_counted(cli: Cli, tmp_path: Path) -> None:
    rng = random.Random(3)
    base = [f"w{rng.randrange(10**6)}" for _ in range(9000)]
    other = [f"other{k}" if k % 30 == 0 else word for k, word in enumerate(base)]
    for name, text in (("a", base), ("b", other)):
        (tmp_path / name).write_text(" ".join(text), "utf-8")
    done = cli("compare", str(tmp_path / "a"), str(tmp_path / "b"), "--context", "2")
    left = int(done.err.split(" more differences are not shown")[0].replace(",", ""))
    marks = sum(f"{{w{word[1:]}}}" in done.out for word in base[::30])
    assert marks + left == 300
    everything: Any = json.loads(cli("compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json").out)
    assert everything["matchings"]["literal"]["chunks"] == 300
