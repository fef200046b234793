"""The page of a comparison as a file: self-contained, escaped, bounded in size. A browser tests its behaviour."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from hypothesis import given
from hypothesis import strategies as st
from page_reader import NASTY, Reader
from server_tools import one_line
from unit_tools import in_seconds, words

from es_neardupe.display_text import shown
from es_neardupe.errors import InputError
from es_neardupe.keys.prepare.placed import PlacedText
from es_neardupe.options import Matching
from es_neardupe.pages import panes
from es_neardupe.pages.page import compare_page, write_page
from es_neardupe.similarity.comparison import compare_texts
from es_neardupe.similarity.measure import MEANINGS


def read(a: str, b: str, **options: Any) -> Reader:
    return Reader(compare_page(compare_texts(a, b, **options)))


def test_a_text_that_is_shown_as_prepared_says_so() -> None:
    prepared = PlacedText(words(0, 20), words(0, 20), as_prepared=True)
    content = compare_page(compare_texts(prepared, words(0, 21)))
    assert content.count("This is the prepared text") == len(Matching)  # once for each kind of matching
    assert "This is the prepared text" not in compare_page(compare_texts(words(0, 20), words(0, 21)))


ANY = st.text(
    st.characters(exclude_categories=())
    | st.sampled_from("<>&\"' \r\n{}%")
    | st.sampled_from(
        "½㎏12kg é e\u0301\u00ad\u0323ｶﾞガ"
    ),  # characters that several words come from, or several of one word
    max_size=60,
)


@given(ANY, ANY)
def test_texts_are_whole_and_escaped(a: str, b: str) -> None:
    """Each pane has the original text, except for characters that a page cannot show."""
    found = read(a, b, shingle=2)
    for side, text in (("a", a), ("b", b)):
        wanted = shown(text)
        for matching in ("literal", "information"):
            assert found.panes[f"{matching}-{side}"] == wanted


def test_nothing_of_a_document_becomes_markup() -> None:
    plain = read(words(0, 20), words(0, 20))
    made = compare_texts(f"{NASTY} {words(0, 20)}", f"{words(0, 20)} {NASTY}", names=(NASTY, f"{NASTY}.txt"))
    found = Reader(compare_page(made))
    assert {tag for tag, _ in found.tags} <= {tag for tag, _ in plain.tags} | {"mark", "br"}
    assert [tag for tag, _ in found.tags].count("script") == 1
    assert found.panes["literal-a"].startswith(NASTY)
    assert not any(name.startswith("on") or name in ("style", "src", "href") for _, one in found.tags for name in one)


def test_a_long_name_is_shown_by_its_ends() -> None:
    """The title of the element has the whole one."""
    name = "https://example.org/" + "a" * 480 + "/first.html"
    page = compare_page(compare_texts("a", "b", names=(name, "b.txt")))
    assert f'<span title="{name}">{name[:60]}…{name[-40:]}</span>' in page
    assert 'title="b.txt"' not in page


def test_policy_names_the_hashes_of_script_and_style() -> None:
    found = read(words(0, 20), words(0, 21))
    (policy,) = [str(one["content"]) for _, one in found.tags if one.get("http-equiv") == "Content-Security-Policy"]
    wanted = {
        kind: f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
        for kind, content in (("style", found.style), ("script", found.script))
    }
    assert policy == (
        f"default-src 'none'; style-src '{wanted['style']}'; script-src '{wanted['script']}'; "
        f"base-uri 'none'; form-action 'none'"
    )


def test_nothing_is_loaded() -> None:
    content = compare_page(compare_texts(words(0, 20), words(0, 21)))
    assert re.findall(r"https?:|//[a-z]|@import|url\(", content) == []


def test_passages_and_differences_are_numbered_alike() -> None:
    a = f"{words(0, 10)} here {words(10, 10)} moved {words(30, 10)}"
    b = f"{words(30, 10)} {words(0, 10)} there {words(10, 10)}"
    found = read(a, b)
    for matching in ("literal", "information"):
        for side in "ab":
            passages = {
                str(one["id"]) for one in found.with_class("p") if str(one.get("id")).startswith(f"{matching}-{side}")
            }
            assert passages == {f"{matching}-{side}-p{k}" for k in (1, 2, 3)}
    assert all(
        one["tabindex"] == "0" and one["role"] == "button"
        for one in found.with_class("p")
        if "data-k" in one and "data-n" in one
    )
    marks = {str(one["id"]) for one in found.with_class("d") if one.get("id")}
    assert {"literal-a-d1", "literal-b-d1", "literal-a-d2", "literal-b-d2"} <= marks
    ids = [one["id"] for _, one in found.tags if "id" in one]
    assert len(ids) == len(set(ids))


def test_ids_are_unique_if_a_difference_has_several_parts() -> None:
    """By information matching, words that the other text has elsewhere are not part of a difference."""
    moved, start, end = words(100, 8), words(0, 20), words(20, 20)
    found = read(f"{start} red blue {moved} green black {end} {moved}", f"{start} white {end} {moved}")
    parts = [one for one in found.with_class("d") if one.get("data-d") == "1"]
    assert len(parts) == 5, "literal: one in each text; information: two in a, one in b"
    ids = [one["id"] for _, one in found.tags if "id" in one]
    assert len(ids) == len(set(ids))
    assert {f"{matching}-{side}-d1" for matching in ("literal", "information") for side in "ab"} <= set(ids)


def test_measures_with_formulas_and_meanings() -> None:
    made = compare_texts(words(0, 40), words(3, 40))
    content = compare_page(made)
    for one in made.measures:
        assert f"<b>{one.value:.4f}</b>" in content
        assert f"<code>{one.formula}</code>" in content
        assert one.filled in content
        assert MEANINGS[one.measure] in content
        assert f'<th scope="row">{one.name}' in content
    for name in ("resemblance (S_R)", "jaccard (S_J)"):
        assert f"</b> {name}</span>" in content
    assert '<th scope="row">containment-longer (S_L) <small>information</small>' in content
    assert "Omitted: weighted, because it needs the frequencies of shingles in an index." in content


@pytest.mark.parametrize("matching", list(Matching))
def test_the_matching_shown_first(matching: Matching) -> None:
    found = Reader(compare_page(compare_texts(words(0, 20), words(0, 21)), matching))
    shown = [one["id"] for one in found.with_class("panes") if "hidden" not in one]
    assert shown == [matching.value]
    assert [one["value"] for tag, one in found.tags if tag == "input" and "value" in one and "checked" in one] == [
        matching.value
    ]


@pytest.mark.parametrize(("text", "direction"), [("the end", "ltr"), ("1. שלום", "rtl"), ("مرحبا", "rtl"), ("", "ltr")])
def test_direction(text: str, direction: str) -> None:
    found = read(text, "word")
    assert [one["dir"] for one in found.with_class("text")] == [direction, "ltr"] * 2


@pytest.mark.parametrize("size", [20_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_many_words(size: int) -> None:
    """As many elements as passages and differences need, in seconds."""
    base = [f"w{k * 7919 % 100_003}" for k in range(size)]
    other = [f"new{k}" if k % 500 == 250 else word for k, word in enumerate(base)]
    with in_seconds(30):
        made = compare_texts(" ".join(base), " ".join(other))
        content = compare_page(made)
    assert made.matchings["literal"].chunks == size // 500 + 1
    assert len(content) < 4 * len(made.a.text) + 500_000
    found = Reader(content)
    assert len(found.with_class("p")) == 4 * (size // 500 + 1) + 1
    assert len([one for one in found.with_class("d") if "data-d" in one]) == 4 * (size // 500)
    assert found.with_class("cut") == []


def test_longer_texts_are_cut_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "MAX_SHOWN", 50)
    text = words(0, 40)
    found = compare_texts(text, text.replace("w30", "other"))
    content = compare_page(found)
    assert Reader(content).panes["literal-a"] == text[:50]
    assert f"Not shown: the last {len(text) - 50} of {len(text)} characters. The measures include them." in content
    assert found.matchings["literal"].chunks == 2


def test_facts_lead_to_their_difference() -> None:
    a, b = (f"{words(0, 20)} in the city of {town} {words(20, 20)}" for town in ("Newark", "Akron"))
    content = compare_page(compare_texts(a, b))
    assert '<button type="button" class="show" data-to="1"' in content
    many = " ".join(f"{words(k * 9, 9)} {k}" for k in range(300))
    content = compare_page(compare_texts(many, re.sub(r" (\d+)", r" 9\1", many)))
    assert content.count('class="show"') == 200
    assert "100 more not listed here." in content


def test_no_facts_is_said_of_near_copies_only() -> None:
    said = "Near-copies: no fact differs."
    assert said in compare_page(compare_texts(words(0, 40), f"{words(0, 40)} and so on"))
    assert said not in compare_page(compare_texts(words(0, 40), words(0, 40, "v")))


# The file


def test_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    write_page(file, "one ✓\n")
    assert file.read_text("utf-8") == "one ✓\n"
    file.chmod(0o640)
    with pytest.raises(UnicodeEncodeError):
        write_page(file, "half \ud800")
    assert file.read_text("utf-8") == "one ✓\n"
    write_page(file, "two")
    assert file.read_text("utf-8") == "two"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]


def test_where_it_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        write_page(tmp_path, "x")
    with pytest.raises(InputError, match="is not a regular file"):
        write_page(Path(os.devnull), "x")
    with pytest.raises(InputError, match="cannot be written: its folder does not exist"):
        write_page(tmp_path / "none" / "page.html", "x")


def test_command(cli: Cli, tmp_path: Path) -> None:
    for name, text in (("a", words(0, 40)), ("b", words(1, 40))):
        (tmp_path / name).write_text(text, "utf-8")
    files = [str(tmp_path / name) for name in "ab"]
    out = tmp_path / "page.html"
    done = cli("compare", *files, "--html", str(out), "--matching", "information", "--json")
    assert (done.code, done.err.strip()) == (0, f"Wrote {out}")
    assert done.json["shingle"] == 5
    assert Reader(out.read_text("utf-8")).panes["literal-a"] == words(0, 40)
    shown = cli("compare", *files, "--html", str(out)).out
    assert "resemblance" in shown
    assert "[1 " not in shown
    failed = cli("compare", *files, "--html", str(tmp_path))
    assert failed.code == 1
    assert "is a folder: name the file to write." in one_line(failed.err)
