"""The browser of this machine, and how it is started without a person in front of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

PROGRAMS = (
    "chromium-headless-shell",  # takes two thirds of the time that the whole browser takes
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
MISSING = "chromium is missing on this machine: apt install chromium"


def chromium() -> str | None:
    """Find it."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Open it without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
