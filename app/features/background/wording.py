"""Words what people and agents read about work in the background; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.markdown.writing import span
from app.model.background import Work
from app.model.text import reveal_line

KEEP: Final = "Keep it running"
END: Final = "End it"
STILL_RUNS: Final = (
    "{agent} has had this running in the background for {minutes:g} minutes: {what}. "
    "Without an answer it ends in {patience:g} minutes."
)
LOST: Final = (
    "What you had running in the background ended with your process: {what}. "
    "Start it again if it is still needed."
)
KINDS: Final = {"child": "a sub-agent", "timer": "a timer", "goal": "a goal of its own"}
MOST: Final = 5
"""What is named at once; more is counted."""


def name(work: Sequence[Work]) -> str:
    """Name what goes on, in one line."""
    shown = [span(reveal_line(each.about)) if each.about else _kind(each) for each in work[:MOST]]
    more = [f"{len(work) - MOST} more"] if len(work) > MOST else []
    return ", ".join((*shown, *more))


def _kind(work: Work) -> str:
    return KINDS.get(work.kind, "something")
