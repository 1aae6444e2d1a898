"""Lines for a terminal: harmless, short, complete."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.consent.views import PAGE, view_of
from app.model.updates import AskFact, AskRequest
from app.server.shapes import EntryOut
from app.terminal import framing
from app.terminal import screen as lines


def entry(
    kind: Any, text: str = "", *, number: int = 1, speaker: str = "", **data: Any
) -> EntryOut:
    return EntryOut(id=number, turn=1, kind=kind, speaker=speaker, text=text, data=data, at=0.0)


def test_a_tool_call_says_who_allowed_it_if_anyone_was_asked() -> None:
    ann = {"how": "person", "who": "Ann", "answer": "Allow once", "allowed": True}
    done: dict[str, Any] = {"status": "completed"}

    assert lines.tool_line(entry("tool", "A", decided=ann, **done)) == "✓ A (allowed by Ann)"
    nobody = {"how": "not asked"}
    assert lines.tool_line(entry("tool", "A", decided=nobody, **done)) == "✓ A"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünicode ✓\n\ttext", "plain ünicode ✓\n\ttext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;never ended", ""),
        ("safe\rgone", "safegone"),
        ("rm \u202egnp.x", "rm gnp.x"),
        ("a\x9b31mb", "a31mb"),
    ],
)
def test_what_a_terminal_would_obey_is_taken_out(text: str, shown: str) -> None:
    assert framing.printable(text) == shown


def test_an_error_of_many_lines_becomes_one() -> None:
    assert framing.one_line("it broke:\n  Traceback\n\n  boom") == "it broke: Traceback boom"


def test_a_line_is_cut_where_it_gets_too_long() -> None:
    assert framing.one_line("x" * 50, limit=10) == "x" * 9 + "…"


def test_columns_are_as_wide_as_their_widest_cell_and_end_without_blanks() -> None:
    rows = [("ID", "STATE"), ("12345", "idle"), ("6", "x")]

    assert list(framing.columns(rows)) == ["ID     STATE", "12345  idle", "6      x"]


def test_columns_count_an_emoji_as_the_two_columns_it_takes() -> None:
    rows = [("🦊 Foxy", "x"), ("⚙️ Gear", "x"), ("Longest", "x")]

    assert list(framing.columns(rows)) == ["🦊 Foxy  x", "⚙️ Gear   x", "Longest  x"]


def shown(*facts: AskFact) -> list[str]:
    return list(lines.ask_lines(view_of(AskRequest("", "Do it", (), facts=facts), str, PAGE)))


def test_a_question_shows_the_command_it_is_about() -> None:
    command = AskFact("command", "rm -rf /\x1b[8m\nls")

    assert shown(command) == ["Command:", r"| rm -rf /\u{1B}[8m", "| ls"]


def test_a_question_shows_what_would_change_in_a_file() -> None:
    change = AskFact("change", "one\nthree\n", "notes.txt", "one\ntwo\n")

    label = "Edit +1 \N{MINUS SIGN}1 notes.txt:"
    assert shown(change) == [label, "|  one", "| -two", "| +three"]


def test_a_long_change_is_cut_and_says_so() -> None:
    *_, last = shown(AskFact("change", "x\n" * 100, "a"))

    assert last == "80 more lines not shown here."


def test_a_call_without_details_shows_none() -> None:
    assert shown() == []


def test_a_tool_that_failed_says_why_once() -> None:
    failed: dict[str, Any] = {"status": "failed", "output": "Write a: no space"}

    assert lines.tool_line(entry("tool", "Write a", **failed)) == "✗ Write a: no space"
    assert lines.tool_line(entry("tool", "Make a", **failed)) == "✗ Make a: Write a: no space"


@pytest.mark.parametrize(
    ("usage", "shown"),
    [
        ({}, ""),
        ({"used": 20, "size": 200, "cost": 0.0}, "20 of 200 tokens"),
        ({"used": 20, "size": None, "cost": 1.5, "currency": "EUR"}, "20 tokens, 1.50 EUR"),
    ],
)
def test_usage_shows_what_is_known(usage: dict[str, Any], shown: str) -> None:
    assert lines.usage_line(usage) == shown


def test_a_transcript_shows_speakers_and_each_tool_call_as_it_ended() -> None:
    entries = [
        entry("message", "write it", number=1, speaker="operator"),
        entry("tool", "Write a", number=2, call="c1", status="pending"),
        entry("ask", "Write a", number=3, state="open", ask=1),
        entry("ask", "operator: Allow once", number=4, state="answered", ask=1),
        entry("tool", "Write a", number=5, call="c1", status="completed"),
        entry("text", "Wrote a.", number=6),
        entry("text", " And more.", number=7),
        entry("notice", "", number=8, state="mode"),
        entry("notice", "Stopped.", number=9),
        entry("usage", number=10, used=1),
    ]

    assert list(lines.transcript_lines(entries, "demo")) == [
        "",
        "operator:",
        "  write it",
        "  ? Write a",
        "    operator: Allow once",
        "  ✓ Write a",
        "",
        "demo:",
        "  Wrote a.",
        "   And more.",
        "  ! Stopped.",
    ]
