"""`doctor --live` as an operator runs it: it asks first, and leaves nothing if interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sim.slack.server import SimulatedSlack
from tests.support.bridge import DEMO, ROOT

pytestmark = pytest.mark.one_database

SECONDS = 30.0


class Operator:
    """A terminal with the settings of one agent on Slack."""

    def __init__(self, folder: Path, slack: SimulatedSlack) -> None:
        app, self.ann = slack.app("demo"), slack.person("Ann")
        self.channel = slack.channel("general", [self.ann, app])
        self.secrets = (app.token, app.app_token)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "DATA_DIR": str(folder / "data"),
            "AGENT_BRIDGE_ENV_FILE": os.devnull,
            "AGENTS_JSON": json.dumps({"demo": {"command": DEMO, "sandbox": "none"}}),
            "SLACK_API_URL": slack.url,
            "SLACK_BOT_TOKEN": app.token,
            "SLACK_APP_TOKEN": app.app_token,
        }

    def run(self, *words: str) -> subprocess.Popen[str]:
        """Run the command, without a terminal."""
        place = f"{self.channel}:{self.ann}"
        doctor = ["-m", "app", "doctor", "--live", "slack", "demo", "--place", place]
        return subprocess.Popen(
            [sys.executable, *doctor, *words],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.mark.long
@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM])
def test_a_check_that_is_interrupted_leaves_nothing(tmp_path: Path, interrupt: int) -> None:
    with SimulatedSlack() as slack:
        operator = Operator(tmp_path, slack)
        with operator.run("--only", "stream", "--yes") as running:
            slack.wait(lambda: any(each.stream for each in slack.messages))
            running.send_signal(interrupt)
            words, _ = running.communicate(timeout=SECONDS)

        assert running.returncode == 130
        assert [each for each in slack.messages if not each.deleted] == []
        assert "about 6 minutes" in words
        assert not any(secret in words for secret in operator.secrets)
        assert "Traceback" not in words


@pytest.mark.long
def test_without_a_terminal_it_needs_to_be_told_that_it_may_write(tmp_path: Path) -> None:
    with SimulatedSlack() as slack:
        with Operator(tmp_path, slack).run() as running:
            words, _ = running.communicate(timeout=SECONDS)

        assert running.returncode == 1
        assert "--yes" in words
        assert slack.messages == []


def test_a_whole_check_ends_with_what_differs(tmp_path: Path) -> None:
    with SimulatedSlack() as slack:
        with Operator(tmp_path, slack).run(
            "--only", "title", "--only", "status", "--yes"
        ) as running:
            words, _ = running.communicate(timeout=SECONDS)

        assert "ASSUMED" in words
        assert "titles of cards are plain text" in words
        assert [each for each in slack.messages if not each.deleted] == []
