"""The list of agents on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.agents.catalog import known_agents
from app.config import Configuration, load
from app.features.agents.cli import list_agents
from app.services import registered_services

AGENTS = {
    "claude": {"driver": "claude", "display_name": "Foxy", "emoji": "🦊", "sandbox": "none"},
    "quiet": {"command": "no-such", "visible": False, "sandbox": "none"},
}


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    given = {
        "DATA_DIR": str(tmp_path / "data"),
        "PATH": str(tmp_path),
        "AGENTS_JSON": json.dumps(AGENTS),
    }
    made = load(given, services=registered_services(), home=tmp_path / "home", known=known_agents())
    monkeypatch.setattr("app.features.agents.cli.read_all_agents", lambda: made)
    return made


@pytest.mark.usefixtures("configuration")
def test_a_hidden_agent_is_listed_only_if_all_are_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    list_agents()
    some = capsys.readouterr()
    list_agents(every=True)
    every = capsys.readouterr()

    assert "🦊 Foxy" in some.out
    assert "quiet" not in some.out
    assert "1 more with --all." in some.err
    assert "\nquiet" in every.out
    assert "--all" not in every.err


@pytest.mark.usefixtures("configuration")
def test_scripts_get_every_agent_with_what_hides_it(capsys: pytest.CaptureFixture[str]) -> None:
    list_agents(as_json=True)

    found = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["emoji"], each["visible"]) for each in found] == [
        ("claude", "🦊", True),
        ("quiet", "", False),
    ]
