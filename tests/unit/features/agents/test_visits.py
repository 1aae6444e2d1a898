"""What the command line does with one agent."""

from __future__ import annotations

import pytest

from app.agents.catalog import known_agents
from app.config import AgentConfig
from app.features.agents.visits import AgentVisit, known_login

PROGRAMS = {program.name: program for program in known_agents()}


@pytest.mark.parametrize(
    ("driver", "command", "login"),
    [
        ("opencode", "opencode acp", "opencode auth login"),
        ("opencode", "/opt/opencode acp --print-logs", "/opt/opencode auth login"),
        ("opencode", "npx -y opencode-ai acp", "npx -y opencode-ai auth login"),
        ("codex", "npx codex-acp@2", "npx codex-acp@2 cli login --device-auth"),
        ("gemini", "gemini --acp", None),
    ],
)
def test_a_known_login_begins_like_the_agents_own_command(
    driver: str, command: str, login: str | None
) -> None:
    entry = AgentConfig(name="it", command=tuple(command.split()), driver=driver)
    visiting = AgentVisit(entry, PROGRAMS[driver], None, None)  # type: ignore[arg-type]  # nobody is visited

    commands = [" ".join(method.command or ()) for method in known_login(visiting)]

    assert commands == ([] if login is None else [login])
