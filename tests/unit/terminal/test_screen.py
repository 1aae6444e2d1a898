"""The answer on stdout, everything else on stderr."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from app.server.shapes import EntryOut
from app.terminal.screen import Margin, PlainLines, Screen, margin


class TerminalFile(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def entry(kind: Any, text: str = "", **data: Any) -> EntryOut:
    return EntryOut(id=1, turn=1, kind=kind, speaker="", text=text, data=data, at=0.0)


def steps(*states: str) -> EntryOut:
    return entry(
        "plan",
        steps=[{"text": text, "status": each} for text, each in zip("ab", states, strict=True)],
    )


def test_what_an_agent_made_is_shown_with_its_path() -> None:
    err = io.StringIO()
    screen = Screen(io.StringIO(), PlainLines(err), uploads=Path("/data/uploads"))

    files = [{"name": "a.md", "media_type": "text/markdown", "url": "0a1b/a.md", "size": 1}]
    screen.show(entry("notice", "Made a.md (1 byte).", files=files))
    screen.end()

    assert err.getvalue() == "Made a.md (1 byte).\n  /data/uploads/0a1b/a.md\n"


def test_nothing_but_the_answer_goes_to_stdout() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(out, PlainLines(err))

    for row in (
        entry("message", "words"),
        entry("thought", "hm"),
        steps("pending", "pending"),
        entry("tool", "Write a", call="c", status="completed"),
        entry("notice", "The agent reached its limit."),
        entry("text", "hel"),
        entry("text", "lo"),
    ):
        screen.show(row)
    screen.end()

    assert out.getvalue() == "hello\n"
    assert err.getvalue() == "Plan:\n  · a\n  · b\n✓ Write a\n! The agent reached its limit.\n"


def test_an_answer_that_ends_its_line_gets_no_second_end() -> None:
    out = io.StringIO()
    screen = Screen(out, Margin())

    screen.show(entry("text", "hello\n"))
    screen.end()
    screen.end()

    assert out.getvalue() == "hello\n"


def test_no_answer_leaves_stdout_empty() -> None:
    out = io.StringIO()

    Screen(out, Margin()).end()

    assert out.getvalue() == ""


def test_of_a_known_plan_only_what_was_done_is_shown_again() -> None:
    err = io.StringIO()
    screen = Screen(io.StringIO(), PlainLines(err))

    screen.show(steps("pending", "pending"))
    screen.show(steps("in_progress", "pending"))
    screen.show(steps("completed", "in_progress"))
    screen.show(steps("completed", "completed"))

    assert err.getvalue().splitlines()[3:] == ["  ✓ a", "  ✓ b"]


def test_a_tool_call_is_shown_when_it_begins_and_when_it_ends() -> None:
    err = io.StringIO()
    screen = Screen(io.StringIO(), PlainLines(err))

    for status in ("pending", "in_progress", "in_progress", "completed"):
        screen.show(entry("tool", "Run ls", call="c", status=status))

    assert err.getvalue() == "· Run ls\n✓ Run ls\n"


def test_the_last_notice_is_dropped_where_the_error_says_it_anyway() -> None:
    err = io.StringIO()
    screen = Screen(io.StringIO(), PlainLines(err))

    screen.show(entry("notice", "it broke"))
    screen.end(notice=False)
    screen.end()

    assert err.getvalue() == ""


def test_a_line_beside_the_answer_does_not_write_into_it_where_both_are_seen() -> None:
    terminal = TerminalFile()
    screen = Screen(terminal, PlainLines(terminal), one_terminal=True)

    screen.show(entry("text", "half a line"))
    screen.line("! note")
    screen.show(entry("text", ", the rest"))
    screen.end()

    assert terminal.getvalue() == "half a line\n! note\n, the rest\n"


def test_a_terminal_gets_no_control_characters_of_an_agent_but_a_file_gets_them() -> None:
    terminal, file = TerminalFile(), io.StringIO()

    for out in (terminal, file):
        Screen(out, Margin()).show(entry("text", "\x1b[31mred"))

    assert terminal.getvalue() == "red"
    assert file.getvalue() == "\x1b[31mred"


def test_a_file_gets_plain_lines_and_a_terminal_a_line_that_moves() -> None:
    file, terminal = io.StringIO(), TerminalFile()

    for stream in (file, terminal):
        shown = margin(stream, quiet=False)
        shown.status("demo is working")
        shown.line("a line")
        shown.still()

    assert file.getvalue() == "a line\n"
    assert "demo is working" in terminal.getvalue()
    assert "a line\n" in terminal.getvalue()


def test_quiet_shows_nothing_beside_the_answer() -> None:
    stream = TerminalFile()

    shown = margin(stream, quiet=True)
    shown.status("working")
    shown.line("a line")

    assert stream.getvalue() == ""


def test_while_a_person_is_asked_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    plain = PlainLines(io.StringIO())
    monkeypatch.setattr(plain, "status", told.append)
    screen = Screen(io.StringIO(), plain)

    with screen.prompt("Answer: "):
        screen.status("working")
    screen.status("on again")

    assert told == ["on again"]
