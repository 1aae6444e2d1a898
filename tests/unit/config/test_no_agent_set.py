"""Platform credentials without an agent: the demo agent keeps to the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import describe_unserved
from app.config.records import AgentRecord
from tests.unit.test_config import GITHUB, SLACK, configured, program

DEMO = "agent-bridge-demo-agent"


def test_the_demo_agent_is_on_the_page_only_unless_it_is_named(tmp_path: Path) -> None:
    configuration = configured(tmp_path, {**SLACK, **GITHUB})

    assert configuration.agents_source == "demo"
    assert configuration.services == ("web",)
    assert set(configuration.unserved) == {"slack", "github"}
    assert not configuration.credentials
    assert "xoxb-default" in set(configuration.secret_values())


@pytest.mark.parametrize(
    "named", [{"ACP_AGENT_COMMAND": DEMO}, {"AGENTS_JSON": f'{{"demo": {{"command": "{DEMO}"}}}}'}]
)
def test_the_demo_agent_that_is_named_is_on_the_platform(
    tmp_path: Path, named: dict[str, str]
) -> None:
    configuration = configured(tmp_path, {**SLACK, **named})

    assert configuration.services == ("slack", "web")
    assert configuration.unserved == ()
    assert describe_unserved(configuration) is None


def test_enabled_services_do_not_bring_it_there_either(tmp_path: Path) -> None:
    configuration = configured(tmp_path, {**SLACK, **GITHUB, "ENABLED_SERVICES": "slack"})

    assert configuration.services == ("web",)
    assert configuration.unserved == ("slack",)


def test_what_to_set_is_told(tmp_path: Path) -> None:
    told = describe_unserved(configured(tmp_path, SLACK))

    assert told is not None
    assert told.subject == "slack"
    assert told.problem.startswith("not served, because no agent is set")
    assert "AGENTS_JSON" in told.remedy
    assert f"ACP_AGENT_COMMAND={DEMO}" in told.remedy


def test_claude_under_its_old_name_is_claude(tmp_path: Path) -> None:
    program(tmp_path / "bin", "claude-code-acp")

    claude = configured(tmp_path, {"PATH": f"{tmp_path}/bin"}).agents["claude"]
    named = configured(
        tmp_path, {"PATH": f"{tmp_path}/bin", "AGENTS_JSON": '{"mine": {"driver": "claude"}}'}
    ).agents["mine"]

    assert claude.command == (f"{tmp_path}/bin/claude-code-acp",)
    assert claude.driver == named.driver == "claude"
    assert named.command == ("claude-code-acp",)


def test_a_stored_agent_is_served_while_the_demo_agent_is_not(tmp_path: Path) -> None:
    fields = {"bot_token": "xoxb-stored", "app_token": "xapp-stored"}
    stored = AgentRecord(
        id="mine", name="mine", entry={"command": "x"}, credentials={"slack": fields}
    )

    configuration = configured(tmp_path, {**SLACK, **GITHUB}).reader.read([stored])

    assert configuration.services == ("slack", "web")
    assert configuration.unserved == ("github",)
    assert set(configuration.credentials) == {("slack", "mine")}
