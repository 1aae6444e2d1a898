"""Agents by name, and never another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.agents.catalog import known_agents
from app.agents.registry import Registry
from app.config import load
from app.errors import NotFound
from app.services import registered_services


def registry(tmp_path: Path, **agents: Any) -> Registry:
    """Build a registry of the given entries."""
    environ = {"AGENTS_JSON": json.dumps(agents)}
    return Registry(
        load(environ, known=known_agents(), services=registered_services(), home=tmp_path / "home"),
    )


def test_agents_are_found_by_name(tmp_path: Path) -> None:
    agents = registry(tmp_path, b={"command": "x"}, a={"command": "y", "default": True})

    assert agents["b"].config.command == ("x",)
    assert agents.default.name == "a"
    assert "a" in agents
    assert list(agents) == ["b", "a"]


@pytest.mark.parametrize("name", ["", "A", "c", "default", "../a"])
def test_an_unknown_agent_is_an_error_and_never_another_one(tmp_path: Path, name: str) -> None:
    agents = registry(tmp_path, a={"command": "x"})

    assert name not in agents
    with pytest.raises(NotFound):
        agents.find(name)


def test_people_see_the_name_that_was_given_or_that_of_the_program(tmp_path: Path) -> None:
    agents = registry(
        tmp_path,
        claude={"driver": "claude"},
        reviewer={"driver": "codex", "display_name": "The Reviewer"},
        own={"command": "my-agent"},
    )

    assert agents["claude"].title == "Claude Code"
    assert agents["reviewer"].title == "The Reviewer"
    assert agents["own"].title == "own"


def test_two_agents_of_one_program_keep_their_own_names(tmp_path: Path) -> None:
    agents = registry(tmp_path, one={"driver": "claude"}, two={"driver": "claude"})

    assert [agents[name].title for name in ("one", "two")] == ["one", "two"]


def test_what_is_known_about_a_program_is_at_hand(tmp_path: Path) -> None:
    agents = registry(tmp_path, g={"driver": "gemini"}, own={"command": "my-agent"})

    program = agents["g"].program

    assert program is not None
    assert program.quirks.load_after_seconds == 61
    assert agents["own"].program is None
