"""Who a message speaks to: @names outside code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.page.view.roster import MentionNames

NAMES = MentionNames.of(
    [
        ("claude", "claude", "Claude Code"),
        ("codex", "codex", "Codex"),
        ("helper-1", "code", "Helper"),
    ]
)


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        ("@claude fix it", ("claude",)),
        ("fix it, @CODEX.", ("codex",)),
        ("@codex and @claude, then @codex", ("codex", "claude")),
        ("@Claude Code please", ("claude",)),
        ("@claude code please", ("claude",)),
        ("(@claude)", ("claude",)),
        ("**@claude**", ("claude",)),
        ("@helper", ("helper-1",)),
        ("@code", ("helper-1",)),
        ("hello", ()),
        ("@nobody", ()),
        ("mail claude@codex.example", ()),
        ("https://example.com/@claude", ()),
        ("@claude-two @claudette @@claude", ()),
        ("`@claude` is how you call it", ()),
        ("```\n@claude\n```\nwhat is @codex", ("codex",)),
        ("    @claude in code", ()),
        ("@claude's work", ("claude",)),
        ("", ()),
    ],
)
def test_a_mention_names_an_agent(text: str, agents: tuple[str, ...]) -> None:
    assert NAMES.mentioned(text) == agents


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("@claude stop", "stop"),
        ("@claude, @codex: stop", "stop"),
        (" @Claude Code\nstop", "stop"),
        ("stop", "stop"),
        ("stop @claude", "stop @claude"),
        ("@alice stop", "@alice stop"),
        ("@claude", ""),
    ],
)
def test_words_after_the_mention_are_what_is_said(text: str, rest: str) -> None:
    assert NAMES.after(text) == rest


def test_a_title_that_two_agents_share_names_neither() -> None:
    names = MentionNames.of(
        [("one", "one", "Twin"), ("two", "two", "Twin"), ("three", "three", "one")]
    )

    assert names.mentioned("@twin") == ()
    assert names.mentioned("@one @three") == ("one", "three")


def test_without_agents_nobody_is_mentioned() -> None:
    assert MentionNames.of([]).mentioned("@claude @") == ()


@given(st.text())
def test_any_text_names_known_agents_only(text: str) -> None:
    assert set(NAMES.mentioned(f"@{text} @claude {text}")) <= {"claude", "codex", "code"}
