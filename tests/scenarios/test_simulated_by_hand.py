"""A simulated platform by hand: its settings are enough for a bridge, and its words work."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.support.bridge import ROOT, SECONDS, BridgeProcess, demo
from tests.support.platform import Platform

pytestmark = pytest.mark.one_database

SETTINGS = {
    "slack": ("SLACK_API_URL", "SLACK_BOT_TOKEN__CLAUDE", "SLACK_APP_TOKEN__CLAUDE"),
    "github": (
        "GITHUB_API_URL",
        "GITHUB_GIT_URL",
        "GITHUB_WEB_URL",
        "GITHUB_APP_ID__CLAUDE",
        "GITHUB_PRIVATE_KEY__CLAUDE",
        "GITHUB_WEBHOOK_SECRET__CLAUDE",
    ),
    "linear": ("LINEAR_API_URL", "LINEAR_ACCESS_TOKEN__CLAUDE", "LINEAR_WEBHOOK_SECRET__CLAUDE"),
}


def test_a_person_tries_agents_on_a_slack_that_is_none(tmp_path: Path) -> None:
    with Platform() as platform, by_hand("slack") as shell:
        agents = {"claude": demo()}
        settings = shell.settings("slack")
        with BridgeProcess(tmp_path, platform, agents=agents, settings=settings) as bridge:
            shell.write("> too early")
            shell.until("There is no thread yet")
            shell.write("@claude write a.txt hello")
            shell.until("[Allow once]")
            shell.write("/Nonsense")
            shell.until("No button or choice is called 'Nonsense'.")
            shell.write("/Allow once")
            shell.until("Wrote a.txt.")
            shell.write("> say in the same thread")
            shell.until("claude: in the same thread")
            threads = bridge.rows("select count(*) from place")

    assert shell.status == 0
    assert threads == [(1,)]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("github", ("claude on #1: @ann", "here"), ("claude on #1: @ann", "there")),
        ("linear", ("claude on ENG-1: ", "ENG-1 say here"), ("claude on ENG-1: there",)),
    ],
)
def test_a_person_tries_agents_on_a_platform_with_webhooks(
    name: str, first: Sequence[str], second: Sequence[str], tmp_path: Path
) -> None:
    with Platform() as platform:
        bridge = BridgeProcess(tmp_path, platform, agents={"claude": demo()})
        with by_hand(name, "--bridge", f"http://127.0.0.1:{bridge.port}") as shell:
            bridge.settings = shell.settings(name)
            shell.write("> too early")
            shell.until("There is no issue yet")
            with bridge:
                shell.write("@claude say here")
                shell.until(*first)
                shell.write("> @claude say there")
                shell.until(*second)
                threads = bridge.rows("select count(*) from place")

    assert shell.status == 0
    assert threads == [(1,)]


@pytest.mark.parametrize("platform", [(), ("slack",), ("github",), ("linear",)])
def test_how_it_is_called_is_said(platform: Sequence[str]) -> None:
    command = [sys.executable, "-m", "sim", *platform, "--help"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)

    assert ("AGENT" in said.stdout) == bool(platform)
    assert "SLACK_BOT_TOKEN" not in said.stdout


class Hand:
    """A person's terminal: what was printed, line by line, and what they write."""

    def __init__(self, read: IO[str], write: IO[str]) -> None:
        self.status: int | None = None
        self._write = write
        self._lines: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=self._read, args=(read,), daemon=True)
        reader.start()

    def settings(self, name: str) -> dict[str, str]:
        """Read the settings that a bridge needs."""
        lines = {each: self.until(f"{each}=").partition("=")[2] for each in SETTINGS[name]}
        return {each: value.strip('"') for each, value in lines.items()}

    def until(self, *words: str) -> str:
        """Wait until all of these words were written; returns the last line."""
        shown: list[str] = []
        while not all(each in "".join(shown) for each in words):
            try:
                shown.append(self._lines.get(timeout=SECONDS))
            except queue.Empty:
                raise TimeoutError(f"no {words!r} in:\n{''.join(shown)}") from None
        return shown[-1].strip()

    def write(self, line: str) -> None:
        """Write a line."""
        self._write.write(f"{line}\n")
        self._write.flush()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)


@contextmanager
def by_hand(*arguments: str) -> Iterator[Hand]:
    """Start a platform with an app for claude; the end of what is written ends it."""
    command = [sys.executable, "-m", "sim", *arguments, "claude"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        try:
            hand = Hand(shell.stdout, shell.stdin)
            yield hand
            shell.stdin.close()
            hand.status = shell.wait(SECONDS)
        finally:
            shell.kill()
