"""Runs real commands next to a bridge of a test, with its settings."""

from __future__ import annotations

import json
import os
import subprocess

from tests.support import postgres
from tests.support.bridge import ADMIN_TOKEN, SECRET_KEY, BridgeProcess
from tests.support.nursery import nursery


def run(bridge: BridgeProcess, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the settings of a bridge, and perhaps others."""
    environment = {
        "AGENT_BRIDGE_ENV_FILE": os.devnull,
        "HOME": str(bridge.folder / "person"),
        "PATH": os.environ["PATH"],
        "DATA_DIR": str(bridge.data_dir),
        "PORT": str(bridge.port),
        "BRIDGE_ADMIN_TOKEN": ADMIN_TOKEN,
        "BRIDGE_SECRET_KEY": SECRET_KEY,
        "AGENTS_JSON": json.dumps(bridge.agents),
        **postgres.settings_of(bridge.data_dir),
        **bridge.settings,
        **more,
    }
    given = {name: value for name, value in environment.items() if value}
    return nursery().run(*words, environment=given, cwd=bridge.folder)


def succeed(bridge: BridgeProcess, *words: str, **more: str) -> str:
    """Run a command that must succeed; returns its output."""
    done = run(bridge, *words, **more)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)
