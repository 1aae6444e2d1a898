"""Commands: the whole message, never only its first word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.commands import Command, parse
from app.core.wording import HELP


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("stop", Command("stop")),
        ("  STOP ", Command("stop")),
        ("!stop", Command("stop")),
        ("stop all", Command("stop", "all")),
        ("new", Command("new")),
        ("queue drop", Command("queue", "drop")),
        ("mode Read-Only", Command("mode", "Read-Only")),
        ("listen latest", Command("listen", "latest")),
        ("quiet", Command("verbosity", "quiet")),
        ("help", Command("help")),
        ("repo acme/app", Command("repo", "acme/app")),
        ("!repo acme/app Always", Command("repo", "acme/app", always=True)),
    ],
)
def test_a_whole_message_is_a_command(text: str, command: Command) -> None:
    assert parse(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stop it",
        "stop the press",
        "new idea",
        "mode",
        "mode a b",
        "listen",
        "listen to me",
        "quiet please",
        "stop\nall",
        "help me",
        "queue up",
        "repo acme/app now",
        "mode fast always",
        "repo acme/app always always",
    ],
)
def test_words_for_the_agent_are_no_command(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    "text", ["!mode", "!listen nobody", "!stop the tests please", "!Quiet now"]
)
def test_whoever_calls_a_command_and_gets_it_wrong_gets_help(text: str) -> None:
    assert parse(text) == Command("help")


@pytest.mark.parametrize("text", ["!important", "! ", "!mode\nfast", "!stopp"])
def test_an_exclamation_mark_alone_makes_no_command(text: str) -> None:
    assert parse(text) is None


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    command = parse(text)

    assert command is None or command.name


@pytest.mark.parametrize(
    "name",
    [
        "stop",
        "new",
        "status",
        "mode",
        "model",
        "queue",
        "listen",
        "quiet",
        "normal",
        "full",
        "help",
    ],
)
def test_help_names_every_command(name: str) -> None:
    assert name in HELP
