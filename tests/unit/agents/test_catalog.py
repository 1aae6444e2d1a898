"""What is known about agent programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.agents import catalog
from app.agents.catalog import AgentProgram, checkout_words, known_agents, read_program
from app.errors import ConfigurationError

FOLDER = Path(catalog.__file__).parent / "known"
GOOD = """
title = "Mine"
command = ["mine", "--acp"]
match = ["mine"]
install = "pip install mine"
login = "It needs none."
"""


def programs() -> dict[str, AgentProgram]:
    """Collect the known programs by name."""
    return {program.name: program for program in known_agents()}


def test_every_file_is_known_and_every_known_program_has_a_file() -> None:
    assert set(programs()) == {path.stem for path in FOLDER.glob("*.toml")}


def test_the_order_is_fixed() -> None:
    assert [program.name for program in known_agents()] == [
        "claude",
        "codex",
        "codex-zed",
        "gemini",
        "opencode",
        "qwen",
        "copilot",
        "demo",
    ]


@pytest.mark.parametrize("program", known_agents(), ids=lambda program: program.name)
def test_every_program_is_described_well_enough_to_be_started_and_installed(
    program: AgentProgram,
) -> None:
    assert program.command[0] in program.match
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,30}", program.name)
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*", variable) for variable in program.env)
    assert program.title
    assert program.install
    assert program.login.endswith(".")
    assert program.version[:1] in ((), program.command[:1])
    assert program.login_command[:1] in ((), program.command[:1])


def test_the_older_name_of_claude_is_known() -> None:
    assert "claude-code-acp" in programs()["claude"].match


def test_claude_is_kept_from_loading_settings_out_of_a_checkout() -> None:
    claude = programs()["claude"]

    # The bridge checks calls of its own tools itself.
    options = {"settingSources": ["user"], "allowedTools": ["mcp__bridge"]}
    assert claude.session_meta == {"claudeCode": {"options": options}}


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("claude", "default"),
        ("codex", "read-only"),
        ("codex-zed", "read-only"),
        ("gemini", "default"),
        ("qwen", "default"),
        ("copilot", "https://agentclientprotocol.com/protocol/session-modes#agent"),
        ("demo", "ask"),
    ],
)
def test_the_mode_that_asks_is_known(name: str, mode: str) -> None:
    assert programs()[name].ask_mode == mode


def test_an_agent_without_a_mode_that_asks_is_made_to_ask_by_its_environment() -> None:
    assert [program.name for program in known_agents() if program.ask_mode is None] == ["opencode"]
    assert '"*": "ask"' in programs()["opencode"].environment["OPENCODE_PERMISSION"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("claude", "ignores agent settings inside repositories"),
        ("copilot", "does not start in a checkout with .github/hooks"),
        (None, "a checkout's settings may turn off asking"),
    ],
)
def test_what_a_checkout_can_do_is_told(name: str | None, words: str) -> None:
    assert checkout_words(programs()[name] if name else None).startswith(words)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD + "[quirks]\nload_after_seconds = 3\n")

    program = read_program(path)

    assert program.name == "mine"
    assert program.command == ("mine", "--acp")
    assert program.quirks.load_after_seconds == 3
    assert program.env == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD + 'colour = "red"\n', "colour"),
        (GOOD + "[quirks]\ncolour = 1\n", "quirks.colour"),
        (GOOD + 'env = "A"\n', "env"),
        (GOOD.replace("title", "titel"), "tit"),
        ("title = ", "not TOML"),
    ],
)
def test_a_file_that_breaks_the_schema_refuses(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(content)

    with pytest.raises(ConfigurationError, match=rf"known/mine\.toml: .*{re.escape(words)}"):
        read_program(path)


def test_a_file_that_is_not_there_refuses(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_program(tmp_path / "none.toml")
