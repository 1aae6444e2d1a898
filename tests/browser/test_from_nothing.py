"""From nothing at all: an empty folder, a clone, `make run`, and an agent that answers."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.served import PLAIN_PATH, SECONDS, Served
from tests.support.window import ROOT, Visit

SET_UP_SECONDS = 600.0
"""How long packages may take to come over a slow line."""
WAY_OUT = ("PIP_", "SSL_", "REQUESTS_", "HTTP", "http", "NO_PROXY", "no_proxy")
"""Settings by which this machine reaches its packages."""


def packages() -> dict[str, str]:
    """Tell a command where its Python is, and how packages come to whoever runs the tests."""
    home, python = Path.home(), Path(sys.base_prefix) / "bin"
    known = {name: value for name, value in os.environ.items() if name.startswith(WAY_OUT)}
    folders = {"XDG_CONFIG_HOME": str(home / ".config"), "XDG_CACHE_HOME": str(home / ".cache")}
    return {"PATH": f"{python}:{PLAIN_PATH}", **folders, **known}


@pytest.mark.slow
def test_a_clone_runs_and_answers_with_nothing_configured(browser: Browser, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True, timeout=SECONDS)
    bridge = Served(
        tmp_path / "bridge", command=("make", "run"), cwd=checkout, surroundings=packages()
    )
    bridge.start(SET_UP_SECONDS)
    try:
        with closing(Visit(browser, bridge.url)) as person:
            window = person.sign_in(bridge.new_link())
            window.say("write hello.txt from nothing")
            window.button("Allow once").click()
            expect(window.turns).to_contain_text("Wrote hello.txt.")
            window.settled()
    finally:
        bridge.close()
