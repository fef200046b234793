"""Measure the page of a group: whether the heaviest difference can be read on the first screen, keys per decision, and
the time to the next group.

    python scripts/measure_review.py FILE [--groups 20] [--url URL]

FILE has press releases as JSON lines (also .xz) with ``id`` and ``text``. Of these, and of the licence texts of
``scripts/demo``, 20 groups each are opened in a real Chromium, evenly from the largest to the smallest. Decisions are
stored in two indices, which are deleted at the end.
"""

from __future__ import annotations

import argparse
import json
import lzma
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Thread

import uvicorn
from bench_tools import drop_index, loaded
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from es_neardupe import NearDupe, asgi
from es_neardupe.commands.demo import licence_records
from es_neardupe.local_server import control
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "tools"))

from browsers import chromium

SIZES = ((1400, 900), (1366, 650), (420, 900))
TOKEN = "token-of-the-measurement"

READABLE = """
const seen = (one) => {
  const place = one.getBoundingClientRect();
  const bar = document.querySelector(".bar").getBoundingClientRect().top;
  if (!place.height || place.top < 0 || place.bottom > bar) { return false; }
  if (place.left < 0 || place.right > innerWidth) { return false; }
  for (let pane = one.parentElement; pane; pane = pane.parentElement) {
    const frame = pane.getBoundingClientRect();
    const cut = place.top < frame.top - 1 || place.bottom > frame.bottom + 1;
    if (cut && pane !== document.body && getComputedStyle(pane).overflowY !== "visible") { return false; }
  }
  return true;
};
const row = document.querySelector(".rows tr.now");
if (!row) { return seen(document.querySelector(".counts p")); }
const others = [...row.querySelectorAll("td:not(.a)")].filter((one) => !one.querySelector(".same"));
const other = row.querySelector("td.b .variant") || others[0];
const own = row.querySelector("td.a b") || row.querySelector("td.a .caret") || row.querySelector("td.a .clamp");
return scrollY === 0 && seen(own) && seen(other.querySelector("b") || other.firstElementChild);
"""
"""Whether the value of A and that of another document are inside the window and inside every pane."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="press releases as JSON lines")
    parser.add_argument("--groups", type=int, default=20, help="groups of each kind (default 20)")
    parser.add_argument("--url", help="a running server (default: one that is started)")
    given = parser.parse_args()
    client = connect(ConnectionSettings(url=given.url or control.start("opensearch", say=print).url))
    texts = {"measure-press": press_releases(given.file), "measure-licences": licences()}
    readable: dict[tuple[int, int], list[bool]] = {size: [] for size in SIZES}
    keys: dict[str, list[int]] = {"pair": [], "larger": []}
    seconds: list[float] = []
    with ExitStack() as stack:
        stack.callback(client.close)
        browser = stack.enter_context(chromium())
        for name, documents in texts.items():
            stack.callback(drop_index, client, name)
            news = prepared(client, name, documents)
            chosen = evenly([one.group for one in news.groups(fields=None) if differs(one)], given.groups)
            with served(news) as address:
                browser.get(f"{address}/?token={TOKEN}")
                for group in chosen:
                    page = f"{address}/group?id={group}"
                    for size in SIZES:
                        readable[size].append(is_readable(browser, page, size))
                        if not readable[size][-1]:
                            print(f"not readable at {size}: {name} {group}")
                    resize(browser, SIZES[0])
                    pressed, took = decided(browser, page)
                    keys["pair" if pressed == 1 else "larger"].append(pressed)
                    seconds.append(took)
    for size, seen in readable.items():
        print(f"{size[0]} x {size[1]}: the heaviest difference can be read in {sum(seen)} of {len(seen)} groups")
    for kind, some in keys.items():
        if some:
            print(f"{kind}: {len(some)} groups, median {statistics.median(some):g} keys, at most {max(some)}")
    print(f"To the next group: median {statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s")


def differs(group: object) -> bool:
    """Whether a group has different texts."""
    known = getattr(group, "known", None)
    return known is None or known.texts > 1


def evenly(items: list[str], count: int) -> list[str]:
    """So many of the items, evenly."""
    count = min(count, len(items))
    return [items[number * len(items) // count] for number in range(count)]


def press_releases(file: Path) -> Iterator[dict[str, str]]:
    """Press releases, with their first line as title."""
    with (lzma.open if file.suffix == ".xz" else open)(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            title = " ".join(row["text"].strip().partition("\n")[0].split())[:160]
            yield {"id": row["id"], "title": title, "text": row["text"]}


def licences() -> Iterator[dict[str, str]]:
    """The licence texts of the demo."""
    return ({"id": str(one.id), **one.source} for one in licence_records())


def prepared(client: Client, name: str, documents: Iterator[dict[str, str]]) -> NearDupe:
    """An index with its groups."""
    news = loaded(client, name, documents)
    news.group()
    return news


@contextmanager
def served(news: NearDupe) -> Iterator[str]:
    """The address of the application."""
    config = uvicorn.Config(asgi(news, token=TOKEN), port=0, log_level="warning", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    with closing(config.bind_socket()) as listener:
        thread = Thread(target=server.run, args=([listener],))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(60)


def resize(browser: webdriver.Chrome, size: tuple[int, int]) -> None:
    """Set the size of the window, without its frame."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def is_readable(browser: webdriver.Chrome, page: str, size: tuple[int, int]) -> bool:
    """Whether the heaviest difference can be read on the first screen of a page."""
    resize(browser, size)
    browser.get(page)
    return bool(browser.execute_script(READABLE))


def decided(browser: webdriver.Chrome, page: str) -> tuple[int, float]:
    """Decide about a group: a pair is different, more are split by the heaviest difference. Returns the number of keys,
    and the seconds from the last one to the next group."""
    browser.get(page)
    texts = int(browser.find_element(By.ID, "group").get_attribute("data-size") or 0)
    keys = ["d"] if texts == 2 else ["x", Keys.ENTER]
    wait = WebDriverWait(browser, 60)
    loaded = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    wait.until(lambda one: one.execute_script(f"return {loaded} > 0 && performance.now() > {loaded} + 300"))
    ActionChains(browser).send_keys(*keys[:-1]).perform()
    began = time.perf_counter()
    ActionChains(browser).send_keys(keys[-1]).perform()
    wait.until(lambda one: one.current_url != page and one.find_elements(By.CSS_SELECTOR, "#group, table.list"))
    return len(keys), time.perf_counter() - began


if __name__ == "__main__":
    main()
