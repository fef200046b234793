"""The application of `serve` in a real Chromium: from the printed address to a comparison."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pytest
import uvicorn
from browsers import accessibility_problems, chromium, emulated, set_width
from page_reader import NASTY
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from server_tools import change, family, make_index, put, words

from es_neardupe import NearDupe, Settings, asgi
from es_neardupe.groups.decisions import Decisions
from es_neardupe.index.index import opened
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

TOKEN = "token-of-the-tests"
SOURCES = {
    **{f"l{n}": {"title": f"Harbour {n}", "body": text} for n, text in enumerate(family("large", 5))},
    **{f"s{n}": {"title": f"{NASTY} {n}", "body": f"{NASTY} {text}"} for n, text in enumerate(family("small", 2))},
}


def letter(number: int) -> str:
    towns = ("Akron", "Boston", "New Haven", "Salem")
    before, after = (" ".join(words(part, 150)) for part in ("before", "after"))
    season = "autumn" if number == 7 else "spring"
    return f"Dear citizens of {towns[number % 4]}: {before} we grant ${number + 1},000 {after} until the {season}."


LETTERS = {f"n{n}": {"title": f"Letter {n}", "body": letter(n)} for n in range(200)}


@pytest.fixture
def index(request: pytest.FixtureRequest, client: Client, index_name: str) -> str:
    """An index with two groups, or with other documents."""
    make_index(client, index_name, {"title": {"type": "text"}, "body": {"type": "text"}})
    put(client, index_name, getattr(request, "param", SOURCES))
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)))
    news.enrich()
    news.group()
    return index_name


@pytest.fixture
def printed(index: str, server_url: str) -> Iterator[str]:
    """The address that `serve` prints."""
    command = [sys.executable, "-m", "es_neardupe", "serve", index, "--url", server_url, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        yield program.stdout.readline().strip()
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=60)


@pytest.fixture
def address(index: str, server_url: str) -> Iterator[str]:
    """The address of the same application, in a thread: a process takes two seconds of processor time."""
    with (
        closing(connect(ConnectionSettings(url=server_url))) as client,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        application = asgi(NearDupe(index, client), token=TOKEN)
        server = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off", ws="none"))
        thread = Thread(target=server.run, args=([listener],))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/?token={TOKEN}"
        server.should_exit = True
        thread.join(60)


def find(browser: webdriver.Chrome, selector: str) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, selector)


def follow(browser: webdriver.Chrome, clicked: WebElement) -> None:
    """Click, and wait for the next page."""
    before = browser.current_url
    clicked.click()
    WebDriverWait(browser, 60).until(lambda one: one.current_url != before)


def check(browser: webdriver.Chrome, width: int) -> None:
    """Nothing is cut off in a window of this width."""
    set_width(browser, width)
    wide = browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{browser.current_url} is {wide} pixels too wide for {width}"
    set_width(browser, 1400)


def test_from_the_printed_address_to_a_comparison(printed: str) -> None:
    with chromium() as browser:
        browser.get(printed)
        assert "token" not in browser.current_url
        assert "2 groups" in find(browser, ".sum").text
        (cookie,) = browser.get_cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert browser.execute_script("return document.cookie") == ""
        for width in (1400, 500):
            check(browser, width)

        follow(browser, find(browser, ".chart a"))  # the least similar groups
        assert int(find(browser, "#total").text) >= 1
        follow(browser, find(browser, "nav a[href='/groups']"))
        assert find(browser, "#total").text == "2"
        assert "<script>" in find(browser, "tbody").text
        field = find(browser, "input[name=min_size]")
        field.send_keys("3")
        before = browser.current_url
        field.send_keys(Keys.ENTER)
        WebDriverWait(browser, 60).until(lambda one: one.current_url != before)
        assert find(browser, "#total").text == "1"
        check(browser, 500)

        follow(browser, find(browser, "tbody a"))
        assert "Harbour" in find(browser, "h1").text
        assert len(browser.find_elements(By.CSS_SELECTOR, ".rail tbody tr")) == 5
        assert len(browser.find_elements(By.CSS_SELECTOR, "mark")) == 4
        check(browser, 500)
        press_on(browser, "c")
        find(browser, "button.next").click()
        assert find(browser, "output.counter").text.startswith("Difference 1 of ")
        check(browser, 500)

        follow(browser, find(browser, "nav a[href='/search']"))
        field = find(browser, "input[name=q]")
        field.send_keys("title:alert", Keys.ENTER)
        WebDriverWait(browser, 60).until(lambda one: "?q=" in one.current_url)
        assert find(browser, "#total").text == "2"
        assert "<script>" in find(browser, ".hits").text
        find(browser, ".hits summary").click()
        check(browser, 500)

        before = browser.current_url
        find(browser, ".sign-out button").click()
        WebDriverWait(browser, 60).until(lambda one: one.current_url != before)
        assert "needs the token" in find(browser, "body").text

        log = browser.get_log("browser")
        assert [one for one in log if "401" not in one["message"]] == []
        events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        asked = {one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"}
        assert {re.match(r"http://127\.0\.0\.1:\d+/|chrome:|data:", one) is not None for one in asked} == {True}


def press(browser: webdriver.Chrome, *keys: str) -> None:
    """Press keys that stay on the page."""
    ActionChains(browser).send_keys(*keys).perform()


@contextmanager
def leaving(browser: webdriver.Chrome) -> Iterator[None]:
    """Wait for the next page, perhaps of the same address."""
    browser.execute_script("window.isBefore = true")
    yield
    arrived = "return !window.isBefore && document.readyState === 'complete'"
    waiting = WebDriverWait(browser, 20, ignored_exceptions=[WebDriverException])  # of a page that is just replaced
    waiting.until(lambda one: one.execute_script(arrived))


def press_on(browser: webdriver.Chrome, key: str) -> None:
    """Press a key that leads to another page."""
    with leaving(browser):
        press(browser, key)


def click_on(browser: webdriver.Chrome, label: str) -> None:
    """Press a button that leads to another page."""
    with leaving(browser):
        browser.find_element(By.XPATH, f"//button[starts-with(normalize-space(), '{label}')]").click()


def settle(browser: webdriver.Chrome) -> None:
    """Wait until the page takes decisions: keys that were meant for the page before are ignored."""
    loaded = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    script = f"return {loaded} > 0 && performance.now() > {loaded} + 300"
    WebDriverWait(browser, 60).until(lambda one: one.execute_script(script))


def decide(browser: webdriver.Chrome, *keys: str) -> None:
    """Press the keys of a decision; the last one stores it."""
    settle(browser)
    press(browser, *keys[:-1])
    press_on(browser, keys[-1])


def said(browser: webdriver.Chrome) -> str:
    """What the bar says was done."""
    return find(browser, "#said").text


def readable(browser: webdriver.Chrome, element: WebElement) -> bool:
    """Whether an element is inside the window and inside each pane that scrolls."""
    script = """
      let one = arguments[0].getBoundingClientRect();
      if (!one.height || one.top < 0 || one.bottom > innerHeight || one.right > innerWidth) { return false; }
      for (let pane = arguments[0].parentElement; pane; pane = pane.parentElement) {
        const frame = pane.getBoundingClientRect();
        const cut = one.top < frame.top - 1 || one.bottom > frame.bottom + 1;
        if (cut && getComputedStyle(pane).overflowY !== "visible") { return false; }
      }
      return one.bottom <= document.querySelector(".bar").getBoundingClientRect().top;
    """
    return bool(browser.execute_script(script, element))


def test_a_review_by_keyboard(address: str, client: Client, index_name: str, tmp_path: Path) -> None:
    """Open the next group, split it by a difference, take it back, decide about a pair with one key, export."""
    news, downloads = NearDupe(index_name, client), tmp_path
    with chromium() as browser:
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
        named(browser, address, "Zoë")
        assert find(browser, "input[name=name]").get_attribute("value") == "Zoë"
        assert "0 of 2 groups" in find(browser, "body").text
        follow(browser, find(browser, "a.start"))
        group = browser.current_url
        assert find(browser, "#place-in-queue").text == "1 of 2"
        for width, height in ((1400, 900), (1366, 650), (420, 900)):
            browser.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
            )
            browser.refresh()
            for cell in browser.find_elements(By.CSS_SELECTOR, ".rows tr.now > td"):
                assert readable(browser, cell), (width, height)
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.refresh()
        first = find(browser, "tr.now").get_attribute("data-place")
        press(browser, "j")
        assert find(browser, "tr.now").get_attribute("data-place") != first
        press(browser, "k")
        press(browser, "x")
        assert "parts (" in find(browser, "#what").text
        assert browser.switch_to.active_element == find(browser, "#store")
        assert find(browser, ".rail .chip").text == "1"
        press(browser, Keys.ESCAPE)
        assert not find(browser, "#what").is_displayed()
        assert news.decisions() == []

        decide(browser, "x", Keys.ENTER)
        (split,) = news.decisions()
        assert (split.author, split.verdict.value, len(split.documents)) == ("Zoë", "split", 5)
        assert f"Stored {max(split.parts or ())} parts" in said(browser)
        assert "<script>" in find(browser, "h1").text  # the next group, of two texts
        decide(browser, "u")  # back in the group before
        assert browser.current_url.partition("&")[0] == group.partition("&")[0]
        assert re.match(r"Taken back: \d parts: l\d, l\d and 3 more", said(browser))
        assert news.decisions() == []

        assert find(browser, ".rail .at").get_attribute("data-text") == "0"
        press(browser, "1", "1", "2")  # each digit goes on to the next document
        assert "2 without a part stay undecided" in find(browser, "#what").text
        decide(browser, "1", "1", Keys.ENTER)
        (apart,) = news.decisions()
        assert sorted(Counter(apart.parts).values()) == [1, 4]
        decide(browser, "d")  # the pair: stored at once, and none is left
        assert "All 2 groups are decided" in find(browser, "body").text
        assert len(news.decisions()) == 2
        browser.get(group)
        press(browser, "t")
        note = find(browser, "input[name=note]")
        note.send_keys("sadn")  # keys in a field are text
        assert note.get_attribute("value") == "sadn"
        with leaving(browser):
            note.send_keys(Keys.ENTER)
        assert "Stored note" in said(browser)
        assert [one.note for one in news.decisions()].count("sadn") == 1
        decide(browser, "e")
        assert "Stored keep" in said(browser)

        follow(browser, find(browser, "nav a[href='/decisions']"))
        assert find(browser, "#total").text == "4"  # the second split has replaced the withdrawn one
        check(browser, 500)
        set_width(browser, 390)
        cut = "const one = document.querySelector('.scroll'); return one.scrollWidth - one.clientWidth"
        assert browser.execute_script(cut) <= 0
        set_width(browser, 1400)
        find(browser, "a[download]").click()
        WebDriverWait(browser, 60).until(lambda one: (downloads / "decisions.csv").exists())
        assert (downloads / "decisions.csv").read_text("utf-8-sig").count("\nnote,") == 1


FEW = {
    f"{size}-{letter}": {"title": f"Group of {size}", "body": text}
    for size in (2, 3, 4)
    for letter, text in zip("abcd", family(f"few {size}", size), strict=False)
}


def tick(browser: webdriver.Chrome, letter: str) -> str:
    """Choose a document; returns its id."""
    head = browser.find_element(By.XPATH, f"//thead//th[.//*[contains(@class, 'letter') and text()='{letter}']]")
    head.find_element(By.CSS_SELECTOR, "input[type=checkbox]").click()
    return head.find_element(By.CSS_SELECTOR, ".id").text


@pytest.mark.parametrize("index", [FEW], indirect=True)
def test_a_canceled_preview_leaves_nothing_behind(address: str, client: Client, index_name: str) -> None:
    """A pair has no preview; of more texts, the next decision is about what is chosen then."""
    news = NearDupe(index_name, client)
    with chromium() as browser:
        browser.get(address)
        open_group(browser, "Group of 2")
        press(browser, "x")
        assert not find(browser, "#what").is_displayed()
        press(browser, Keys.ESCAPE)
        decide(browser, "s")
        assert [one.verdict.value for one in news.decisions()] == ["same"]
        open_group(browser, "Group of 3")
        press(browser, "s", Keys.ESCAPE)
        kept = tick(browser, "B")
        decide(browser, "e")
        assert [[two.id for two in one.documents] for one in news.decisions()[:1]] == [[kept]]
        open_group(browser, "Group of 4")
        press(browser, "s", Keys.ESCAPE)
        noted = tick(browser, "B")
        press(browser, "t")
        press(browser, "hi")
        press_on(browser, Keys.ENTER)
        notes = [one for one in news.decisions() if one.verdict.value == "note"]
        assert [[two.id for two in one.documents] for one in notes] == [[noted]]


@pytest.mark.parametrize("index", [FEW], indirect=True)
def test_a_note_that_goes_with_the_next_decision_is_shown(address: str, client: Client, index_name: str) -> None:
    """Also after Escape, and next to a preview; an empty field is closed."""
    news = NearDupe(index_name, client)
    with chromium() as browser:
        browser.get(address)
        for title, keys in (("Group of 2", ["s"]), ("Group of 4", ["s", Keys.ENTER])):
            open_group(browser, title)
            note = find(browser, "input[name=note]")
            assert not note.is_displayed()
            press(browser, "t", Keys.ESCAPE)
            assert not note.is_displayed()
            press(browser, "t")
            press(browser, title, Keys.ESCAPE)
            settle(browser)
            for key in keys[:-1]:
                press(browser, key)
            assert note.is_displayed()
            press_on(browser, keys[-1])
            assert [(one.verdict.value, one.note) for one in news.decisions()[:1]] == [("same", title)]
        open_group(browser, "Group of 3")
        press(browser, "a", "t")
        press(browser, "with the preview")
        press_on(browser, Keys.ENTER)
        assert [(one.verdict.value, one.note) for one in news.decisions()[:1]] == [("different", "with the preview")]


@pytest.mark.parametrize("index", [FEW], indirect=True)
def test_one_document_can_be_kept(address: str, client: Client, index_name: str) -> None:
    """With several chosen, the button says so, and the key does nothing."""
    news = NearDupe(index_name, client)
    with chromium() as browser:
        browser.get(address)
        open_group(browser, "Group of 4")
        keep = find(browser, "button[value=keep]")
        assert keep.text.startswith("Keep A")
        chosen = tick(browser, "B")
        assert keep.text.startswith("Keep B")
        tick(browser, "C")
        assert keep.text.startswith("Keep one")
        assert not keep.is_enabled()
        settle(browser)
        press(browser, "e")
        tick(browser, "C")
        decide(browser, "e")
        assert "Stored keep" in said(browser)
        assert [[two.id for two in one.documents] for one in news.decisions()] == [[chosen]]


def test_a_decision_where_two_texts_are_read(address: str, client: Client, index_name: str) -> None:
    """The comparison has the keys of the group: one stores, another takes it back, and errors lead back."""
    news = NearDupe(index_name, client)
    with chromium() as browser:
        named(browser, address, "ann")
        open_group(browser, "alert")
        press_on(browser, "c")
        comparison = browser.current_url
        assert "Group 2 of 2" in find(browser, ".decisions").text
        press(browser, "j")
        assert find(browser, "output.counter").text.startswith("Difference 1 of ")
        press(browser, "?")
        assert find(browser, ".all-keys table").is_displayed()
        press(browser, "t")
        note = find(browser, "input[name=note]")
        note.send_keys("sdn")
        with leaving(browser):
            note.send_keys(Keys.ENTER)
        assert "Stored note" in said(browser)
        assert browser.current_url.startswith(comparison)
        decide(browser, "e")
        assert "Stored keep" in said(browser)
        decide(browser, "E")  # of the second one, instead of the first
        assert "Stored keep" in said(browser)
        assert [one.documents[0].id for one in news.decisions() if one.verdict.value == "keep"] == ["s1"]
        decide(browser, "d")  # the next open group
        assert "Harbour" in find(browser, "h1").text
        assert "Stored different" in said(browser)
        assert [one.verdict.value for one in news.decisions()] == ["different", "keep", "note"]

        browser.get(comparison)
        assert "You call these different" in find(browser, "main").text
        decide(browser, "u")
        assert said(browser) == "Taken back: different: s0 and s1"
        assert browser.current_url.startswith(comparison)
        press_on(browser, "p")
        assert "Harbour" in find(browser, "h1").text
        press_on(browser, "c")  # two of five texts: their group follows, until all are decided
        decide(browser, "s")
        assert "Stored same" in said(browser)
        assert "Harbour" in find(browser, "h1").text
        press_on(browser, "n")
        assert "alert" in find(browser, "h1").text

        browser.get(comparison)
        settle(browser)
        change(client, index_name, "s0", {"body": "Another text of a few words"})
        decide(browser, "s")
        assert "has changed since you saw it" in find(browser, "[role=alert]").text
        press_on(browser, Keys.ESCAPE)
        assert "changed since enrich" in find(browser, "main").text
        assert browser.find_elements(By.CSS_SELECTOR, "[name=verdict]") == []


def test_keys_that_were_meant_for_the_page_before(address: str, client: Client, index_name: str) -> None:
    """A key that is held, or pressed when the next group has just appeared, decides nothing."""
    with chromium() as browser:
        browser.get(address)
        open_group(browser, "alert")
        settle(browser)
        press_s = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 's', bubbles: true, repeat: %s}))"
        browser.execute_script(press_s % "true")
        browser.execute_script(f"performance.now = () => 0; {press_s % 'false'}; delete performance.now")
        assert find(browser, "h1").is_displayed()
        assert NearDupe(index_name, client).decisions() == []
        decide(browser, "s")
        assert len(NearDupe(index_name, client).decisions()) == 1


@pytest.mark.parametrize("index", [LETTERS], indirect=True)
def test_form_letters_are_read_as_one_letter_and_a_table(address: str, tmp_path: Path) -> None:
    with chromium() as browser:
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
        browser.get(address)
        follow(browser, find(browser, "nav a[href='/groups']"))
        follow(browser, find(browser, "tbody a"))
        marks = browser.find_elements(By.CSS_SELECTOR, "mark")
        assert [one.text[0] for one in marks] == ["1", "2", "3"]
        assert find(browser, ".rows tbody tr").get_attribute("data-kind") == "amount"
        assert len(browser.find_elements(By.CSS_SELECTOR, ".rail tbody tr")) == 200
        assert not find(browser, ".collation").is_displayed()
        for width in (1400, 500):
            check(browser, width)
        set_width(browser, 1100)
        others = browser.find_elements(By.CSS_SELECTOR, ".rows tr[data-place]:not(.now) .variants")
        assert [one.size["height"] for one in others if one.size["height"] > 30] == []  # one line of values
        set_width(browser, 1400)

        press(browser, "v")
        rows = browser.find_elements(By.CSS_SELECTOR, ".collation tbody tr")
        assert len(rows) == 200
        document, place, *_ = browser.find_elements(By.CSS_SELECTOR, ".collation .sort")
        place.click()
        assert find(browser, "th[aria-sort]").get_attribute("aria-sort") == "ascending"
        head = browser.find_elements(By.CSS_SELECTOR, ".collation thead th").index(find(browser, "th[aria-sort]"))
        script = "return [...document.querySelectorAll('.collation tbody tr')].map((row) => row.cells[%d].textContent)"
        amounts = [int(one.strip("$").replace(",", "")) for one in browser.execute_script(script % head)[1:]]
        assert len(amounts) == 199
        assert amounts == sorted(amounts)
        place.click()
        assert find(browser, "th[aria-sort]").get_attribute("aria-sort") == "descending"
        document.click()
        ids = [one.text for one in browser.find_elements(By.CSS_SELECTOR, ".collation tbody .name")][1:]
        assert ids == sorted(
            ids, key=lambda id: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", id)]
        )
        press(browser, "v")

        second = browser.find_elements(By.CSS_SELECTOR, ".rail tbody tr")[1]
        chosen = second.find_element(By.CSS_SELECTOR, ".id").text
        follow(browser, second.find_element(By.CSS_SELECTOR, "a.letter"))
        assert find(browser, ".rows thead .id").text == chosen
        press(browser, "x")
        assert "200 parts" in find(browser, "#what").text or "All 200 differ" in find(browser, "#what").text
        previews = []
        for _ in range(2):  # by town, and by season
            press(browser, Keys.ESCAPE, "j", "x")
            previews.append(find(browser, "#what").text)
        assert any(one.startswith("2 parts (199, 1): ") for one in previews), previews
        press(browser, Keys.ESCAPE)
        find(browser, ".who summary").click()
        find(browser, ".who a[download]").click()
        WebDriverWait(browser, 60).until(lambda one: list(tmp_path.glob("group-*.html")))
        browser.get(next(tmp_path.glob("group-*.html")).as_uri())
        assert len(browser.find_elements(By.CSS_SELECTOR, ".collation tbody tr")) == 200
        assert find(browser, ".collation").is_displayed()
        assert accessibility_problems(browser) == []
        check(browser, 500)
        assert browser.get_log("browser") == []


def named(browser: webdriver.Chrome, address: str, reviewer: str) -> None:
    """Open the application as a reviewer."""
    browser.get(address)
    field = find(browser, "input[name=name]")
    field.clear()
    field.send_keys(reviewer)
    press_on(browser, Keys.ENTER)


def open_group(browser: webdriver.Chrome, title: str) -> None:
    """Open the group of a title from the list of groups."""
    follow(browser, find(browser, "nav a[href='/groups']"))
    follow(browser, browser.find_element(By.PARTIAL_LINK_TEXT, title))


def progress(browser: webdriver.Chrome) -> str:
    """The progress of the review, as the overview shows it."""
    follow(browser, find(browser, ".home"))
    return find(browser, "#review-progress").text


def test_a_changed_text_returns_to_review(address: str, client: Client, index_name: str) -> None:
    news = NearDupe(index_name, client)
    with chromium() as browser:
        named(browser, address, "ann")
        open_group(browser, "Harbour")
        decide(browser, "s", Keys.ENTER)
        assert "1 of 2 groups" in progress(browser)
        changed = news.decisions()[0].documents[1].id
        change(client, index_name, changed, {"body": " ".join(SOURCES[changed]["body"].split()[:-3])})
        open_group(browser, "Harbour")
        assert f", {changed}, changed since enrich" in find(browser, ".banner").text
        rows = browser.find_elements(By.CSS_SELECTOR, ".rail tbody tr")
        (row,) = [one for one in rows if one.find_element(By.CSS_SELECTOR, ".id").text == changed]
        assert not row.find_elements(By.CSS_SELECTOR, "input")  # nothing to decide about until then
        news.enrich()
        news.group()
        assert "0 of 2 groups" in progress(browser)


def test_two_reviewers(address: str, client: Client, index_name: str) -> None:
    """Each sees what the other one works on and has decided; nothing that one stores is lost."""
    with chromium() as first, chromium() as second:
        named(first, address, "ann")
        named(second, address, "bob")
        open_group(first, "alert")
        open_group(second, "alert")
        group = first.current_url
        find(first, ".who summary").click()
        click_on(first, "I work on this group")
        second.refresh()
        assert "ann works on this group until" in find(second, ".banner").text
        decide(first, "s")
        decide(second, "d")
        first.get(group)
        assert "You call" in find(first, ".banner").text
        assert "same, bob different: the pair is open" in find(first, ".banner").text
        follow(first, find(first, "nav a[href='/groups']"))
        assert "disputed" in find(first, "tbody").text
        decide(second, "u")
        first.get(group)
        assert first.find_elements(By.CSS_SELECTOR, ".banner") == []
        assert [one.author for one in NearDupe(index_name, client).decisions()] == ["ann"]


def test_undo_names_the_last_decision_of_the_reviewer(address: str, client: Client, index_name: str) -> None:
    """In this group, whatever its reference was, and whatever another reviewer has decided since."""
    news = NearDupe(index_name, client)
    with chromium() as browser:
        named(browser, address, "ann")
        open_group(browser, "alert")
        group = browser.current_url
        decide(browser, "d")
        (last,) = news.decisions()
        news.decide("note", last.documents[0].id, author="bob", note="later")
        browser.back()  # the page of the history shows it, too
        WebDriverWait(browser, 60).until(lambda one: one.find_elements(By.CSS_SELECTOR, ".undo"))
        assert browser.current_url == group
        names = f"different: {last.documents[0].id} and {last.documents[1].id}"
        assert names in (find(browser, ".undo").get_attribute("title") or "")
        decide(browser, "u")
        assert said(browser) == "Taken back: different: s0 and s1"
        assert [(one.author, one.verdict.value) for one in news.decisions()] == [("bob", "note")]
        assert browser.find_elements(By.CSS_SELECTOR, ".undo") == []


def test_without_scripts(address: str, client: Client, index_name: str) -> None:
    """Everything stands on the page; a decision about more than two texts has a page with a preview."""
    news = NearDupe(index_name, client)
    with chromium() as browser:
        browser.get(address)
        open_group(browser, "Harbour")
        group = browser.current_url
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            browser.get(group)
            for selector in (".rows tr[data-place]", ".collation", ".rail tr", ".notes li", "input[name=note]"):
                assert find(browser, selector).is_displayed()
            find(browser, "input[data-choose='1']").send_keys(Keys.SPACE)  # a click may hit the bar
            follow(browser, find(browser, "#chosen"))
            assert "These 2 parts are different" in find(browser, "h1").text
            assert news.decisions() == []
            follow(browser, find(browser, "#store"))
            assert "<script>" in find(browser, "h1").text
            assert sorted(Counter(news.decisions()[0].parts).values()) == [1, 4]
        finally:
            browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize(("width", "height"), [(420, 900), (683, 450)])  # a phone; 1366 x 900 at 200 %
def test_narrow_windows_have_all_controls(
    address: str, client: Client, index_name: str, width: int, height: int
) -> None:
    """The name of the reviewer opens those of the site, More those of the bar; the first screen has what differs."""
    with chromium() as browser:
        named(browser, address, "A reviewer with a long name of some department")
        open_group(browser, "alert")
        group = find(browser, "body").get_attribute("data-group") or ""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.refresh()
        assert all(readable(browser, cell) for cell in browser.find_elements(By.CSS_SELECTOR, ".rows tr.now > td"))
        assert all(one.is_displayed() for one in browser.find_elements(By.CSS_SELECTOR, ".bar .main"))
        find(browser, ".who summary").click()
        controls = browser.find_elements(By.CSS_SELECTOR, ".who :is(a, button, input[type=text])")
        assert [one.text for one in controls] == [
            *("Search", "Decisions", "", "Change", "Sign out", "I work on this group", "Save this page as a file")
        ]
        for one in controls:
            assert one.is_displayed()
            assert 0 <= one.rect["x"] <= one.rect["x"] + one.rect["width"] <= width
        assert accessibility_problems(browser) == []
        click_on(browser, "I work on this group")
        assert Decisions(opened(NearDupe(index_name, client), groups=True)).claims([group])
        find(browser, "#more").click()
        offered = browser.find_elements(By.CSS_SELECTOR, ".bar :is(button, a):not([aria-hidden])")
        assert [one.text for one in offered if one.is_displayed()] == [
            *("Same", "Different", "Keep A", "Note", "More", "Next", "?")
        ]
        check(browser, width)
        find(browser, "[data-key='?']").click()
        assert find(browser, "dialog").is_displayed()


RTL = "\u202eשלום\u2066 <script>alert(1)</script> \u200f"
LONG = " ".join(f"{RTL} {word}" if n % 500 == 0 else word for n, word in enumerate(words("long", 50_000)))
HOSTILE = {
    "a": {"title": f"{RTL} title", "body": LONG},
    "b": {"title": f"{RTL} other", "body": f"{LONG} <img src=x onerror=alert(1)>"},
    "c": {"title": f"{RTL} third", "body": LONG.replace("</script>", "</script><b>", 20)},
}


@pytest.mark.parametrize("index", [HOSTILE], indirect=True)
def test_texts_of_50_000_words_full_of_scripts_and_marks_of_direction(address: str) -> None:
    """They are shown as text, in pages of bounded size, and nothing of them is run."""
    with chromium() as browser:
        browser.get(address)
        follow(browser, find(browser, "nav a[href='/groups']"))
        assert "<script>alert(1)</script>" in find(browser, "tbody").text
        follow(browser, find(browser, "tbody a"))
        assert len(browser.find_elements(By.CSS_SELECTOR, ".rows thead th")) == 4
        assert "words not shown, the same in all" in find(browser, "#text").text
        check(browser, 500)
        pages = [browser.current_url]
        press_on(browser, "c")
        pages.append(browser.current_url)
        assert browser.find_elements(By.CSS_SELECTOR, "img, script:not([nonce]):not(:empty)[src]") == []
        for page in pages:
            browser.get(page)
            size = browser.execute_script("return document.documentElement.outerHTML.length")
            assert size < 4_000_000, (page, size)
        assert browser.get_log("browser") == []


LONG_WORDS = {
    f"{len(ends)}{end}": {
        "title": f"Long words of {len(ends)}",
        "body": f"{' '.join(words(f'before {len(ends)}', 60))} {'x' * 3000}{end}",
    }
    for ends in ("ay", "awyz")
    for end in ends
}


@pytest.mark.parametrize("index", [LONG_WORDS], indirect=True)
def test_long_words_are_shown_where_they_differ(address: str) -> None:
    with chromium() as browser:
        browser.get(address)
        for title in ("Long words of 2", "Long words of 4"):
            open_group(browser, title)
            for width in (1024, 420):
                set_width(browser, width)
                cut = browser.execute_script(
                    "return [...document.querySelectorAll('.now .clamp')].filter((one) => one.clientHeight && "
                    "(one.scrollHeight > one.clientHeight || one.scrollWidth > one.clientWidth))"
                    ".map((one) => one.textContent)"
                )
                assert cut == [], (title, width)
            set_width(browser, 1400)


ORIGIN = {
    "url": f"https://news.example/{'a-long-address' * 40}",
    "source": "s" * 300,
    "published": "2026-11-24T10:00:00Z",
}
LONG_ID = f"w2{'-a-long-id' * 10}"
WIDE = {
    **{f"c{n}": {"body": " ".join(words("wide", 60)), **ORIGIN, "url": f"{ORIGIN['url']}?{n}"} for n in range(20)},
    **{id: {"body": text, **ORIGIN} for id, text in zip(("w0", "w1", LONG_ID), family("wide", 3), strict=True)},
}


@pytest.mark.parametrize("index", [WIDE], indirect=True)
def test_long_values_are_wrapped_or_scrolled(address: str, client: Client, index_name: str) -> None:
    """In both widths, with all details open: no page is too wide, no cell too tall, and all follow the rules of
    accessibility."""
    news = NearDupe(index_name, client)
    groups = sorted(news.groups(), key=lambda one: one.size)
    news.decide("note", "w1", author="ann " * 20, note="look " * 60)
    news.decide("different", "w1", [LONG_ID], author="ann")
    with chromium() as browser:
        browser.get(address)
        root = browser.current_url.partition("/?")[0].rstrip("/")
        for page in ("/groups", "/decisions", *(f"/group?id={one.group}" for one in groups)):
            browser.get(root + page)
            for details in browser.find_elements(By.TAG_NAME, "details"):
                browser.execute_script("arguments[0].open = true", details)
            for width in (1400, 420):
                check(browser, width)
                set_width(browser, width)
                assert accessibility_problems(browser) == [], (page, width)
                tall = browser.execute_script(
                    "return [...document.querySelectorAll('td')].filter((one) => one.offsetHeight > 300)"
                    ".map((one) => one.textContent)"
                )
                assert tall == [], (page, width)
                cut = browser.execute_script(
                    "return [...document.querySelectorAll('.column small:not(.verdict)')].filter((one) => "
                    "one.getBoundingClientRect().right > one.closest('th').getBoundingClientRect().right)"
                    ".map((one) => one.textContent)"
                )
                assert cut == [], (page, width)  # of a long id, not the similarity
        browser.get(f"{root}/decisions")
        set_width(browser, 420)
        undo = find(browser, "tbody button")
        browser.execute_script("arguments[0].scrollIntoView({ inline: 'end' })", undo)
        assert undo.rect["x"] + undo.rect["width"] <= 420


def shown_pages(browser: webdriver.Chrome, address: str) -> Iterator[str]:
    """Each page of the application, with decisions."""
    named(browser, address, "ann")
    open_group(browser, "Harbour")
    group = browser.current_url
    press(browser, "x")
    yield "preview in place"
    press(browser, Keys.ESCAPE, "v")
    yield "table"
    browser.get(group)
    with leaving(browser):  # as without scripts
        browser.execute_script(
            "const form = document.getElementById('review');"
            "form.insertAdjacentHTML('beforeend', '<input name=verdict value=apart>'); form.submit()"
        )
    yield "preview of a decision"
    click_on(browser, "Store")
    yield "group of two"
    press_on(browser, "c")
    yield "comparison"
    browser.get(group)
    yield "group"
    for page in ("/", "/groups", "/search?q=title:harbour", "/decisions", "/document?id=l0", "/group?id=unknown"):
        browser.get(group.partition("/group")[0] + page)
        yield page


def test_pages_follow_the_rules_of_accessibility(address: str) -> None:
    """In both color schemes and widths: each page with two of the four combinations, in turn."""
    problems = []
    with chromium() as browser:
        for number, page in enumerate(shown_pages(browser, address)):
            for scheme, width in (("light", (1400, 500)[number % 2]), ("dark", (500, 1400)[number % 2])):
                with emulated(browser, prefers_color_scheme=scheme):
                    set_width(browser, width)
                    problems += [f"{page}, {scheme}, {width}: {one}" for one in accessibility_problems(browser)]
            set_width(browser, 1400)
    assert not problems, "\n".join(problems)


def test_pages_on_paper(address: str) -> None:
    """Without controls, dark on white also for those who prefer dark pages, and nothing cut off by a scroll bar."""
    with chromium() as browser:
        for page in shown_pages(browser, address):
            with emulated(browser, media="print", prefers_color_scheme="dark"):
                shown = browser.execute_script(
                    "return [...document.querySelectorAll('nav, .bar, input, select, .keys, .pages')].filter((one) => "
                    "one.checkVisibility({ visibilityProperty: true })).map((one) => one.outerHTML)"
                )
                assert shown == [], page
                background, ink = (
                    browser.execute_script(f"return getComputedStyle(document.body).{name}")
                    for name in ("backgroundColor", "color")
                )
                assert (background, ink) == ("rgb(255, 255, 255)", "rgb(0, 0, 0)"), page
                cut = browser.execute_script(
                    "return [...document.querySelectorAll('.scroll, .text, .rows, .edition')].filter((one) => "
                    "getComputedStyle(one).overflowX !== 'visible').map((one) => one.outerHTML.slice(0, 200))"
                )
                assert cut == [], page
