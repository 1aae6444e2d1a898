"""How the parts are joined: what an agent's entry leaves open is taken from its program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.acp.launch import AgentLaunch
from app.agents.catalog import known_agents
from app.agents.isolation import shelter_all
from app.config import load
from app.core.keys import PlaceKey
from app.main import launches
from app.main.terms import page_of, place_prompts


def launch(tmp_path: Path, **entry: Any) -> AgentLaunch:
    settings = {
        "PATH": "/usr/bin:/bin",
        "DATA_DIR": str(tmp_path / "data"),
        "AGENTS_JSON": json.dumps({"mine": {"sandbox": "none", **entry}}),
    }
    configuration = load(settings, known=known_agents(), home=tmp_path / "person")
    return launches(configuration, shelter_all(configuration))["mine"]


@pytest.mark.parametrize(
    ("entry", "mode"),
    [
        ({"driver": "claude"}, "default"),
        ({"driver": "codex"}, "read-only"),
        ({"command": "npx @qwen-code/qwen-code --acp"}, "default"),
        ({"driver": "claude", "mode": "plan"}, "plan"),
        ({"driver": "opencode"}, None),
        ({"command": "unknown"}, None),
    ],
)
def test_an_agent_is_set_to_the_mode_that_asks_unless_its_entry_names_another(
    tmp_path: Path, entry: dict[str, Any], mode: str | None
) -> None:
    assert launch(tmp_path, **entry).mode == mode


def test_what_keeps_a_checkout_out_goes_along_with_every_start(tmp_path: Path) -> None:
    settings = {"claudeCode": {"options": {"settingSources": ["user"]}}}

    assert launch(tmp_path, driver="claude").meta == settings
    assert launch(tmp_path, driver="codex").trailing_slash
    assert launch(tmp_path, driver="opencode").obeys[0] == ".opencode"
    assert launch(tmp_path, driver="qwen").environment("m")["QWEN_CODE_SAFE_MODE"] == "1"


def test_pages_are_named_by_an_address_only_where_others_can_open_it(tmp_path: Path) -> None:
    def page(**settings: str) -> str:
        given = {"PATH": "/usr/bin:/bin", "DATA_DIR": str(tmp_path / "data"), **settings}
        configuration = load(given, known=known_agents(), home=tmp_path / "person")
        return page_of(configuration)(PlaceKey("slack", "C1:17.2"))

    assert page() == ""
    assert page(BRIDGE_BASE_URL="https://b.example.com") == "https://b.example.com/t/slack/C1:17.2"


def test_what_is_told_in_a_channel_is_told_in_all_its_threads_and_nowhere_else(
    tmp_path: Path,
) -> None:
    given = {"DATA_DIR": str(tmp_path / "data"), "SLACK_CHANNEL_PROMPTS": '{"C1": "Be brief."}'}
    configuration = load(given, known=known_agents(), home=tmp_path / "person")
    told = place_prompts(configuration)

    assert told(PlaceKey("slack", "C1:17.2")) == "Be brief."
    assert told(PlaceKey("slack", "C2:17.2")) == told(PlaceKey("web", "C1")) == ""
