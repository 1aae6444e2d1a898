"""Entries as they are shown: in the form they are written in, without the value of a variable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.config import AgentRecord, load
from app.config.records import merge, show_entry

KEY = "a-key-that-is-never-shown-0123456789"
ENTRY: dict[str, Any] = {
    "command": ["my-agent", "--acp"],
    "display_name": "Mine",
    "env": {"OTHER": "x", "MY_KEY": KEY},
    "env_passthrough": ["LEVEL"],
    "options": {"effort": "high", "fast": True},
    "permissions": [{"allow": {"kind": ["read"]}}, {"ask": {"path": ["docs/**"]}}],
    "home": "/srv/homes/mine",
    "network": "restricted",
    "limits": {"max_turns": 2, "resume": True},
}
SHOWN = {**ENTRY, "env": ["MY_KEY", "OTHER"]}


def test_an_entry_of_the_settings_is_shown_as_it_can_be_written(tmp_path: Path) -> None:
    settings = {"AGENTS_JSON": json.dumps({"mine": ENTRY}), "DATA_DIR": str(tmp_path / "data")}
    configuration = load(settings, home=tmp_path)

    assert show_entry(configuration.agents["mine"], None) == SHOWN


def test_a_stored_entry_is_shown_as_it_was_given(tmp_path: Path) -> None:
    settings = {"AGENTS_JSON": '{"base": {"command": "x"}}', "DATA_DIR": str(tmp_path / "data")}
    given = {"extends": "base", "env": {"MY_KEY": KEY}}
    record = AgentRecord(id="mine-2", name="mine", entry=given)
    configuration = load(settings, home=tmp_path).reader.read([record])

    shown = show_entry(configuration.agents["mine-2"], record)

    assert shown == {"extends": "base", "env": ["MY_KEY"]}


@pytest.mark.parametrize(
    ("changes", "merged"),
    [
        ({"model": "b"}, {"model": "b", "env": {"A": "1", "B": "2"}}),
        ({"model": None}, {"env": {"A": "1", "B": "2"}}),
        ({"env": {"A": "3", "B": None}}, {"model": "a", "env": {"A": "3"}}),
        ({"env": None, "limits": {"max_turns": 2}}, {"model": "a", "limits": {"max_turns": 2}}),
        ({"model": {"x": None}}, {"model": {}, "env": {"A": "1", "B": "2"}}),
    ],
)
def test_a_change_names_only_what_differs(changes: dict[str, Any], merged: dict[str, Any]) -> None:
    assert merge({"model": "a", "env": {"A": "1", "B": "2"}}, changes) == merged
