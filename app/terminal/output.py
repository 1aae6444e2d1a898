"""Formats what commands show: lines of what happened, tables for people, JSON for scripts.

Text from agents and strangers passes `printable` first: a terminal obeys control characters, and a
question about a command must show that command.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import category, east_asian_width

from app.model import ask_wording as wording
from app.model.text import money
from app.model.updates import AskView
from app.terminal.framing import hint

if TYPE_CHECKING:  # 0.2 s that the words of an error do not need
    from pydantic import BaseModel

    from app.server.shapes import EntryOut

M = TypeVar("M", bound="BaseModel")

SHOWN_LINES = 20
"""Lines of a change that a question shows: enough to judge it, few enough for one screen."""
ONE_LINE_CHARACTERS = 600
"""The longest error on one line: the last words of an agent can be a whole traceback."""

MARKS = {"pending": "·", "in_progress": "»", "completed": "✓", "failed": "✗"}

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links, clipboard
    r"|\x1b.?",
    re.DOTALL,
)
# Control characters except tab and newline, and those that change the direction of text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Remove what a terminal would obey instead of show."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


def one_line(text: str, limit: int = ONE_LINE_CHARACTERS) -> str:
    """Put a text onto one line, no longer than a limit."""
    line = " ".join(printable(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def say(words: str) -> None:
    """Tell the person something that is no output, such as what was done."""
    sys.stderr.write(f"{one_line(hint(words))}\n")


def count(number: float, word: str) -> str:
    """Count things, such as `2 steps`."""
    return f"{number:g} {word}{'' if number == 1 else 's'}"


def when(at: float) -> str:
    """Format a time in local time."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M %Z")


def show_list(
    found: Sequence[M],
    header: Sequence[str],
    row: Callable[[M], Sequence[object]],
    *,
    as_json: bool,
    nothing: str = "",
) -> None:
    """Show models: as JSON, or a row for each; None is an empty cell.

    If there are none, people read the words for `nothing` on stderr, or else the header alone.
    """
    if as_json:
        show_json([each.model_dump(mode="json") for each in found])
    elif nothing and not found:
        sys.stderr.write(f"{nothing}\n")
    else:
        cells = [["" if cell is None else str(cell) for cell in row(each)] for each in found]
        show_table(header, cells)


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show rows under a header."""
    clean = [[one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(header, clean)
    else:
        for line in columns([[name.upper() for name in header], *clean]):
            sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def show_json(value: Any) -> None:
    """Print a value as JSON."""
    sys.stdout.write(f"{json.dumps(value, indent=2, ensure_ascii=False)}\n")
    sys.stdout.flush()


def _draw(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    # 0.1 s that only a person pays for.
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Column, Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    names = [Column(name, overflow="fold") for name in header]
    table = Table(*names, box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align rows in columns, for people and for `awk`."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _width(text: str) -> int:
    """Count the columns of a text: most emoji take two, marks on a character none."""
    return sum(
        2 if east_asian_width(character) in "WF" else category(character) not in {"Mn", "Cf"}
        for character in text
    )


def plan_lines(steps: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Show the steps of a plan."""
    for step in steps:
        yield f"  {MARKS.get(step['status'], '·')} {one_line(step['text'])}"


def tool_line(entry: EntryOut) -> str:
    """Show one state of a tool call, and why it failed."""
    status = entry.data.get("status") or "pending"
    title = one_line(entry.text or entry.data.get("kind") or "tool")
    why = one_line(entry.data.get("output") or "", limit=200) if status == "failed" else ""
    words = why if why.startswith(title) else ": ".join(filter(None, (title, why)))
    decided = one_line(wording.decision(entry.data.get("decided")))
    return f"{MARKS.get(status, '·')} {words}{f' ({decided})' if decided else ''}"


def ask_sentence(view: AskView) -> str:
    """Say what an agent wants in one line; empty if its title and facts say it."""
    said = wording.sentence(view)
    if said is None:
        return ""
    amount = f"({said.amount})" if said.amount else ""
    return " ".join(filter(None, (said.words, said.subject, amount)))


def ask_lines(view: AskView) -> Iterator[str]:
    """Show all of what an ask is about; of a change its first lines."""
    is_said = wording.sentence(view) is not None
    for fact in view.facts:
        if not is_said:
            yield f"{wording.label(fact)} {fact.path}".rstrip() + ":"
        changed = fact.kind == "change"
        shown = fact.text.split("\n") if fact.text else []
        # Behind a bar, so that no line of an agent looks like one of the bridge.
        yield from (f"| {line}" for line in (shown[:SHOWN_LINES] if changed else shown))
        left = fact.left + max(0, len(shown) - SHOWN_LINES) if changed else fact.left
        if words := wording.gap(replace(fact, left=left)):
            yield words
        yield from (f"| {line}" for line in fact.tail.split("\n") if fact.tail)
    yield from wording.notes(view, on_page=True)


def usage_line(data: Mapping[str, Any]) -> str:
    """Show how much of its context an agent has used, and what it cost."""
    used, size, cost = data.get("used"), data.get("size"), data.get("cost")
    parts = []
    if used is not None:
        parts.append(f"{used} of {size} tokens" if size else f"{used} tokens")
    if price := money(cost, data.get("currency"), estimated=bool(data.get("estimated"))):
        parts.append(price)
    return ", ".join(parts)


def transcript_lines(entries: Sequence[EntryOut], agent: str) -> Iterator[str]:
    """Show a whole conversation; a tool call once, as it ended."""
    last = {entry.data.get("call"): entry.id for entry in entries if entry.kind == "tool"}
    speaker: str | None = None
    for entry in entries:
        match entry.kind:
            case "message" | "text":
                name = entry.speaker or agent
                if name != speaker:
                    yield ""
                    yield f"{one_line(name)}:"
                speaker = name
                yield from (f"  {line}" for line in printable(entry.text).strip("\n").split("\n"))
            case "tool" if last[entry.data.get("call")] == entry.id:
                yield f"  {tool_line(entry)}"
            case "ask" if entry.data.get("state") == "open":
                yield f"  ? {one_line(entry.text)}"
            case "ask":
                yield f"    {one_line(entry.text)}"
            case "notice" if entry.text:
                yield f"  ! {one_line(entry.text)}"
            case _:
                pass


def file_lines(files: Iterable[Mapping[str, str]], uploads: PurePath) -> Iterator[str]:
    """List the paths of files that an agent made."""
    return (f"  {printable(str(uploads / file['url']))}" for file in files)
