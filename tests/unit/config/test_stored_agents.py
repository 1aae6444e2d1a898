"""Settings of agents that only the store has: taken before the store is open, checked after."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import AgentRecord
from app.config.configuration import make_reader
from app.errors import ConfigurationError
from app.services import registered_services

KEY = "sk-0123456789-of-the-helper"


def test_a_setting_with_the_suffix_of_a_stored_agent_is_its_own(tmp_path: Path) -> None:
    environ = {"AGENTS_JSON": '{"demo": {"command": "x"}}', "OPENAI_API_KEY__HELPER": KEY}
    entry = {"command": "y", "env_passthrough": ["OPENAI_API_KEY"]}
    record = AgentRecord(id="helper", name="helper", entry=entry)
    known = AgentRecord(id="passes", name="passes", entry=entry)
    reader = make_reader(environ, (), registered_services(), None, tmp_path / "home")

    with_it = reader.read([record])

    assert with_it.model_keys("helper")["OPENAI_API_KEY"].get_secret_value() == KEY
    assert "OPENAI_API_KEY__HELPER" not in with_it.surroundings
    with pytest.raises(ConfigurationError, match="does not exist"):
        reader.read([known])


def test_before_the_store_is_open_such_a_setting_is_a_secret_of_someone(tmp_path: Path) -> None:
    environ = {
        "AGENTS_JSON": '{"demo": {"command": "x"}}',
        "SLACK_BOT_TOKEN__HELPER": KEY,
        "ENABLED_SERVICES": "slack,web",
    }
    reader = make_reader(environ, (), registered_services(), None, tmp_path / "home")

    early = reader.read_settings_alone()

    assert early.services == ("web",)
    assert "SLACK_BOT_TOKEN__HELPER" in early.secret_names
    assert "SLACK_BOT_TOKEN__HELPER" not in early.surroundings
    with pytest.raises(ConfigurationError, match="does not exist"):
        reader.read()
