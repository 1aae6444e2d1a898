"""How the parts are joined: what an agent's entry leaves open is taken from its program."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from app.acp.launch import AgentLaunch, launches
from app.agents.catalog import known_agents
from app.agents.isolation import isolate_all
from app.config import load
from app.core.runtime import Addresses
from app.core.turns.place import operator_prompt
from app.model.keys import PlaceKey
from app.server.front import hosts_of
from app.server.login_links import page_url_of
from app.services import find_area, registered_services


def launch(tmp_path: Path, **entry: Any) -> AgentLaunch:
    settings = {
        "PATH": "/usr/bin:/bin",
        "DATA_DIR": str(tmp_path / "data"),
        "AGENTS_JSON": json.dumps({"mine": {"sandbox": "none", **entry}}),
    }
    configuration = load(
        settings, known=known_agents(), services=registered_services(), home=tmp_path / "person"
    )
    return launches(configuration, isolate_all(configuration))["mine"]


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
    options = {"settingSources": ["user"], "allowedTools": ["mcp__bridge"]}
    settings = {"claudeCode": {"options": options}}

    assert launch(tmp_path, driver="claude").meta == settings
    assert launch(tmp_path, driver="codex").trailing_slash
    assert launch(tmp_path, driver="opencode").obeys[0] == ".opencode"
    assert launch(tmp_path, driver="qwen").environment("m")["QWEN_CODE_SAFE_MODE"] == "1"


def test_pages_are_named_by_an_address_only_where_others_can_open_it(tmp_path: Path) -> None:
    def page(**settings: str) -> str:
        given = {"PATH": "/usr/bin:/bin", "DATA_DIR": str(tmp_path / "data"), **settings}
        configuration = load(
            given, known=known_agents(), services=registered_services(), home=tmp_path / "person"
        )
        return Addresses(configuration).page(PlaceKey("slack", "C1:17.2"))

    assert page() == ""
    assert page(BRIDGE_BASE_URL="https://b.example.com") == "https://b.example.com/t/slack/C1:17.2"


KEY = SecretStr("k" * 40)


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "http://bridge-[a-z2-7]{16}\\.localhost:8000"),
        ({"HOST": "::1", "PORT": "8123"}, "http://bridge-[a-z2-7]{16}\\.localhost:8123"),
        # Names in .localhost lead a browser to 127.0.0.1 and ::1 alone.
        ({"HOST": "127.0.0.2"}, "http://127\\.0\\.0\\.2:8000"),
        ({"BRIDGE_BASE_URL": "http://127.0.0.1:8000"}, "http://127\\.0\\.0\\.1:8000"),
        ({"BRIDGE_BASE_URL": "https://b.example.com"}, "https://b\\.example\\.com"),
    ],
)
def test_the_page_has_a_host_of_its_own_on_this_machine_unless_the_operator_names_one(
    tmp_path: Path, settings: dict[str, str], address: str
) -> None:
    given = {"DATA_DIR": str(tmp_path / "data"), **settings}
    configuration = load(
        given, known=known_agents(), services=registered_services(), home=tmp_path / "person"
    )

    url = page_url_of(configuration, KEY)

    assert re.fullmatch(address, url)
    assert url.partition("://")[2] in hosts_of(configuration, url)
    assert url == page_url_of(configuration, KEY)


def test_two_bridges_have_two_hosts(tmp_path: Path) -> None:
    configuration = load(
        {"DATA_DIR": str(tmp_path / "data")},
        services=registered_services(),
        home=tmp_path / "person",
    )

    assert page_url_of(configuration, KEY) != page_url_of(configuration, SecretStr("q" * 40))


def test_what_is_told_in_a_channel_is_told_in_all_its_threads_and_nowhere_else(
    tmp_path: Path,
) -> None:
    given = {"DATA_DIR": str(tmp_path / "data"), "SLACK_CHANNEL_PROMPTS": '{"C1": "Be brief."}'}
    configuration = load(
        given, known=known_agents(), services=registered_services(), home=tmp_path / "person"
    )
    told = partial(operator_prompt, configuration, find_area)

    assert told(PlaceKey("slack", "C1:17.2")) == "Be brief."
    assert told(PlaceKey("slack", "C2:17.2")) == told(PlaceKey("web", "C1")) == ""
