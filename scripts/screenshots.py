"""Make the pictures of docs/review.md: pages of ``serve`` in a real Chromium. Stores no decision.

The address is the one that ``es-neardupe serve`` or ``scripts/demo`` prints.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.common.by import By

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "tools"))

from browsers import chromium, emulated  # noqa: E402  (a module of the tests)

PICTURES = ROOT / "docs" / "pictures"
WIDE, NARROW = (1400, 900), (420, 900)


def main() -> None:
    """Write a PNG file for each page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="the address that `serve` prints, with its token")
    parser.add_argument("--pair", help="id of a group of two (default: the least similar one in which numbers differ)")
    parser.add_argument("--group", help="id of a group of five or more (default: the largest that is not reviewed)")
    given = parser.parse_args()
    start = "{0.scheme}://{0.netloc}".format(urlsplit(given.address))
    with chromium() as browser:
        browser.get(given.address)  # exchanges the token for a cookie
        take(browser, f"{start}/", "review-overview", WIDE)
        take(browser, f"{start}/groups", "review-groups", WIDE)
        pair = f"{start}/group?id={given.pair}" if given.pair else first_pair(browser, start)
        take(browser, pair, "review-group", WIDE)
        document = browser.find_element(By.CSS_SELECTOR, "a[href*='/document?']").get_attribute("href") or ""
        take(browser, pair, "review-group-narrow", NARROW)
        take(browser, document, "review-document", WIDE)
        with emulated(browser, prefers_color_scheme="dark"):
            resize(browser, WIDE)
            browser.get(f"{start}/group?id={given.group}" if given.group else f"{start}/next")
            browser.find_element(By.CSS_SELECTOR, "button[data-key=x]").click()
            save(browser, "review-split")


def first_pair(browser: webdriver.Chrome, start: str) -> str:
    """The address of the least similar group of two documents."""
    browser.get(f"{start}/groups?max_size=2&difference=number&order=least-similar")
    while browser.find_elements(By.ID, "comparing"):  # not all groups are known yet
        browser.refresh()
    return browser.find_element(By.CSS_SELECTOR, "table.list tbody a").get_attribute("href") or ""


def resize(browser: webdriver.Chrome, size: tuple[int, int]) -> None:
    """Set the size of the window, without its frame."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def take(browser: webdriver.Chrome, address: str, name: str, size: tuple[int, int]) -> None:
    """Write a picture of the visible part of a page in a window of this size."""
    resize(browser, size)
    browser.get(address)
    save(browser, name)


def save(browser: webdriver.Chrome, name: str) -> None:
    """Write a picture of the visible part of the page."""
    file = PICTURES / f"{name}.png"
    browser.save_screenshot(str(file))
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
