"""What of the bridge's environment reaches an agent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.children.environment import MARKER, agent_environment
from tests.unit.children.helpers import outcome

HOME = Path("/data/agents/claude/home")
SECRETS = {
    "SLACK_BOT_TOKEN": "canary",
    "ANTHROPIC_API_KEY": "canary",
    "AWS_SECRET_ACCESS_KEY": "canary",
    "SSH_AUTH_SOCK": "canary",
    "LD_PRELOAD": "canary",
    "PYTHONPATH": "canary",
    "NODE_OPTIONS": "canary",
    "XDG_RUNTIME_DIR": "canary",
    "XDG_CONFIG_HOME": "canary",
    "TMPDIR": "canary",
    "LCK": "canary",
    MARKER: "canary",
}


def test_only_listed_names_are_handed_on() -> None:
    listed = {"PATH": "/bin", "LANG": "C", "LC_ALL": "C", "https_proxy": "p", "SHELL": "/bin/sh"}

    env = agent_environment(listed | SECRETS, home=HOME, own={}, marker="m")

    assert env == listed | {"HOME": str(HOME), MARKER: "m"}


def test_an_agent_gets_its_own_keys_but_never_another_home_or_marker() -> None:
    own = {"ANTHROPIC_API_KEY": "mine", "PATH": "/agent/bin", "HOME": "/root", MARKER: "forged"}

    env = agent_environment({"PATH": "/bin", "HOME": "/root"}, home=HOME, own=own, marker="m")

    assert env == {
        "ANTHROPIC_API_KEY": "mine",
        "PATH": "/agent/bin",
        "HOME": str(HOME),
        MARKER: "m",
    }


def test_an_agent_that_lives_in_the_persons_home_finds_its_folders() -> None:
    base = {"HOME": "/home/ada", "XDG_CONFIG_HOME": "/home/ada/etc", "XDG_RUNTIME_DIR": "/run/1"}

    env = agent_environment(base, home=Path("/home/ada"), own={}, marker="m")

    assert env["XDG_CONFIG_HOME"] == "/home/ada/etc"
    assert "XDG_RUNTIME_DIR" not in env


@pytest.mark.anyio
async def test_a_real_child_knows_nothing_else(tmp_path: Path) -> None:
    env = agent_environment(dict(os.environ) | SECRETS, home=tmp_path, own={}, marker="m")

    _, output, _ = await outcome(["/usr/bin/env"], env, tmp_path)

    assert "canary" not in output
    assert f"{MARKER}=m" in output.splitlines()
