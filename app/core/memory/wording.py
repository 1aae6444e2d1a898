"""Words about what agents remember: for agents, and for the people who decide."""

from __future__ import annotations

from app.core.memory.log import Remembered

WORTH_KEEPING = (
    "[The bridge asks; people have your answer and do not see this one. Is anything from this turn "
    "worth keeping for your other conversations: a decision, a preference of the team, a fact "
    "about a system? Answer with at most five lines that begin with `- `, or with the one word "
    "`nothing`. Use no tools. Write no secrets.]"
)
KEEP = "Keep"
FORGET = "Forget"
KEPT = "{agent} noted for its other conversations:\n{text}"
TITLE = "{agent} would like to remember this. Keep it?"
NOTES = "your own notes from other conversations"


def quote(entries: tuple[Remembered, ...]) -> str:
    """Show entries to the agent that wrote them."""
    return "\n".join(f"{entry.day} {entry.time}".strip() + f": {entry.text}" for entry in entries)
