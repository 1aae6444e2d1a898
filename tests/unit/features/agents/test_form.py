"""The form of an agent's entry: what it shows, what it reads, where it puts what is wrong."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from app.config.agents import KEYS, AgentConfig
from app.config.permissions import Preset
from app.errors import ConfigurationError, Conflict
from app.features.agents.fields import FIELDS, RULES
from app.features.agents.form import (
    Around,
    groups,
    locate,
    pairs,
    patch,
    read,
    read_variables,
    show,
)
from app.model.agents import Choice, Choices, Option

ENTRIES: dict[str, Any] = {
    "display_name": "Ada",
    "visible": False,
    "command": ["program", "an argument"],
    "options": {"effort": "high", "web": True},
    "permissions": "trusted",
    "network_hosts": ["api.example.com", "*.example.com"],
    "idle_minutes": 7.5,
    "agents_allow": [],
    "tools_allow": ["agents_*", "memory_read"],
    "capabilities_deny": ["place.write"],
}


def test_every_field_is_a_key_of_an_entry_and_offers_what_the_registry_takes() -> None:
    assert set(FIELDS) <= set(KEYS)
    presets = [value for value, _ in FIELDS["permissions"].choices]
    assert presets == [*get_args(Preset), RULES]
    for key in ("sandbox", "network", "ship", "delegation_voice"):
        offered = tuple(value for value, _ in FIELDS[key].choices)
        assert offered == get_args(AgentConfig.model_fields[key].annotation)


@pytest.mark.parametrize("key", ENTRIES)
def test_what_is_shown_is_read_again_as_it_was(key: str) -> None:
    shown = show(FIELDS[key], ENTRIES[key])

    again = read(FIELDS[key], {key: shown})

    expected = "program 'an argument'" if key == "command" else ENTRIES[key]
    assert again == expected


def test_an_empty_field_removes_its_key() -> None:
    empty = {key: read(each, {}) for key, each in FIELDS.items() if each.kind != "flag"}

    assert set(empty.values()) == {None}
    assert read(FIELDS["visible"], {"visible": "on"}) is None


def test_rules_are_json_and_what_is_none_is_left_to_the_registry() -> None:
    field = FIELDS["permissions"]

    assert read(field, {"permissions": RULES, "rules": '[{"allow": "read"}]'}) == [
        {"allow": "read"}
    ]
    assert read(field, {"permissions": RULES, "rules": "[oops"}) == "[oops"


def test_lines_are_variables_and_a_line_without_a_sign_is_refused_by_number() -> None:
    assert pairs("A=1\r\n\n B = two=2 ") == {"A": "1", "B": "two=2"}
    with pytest.raises(ConfigurationError, match="env line 2 is not NAME=value") as caught:
        pairs("A=1\nsecret")
    assert "secret" not in str(caught.value)


def test_one_variable_is_replaced_or_removed() -> None:
    assert read_variables({"variable": "A", "value": "1", "do": "replace"}) == {"A": "1"}
    assert read_variables({"variable": "A", "do": "remove"}) == {"A": None}
    assert read_variables({"env": "B=2"}) == {"B": "2"}
    with pytest.raises(ConfigurationError, match="empty"):
        read_variables({"variable": "A", "value": " ", "do": "replace"})


def test_a_table_is_undone_name_by_name() -> None:
    assert patch({"a": "1", "b": "2"}, {"a": "3"}) == {"a": "3", "b": None}
    assert patch({"a": "1"}, None) == {"a": None}
    assert patch("x", "y") == "y"


def test_fields_offer_what_the_agent_offered_when_it_was_tried() -> None:
    offers = Choices(
        modes=(Choice("ask", "Ask first"),),
        models=(Choice("big", "Big"),),
        options=(Option("effort", "Effort", (Choice("low", "Low"),)), Option("web", "Web")),
    )

    filled = {
        field.key: field for group in groups({}, Around(offers=offers)) for field in group.fields
    }

    assert filled["model"].choices == (("big", "Big"),)
    assert filled["mode"].choices == (("ask", "Ask first"),)
    assert "effort=low; web=true|false" in filled["options"].hint


@pytest.mark.parametrize(
    ("error", "key", "words"),
    [
        (
            ConfigurationError("agents", "agent 'x': emoji is not one emoji", "Write one."),
            "emoji",
            "Emoji is not one emoji. Write one.",
        ),
        (
            ConfigurationError("agents", "agent 'x' has no command", "Add command or driver."),
            "",
            "Agent 'x' has no command. Add command or driver.",
        ),
        (
            ConfigurationError("slack.bot_token", "is not a bot token", "Copy it."),
            "",
            "Bot token is not a bot token. Copy it.",
        ),
        (
            ConfigurationError("agents", "agent 'x': idle_minutes is too small", "Write more."),
            "idle_minutes",
            "Idle minutes is too small. Write more.",
        ),
        (
            ConfigurationError("BRIDGE_BASE_URL", "is not public", "Set it."),
            "",
            "BRIDGE_BASE_URL is not public. Set it.",
        ),
        (Conflict("x is the default agent."), "", "X is the default agent."),
    ],
)
def test_an_error_is_shown_at_the_field_that_it_names(
    error: Exception, key: str, words: str
) -> None:
    assert locate(error) == (key, words)
