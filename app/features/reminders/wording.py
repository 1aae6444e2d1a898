"""Words what an agent is told about its asks; pure."""

from __future__ import annotations

NOBODY_ANSWERED = (
    "Nobody answered what you asked: {title}. It was not refused, and it was not done. If it still "
    "matters, ask again."
)
