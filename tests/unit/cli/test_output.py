"""What is shown: nothing from a document steers a terminal or is cut, and JSON is one line whatever it holds."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from unit_tools import JSON

from es_neardupe.candidates.detection import Detection, DetectionCase
from es_neardupe.cli import output
from es_neardupe.cli.messages import say_measure, warn_of_detection, warn_of_empty
from es_neardupe.cli.output import ask, print_json, print_lines, print_table, printable, say, show, warn
from es_neardupe.commands.similar.report import SimilarHit, SimilarReport
from es_neardupe.display_text import score_text, validation_message, without_passwords
from es_neardupe.errors import InputError
from es_neardupe.json_results import similar_json
from es_neardupe.records import Product

fixture_given = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

STEERING = (
    *range(0x00, 0x20),
    *range(0x7F, 0xA0),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    0x200E,
    0x200F,
    0x61C,
)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://anna:secret@host:9200", "https://anna:***@host:9200"),
        ("'https://anna:secret@host' is not valid", "'https://anna:***@host' is not valid"),
        ("https://anna:s/e:c?r#e@t@host/x", "https://anna:***@host/x"),
        ("https://anna:123@host", "https://anna:***@host"),
        ("https://:secret@host", "https://:***@host"),
        ("https:/anna:secret@host", "https:/anna:***@host"),
        ("HTTPS%3A%2f%2Fanna%3Asecret%40host", "HTTPS%3A%2f%2Fanna%3A***%40host"),
        ("https://anna:***@host", "https://anna:***@host"),
        ("https://host:9200/@anna", "https://host:9200/@anna"),
        ("https%3A%2F%2Fhost%3A80%2F%40anna", "https%3A%2F%2Fhost%3A80%2F%40anna"),
        ("https://[::1]:9200/@anna", "https://[::1]:9200/@anna"),
        ("https://anna@host", "https://anna@host"),
        ("at 12:30: mail anna:b@c", "at 12:30: mail anna:b@c"),
    ],
)
def test_passwords_in_urls_are_masked(text: str, masked: str) -> None:
    assert without_passwords(text) == masked
    assert printable(text) == masked
    assert str(InputError(text)) == masked


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[[], str]]:
    """Both consoles write into memory, as a file of UTF-8 would take it; returns what was written."""

    def start(width: int = 140, terminal: bool = False) -> Callable[[], str]:
        octets = io.BytesIO()
        stream = io.TextIOWrapper(octets, "utf-8", newline="\n")
        for name in ("results", "messages"):
            console = getattr(output, name)
            made = Console(file=stream, width=width, highlight=False, force_terminal=terminal, emoji=console._emoji)
            monkeypatch.setattr(output, name, made)

        def written() -> str:
            stream.flush()
            return octets.getvalue().decode("utf-8")

        return written

    return start


@pytest.mark.parametrize("point", STEERING)
def test_no_control_is_shown(point: int) -> None:
    assert chr(point) not in printable(f"a{chr(point)}b")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (5, "5"),
        ("a\n\t b\r\nc", "a b c"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("\x9b31m", "\ufffd31m"),
        ("a\x00b\x07", "a\ufffdb\ufffd"),
        ("user\u202eexe.txt", "user\ufffdexe.txt"),
        ("\u2067x\u2069", "\ufffdx\ufffd"),
        ("\ud800x\udfff", "\ufffdx\ufffd"),
        ("é 漢字 \U0001f600", "é 漢字 \U0001f600"),
    ],
)
def test_printable(value: object, text: str) -> None:
    assert printable(value) == text


@given(st.text())
def test_any_text_is_printable(text: str) -> None:
    made = printable(text)
    made.encode("utf-8")
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in made)
    assert not {chr(point) for point in STEERING} & set(made)
    assert printable(made) == made


MARKUP = st.text(st.sampled_from("[]\\/:abold=# \x1b\ud800\n"), max_size=20)


@given(st.sampled_from([say, warn, show]), MARKUP | st.text(max_size=20))
@fixture_given
def test_messages_are_taken_literally(shown: Any, write: Callable[[str], None], text: str) -> None:
    """Neither markup nor names of emojis, and no line break however long."""
    text += " end"
    with pytest.MonkeyPatch.context():
        written = shown(width=10)
        write(text)
        assert written() == f"{printable(text)}\n"


def test_names_that_look_like_emojis(shown: Any) -> None:
    written = shown()
    show("urn:100:warning:x")
    print_table([":id:"], [["urn:100:x"]], title="[b]:100:")
    assert written().count(":100:") == 3
    assert "urn:100:warning:x" in written()
    assert "[b]" in written()
    assert ":id:" in written()


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    name: str
    _hidden: int = 5


@dataclass(frozen=True)
class Outer:
    inner: tuple[Inner, ...]
    colour: Colour
    numbers: dict[int, float]
    maybe: Inner | None
    product: Product = Product.OPENSEARCH


@pytest.mark.parametrize(("typed", "answer"), [("y\n", True), ("no\n", False), ("\n", False), ("?\nyes\n", True)])
def test_a_question_is_answered(monkeypatch: pytest.MonkeyPatch, typed: str, answer: bool) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert ask("Delete it?") is answer


def test_a_question_that_nobody_answers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("no\n"))
    with pytest.raises(typer.Abort):
        ask("Delete it?", abort=True)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(InputError, match="add --yes"):
        ask("Delete it?")
    assert capsys.readouterr().err.endswith("Delete it? [y/N]:\n")


def test_json_of_records(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(Outer((Inner("é\n\ud800"),), Colour.RED, {3: 0.5}, None))
    assert capsys.readouterr().out == (
        '{"inner": [{"name": "\\u00e9\\n\\ud800"}], "colour": "red", "numbers": {"3": 0.5}, "maybe": null, '
        '"product": "opensearch"}\n'
    )


@given(JSON)
@fixture_given
def test_json_is_one_ascii_line(capsys: pytest.CaptureFixture[str], value: Any) -> None:
    capsys.readouterr()
    print_json({"query": value})
    written = capsys.readouterr().out
    assert written.isascii()
    assert written.endswith("\n")
    assert len(written.splitlines()) == 1
    assert json.loads(written) == {"query": value}


def test_json_of_an_iterator_is_written_while_it_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    before: list[str] = []

    def numbers() -> Iterator[dict[int, str]]:
        for number in range(3):
            before.append(capsys.readouterr().out)
            yield {number: "é"}

    print_json({"a": {"of": numbers(), "none": iter(())}, 2: [Colour.RED], "é": {}})
    text = "".join(before) + capsys.readouterr().out
    assert all(before)
    assert text == json.dumps({"a": {"of": [{n: "é"} for n in range(3)], "none": []}, 2: ["red"], "é": {}}) + "\n"


def test_json_of_similar(capsys: pytest.CaptureFixture[str]) -> None:
    """The shape that the documentation promises."""
    hit = SimilarHit("i", "1", 0.875, 12, "g", fields={"title": "One"})
    detection = Detection(0.5, 0.25, (), keys_made_for=False)
    answer = SimilarReport({"index": "i", "id": "0"}, (hit,), 3, 3, 0, detection, "resemblance", 1.0, None, ("i",))
    print_lines([similar_json(answer)])
    found = json.loads(capsys.readouterr().out)
    assert found["query"] == {"index": "i", "id": "0"}
    values = {"resemblance": 0.875, "shared_bands": 12, "group": "g", "copies": 0, "fields": {"title": "One"}}
    assert found["hits"] == [{"index": "i", "id": "1", **values}]
    assert (found["candidates"], found["detection"]) == (
        3,
        {"min": 0.5, "probability": 0.25, "cases": [], "keys_made_for": False},
    )


def cells(written: str, width: int) -> str:
    """All that stands in a table, without its lines and the spaces."""
    assert all(len(line) <= width for line in written.splitlines())
    return re.sub(r"[\s─]", "", written)


@given(st.lists(st.text(st.sampled_from("abcXYZ01[]:/"), min_size=1, max_size=300), min_size=1, max_size=4))
@fixture_given
def test_tables_are_never_cut(shown: Any, values: list[str]) -> None:
    """Every character of every value stands in the table, in its order, in whatever width."""
    for width in (40, 140):
        written = shown(width)
        print_table(["head"], [[value] for value in values])
        assert cells(written(), width) == "head" + "".join(values)


def test_columns_beside_each_other(shown: Any) -> None:
    written = shown(60)
    rows = [("Q" * (60 + k), k * 1000, k / 7, True, None, "\x1b[2Jx") for k in range(3)]
    print_table(["id", "n", "f", "b", "none", "bad"], rows, title="a title")
    text = written()
    assert "…" not in text
    assert "\x1b" not in text
    squeezed = re.sub(r"\s", "", text)
    for part in ("2,000", "0.2857", "yes", "-", "\ufffd[2J"):
        assert part in squeezed
    assert text.count("Q") == 60 + 61 + 62
    assert text.startswith("a title")


def test_empty_table(shown: Any) -> None:
    written = shown()
    print_table(["a", "b"], [])
    assert re.split(r"\s+", written().strip())[:2] == ["a", "b"]


CURVES = st.lists(st.floats(0, 1), min_size=2, max_size=30).map(
    lambda ys: [((k + 1) / len(ys), y) for k, y in enumerate(sorted(ys))]
)


@given(CURVES, st.floats(0.01, 1))
@fixture_given
def test_curve(shown: Any, points: list[tuple[float, float]], threshold: float) -> None:
    """Columns as high as the numbers, to an eighth of a line; the caret stands below the nearest similarity."""
    written = shown()
    output.plot_curve(points, threshold)
    *plot, axis, caret = written().split("\n")[:-1]
    assert len(plot) == 10
    heights = []
    for place in range(len(points)):
        column = [line.ljust(5 + 2 * len(points))[5 + 2 * place : 7 + 2 * place] for line in plot]
        assert all(cell[0] == cell[1] for cell in column)
        heights.append(sum(" ▁▂▃▄▅▆▇█".index(cell[0]) for cell in column))
    assert heights == sorted(heights)
    for height, (_, y) in zip(heights, points, strict=True):
        assert abs(height / 80 - y) <= 0.5 / 80 + 1e-9
    at = (caret.index("^") - 5) // 2
    assert abs(points[at][0] - threshold) == min(abs(s - threshold) for s, _ in points)
    assert plot[0].startswith(" 1.0")
    assert plot[5].startswith(" 0.5")
    assert axis[7:].startswith(f"{points[1][0]:.1f}")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1.0000"), (1.0, "1.0000"), (0.99998, "0.9999"), (0.99994, "0.9999"), (0.87654, "0.8765"), (0, "0.0000")],
)
def test_what_is_less_than_1_is_not_shown_as_1(value: float, text: str) -> None:
    assert score_text(value) == text


@pytest.mark.parametrize(
    ("probability", "of_cases", "warned"),
    [(0.9999, [], False), (0.9, [], True), (None, [1.0, 1.0], False), (None, [1.0, 0.9], True)],
)
def test_only_pairs_that_can_be_missed_are_warned_of(
    probability: float | None, of_cases: list[float], warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tuple(DetectionCase(f"case {number}", 0.5, value) for number, value in enumerate(of_cases))
    warn_of_detection(Detection(0.8, probability, cases, keys_made_for=False))
    said = capsys.readouterr().err
    assert ("Results are incomplete" in said) == warned
    assert ("case 1" in said) == (warned and bool(cases))
    assert "case 0" not in said


@pytest.mark.parametrize(
    ("label", "given", "said"), [("jaccard", "S_J", True), ("jaccard", None, False), ("bag", "bag", False)]
)
def test_the_other_measure_of_the_name_is_explained_to_those_who_name_it(
    label: str, given: str | None, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """The preset short uses jaccard too."""
    say_measure(label, given=given)
    assert ("is called resemblance" in capsys.readouterr().err) == said


def test_what_the_keys_were_made_for_is_not_incomplete(capsys: pytest.CaptureFixture[str]) -> None:
    """A preset was chosen with its probability, which is shown and no reason for a warning."""
    warn_of_detection(Detection(0.25, 0.716, (), keys_made_for=True))
    shown = "Pairs exactly 0.25 similar become candidates with probability 0.716, more similar ones more often.\n"
    assert capsys.readouterr().err == shown
    warn_of_detection(Detection(0.71, None, (DetectionCase("one passage", 0.5, 0.9),), keys_made_for=True))
    shown = "Pairs that only just reach 0.71 by this measure become candidates with probability 0.900 (one passage).\n"
    assert capsys.readouterr().err == shown


def test_words_of_the_validator_are_not_shown() -> None:
    assert validation_message({"msg": "Value error, nothing is in it"}) == "nothing is in it"


@pytest.mark.parametrize(("empty", "warned"), [(1, False), (2, True)])
def test_a_warning_if_most_documents_have_no_text(empty: int, warned: bool, capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_empty("news", {"signed": 1, "empty": empty})
    assert ("no text" in capsys.readouterr().err) == warned


def test_json_has_no_control_character() -> None:
    assert output.as_json_text("a\x7f\x1b\x00") == '"a\\u007f\\u001b\\u0000"'
