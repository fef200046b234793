"""The pages of a comparison and of many pairs in a real Chromium: what is clicked and typed does what it should, and
nothing else happens.

Without Chromium and its driver (Debian's packages chromium and chromium-driver) they are skipped; with CI set, that is
an error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import accessibility_problems, chromium, emulated
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.ui import WebDriverWait
from unit_tools import pair_list, pairs_diagnostics, patience, words

from es_neardupe.commands.duplicates.results import DocumentPair, DuplicatesReport, PairsStageReport, SkippedGroup
from es_neardupe.options import Matching
from es_neardupe.pages.duplicates_page import duplicates_page
from es_neardupe.pages.page import compare_page, write_page
from es_neardupe.records import Address
from es_neardupe.similarity.comparison import compare_texts

pytestmark = pytest.mark.xdist_group("browser")  # which starts once

SCRIPT = "<script>document.title = 'run'; fetch('http://127.0.0.1:9/')</script><img src='http://127.0.0.1:9/x.png'>"

A = f"{SCRIPT} {words(0, 300)} red {words(300, 200)} moved {words(900, 30)}"
B = f"{words(900, 30)} {SCRIPT} {words(0, 300)} blue {words(300, 200)} end of it {words(0, 20)}"


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with chromium() as started:
        yield started


Open = Callable[[str], webdriver.Chrome]
Show = Callable[..., webdriver.Chrome]


@pytest.fixture
def opened(browser: webdriver.Chrome, tmp_path: Path) -> Iterator[Open]:
    """Open a page. Afterwards the console must be empty, and only the file requested."""
    file = tmp_path / "page.html"

    def open(content: str) -> webdriver.Chrome:
        write_page(file, content)
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(file.as_uri())
        return browser

    yield open
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"}
    assert asked <= {file.as_uri()}
    assert asked, "the log of requests works"


@pytest.fixture
def show(opened: Open) -> Show:
    """Open the page of two texts."""

    def shown(a: str, b: str, matching: Matching = Matching.LITERAL, **options: Any) -> webdriver.Chrome:
        return opened(compare_page(compare_texts(a, b, **options), matching))

    return shown


def by(browser: webdriver.Chrome, selector: str) -> list[WebElement]:
    return browser.find_elements(By.CSS_SELECTOR, selector)


def one(browser: webdriver.Chrome, selector: str) -> WebElement:
    (found,) = by(browser, selector)
    return found


def press(browser: webdriver.Chrome, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()


def in_sight(browser: webdriver.Chrome, selector: str) -> bool:
    """Whether the beginning of an element is inside the visible part of the pane."""
    return bool(
        browser.execute_script(
            "const one = document.querySelector(arguments[0]);"
            "const [place, frame] = [one.getClientRects()[0], one.closest('.text').getBoundingClientRect()];"
            "return place.top >= frame.top - 1 && place.top < frame.bottom;",
            selector,
        )
    )


def test_passages_are_highlighted_and_the_whole_text_is_there(show: Show) -> None:
    browser = show(A, B)
    for side, text in (("a", A), ("b", B)):
        assert one(browser, f"#literal-{side}").get_property("textContent") == text
        for number in (1, 2, 3):
            passage = one(browser, f"#literal-{side}-p{number}")
            assert passage.is_displayed()
            assert passage.value_of_css_property("background-color") != "rgba(0, 0, 0, 0)"
    colours = {one(browser, f"#literal-a-p{k}").value_of_css_property("background-color") for k in (1, 2, 3)}
    assert len(colours) == 3
    assert one(browser, "#literal-a-d1").text == "red"
    assert one(browser, "#literal-b-d1").text == "blue"


def test_scripts_of_documents_are_text(show: Show) -> None:
    browser = show(A, B, names=(SCRIPT, "b"))
    assert "run" not in browser.title.split()
    assert SCRIPT in browser.title
    assert len(by(browser, "script")) == 1
    assert by(browser, "img") == []
    assert SCRIPT in one(browser, "#literal-a").text


def test_click_jumps_to_the_twin(show: Show) -> None:
    browser = show(A, B)
    assert not in_sight(browser, "#literal-a-p3")
    one(browser, "#literal-b-p3").click()  # it begins b, and ends a
    assert in_sight(browser, "#literal-a-p3")
    twin = one(browser, "#literal-a-p3")
    assert "twin" in str(twin.get_attribute("class")).split()
    assert browser.switch_to.active_element == twin
    assert len(by(browser, ".twin")) == 1


def test_hover_shows_the_twin(show: Show) -> None:
    browser = show(A, B)
    ActionChains(browser).move_to_element_with_offset(one(browser, "#literal-a"), 0, -300).perform()
    ActionChains(browser).move_to_element(one(browser, "#literal-a-p1")).perform()
    hot = {found.get_attribute("id") for found in by(browser, ".hot")}
    assert hot == {"literal-a-p1", "literal-b-p1"}


def test_keyboard(show: Show) -> None:
    """Tab reaches passages; Enter and Space jump to the other text and back."""
    browser = show(A, B)
    one(browser, ".next").click()
    browser.execute_script("document.getElementById('literal-a').focus()")
    press(browser, Keys.TAB)
    assert browser.switch_to.active_element == one(browser, "#literal-a-p1")
    press(browser, Keys.ENTER)
    assert browser.switch_to.active_element == one(browser, "#literal-b-p1")
    press(browser, " ")
    assert browser.switch_to.active_element == one(browser, "#literal-a-p1")


def test_next_and_previous_difference(show: Show) -> None:
    browser = show(A, B)
    counter = one(browser, ".counter")
    assert counter.text == "3 differences"
    one(browser, ".next").click()
    assert counter.text == "Difference 1 of 3"
    assert {found.text for found in by(browser, ".now")} == {"red", "blue"}
    assert in_sight(browser, "#literal-a-d1")
    assert in_sight(browser, "#literal-b-d1")
    press(browser, "j")
    assert counter.text == "Difference 2 of 3"
    press(browser, "j", "j")
    assert counter.text == "Difference 1 of 3"
    press(browser, "k")
    assert counter.text == "Difference 3 of 3"
    one(browser, ".previous").click()
    assert counter.text == "Difference 2 of 3"


def test_switch_between_matchings(show: Show) -> None:
    """The last passage of b is repeated, which is no difference for information matching."""
    browser = show(A, B)
    assert one(browser, "#literal").is_displayed()
    assert not one(browser, "#information").is_displayed()
    one(browser, "input[value=information] + span").click()
    assert not one(browser, "#literal").is_displayed()
    assert one(browser, "#information").is_displayed()
    repeat = words(0, 20)
    marked = [found.get_property("textContent") for found in by(browser, "#literal-b .d")]
    assert any(repeat in str(text) for text in marked)
    assert all(repeat not in found.text for found in by(browser, "#information-b .d"))
    one(browser, "#information-b-p1").click()
    assert browser.switch_to.active_element == one(browser, "#information-a-p1")
    press(browser, "j")
    assert one(browser, ".counter").text == "Difference 1 of 3"
    assert {found.text for found in by(browser, ".now")} == {"red", "blue"}


def scroll(browser: webdriver.Chrome, selector: str, pixels: int) -> None:
    """Turn the wheel above an element."""
    origin = ScrollOrigin.from_element(one(browser, selector))
    ActionChains(browser).scroll_from_origin(origin, 0, pixels).perform()


def top(browser: webdriver.Chrome, selector: str) -> float:
    return float(browser.execute_script("return document.querySelector(arguments[0]).scrollTop", selector))


def test_texts_scroll_together(show: Show) -> None:
    """The same words stay next to each other, also after a long passage that only one text has."""
    inserted, mark = words(5000, 400), "here the second part begins"
    browser = show(
        f"{words(0, 900)} {mark} {words(1000, 900)}", f"{words(0, 300)} {inserted} {words(300, 600)} {words(1000, 900)}"
    )
    WebDriverWait(browser, 60).until(lambda _: one(browser, "#literal-a").is_displayed())
    one(browser, ".next").click()
    one(browser, ".next").click()
    before = top(browser, "#literal-b")
    scroll(browser, "#literal-a", 60)
    WebDriverWait(browser, 60).until(lambda _: top(browser, "#literal-b") != before)
    places = [one(browser, f"#literal-{side}-d2").rect["y"] for side in "ab"]
    assert abs(places[0] - places[1]) < 40
    one(browser, "#together").click()
    before = top(browser, "#literal-b")
    scrolled = top(browser, "#literal-a")
    scroll(browser, "#literal-a", 200)
    WebDriverWait(browser, 60).until(lambda _: top(browser, "#literal-a") > scrolled)
    assert top(browser, "#literal-b") == before


def test_differences_only(show: Show) -> None:
    """Of a long common passage, its ends are left; all differences stay, and the whole text comes back."""
    browser = show(A, B)
    one(browser, "#only").click()
    shown = str(one(browser, "#literal-a").get_property("textContent"))
    assert len(shown) < len(A) / 2
    assert "red" in shown
    assert shown.count("[…]") >= 2
    press(browser, "j")
    assert {found.text for found in by(browser, ".now")} == {"red", "blue"}
    one(browser, "#only").click()
    for side, text in (("a", A), ("b", B)):
        assert one(browser, f"#literal-{side}").get_property("textContent") == text


def marked_lines(browser: webdriver.Chrome, selector: str) -> list[str]:
    """The lines of a text that are marked, in order."""
    found: list[str] = browser.execute_script(
        "const text = document.querySelector(arguments[0]);"
        "return [...CSS.highlights.get('line') || []].filter((one) => text.contains(one.startContainer)).map((one) => {"
        "  const range = new Range();"
        "  range.setStart(one.startContainer, one.startOffset);"
        "  range.setEnd(one.endContainer, one.endOffset);"
        "  return range.toString();"
        "});",
        selector,
    )
    return found


def lines(*numbers: int) -> list[str]:
    """Lines of eight words, each with other words."""
    return [words(20 * number, 8) for number in numbers]


def with_word(line: str, at: int, word: str) -> str:
    """A line with another word at this place; without the word if it is empty."""
    found = line.split()
    return " ".join([*found[:at], *filter(None, [word]), *found[at + 1 :]])


def test_whole_lines(show: Show) -> None:
    """The lines of a difference are marked, and no other one: a line that only b has marks none of a. Differing words
    and keys are as before, and it can be taken back."""
    base = lines(*range(30))
    changed, shorter = with_word(base[3], 4, "other"), with_word(base[20], 7, "")
    inserted = ["first of two", "and the second"]
    b = [*base[:3], changed, *base[4:10], *inserted, *base[10:20], shorter, *base[21:]]
    browser = show("\n".join(base), "\n".join(b))
    marks = [found.text for found in by(browser, "#literal .d")]
    plain = one(browser, "#literal").get_property("innerHTML")
    one(browser, "#lines").click()
    assert marked_lines(browser, "#literal-a") == [base[3], base[20]]
    assert marked_lines(browser, "#literal-b") == [changed, *inserted, shorter]
    colours = {
        browser.execute_script(
            "return getComputedStyle(document.querySelector(arguments[0]), '::highlight(line)').backgroundColor", place
        )
        for place in ("#literal-a .p", "#literal-a .d")
    }
    assert len(colours) == 2, "words that differ stand out in a marked line"
    assert [found.text for found in by(browser, "#literal .d")] == marks
    press(browser, "j")
    assert {found.text for found in by(browser, ".now")} == {base[3].split()[4], "other"}
    press(browser, "j", "j", "k")
    assert one(browser, ".counter").text == "Difference 2 of 3"
    one(browser, "input[value=information] + span").click()
    assert marked_lines(browser, "#information-b") == [changed, *inserted, shorter]
    one(browser, "#lines").click()
    assert marked_lines(browser, "#information-b") == []
    one(browser, "input[value=literal] + span").click()
    assert marked_lines(browser, "#literal-a") == []
    assert one(browser, "#literal").get_property("innerHTML") == plain


def test_whole_lines_of_differences_only(show: Show) -> None:
    """Lines with differences are shown from end to end, and the lines between them are left out."""
    base = lines(*range(30))
    a, b = ("\n".join([*base[:9], with_word(base[9], 4, word), *base[10:]]) for word in ("red", "blue"))
    browser = show(a, b)
    one(browser, "#only").click()
    one(browser, "#lines").click()
    shown = str(one(browser, "#literal-b").get_property("textContent")).split("\n")
    assert shown == [base[0], "[…]", with_word(base[9], 4, "blue"), "[…]", base[29]]
    assert marked_lines(browser, "#literal-b") == [with_word(base[9], 4, "blue")]
    one(browser, "#lines").click()
    assert str(one(browser, "#literal-b").get_property("textContent")).count("[…]") == 2
    one(browser, "#only").click()
    assert one(browser, "#literal-b").get_property("textContent") == b


@pytest.mark.parametrize(
    ("a", "b", "marked"),
    [
        ("one two three four", "one two new three four", (["one two three four"], ["one two new three four"])),
        ("one two\nthree four", "one two\nthree four new", (["three four"], ["three four new"])),
        ("one two three four", "one two\nnew\nthree four", (["one two three four"], ["new"])),
        ("one two three four", "one two\nthree four", ([], [])),
        ("one two.\n\nthree four!", "one two.\n\nnew words here.\n\nthree four!", ([], ["new words here."])),
        ("one two.\nthree four.", "one two.\nthree four new.", (["three four."], ["three four new."])),
        ("same text", "same text", ([], [])),
    ],
)
def test_which_lines_differ(show: Show, a: str, b: str, marked: tuple[list[str], list[str]]) -> None:
    browser = show(a, b, shingle=2)
    one(browser, "#lines").click()
    assert (marked_lines(browser, "#literal-a"), marked_lines(browser, "#literal-b")) == marked


def test_older_browsers_are_not_offered_whole_lines(browser: webdriver.Chrome, show: Show) -> None:
    older = {"source": "Object.defineProperty(CSS, 'highlights', { value: undefined })"}
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", older)
    try:
        show(A, B)
        assert not one(browser, "#lines").is_displayed()
        one(browser, "#only").click()
        assert "[…]" in str(one(browser, "#literal-a").get_property("textContent"))
        press(browser, "j")
        assert {found.text for found in by(browser, ".now")} == {"red", "blue"}
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_facts_lead_to_their_place(show: Show) -> None:
    a, b = (f"{words(0, 400)} in the city of {town} {words(400, 200)}" for town in ("Newark", "Akron"))
    browser = show(a, b, Matching.INFORMATION)
    one(browser, ".show").click()
    assert one(browser, "#literal").is_displayed()
    assert [found.text for found in by(browser, ".now")] == ["Newark", "Akron"]
    assert in_sight(browser, "#literal-b-d1")


@pytest.mark.parametrize(("width", "beside"), [(1400, True), (420, False)])
def test_widths(show: Show, width: int, beside: bool) -> None:
    browser = show(A, B)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        left, right = (found.rect for found in by(browser, "#literal .side"))
        assert (left["y"] == right["y"]) is beside
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def ink(browser: webdriver.Chrome, media: str, scheme: str, selector: str = "body") -> tuple[str, str]:
    """The colours of an element on this medium: text and background."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    found = one(browser, selector)
    return found.value_of_css_property("color"), found.value_of_css_property("background-color")


def test_dark_and_print(show: Show) -> None:
    browser = show(A, B)
    try:
        light, dark = ink(browser, "screen", "light"), ink(browser, "screen", "dark")
        assert light != dark
        assert ink(browser, "print", "dark") == ("rgba(0, 0, 0, 1)", "rgba(255, 255, 255, 1)")
        assert not one(browser, ".bar").is_displayed()
        heights = browser.execute_script(
            "const one = document.getElementById('literal-a'); return [one.clientHeight, one.scrollHeight]"
        )
        assert heights[0] == heights[1], "all of the text is printed"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


@pytest.mark.parametrize(("a", "b"), [("", ""), ("", "word"), ("one two", "one two"), ("x", "y")])
def test_small_texts(show: Show, a: str, b: str) -> None:
    browser = show(a, b)
    press(browser, "j", "k")
    one(browser, "input[value=information] + span").click()
    press(browser, "j")
    assert one(browser, "#information-a").get_property("textContent") == a


@pytest.mark.parametrize("size", [20_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_many_words(size: int, show: Show) -> None:
    base = [f"w{k * 7919 % 100_003}" for k in range(size)]
    other = [f"new{k}" if k % 100 == 50 else word for k, word in enumerate(base)]
    began = time.monotonic()
    a, b = ("\n".join(" ".join(text[k : k + 10]) for k in range(0, size, 10)) for text in (base, other))
    browser = show(a, b)
    one(browser, "#lines").click()
    assert len(marked_lines(browser, "#literal-b")) == size // 100
    press(browser, "j", "j")
    assert one(browser, ".counter").text == f"Difference 2 of {size // 100}"
    passage = f"p{size * 9 // 1000}"
    browser.execute_script(f"document.getElementById('literal-a-{passage}').click()")
    assert browser.switch_to.active_element == one(browser, f"#literal-b-{passage}")
    assert in_sight(browser, f"#literal-b-{passage}")
    assert browser.execute_script("return document.querySelectorAll('*').length") < 10_000
    assert time.monotonic() - began < patience(60)


# Many pairs


def many(pairs: int, texts: tuple[str, str], name: str) -> str:
    """The page of several pairs of the same two texts."""
    names = [(Address("i", f"{name} a{k}"), Address("i", f"{name} b{k}")) for k in range(pairs)]
    found = pair_list([DocumentPair(a, b, 1 - k / 10_000, f"{name}.") for k, (a, b) in enumerate(names)])
    result = PairsStageReport(found, pairs_diagnostics(name, skipped=1), (SkippedGroup(300, names[0], name),))
    shown = {address: text for both in [*names[:100], *names[-100:]] for address, text in zip(both, texts, strict=True)}
    report = DuplicatesReport("i", ("i",), {"pairs": result}, 0.0)
    return duplicates_page(report, "pairs", shown, explained=[name], title=name)


def test_pairs_open_and_their_passages_lead_to_the_twin_of_the_same_pair(opened: Open) -> None:
    browser = opened(many(3, (A, B), "pairs"))
    assert not one(browser, "#pair-2-texts").is_displayed()
    one(browser, "#pair-2 > summary").click()
    assert one(browser, "#pair-2-texts").is_displayed()
    assert not one(browser, "#pair-1-texts").is_displayed()
    for side, text in (("a", A), ("b", B)):
        assert one(browser, f"#pair-2-texts-{side}").get_property("textContent") == text
    assert not in_sight(browser, "#pair-2-texts-a-p3")
    one(browser, "#pair-2-texts-b-p3").click()
    assert in_sight(browser, "#pair-2-texts-a-p3")
    assert browser.switch_to.active_element == one(browser, "#pair-2-texts-a-p3")
    assert [found.get_attribute("id") for found in by(browser, ".twin")] == ["pair-2-texts-a-p3"]
    press(browser, Keys.ENTER)
    assert browser.switch_to.active_element == one(browser, "#pair-2-texts-b-p3")


def test_differences_of_the_pair_that_was_opened(opened: Open) -> None:
    browser = opened(many(3, (A, B), "pairs"))
    press(browser, "n")
    assert by(browser, ".now") == [], "no pair is open"
    one(browser, "#pair-1 > summary").click()
    one(browser, "#pair-3 > summary").click()
    assert one(browser, "#pair-3 .counter").text == "3 differences"
    press(browser, "n")
    assert [found.text for found in by(browser, "#pair-3 .now")] == ["red", "blue"]
    assert in_sight(browser, "#pair-3-texts-a-d1")
    one(browser, "#pair-1 .next").click()
    assert [found.text for found in by(browser, ".now")] == ["red", "blue"]
    press(browser, "n")
    assert one(browser, "#pair-1 .counter").text == "Difference 2 of 3"
    assert one(browser, "#pair-3 .counter").text == "Difference 1 of 3"


def test_facts_of_a_pair_lead_to_their_place(opened: Open) -> None:
    a, b = (f"{words(0, 400)} in the city of {town} {words(400, 200)}" for town in ("Newark", "Akron"))
    browser = opened(many(2, (a, b), "pairs"))
    one(browser, "#pair-2 > summary").click()
    one(browser, "#pair-2 .show").click()
    assert [found.text for found in by(browser, "#pair-2 .now")] == ["Newark", "Akron"]
    assert in_sight(browser, "#pair-2-texts-b-d1")


def listing() -> str:
    """The page of four pairs of six texts, of which two are copies."""
    texts = {
        "x": f"{words(0, 60)} in the city of Newark {words(60, 40)}",
        "x2": f"{words(0, 60)} in the city of Newark {words(60, 40)}",
        "y": f"{words(0, 60)} in the city of Akron {words(60, 40)}",
        "z": f"{words(0, 60)} {words(500, 40)}",
    }
    ids = {name: Address("i", name) for name in texts}
    given = [("x", "x2", 1.0), ("x", "y", 0.9), ("x2", "y", 0.9), ("x", "z", 0.5)]
    pairs = pair_list([DocumentPair(ids[a], ids[b], value) for a, b, value in given])
    report = DuplicatesReport("i", ("i",), {"pairs": PairsStageReport(pairs, pairs_diagnostics(), ())}, 0.0)
    fields = {
        ids[name]: {"title": title} for name, title in zip(texts, ("Grant", "Grant", "Award", "Other"), strict=True)
    }
    return duplicates_page(
        report,
        "pairs",
        {ids[name]: text for name, text in texts.items()},
        contents={ids[name]: text for name, text in texts.items()},
        explained=["All."],
        title="pairs",
        fields=fields,
    )


def rows(browser: webdriver.Chrome) -> list[str]:
    """The ids of the rows that are shown, in order."""
    script = "return [...document.querySelectorAll('#rows > .pair')].filter((row) => row.checkVisibility())"
    ids: list[str] = browser.execute_script(f"{script}.map((row) => row.id)")
    return ids


def test_filter_search_and_order(opened: Open) -> None:
    browser = opened(listing())
    assert rows(browser) == ["pair-1", "pair-2", "pair-4"]
    assert "and 1 more pair of copies" in one(browser, "#pair-2 > summary").text
    Select(one(browser, "#order")).select_by_value("least")
    assert rows(browser) == ["pair-4", "pair-2", "pair-1"]
    Select(one(browser, "#order")).select_by_value("most")
    one(browser, "#search").send_keys("AWARD")
    assert rows(browser) == ["pair-2"]
    assert one(browser, "#shown").text == "1 of 3 rows"
    one(browser, "#search").clear()
    one(browser, "#search").send_keys("w505 city")  # words of the texts, in any order
    assert rows(browser) == ["pair-4"]
    one(browser, "#all").click()
    assert (rows(browser), one(browser, "#shown").text) == (["pair-1", "pair-2", "pair-4"], "3 rows")
    for kind, found in (("copies", ["pair-1"]), ("facts", ["pair-2"]), ("different", ["pair-2", "pair-4"])):
        Select(one(browser, "#kind")).select_by_value(kind)
        assert rows(browser) == found
    one(browser, "#to").send_keys("0.6")
    assert rows(browser) == ["pair-4"]
    one(browser, "#all").click()
    one(browser, "#from").send_keys("0.9")
    assert rows(browser) == ["pair-1", "pair-2"]


def test_pairs_by_keyboard(opened: Open) -> None:
    """Keys move between rows and open them; in a field they are typed."""
    browser = opened(listing())
    press(browser, "j", "j", Keys.ENTER)
    assert one(browser, "#pair-2-texts").is_displayed()

    def chosen(_: object) -> bool:
        press(browser, "n")  # to the only difference, once the page knows that the pair is open
        return {found.text for found in by(browser, "#pair-2 .now")} == {"Newark", "Akron"}

    WebDriverWait(browser, 60).until(chosen)
    press(browser, "k")
    assert browser.switch_to.active_element == one(browser, "#pair-1 > summary")
    press(browser, "/", "n", "j", "p")
    assert one(browser, "#search").get_property("value") == "njp"
    assert rows(browser) == []
    one(browser, "#all").click()
    assert one(browser, "#pair-2 .counter").get_property("textContent") == "Difference 1 of 1"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rules_of_accessibility(opened: Open, scheme: str) -> None:
    browser = opened(listing())
    one(browser, "#pair-2 > summary").click()
    with emulated(browser, prefers_color_scheme=scheme):
        assert accessibility_problems(browser) == []


def test_pairs_open_by_keyboard(opened: Open) -> None:
    browser = opened(many(2, (A, B), "pairs"))
    browser.execute_script("document.querySelector('#pair-1 > summary').focus()")
    press(browser, Keys.ENTER)
    assert one(browser, "#pair-1-texts").is_displayed()
    press(browser, Keys.ENTER)
    assert not one(browser, "#pair-1-texts").is_displayed()


def test_scripts_of_pairs_are_text(opened: Open) -> None:
    browser = opened(many(2, (A, B), SCRIPT))
    one(browser, "#pair-1 > summary").click()
    assert "run" not in browser.title.split()
    assert len(by(browser, "script")) == 1
    assert by(browser, "img") == []
    assert SCRIPT in one(browser, "#pair-1-texts-a").text
    for place in ("h1", "#pair-1 > summary", "#skipped", "#diagnostics", ".request"):
        assert SCRIPT in one(browser, place).text


@pytest.mark.parametrize(("width", "beside"), [(1400, True), (420, False)])
def test_widths_of_pairs(opened: Open, width: int, beside: bool) -> None:
    browser = opened(many(20, (A, B), f"long-{'name' * 40}"))
    one(browser, "#pair-1 > summary").click()
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        left, right = (found.rect for found in by(browser, "#pair-1 .side"))
        assert (left["y"] == right["y"]) is beside
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_pairs_dark_and_print(opened: Open) -> None:
    browser = opened(many(2, (A, B), "pairs"))
    one(browser, "#pair-1 > summary").click()
    try:
        light, dark = (ink(browser, "screen", scheme, "#pair-1") for scheme in ("light", "dark"))
        assert len({*light, *dark}) == 4
        assert ink(browser, "print", "dark", "#pair-1") == ("rgba(0, 0, 0, 1)", "rgba(255, 255, 255, 1)")
        heights = browser.execute_script(
            "const one = document.getElementById('pair-1-texts-a'); return [one.clientHeight, one.scrollHeight]"
        )
        assert heights[0] == heights[1], "all of the text of an open pair is printed"
        assert not one(browser, "#pair-1 .steps").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


@pytest.mark.parametrize("pairs", [1_000, pytest.param(5_000, marks=pytest.mark.long)])
def test_many_pairs_can_be_used(pairs: int, opened: Open) -> None:
    """Fifty at a time: each can be reached by pages, keys, order, search and link. No rule of accessibility is broken,
    and checking them all takes seconds, not minutes: each test has a limit."""
    browser = opened(many(pairs, (A, B), "pairs"))
    assert rows(browser) == [f"pair-{k}" for k in range(1, 51)]
    assert one(browser, "#place").text == f"Rows 1 to 50 of {pairs:,}"
    assert not one(browser, "#previous-rows").is_enabled()
    one(browser, "#next-rows").click()
    assert rows(browser) == [f"pair-{k}" for k in range(51, 101)]
    one(browser, "#pair-100 > summary").click()
    assert one(browser, "#pair-100-texts-b").get_property("textContent") == B
    one(browser, "#pair-100-texts-b-p3").click()
    assert [found.get_attribute("id") for found in by(browser, ".twin")] == ["pair-100-texts-a-p3"]
    one(browser, "#pair-100 > summary").send_keys("j")
    assert browser.switch_to.active_element == one(browser, "#pair-101")
    assert one(browser, "#place").text == f"Rows 101 to 150 of {pairs:,}"
    press(browser, "n")
    assert by(browser, ".now") == [], "the open pair is on another page"
    Select(one(browser, "#order")).select_by_value("least")
    assert rows(browser)[0] == f"pair-{pairs}"
    one(browser, "#search").send_keys("b499")
    assert "pair-500" in rows(browser)
    assert len(rows(browser)) < 50
    assert not one(browser, "#next-rows").is_enabled()
    assert one(browser, "#closed").text.startswith(f"{pairs - 200:,} rows are listed without texts")
    one(browser, "#all").click()
    assert accessibility_problems(browser) == []
    browser.get(browser.current_url + "#pair-120")
    browser.refresh()
    assert "pair-120" in rows(browser)


def test_many_pairs_without_scripts(opened: Open, browser: webdriver.Chrome) -> None:
    """The first rows are there, and open; the page says that there are others."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(many(60, (A, B), "pairs"))
        assert len(by(browser, "#rows > .pair")) == 50
        one(browser, "#pair-50 > summary").click()
        assert one(browser, "#pair-50-texts").is_displayed()
        assert "The first 50 of 60 rows are shown" in one(browser, "main").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
