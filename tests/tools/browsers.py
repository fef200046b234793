"""A real Chromium for tests of pages. Without it and its driver (Debian's packages chromium and chromium-driver) tests
are skipped; with CI set, that is an error."""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import NoReturn

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

# Without its sandbox Chromium also runs as root, as in containers; the pages are ours.
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-features=Translate,OptimizationHints,MediaRouter",
    "--window-size=1400,1000",
)


def missing(reason: str) -> NoReturn:
    """Without a browser the test is skipped; in CI it fails."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


_IDLE: list[webdriver.Chrome] = []
"""Browsers that wait for the next test: it takes seconds to start one."""


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """A browser that logs its console and its requests, without cookies and pages of other tests."""
    browser = _IDLE.pop() if _IDLE else _started()
    try:
        yield browser
        browser.delete_all_cookies()
        browser.switch_to.new_window("tab")  # with a history of its own
        for other in browser.window_handles[:-1]:
            browser.switch_to.window(other)
            browser.close()
        browser.switch_to.window(browser.window_handles[0])
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        for kind in ("browser", "performance"):
            browser.get_log(kind)
    except BaseException:
        browser.quit()
        raise
    _IDLE.append(browser)


def _started() -> webdriver.Chrome:
    if not (CHROMIUM and DRIVER):
        missing("no chromium with chromedriver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for one in OPTIONS:
        options.add_argument(one)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        started = webdriver.Chrome(options=options, service=Service(str(DRIVER)))  # a path: nothing is downloaded
    except WebDriverException as error:
        missing(f"chromium does not start: {error.msg}")
    atexit.register(started.quit)
    return started


def set_width(browser: webdriver.Chrome, width: int) -> None:
    """Show the page in a viewport of this width. A window changes its size some time after it was asked to, and never
    below its smallest one; the viewport is changed when this returns."""
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert browser.execute_script("return window.innerWidth") == width


_AXE = """
const done = arguments[arguments.length - 1];
axe.run({ resultTypes: ['violations'] }).then((found) => done([found.violations, found.passes.length]));
"""
"""Places that follow the rules are not listed: there are thousands."""


def accessibility_problems(browser: webdriver.Chrome) -> list[str]:
    """The rules of axe-core that the page breaks as it is now, such as contrast and names of controls, each with the
    number of places and the first one."""
    browser.set_script_timeout(120)
    if not browser.execute_script("return 'axe' in window"):
        browser.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
    violations, passed = browser.execute_async_script(_AXE)
    assert passed, "no rule was checked"
    return [
        f"{rule['id']} ({len(rule['nodes'])}): {first['html'][:150]} {first['failureSummary'][:150]}"
        for rule in violations
        for first in rule["nodes"][:1]
    ]


@contextmanager
def emulated(browser: webdriver.Chrome, *, media: str = "", **features: str) -> Iterator[None]:
    """The page as shown with another medium, or for preferences: ``emulated(browser, prefers_color_scheme="dark")``."""
    given = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": given})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
