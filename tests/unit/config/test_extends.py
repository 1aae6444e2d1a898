"""An entry of the registry that takes its keys from another one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.config import AgentConfig, AgentRecord
from app.config.roster import extend
from app.errors import ConfigurationError
from tests.unit.test_config import configured


def agents(tmp_path: Path, **entries: Any) -> dict[str, AgentConfig]:
    """Configure these agents."""
    return dict(configured(tmp_path, {"AGENTS_JSON": json.dumps(entries)}).agents)


def test_an_entry_takes_the_keys_of_another_and_its_own_win(tmp_path: Path) -> None:
    found = agents(
        tmp_path,
        claude={
            "command": "claude-agent-acp",
            "default": True,
            "model": "large",
            "ship": "push",
            "env": {"A": "1", "B": "1"},
        },
        review={"extends": "claude", "model": "small", "env": {"B": "2", "C": "2"}},
    )

    review = found["review"]
    assert (review.command, review.driver) == (("claude-agent-acp",), "claude")
    assert (review.model, review.ship) == ("small", "push")
    values = {name: value.get_secret_value() for name, value in review.env.items()}
    assert values == {"A": "1", "B": "2", "C": "2"}
    assert not review.default
    assert found["claude"].default


def test_the_order_of_entries_does_not_matter(tmp_path: Path) -> None:
    found = agents(tmp_path, review={"extends": "claude"}, claude={"driver": "claude"})

    assert found["review"].command == ("claude-agent-acp",)


def test_tables_are_extended_without_being_changed() -> None:
    raw = {"a": {"command": "x", "env": {"A": "1"}}, "b": {"extends": "a", "env": {"B": "2"}}}
    before = json.dumps(raw)

    extended = extend(raw)

    assert extended["b"] == {"command": "x", "env": {"A": "1", "B": "2"}}
    assert json.dumps(raw) == before


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (
            {"a": {"command": "x"}, "b": {"extends": "CANARY"}},
            "AGENTS_JSON: agent 'b': extends does not name another agent. Name one of a.",
        ),
        (
            {"a": {"command": "x"}, "b": {"extends": ["CANARY"]}},
            "AGENTS_JSON: agent 'b': extends does not name another agent. Name one of a.",
        ),
        (
            {"a": {"extends": "a"}},
            "AGENTS_JSON: agent 'a' extends 'a', which itself extends an agent. Remove it.",
        ),
        (
            {"a": {"command": "x"}, "b": {"extends": "a"}, "c": {"extends": "b"}},
            "AGENTS_JSON: agent 'c' extends 'b', which itself extends an agent. Name one of a.",
        ),
        (
            {"a": {"extends": "b"}, "b": {"extends": "a"}},
            "AGENTS_JSON: agent 'a' extends 'b', which itself extends an agent. Remove it.",
        ),
        (
            {"a": {"command": "x", "env": ["CANARY"]}, "b": {"extends": "a", "env": {"B": "2"}}},
            "AGENTS_JSON: agent 'a': env is not an object",
        ),
    ],
)
def test_what_cannot_be_extended_is_refused_in_words(
    tmp_path: Path, entries: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        agents(tmp_path, **entries)

    assert str(refused.value).startswith(words)
    assert "CANARY" not in str(refused.value)


def test_a_stored_entry_extends_one_of_the_settings_but_only_one_level(tmp_path: Path) -> None:
    environ = {
        "AGENTS_JSON": json.dumps(
            {"base": {"command": "x", "model": "m"}, "child": {"extends": "base"}}
        )
    }
    reader = configured(tmp_path, environ).reader
    record = AgentRecord(id="new", name="new", entry={"extends": "base", "mode": "ask"})

    entry = reader.read([record]).agents["new"]

    assert (entry.command, entry.model, entry.mode) == (("x",), "m", "ask")
    with pytest.raises(ConfigurationError, match="itself extends"):
        reader.read([replace(record, entry={"extends": "child"})])
