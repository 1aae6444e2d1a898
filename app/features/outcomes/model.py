"""The shape in which the API tells what became of a message."""

from __future__ import annotations

from pydantic import BaseModel


class StepOut(BaseModel):
    """One moment of a message."""

    at: float
    what: str


class WhyOut(BaseModel):
    """What became of a message."""

    outcome: str
    """`answered`, `refused` and so on, or why it never arrived: `absent`, `gone`, `never_sent`."""
    words: str
    remedy: str
    steps: list[StepOut]
    link: str
    service: str
