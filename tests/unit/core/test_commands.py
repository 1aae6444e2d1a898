"""Commands: the whole message, never only its first word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.commands import Command, parse, read_timing
from app.features.together import wording as together
from app.model.wording import HELP


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


CALLED = {"codex": "codex-1", "claude": "claude", "claude code": "claude"}


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("agent", Command("agent")),
        ("!Agent", Command("agent")),
        ("agent codex", Command("agent", "codex-1")),
        ("AGENT Codex ", Command("agent", "codex-1")),
        ("agent codex fix  the tests", Command("agent", "codex-1", words="fix  the tests")),
        ("agent codex: fix\nthe tests", Command("agent", "codex-1", words="fix\nthe tests")),
        ("agent codex\nsay hi", Command("agent", "codex-1", words="say hi")),
        ("agent Claude Code go on", Command("agent", "claude", words="go on")),
        ("agent claude codes", Command("agent", "claude", words="codes")),
        ("agent nemo", Command("agent", "nemo")),
        ("!agent smith is wrong", Command("help")),
    ],
)
def test_a_place_is_handed_over_by_name_with_words_or_without(text: str, command: Command) -> None:
    assert parse(text, CALLED) == command


@pytest.mark.parametrize(
    "text", ["agent smith is wrong", "agents", "agent-based work", "agent codexes are many"]
)
def test_words_about_agents_are_no_command(text: str) -> None:
    assert parse(text, CALLED) is None


@given(st.sampled_from(["codex", "Claude Code"]), st.text(min_size=1))
def test_words_after_the_name_reach_the_agent_as_they_are(name: str, words: str) -> None:
    command = parse(f"agent {name} {words}", CALLED)

    assert command is not None
    assert command.argument in CALLED.values()
    assert words.strip(" \t\r\n,:").strip() in command.words or not words.strip(" ,:")


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
        "agent",
        "review",
        "panel",
        "race",
    ],
)
def test_help_names_every_command(name: str) -> None:
    assert name in HELP + together.HELP


@pytest.mark.parametrize(
    ("text", "timing"),
    [
        ("!queue fix the tests", ("queue", "fix the tests")),
        ("Queue: fix\nthe tests", ("queue", "fix\nthe tests")),
        (" !NOW turn left", ("now", "turn left")),
        ("now: turn left", ("now", "turn left")),
        ("now fix the tests", None),
        ("queue the songs", None),
        ("!queue now", None),
        ("!queue drop", None),
        ("!now", None),
        ("now:", None),
    ],
)
def test_words_say_when_they_are_meant_to_be_read_and_plain_sentences_do_not(
    text: str, timing: tuple[str, str] | None
) -> None:
    assert read_timing(text) == timing
