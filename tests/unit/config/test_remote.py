"""Entries of agents on other machines: what they may say, and who gets which token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.agents.catalog import known_agents
from app.config import Configuration, load
from app.errors import ConfigurationError
from app.services import registered_services

URL = "wss://build.example.com:8765/agent"
CANARY = "canary-4711-of-the-token"


def read(entries: dict[str, dict[str, Any]], **settings: str) -> Configuration:
    given = {"AGENTS_JSON": json.dumps(entries), "DATA_DIR": "/tmp/none", **settings}
    return load(given, known=known_agents(), services=registered_services(), home=Path("/home/ann"))


def test_an_address_takes_the_place_of_a_command() -> None:
    entry = read({"afar": {"url": URL, "driver": "claude"}}).agents["afar"]

    assert (entry.command, entry.host) == ((), "build.example.com")
    assert entry.program == entry.host
    assert (entry.ship, entry.driver) == ("none", "claude")


@pytest.mark.parametrize(
    "key",
    [
        {"command": "claude-agent-acp"},
        {"sandbox": "none"},
        {"home": "user"},
        {"network": "restricted"},
        {"ship": "pr"},
        {"env": {"OPENAI_API_KEY": CANARY}},
        {"env_passthrough": ["OPENAI_API_KEY"]},
        {"tools_allow": ["memory_read"]},
        {"limits": {"memory_mb": 512}},
    ],
    ids=lambda key: next(iter(key)),
)
def test_what_the_bridge_cannot_set_there_is_refused(key: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read({"afar": {"url": URL, **key}})

    assert next(iter(key)) in refused.value.problem
    assert "Remove one of the two" in refused.value.remedy
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://build.example.com",
        f"wss://ann:{CANARY}@build.example.com",
        f"wss://build.example.com/?token={CANARY}",
        "wss://",
        "build.example.com",
        "wss://build.example.com:0",
        "wss://build.example.com:http",
    ],
)
def test_what_is_no_plain_address_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read({"afar": {"url": url}})

    assert "is not the address of an agent" in refused.value.problem
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    ("entry", "is_refused"),
    [
        ({"url": "ws://build.example.com"}, True),
        ({"url": "ws://10.0.0.7:8765"}, True),
        ({"url": "http://build.example.com/acp"}, True),
        ({"url": "https://build.example.com/acp"}, False),
        ({"url": "http://127.0.0.1:8765"}, False),
        ({"url": "ws://build.example.com", "tls": "off"}, False),
        ({"url": "ws://127.0.0.1:8765"}, False),
        ({"url": "ws://[::1]:8765"}, False),
        ({"url": "ws://localhost:8765"}, False),
    ],
)
def test_words_travel_without_tls_only_where_that_was_said(
    entry: dict[str, Any], is_refused: bool
) -> None:
    problem = ""
    try:
        read({"afar": entry})
    except ConfigurationError as refused:
        problem = refused.problem

    assert ("without TLS" in problem) is is_refused


@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "100.100.100.200"),
        *("168.63.129.16", "[fd00:ec2::254]"),
    ],
)
def test_what_tells_a_machine_its_secrets_is_no_agent(host: str) -> None:
    with pytest.raises(ConfigurationError, match="not an agent"):
        read({"afar": {"url": f"wss://{host}/latest", "tls": "off"}})


def test_a_key_of_remote_agents_alone_is_refused_elsewhere() -> None:
    with pytest.raises(ConfigurationError, match="only an agent with a url has"):
        read({"near": {"driver": "claude", "remote_folder": "/srv"}})


def test_each_token_goes_to_one_machine() -> None:
    entries: dict[str, dict[str, Any]] = {
        "one": {"url": URL},
        "two": {"url": "wss://two.example.com"},
        "three": {"url": "wss://three.example.com", "env": {"AGENT_TOKEN": "of-three"}},
        "near": {"driver": "claude"},
    }
    found = read(entries, AGENT_TOKEN="plain", AGENT_TOKEN__TWO="of-two")

    tokens = {
        agent: [key.get_secret_value() for key in found.model_keys(agent).values()]
        for agent in entries
    }
    assert tokens == {"one": ["plain"], "two": ["of-two"], "three": ["of-three"], "near": []}
    assert {"plain", "of-two", "of-three"} <= set(found.secret_values())


def test_no_key_of_a_model_leaves_for_another_machine() -> None:
    found = read({"afar": {"url": URL, "driver": "claude"}}, ANTHROPIC_API_KEY="of-here")

    assert found.model_keys("afar") == {}
