"""What a person reads when the bridge starts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from app.agents.catalog import known_agents
from app.agents.isolation import describe_exposure
from app.cli.serve import addresses, welcome
from app.config import Configuration, load
from app.server.agent_shapes import AgentOut
from app.services import registered_services
from app.terminal.agents import describe_agents, find_problems, show_command

TOKEN = "a-token-nobody-may-see"
AGENTS = json.dumps(
    {
        "claude": {
            "driver": "claude",
            "sandbox": "none",
            "display_name": "Foxy",
            "emoji": "🦊",
        },
        "own": {"command": "no-such", "sandbox": "none"},
    }
)
Configure = Callable[..., Configuration]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    def make(**settings: str) -> Configuration:
        given = {"DATA_DIR": str(tmp_path / "data"), "PATH": str(tmp_path), **settings}
        return load(
            given, services=registered_services(), home=tmp_path / "home", known=known_agents()
        )

    return make


def describe(
    configuration: Configuration, isolation: str = "isolated (bubblewrap)"
) -> list[AgentOut]:
    return [
        each.model_copy(update={"isolation": isolation}) for each in describe_agents(configuration)
    ]


def test_the_table_shows_agents_isolation_and_services_but_no_token(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = configure(AGENTS_JSON=AGENTS, BRIDGE_ADMIN_TOKEN=TOKEN)

    welcome(configuration, describe(configuration))

    shown = capsys.readouterr().out
    row = "claude (default)  🦊 Foxy  unavailable  claude-agent-acp (not found)  isolated"
    assert row in shown
    assert "Listening on http://127.0.0.1:8000\n" in shown
    assert TOKEN not in shown


def test_agents_without_isolation_are_told_once_with_what_they_can_read(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = configure(AGENTS_JSON=AGENTS)
    words = describe_exposure("", "Do this.")

    welcome(configuration, describe(configuration, words))

    shown = capsys.readouterr().out
    assert f"\n! claude, own: {words}\n" in shown
    assert re.search(
        r"own +unavailable +no-such \(not found\) +not isolated +web +AGENTS_JSON\n", shown
    )


def test_of_an_interpreter_the_script_is_shown_and_never_an_argument(
    configure: Configure, tmp_path: Path
) -> None:
    for name in ("python3", "agent"):
        (tmp_path / name).touch(mode=0o755)
    agents = {
        "script": {"command": ["python3", "-u", "/opt/agents/mine.py", "--key", "hidden"]},
        "plain": {"command": ["agent", "hidden"]},
    }
    configuration = configure(AGENTS_JSON=json.dumps(agents))

    assert show_command(configuration, "script", "python3") == "python3 mine.py"
    assert show_command(configuration, "plain", "agent") == "agent"


def test_what_is_missing_is_told_with_its_remedy(configure: Configure) -> None:
    configuration = configure(AGENTS_JSON=AGENTS)

    assert list(find_problems(describe(configuration))) == [
        "claude: 'claude-agent-acp' was not found on PATH. "
        "Install it: npm install -g @agentclientprotocol/claude-agent-acp",
        "own: 'no-such' was not found on PATH. Check its command in AGENTS_JSON.",
    ]


def test_where_the_token_is_stands_beside_the_address(configure: Configure, tmp_path: Path) -> None:
    made, given = configure(), configure(BRIDGE_ADMIN_TOKEN=TOKEN)

    assert f"BRIDGE_ADMIN_TOKEN in {tmp_path}/data/secrets" in "\n".join(addresses(made))
    assert "BRIDGE_ADMIN_TOKEN as you set it" in "\n".join(addresses(given))


def test_a_public_address_is_shown_beside_the_local_one(configure: Configure) -> None:
    lines = list(addresses(configure(BRIDGE_BASE_URL="https://bridge.example.com")))

    assert "Listening on http://127.0.0.1:8000" in lines
    assert "Reached at   https://bridge.example.com" in lines
