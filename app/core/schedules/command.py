"""Reads the command `schedule`: what it asks for, and when; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

QUOTES = '"`\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033'
"""What people write around the time: phones and Slack turn straight quotes into others."""
FIELDS = 5
"""Of a cron expression; a sixth word is the time zone."""

_CREATE = re.compile(rf"(?is)schedule\s+[{QUOTES}]([^{QUOTES}]*)[{QUOTES}](.*)")
_CHANGE = re.compile(r"schedule\s+(remove|pause|resume|run)\s+#?(\d{1,9})", re.IGNORECASE)
_BEGIN = re.compile(rf"schedule\s+[{QUOTES}]", re.IGNORECASE)

Act = Literal["list", "create", "remove", "pause", "resume", "run", "help"]


@dataclass(frozen=True, slots=True)
class ScheduleCommand:
    """What a person asks of schedules."""

    act: Act
    number: int = 0
    expression: str = ""
    zone: str = ""
    """Empty for the bridge's own."""
    words: str = ""


def read(text: str) -> ScheduleCommand | None:
    """Read a message as a command about schedules; None if it is words for an agent."""
    line = text.strip()
    if line.lower() == "schedule":
        return ScheduleCommand("list")
    if change := _CHANGE.fullmatch(line):
        act: Act = change[1].lower()  # type: ignore[assignment]  # the pattern has only these
        return ScheduleCommand(act, int(change[2]))
    if create := _CREATE.fullmatch(line):
        expression, zone = split(create[1])
        return ScheduleCommand("create", 0, expression, zone, create[2].strip())
    return ScheduleCommand("help") if _BEGIN.match(line) else None


def split(when: str) -> tuple[str, str]:
    """Split what is written between the quotes: an expression, then perhaps a time zone."""
    parts = when.split()
    if len(parts) == FIELDS + 1:
        return " ".join(parts[:FIELDS]), parts[FIELDS]
    return " ".join(parts), ""


def write(expression: str, zone: str, words: str) -> str:
    """Write the command that creates a schedule."""
    return f'schedule "{expression} {zone}" {words}'
