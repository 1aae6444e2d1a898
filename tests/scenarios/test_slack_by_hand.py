"""The simulated Slack in somebody's hands: its settings are enough for a bridge, its words work."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

from tests.support.bridge import ROOT, SECONDS, BridgeProcess, demo
from tests.support.platform import Platform


def test_a_person_tries_agents_on_a_slack_that_is_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app.sim", "claude"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shown = Shown(shell.stdout)
        names = ("SLACK_API_URL", "SLACK_BOT_TOKEN__CLAUDE", "SLACK_APP_TOKEN__CLAUDE")
        settings = {name: shown.until(f"{name}=").partition("=")[2] for name in names}
        agents = {"claude": demo()}
        with (
            Platform() as platform,
            BridgeProcess(tmp_path, platform, agents=agents, settings=settings) as bridge,
        ):
            write(shell.stdin, "> too early")
            shown.until("There is no thread yet")
            write(shell.stdin, "@claude write a.txt hello")
            shown.until("[Allow once]")
            write(shell.stdin, "/Nonsense")
            shown.until("No button or choice is called 'Nonsense'.")
            write(shell.stdin, "/Allow once")
            shown.until("Wrote a.txt.")
            write(shell.stdin, "> say in the same thread")
            shown.until("claude: in the same thread")
            threads = bridge.rows("select count(*) from place")
        shell.stdin.close()

    assert shell.returncode == 0
    assert threads == [(1,)]


def test_how_it_is_called_is_said() -> None:
    command = [sys.executable, "-m", "app.sim", "--help"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)

    assert "AGENT" in said.stdout
    assert "SLACK_BOT_TOKEN" not in said.stdout


class Shown:
    """What was printed, line by line."""

    def __init__(self, stream: IO[str]) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        reader.start()

    def until(self, words: str) -> str:
        """Wait for a line that holds these words."""
        while words not in (line := self._lines.get(timeout=SECONDS)):
            pass
        return line.strip()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)


def write(stream: IO[str], line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()
