"""Prepares the content of a tool card, and says what a call does while it runs; pure.

Everything shown here comes from an agent or from a file, so characters that would hide or reorder
others are made visible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.model.text import compare, reveal_line
from app.server.page.view import diffs, highlight
from app.server.page.view.blocks import CallBlock
from app.server.page.view.diffs import Row
from app.server.page.view.highlight import visible

LINES = 60
"""Lines that a card shows at first: a screen. The rest is one click away."""
CHARACTERS = 8_000
DIFF_LINES = 200
RESULT_CHARACTERS = 80
"""The longest last line that is shown with a command: longer ones do not fit."""

_WORKSPACE = re.compile(r"^.*/workspaces/\d+-[a-z0-9-]+/")
_PATH_NAMES = frozenset({"path", "file_path", "filePath", "abs_path", "notebook_path"})
"""What agents call the file that a tool works on."""
VERBS: Final = {
    "read": "reading",
    "edit": "editing",
    "delete": "deleting",
    "move": "moving",
    "search": "searching",
    "execute": "running",
    "fetch": "fetching",
}
DOING_CHARACTERS: Final = 120
"""More than one line shows."""

_VERB: Final = re.compile(
    r"\A(?:run|running|read|reading|edit|editing|write|writing|delete|deleting|move|moving|"
    r"search|searching|grep|find|fetch|fetching|execute|executing)(?: for)?:?\s+(?=\S)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning of a text, and how many lines are left out."""

    text: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after, as lines."""

    path: str
    lines: tuple[Row, ...]
    added: int
    removed: int
    left: int = 0


def short_path(path: str) -> str:
    """Return a path relative to its workspace."""
    return visible(_WORKSPACE.sub("", path))


def excerpt(text: str, *, whole: bool = False) -> Excerpt:
    """Show the beginning of a long text."""
    text = visible(text).strip("\n")
    if whole:
        return Excerpt(text)
    lines = text.split("\n")
    shown = "\n".join(lines[:LINES])
    if len(shown) <= CHARACTERS:
        return Excerpt(shown, max(0, len(lines) - LINES))
    return Excerpt(shown[:CHARACTERS], max(1, len(lines) - shown[:CHARACTERS].count("\n") - 1))


def given(value: Any, title: str = "") -> str:
    """Write the input of a tool: its command alone, else one line per name.

    A file that the title names is not named again.
    """
    if value is None or value == {} or value == "":
        return ""
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else _json(value)
    command = value.get("command")
    if isinstance(command, str):
        return command
    if isinstance(command, list):
        return " ".join(map(str, command))
    return "\n".join(
        f"{name}: {short_path(each) if isinstance(each, str) else _json(each)}"
        for name, each in value.items()
        if not (name in _PATH_NAMES and isinstance(each, str) and short_path(each) in title)
    )


def result_of(call: CallBlock) -> str:
    """Return the line that a command ended with, where tools such as tests sum up."""
    if call.kind != "execute" or not call.has_ended or call.rejected:
        return ""
    end = str(call.data.get("output") or "").rstrip()[-5 * RESULT_CHARACTERS :]  # with its colours
    line = visible(end).rpartition("\n")[2].strip(" =")
    return line if len(line) <= RESULT_CHARACTERS else ""


def change(diff: Mapping[str, Any], *, whole: bool = False) -> Change:
    """Compare a file before and after."""
    lines = compare(diff.get("old"), diff.get("new"))
    most = len(lines) if whole else DIFF_LINES
    path = short_path(str(diff.get("path", "")))
    return Change(
        path=path,
        lines=tuple(diffs.rows(lines[:most], highlight.language_of(path))),
        added=sum(line.kind == "add" for line in lines),
        removed=sum(line.kind == "del" for line in lines),
        left=max(0, len(lines) - most),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def describe(call: CallBlock | None) -> tuple[str, str]:
    """Return a verb and its object, such as a command; nothing if no call runs."""
    if call is None:
        return "", ""
    given = call.data.get("input")
    command = given.get("command") if isinstance(given, dict) else None
    verb = VERBS.get(str(call.data.get("kind") or call.kind))
    if verb == "running" and isinstance(command, str) and command.strip():
        words = command.strip().partition("\n")[0]
    else:
        words = _VERB.sub("", call.title, count=1) if verb else call.title
    words = words.strip("`") if words.count("`") == 2 else words
    return verb or "using", reveal_line(words[:DOING_CHARACTERS])
