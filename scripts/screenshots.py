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

from browsers import chromium  # noqa: E402  (a module of the tests)

PICTURES = ROOT / "docs" / "pictures"
WIDE, NARROW = (1280, 1150), (420, 1150)


def main() -> None:
    """Write a PNG file for each page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="the address that `serve` prints, with its token")
    parser.add_argument("--group", help="id of the group to show (default: the largest that is not reviewed)")
    given = parser.parse_args()
    start = "{0.scheme}://{0.netloc}".format(urlsplit(given.address))
    with chromium() as browser:
        browser.get(given.address)  # exchanges the token for a cookie
        take(browser, f"{start}/", "review-overview", WIDE)
        take(browser, f"{start}/groups", "review-groups", WIDE)
        group = f"{start}/group?id={given.group}" if given.group else f"{start}/next"
        take(browser, group, "review-group", WIDE)
        take(browser, browser.current_url, "review-group-narrow", NARROW)
        browser.set_window_size(WIDE[0], 600)
        browser.find_element(By.CSS_SELECTOR, ".collation tbody tr:nth-child(2) input[type=checkbox]").click()
        browser.find_element(By.CSS_SELECTOR, "button[value=different]").click()
        save(browser, "review-preview")


def take(browser: webdriver.Chrome, address: str, name: str, size: tuple[int, int]) -> None:
    """Write a picture of the visible part of a page in a window of this size."""
    browser.set_window_size(*size)
    browser.get(address)
    save(browser, name)


def save(browser: webdriver.Chrome, name: str) -> None:
    """Write a picture of the visible part of the page."""
    file = PICTURES / f"{name}.png"
    browser.save_screenshot(str(file))
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
