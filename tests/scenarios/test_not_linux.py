"""On macOS agents run without isolation, and people are told what that means."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bridge import ROOT

# Two interpreters that import everything; the parts are in the unit tests.
pytestmark = pytest.mark.slow

SECONDS = 120.0


def run(folder: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "AGENT_BRIDGE_ENV_FILE": os.devnull,
        "DATA_DIR": str(folder / "data"),
        "ACP_AGENT_COMMAND": str(Path(sys.executable).parent / "agent-bridge-demo-agent"),
        **settings,
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.support.not_linux", *words],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_an_agent_works_and_what_it_can_read_is_said(tmp_path: Path) -> None:
    asked = run(tmp_path, "ask", "default", "write notes.txt hello", "--allow", "once")
    listed = run(tmp_path, "agents", "list")

    assert asked.stdout == "Wrote notes.txt.\n", asked.stderr
    assert "not isolated (bubblewrap needs Linux): it runs as " in listed.stderr
    assert "run the bridge in a Linux container or virtual machine" in listed.stderr


def test_a_bridge_that_others_reach_is_refused_with_the_remedy(tmp_path: Path) -> None:
    slack = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}

    served = run(tmp_path, "serve", **slack)

    assert served.returncode == 1
    assert "cannot be isolated: bubblewrap needs Linux. To isolate it, run" in served.stderr
    assert served.stderr.count("\n") == 1
