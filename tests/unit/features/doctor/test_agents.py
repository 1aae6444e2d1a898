"""An agent with an unknown command gets no model key, and `doctor` says how to pass one."""

from __future__ import annotations

from pathlib import Path

from app.features.doctor.agents import keys
from app.services.service import Severity
from tests.unit.test_config import configured

KEY = {"OPENAI_API_KEY": "sk-0123456789-abcdef", "ANTHROPIC_API_KEY": "sk-ant-0123456789-abc"}


def test_an_unknown_command_gets_no_key_and_doctor_says_how_to_pass_one(tmp_path: Path) -> None:
    configuration = configured(tmp_path, {**KEY, "ACP_AGENT_COMMAND": "my-agent"})

    (finding,) = keys(configuration, configuration.agents["default"], None)

    assert configuration.model_keys("default") == {}
    assert finding.verdict == Severity.WARNING
    assert finding.reason.startswith("gets no model key")
    assert "env_passthrough" in finding.remedy


def test_a_key_that_is_passed_is_named_and_not_shown(tmp_path: Path) -> None:
    entry = '{"mine": {"command": "my-agent", "env_passthrough": ["OPENAI_API_KEY"]}}'
    configuration = configured(tmp_path, {**KEY, "AGENTS_JSON": entry})

    (finding,) = keys(configuration, configuration.agents["mine"], None)

    assert (finding.verdict, finding.reason) == (Severity.OK, "gets OPENAI_API_KEY")
