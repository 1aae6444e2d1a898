"""What an agent may do unasked with the command of the bridge's tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.agents.catalog import known_agents
from app.agents.registry import Registry
from app.config import load
from app.model.calls import Call
from app.model.policy import decide
from app.services import registered_services
from tests.support.bridge import DEMO

PLAIN = "agent-bridge-tool agents_message --to codex --text 'look at it'"


def decision(tmp_path: Path, command: str, **entry: Any) -> str:
    """Decide on a command by the terms of an agent with this entry."""
    agent = {"command": DEMO, "tool_exposure": "skills", **entry}
    settings = {"DATA_DIR": str(tmp_path / "data"), "AGENTS_JSON": json.dumps({"demo": agent})}
    configuration = load(
        settings, known=known_agents(), services=registered_services(), home=tmp_path
    )
    (name,) = configuration.agents
    call = Call(kinds=("execute",), commands=(command,))
    return decide(Registry(configuration)[name].policy, call).decision


@pytest.mark.parametrize("command", ["agent-bridge-tool", PLAIN])
def test_the_command_of_the_tools_needs_no_asking(tmp_path: Path, command: str) -> None:
    assert decision(tmp_path, command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        f"{PLAIN}; rm -r .",
        f"{PLAIN} > file",
        "agent-bridge-tool echo --text $(id)",
        "PATH=/tmp agent-bridge-tool echo",
        "./agent-bridge-tool echo",
        "agent-bridge-toolbox",
        "sh -c agent-bridge-tool",
    ],
)
def test_what_may_be_another_command_is_asked(tmp_path: Path, command: str) -> None:
    assert decision(tmp_path, command) == "ask"


def test_an_agent_that_calls_tools_over_mcp_is_asked_about_the_command(tmp_path: Path) -> None:
    assert decision(tmp_path, PLAIN, tool_exposure="tools") == "ask"


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        ("read-only", "deny"),
        ([{"ask": "execute"}], "ask"),
        ([{"deny": {"command": "agent-bridge-tool *"}}], "deny"),
    ],
)
def test_the_operators_rules_come_first(tmp_path: Path, permissions: Any, expected: str) -> None:
    assert decision(tmp_path, PLAIN, permissions=permissions) == expected
