"""The page of a duplicates request as a file: escaped, bounded in size, with notes on what is left out."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reader import NASTY, Reader
from unit_tools import in_seconds, pair_list, pairs_diagnostics, words

from es_neardupe.commands.duplicates.diagnostics import PairsDiagnostics
from es_neardupe.commands.duplicates.results import (
    ContentStageReport,
    DocumentPair,
    DuplicatesReport,
    PairsStageReport,
    SkippedGroup,
)
from es_neardupe.display_text import shown
from es_neardupe.errors import SettingsError
from es_neardupe.pages.duplicates_page import bars, duplicates_page, listed_pairs, opened_pairs
from es_neardupe.records import Address

ANY = st.text(st.characters(exclude_categories=()) | st.sampled_from("<>&\"' \r\n{}%"), max_size=40)
OURS = re.findall(
    r"\w+",
    "html head meta title style script body header h1 h2 h3 p b span a details summary div section main svg line text "
    "rect table thead tbody caption tr th td mark small kbd footer button output label input select option ul li",
)
DIAGNOSTICS = pairs_diagnostics(
    "5-grams of words from field: title", hashes=367_799, candidates=4_975_598, skipped=359, seconds=1.25
)


def report(
    pairs: Sequence[DocumentPair],
    groups: Sequence[SkippedGroup] = (),
    diagnostics: PairsDiagnostics | None = None,
    indices: tuple[str, ...] = ("news",),
) -> DuplicatesReport:
    result = PairsStageReport(pair_list(pairs), diagnostics or pairs_diagnostics(skipped=len(groups)), tuple(groups))
    return DuplicatesReport("news", indices, {"pairs": result}, 1.0)


def pair(number: int, similarity: float = 0.9, explanation: str | None = None) -> DocumentPair:
    return DocumentPair(Address("news", f"a{number}"), Address("news", f"b{number}"), similarity, explanation)


def page(made: DuplicatesReport, texts: Mapping[Address, str] | None = None, **options: Any) -> str:
    return duplicates_page(made, "pairs", texts or {}, **{"explained": ["All documents."], "title": "Pairs"} | options)


def plain(content: str) -> str:
    """The visible text, each element on a line of its own."""
    body = re.sub(r"<(style|script)>.*?</\1>", "", content, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", "", body))


@given(ANY, ANY, ANY)
def test_what_comes_from_documents_is_escaped(a: str, b: str, id: str) -> None:
    """Each pane has the whole text, and there are no elements other than those of the template."""
    one = DocumentPair(Address("news", id), Address("news", f"{id}2"), 0.5, id)
    groups = [SkippedGroup(300, (Address("news", id),), a)]
    content = page(report([one], groups), {one.a: a, one.b: b}, title=id, explained=[a, b])
    found = Reader(content)
    assert found.panes == {"pair-1-texts-a": shown(a), "pair-1-texts-b": shown(b)}
    assert {tag for tag, _ in found.tags} <= set(OURS)
    assert [tag for tag, _ in found.tags].count("script") == 1


def test_nothing_of_a_document_becomes_markup() -> None:
    hostile = f"{NASTY}\x00\u202eabc"
    one = DocumentPair(Address(NASTY, hostile), Address("news", f'"{hostile}'), 1.0, hostile)
    texts = {one.a: f"{hostile} {words(0, 9)}", one.b: f"{words(0, 9)} {hostile}"}
    groups = [SkippedGroup(300, (Address(NASTY, hostile),), hostile)]
    made = report([one], groups, pairs_diagnostics(hostile, skipped=1), indices=(NASTY, "news"))
    content = page(made, texts, title=hostile, explained=[hostile])
    found = Reader(content)
    assert not {"img", "link", "iframe"} & {tag for tag, _ in found.tags}
    assert [tag for tag, _ in found.tags].count("script") == 1
    assert not any(name.startswith("on") or name in ("style", "src") for _, some in found.tags for name in some)
    assert [some["href"] for _, some in found.tags if "href" in some] == ["#skipped"]
    assert "\x00" not in content
    assert f"{NASTY}/{shown(hostile)}" in plain(content), "with its index, since there are two"
    assert all(some.get("dir") for some in found.with_class("begins")), "a text that runs from the right stays in place"
    assert re.findall(r"@import|url\(", content.replace(html.escape(NASTY), "")) == []


def test_policy_lets_run_our_script_only() -> None:
    content = page(report([pair(1)]), {pair(1).a: "one two", pair(1).b: "one three"})
    (policy,) = [str(one["content"]) for _, one in Reader(content).tags if one.get("http-equiv")]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/]{43}='; script-src 'sha256-[\w+/]{43}='; "
        r"base-uri 'none'; form-action 'none'",
        policy,
    )


def test_pairs_open_in_their_order() -> None:
    pairs = [pair(k, 1 - k / 10, f"Documents share {9 - k} out of 9 distinct features.") for k in range(3)]
    texts = {one.a: f"{words(0, 40)} red end" for one in pairs} | {one.b: f"{words(0, 40)} blue end" for one in pairs}
    content = page(report(pairs), texts)
    found = Reader(content)
    assert [one["id"] for tag, one in found.tags if tag == "details" and one.get("class") == "pair"] == [
        "pair-1", "pair-2", "pair-3"
    ]  # fmt: skip
    assert re.findall(r'class="score">([^<]*)', content) == ["1.0000", "0.9000", "0.8000"]
    assert re.findall(r'<span class="name">([^<]*)</span></span>', content) == [
        "a0", "b0", "a1", "b1", "a2", "b2"
    ]  # fmt: skip
    assert "Documents share 8 out of 9 distinct features." in content
    assert content.count("In common: 40 of 42 and 42 words, in 1 passage of 5 words or more.") == 3
    ids = [one["id"] for _, one in found.tags if "id" in one]
    assert len(ids) == len(set(ids))


def test_titles_are_compared_word_by_word() -> None:
    """Texts too short for passages of five words."""
    texts = {pair(1).a: "Lucy had a gray cat.", pair(1).b: "Lucy had a blue cat."}
    content = page(report([pair(1, 4 / 6)]), texts)
    assert "In common: 4 of 5 and 5 words, in 2 passages of 1 word or more." in content
    assert re.findall(r"<mark id=[^>]*>([^<]*)", content) == ["gray", "blue"]


def test_words_of_scripts_without_blanks_count_too() -> None:
    """A long text without spaces is not one of few words."""
    text = "".join(chr(0x4E00 + k) for k in range(60))
    content = page(report([pair(1)]), {pair(1).a: text, pair(1).b: f"{text[:30]}新{text[31:]}"})
    assert "In common: 59 of 60 and 60 words, in 2 passages of 5 words or more." in content


def test_facts_that_differ() -> None:
    a, b = (f"{words(0, 40, 'v')} paid {sum} euros {words(60, 10, 'v')}" for sum in (500, 900))
    content = page(report([pair(1)]), {pair(1).a: a, pair(1).b: b})
    assert "Same form, different facts" in content
    assert 'class="show" data-to="1"' in content
    assert "1 difference<" in content


def test_texts_of_the_most_and_the_least_similar_pairs_are_shown_and_it_is_said() -> None:
    pairs = [pair(k) for k in range(5)]
    texts = {address: words(0, 10) for one in pairs for address in (one.a, one.b)}
    content = page(report(pairs), texts, opened=2)
    assert {name.rpartition("-texts")[0] for name in Reader(content).panes} == {"pair-1", "pair-5"}
    assert "3 rows are listed without texts, to keep this page small" in content
    assert '<span class="name">a3</span>' in content
    assert "listed without" not in page(report(pairs), texts)


def test_a_full_page_opens_no_more_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("es_neardupe.pages.duplicates_page._MAX_SIZE", 4_000)
    pairs = [pair(k) for k in range(5)]
    content = page(report(pairs), {address: words(0, 300) for one in pairs for address in (one.a, one.b)})
    assert {name.rpartition("-texts")[0] for name in Reader(content).panes} == {"pair-1", "pair-5"}
    assert "3 rows are listed without texts" in content


def test_the_list_is_bounded_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("es_neardupe.pages.duplicates_page.MAX_LISTED", 3)
    content = page(report([pair(k, 1 - k / 10) for k in range(5)]), opened=0)
    assert "2 pairs between 0.8000 and 0.7000 are not listed here." in content
    assert re.findall(r'id="(pair-\d+)" data-similarity', content) == ["pair-1", "pair-2", "pair-5"]
    assert "<b>5</b> pairs" in content
    assert "<b>10</b> documents<" in content


def test_long_texts_are_cut_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("es_neardupe.pages.duplicates_page.MAX_TEXT", 50)
    text = words(0, 60)
    content = page(report([pair(1)]), {pair(1).a: text[:51], pair(1).b: text[:50]})
    assert Reader(content).panes["pair-1-texts-a"] == text[:50]
    assert "Long texts: only the beginning of each is compared and shown here." in content
    assert "Long texts" not in page(report([pair(1)]), {pair(1).a: text[:50], pair(1).b: text[:50]})


def test_pairs_of_the_same_texts_are_folded() -> None:
    """Two texts with two copies each are four pairs, but one row; their own copies are two rows more."""
    ids = {name: Address("news", name) for name in ("x1", "x2", "y1", "y2")}
    contents = {address: name[0] for name, address in ids.items()}
    copies = [DocumentPair(ids[a], ids[b], 1.0) for a, b in (("x1", "x2"), ("y1", "y2"))]
    near = [DocumentPair(ids[a], ids[b], 0.9) for a in ("x1", "x2") for b in ("y1", "y2")]
    texts = {address: f"{words(0, 40)} {address.id[0]}" for address in ids.values()}
    content = page(report([*copies, *near]), texts, contents=contents)
    assert re.findall(r'id="(pair-\d+)" data-similarity="([\d.]+)" data-kind="(\w+)"', content) == [
        ("pair-1", "1.0", "copies"), ("pair-2", "1.0", "copies"), ("pair-3", "0.9", "different")
    ]  # fmt: skip
    assert "3 rows for 6 pairs" in plain(content)
    assert "<b>6</b> pairs" in content
    assert "3 more pairs of exact copies of these texts" in plain(content)
    listed = re.findall(r'<li><span class="name">(\w+)</span> and <span class="name">(\w+)</span></li>', content)
    assert listed == [("x1", "y2"), ("x2", "y1"), ("x2", "y2")]
    assert 'id="folded"' not in page(report([*copies, *near]), texts)


def test_pairs_of_another_similarity_are_not_folded() -> None:
    """The features of a request may tell texts with the same words apart."""
    pairs = [pair(1, 0.9), pair(2, 0.8)]
    contents = {address: address.id[0] for one in pairs for address in (one.a, one.b)}
    assert 'id="folded"' not in page(report(pairs), contents=contents)
    assert opened_pairs(pairs, contents) == pairs


def test_titles_and_fields_instead_of_ids() -> None:
    one = pair(1)
    fields = {one.a: {"title": NASTY, "date": "3 May"}, one.b: {"title": "", "date": "4 May"}}
    texts = {one.a: words(0, 40), one.b: words(1, 40)}
    content = page(report([one]), texts, fields=fields)
    head = plain(content.partition("<summary><b")[2].partition("</summary>")[0])
    assert " ".join(head.split()) == f'class="score">0.9000 a {NASTY} a1 · 3 May b 4 May b1'
    assert words(0, 40) not in head, "no beginning of a text that has a title"


def test_every_control_and_sign_is_explained() -> None:
    content = page(report([pair(1)]), {pair(1).a: "one two", pair(1).b: "one three"})
    found = Reader(content)
    controls = [some["id"] for tag, some in found.tags if tag in ("input", "select")]
    assert controls == ["search", "from", "to", "kind", "order"]
    legend = plain("".join(re.findall(r'<p class="legend">.*?</p>', content)))
    for part in ("passage", "differs", "only the other text", "chosen difference", "grey", "▸", "yellow label"):
        assert part in legend
    keys = plain(content.partition('<p class="keys">')[2].partition("</p>")[0])
    assert re.findall(r"/|\b[jknp]\b|Enter|Tab", keys) == ["/", "j", "k", "Enter", "n", "p", "Tab", "Enter"]
    assert content.index('class="keys"') < content.index('id="pair-1"')


def test_documents_that_are_gone() -> None:
    content = page(report([pair(1)]), {pair(1).a: "here"})
    assert "The text of b1 could not be read: the document was deleted." in plain(content)
    assert '<details class="pair"' not in content
    assert "listed without" not in content


def test_skipped_features_with_examples() -> None:
    groups = [
        SkippedGroup(900, (Address("news", "x/1"), Address("news", "y")), "all rights reserved"),
        SkippedGroup(201, (), None),
    ]
    content = page(report([pair(1)], groups, DIAGNOSTICS))
    assert "359 features that too many documents share were skipped" in content
    assert "all rights reserved" in content
    assert "x/1, y" in plain(content)
    assert "357 more not listed here." in content
    assert "skipped" not in plain(page(report([pair(1)])))


def test_diagnostics_as_tables() -> None:
    found = plain(page(report([], diagnostics=DIAGNOSTICS)))
    for text in ("Computing feature hashes", "5-grams of words from field: title", "367,799", "4,975,598", "1.250"):
        assert text in found
    assert "No pairs found." in found


def test_5000_pairs_stay_usable() -> None:
    pairs = [pair(k, 1 - k / 10_000, "Documents share 9 out of 10 distinct features.") for k in range(6_000)]
    texts = {
        address: f"{words(0, 120)} {mark} {words(200, 120)}"
        for one in opened_pairs(listed_pairs(pairs), {})
        for address, mark in ((one.a, "red"), (one.b, "blue"))
    }
    with in_seconds(20):
        content = page(report(pairs), texts)
    assert len(content) < 5_000_000
    assert len(Reader(content).panes) == 400
    assert "4,800 rows are listed without texts" in content
    assert "1,000 pairs between 0.7500 and 0.6501 are not listed here" in content
    assert 'id="pair-6000"' in content


def test_other_stages_have_no_page() -> None:
    made = DuplicatesReport("news", ("news",), {"pairs": ContentStageReport((), 0, 0, 0, 0.0)}, 1.0)
    with pytest.raises(SettingsError, match="Stage 'pairs' finds no pairs"):
        page(made)


# The histogram


@given(st.lists(st.sampled_from([0.0, 0.01, 0.5, 0.699, 0.7, 0.98, 0.999, 1.0]) | st.floats(0, 1), min_size=1))
def test_bars_count_every_pair_within_the_picture(similarities: list[float]) -> None:
    made = bars(np.array(similarities))
    assert sum(one.pairs for one in made.bars) == len(similarities)
    for one in made.bars:
        assert 0 <= one.x <= one.x + one.width <= made.width
        assert one.y >= 0
        assert one.y + one.height == pytest.approx(made.height)
        assert (one.height > 0) == (one.pairs > 0)
    order = sorted(made.bars, key=lambda one: one.pairs)
    assert [one.height for one in order] == sorted(one.height for one in made.bars), "more pairs, a higher bar"


def test_bars_begin_at_the_tenth_of_the_least_similar() -> None:
    made = bars(np.array([0.93, 0.95, 1.0, 1.0]))
    assert made.bars[0].label == "0.90 to below 0.92"
    assert made.bars[-1].label == "exactly 1"
    assert made.bars[-1].pairs == 2
    assert [text for _, text in made.x_labels] == ["0.9", "= 1"]
    assert bars(np.array([1.0])).bars[0].label == "exactly 1"
    assert bars(np.array([0.0])).bars[0].label == "exactly 0"


def test_bars_of_numbers_of_shared_features() -> None:
    """One bar for each number, or for equal ranges of numbers if there are many."""
    few = bars(np.array([6, 5, 5, 3]))
    assert [(one.label, one.pairs) for one in few.bars] == [("3", 1), ("4", 0), ("5", 2), ("6", 1)]
    assert [text for _, text in few.x_labels] == ["3", "4", "5", "6"]
    numbers = np.arange(1, 1001)
    many = bars(numbers)
    assert [(one.label, one.pairs) for one in many.bars[:2]] == [("1 to 20", 20), ("21 to 40", 20)]
    assert sum(one.pairs for one in many.bars) == len(numbers)
