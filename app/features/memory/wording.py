"""Words about what agents remember: for agents, and for the people who decide."""

from __future__ import annotations

from typing import Final

from app.features.memory.model import Remembered

WORTH_KEEPING: Final = (
    "[The bridge asks; people have your answer and do not see this one. Is anything from this turn "
    "worth keeping for your other conversations: a decision, a preference of the team, a fact "
    "about a system? Answer with at most five lines that begin with `- `, or with the one word "
    "`nothing`. Use no tools. Write no secrets.]"
)
KEEP: Final = "Keep"
FORGET: Final = "Forget"
KEPT: Final = "{agent} noted for its other conversations:\n{text}"
TITLE: Final = "{agent} would like to remember this. Keep it?"
NOTES: Final = "your own notes from other conversations"
MEMORY_READ: Final = (
    "Read what you remember across conversations: memory is your MEMORY.md, notes are the entries "
    "of your daily logs, the newest first. Use memory_search to find one by its words. Returns "
    "memory (unless a day is given), notes (day, time, text) and more, the number of notes left "
    "out. No other agent's memory can be read."
)
MEMORY_SEARCH: Final = (
    "Find notes of your daily logs that have all these words, the best first. Use it before you "
    "ask people something that they may have told you in another conversation. Returns notes "
    "(day, time, text) and more, the number of notes left out."
)
MEMORY_WRITE: Final = (
    "Keep a note for your other conversations: a decision, a preference of the team, a fact about "
    "a system. Not for what only this task needs, and never for secrets. Returns state: kept, or "
    "asked if people decide whether you keep it. At most 2,000 characters."
)
MEMORY_OFF: Final = "You have no memory: the operator has set `memory: off`."
EMPTY_NOTE: Final = "There is nothing to note."
KNOWN_NOTE: Final = "You had noted this already."
NOTE_ASKED: Final = "People are asked whether you keep it. You need not wait for that."
TOO_MANY_NOTES: Final = "You noted {most} things here today, the most there can be."


def quote(entry: Remembered, text: str) -> str:
    """Show an entry to the agent that wrote it; `text` is what it may see of it."""
    return f"{entry.day} {entry.time}".strip() + f": {text}"
