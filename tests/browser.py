"""A real browser for the tests of pages: Debian's chromium without a window, driven by Selenium."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
"""Nothing but the page: no window, and no requests of the browser's own."""

INWARD = ("data:", "chrome:", "chrome-untrusted:")
"""Prefixes of addresses without a request: data within a page, the browser's first page."""

PATIENCE = 120
"""Seconds until a page that is not there is given up; no test judges by the clock."""


@contextmanager
def browser(profile: Path) -> Iterator[webdriver.Chrome]:
    """Start a browser with an empty profile; skip where there is none."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("chromium is not installed; apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.page_load_strategy = "none"  # A page says by itself when it is ready.
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield started
    finally:
        started.quit()


class Opened:
    """A page that is open in a browser, as a test speaks of it."""

    def __init__(self, within: webdriver.Chrome, path: Path) -> None:
        self.within = within
        within.get_log("browser")  # type: ignore[no-untyped-call]
        within.get_log("performance")  # type: ignore[no-untyped-call]
        self.script("delete document.documentElement.dataset.ready")
        within.get(path.as_uri())
        self.wait(lambda: self.script("return document.documentElement.dataset.ready") == "yes")

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait until something holds."""
        # Between two pages there is none to ask, which Selenium calls an error.
        WebDriverWait(self.within, PATIENCE, ignored_exceptions=[WebDriverException]).until(
            lambda _: until()
        )

    def script(self, text: str) -> Any:
        """Run a script in the page and return its value."""
        return self.within.execute_script(text)

    def text(self, selector: str) -> str:
        """Return the text that an element shows."""
        return self.within.find_element(By.CSS_SELECTOR, selector).text

    def shown(self, selector: str) -> bool:
        """Whether an element can be seen."""
        return self.within.find_element(By.CSS_SELECTOR, selector).is_displayed()

    def select(self, selector: str, choice: str) -> None:
        """Choose an entry of a list by its text."""
        Select(self.within.find_element(By.CSS_SELECTOR, selector)).select_by_visible_text(choice)

    def press(self, *keys: str, at: str = "body") -> None:
        """Press keys on an element."""
        self.within.find_element(By.CSS_SELECTOR, at).send_keys(*keys)

    def complaints(self) -> list[str]:
        """Return the browser's warnings and errors since the page was opened."""
        log = self.within.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in log if entry["level"] in ("WARNING", "SEVERE")]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the page was opened."""
        log = self.within.get_log("performance")  # type: ignore[no-untyped-call]
        events = [json.loads(entry["message"])["message"] for entry in log]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
            and not event["params"]["request"]["url"].startswith(INWARD)
        ]

    def colours(self) -> int:
        """Return how many values the pixels of the drawing have."""
        found: int = self.script(
            "const c = document.getElementById('drawing');"
            "return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
        )
        return found
