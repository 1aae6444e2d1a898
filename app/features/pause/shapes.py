"""Defines the JSON shapes of pauses and drain, for the API and the command line."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.features.pause.store import Reason

_PLACE = r"[a-z][a-z0-9]*:.+"


class PauseScope(BaseModel):
    """What to pause or resume: everything, one agent, or one place."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    everything: bool = Field(default=False, alias="all")
    agent: str | None = None
    """The name of an agent."""
    place: str | None = Field(default=None, pattern=_PLACE, max_length=500)
    """A place such as `slack:C0123:1700.1`, or what holds places, such as `slack:C0123`."""

    @model_validator(mode="after")
    def _check_one(self) -> PauseScope:
        if sum((self.everything, self.agent is not None, self.place is not None)) != 1:
            raise ValueError("give exactly one of all, agent and place")
        return self


class PauseOut(BaseModel):
    """One thing that is paused."""

    kind: Literal["all", "agent", "place"]
    name: str
    """The name of the agent, or the place; empty for everything."""
    since: float
    reason: Reason
    words: str
    """The same as a sentence."""


class DrainOut(BaseModel):
    """How far a bridge that takes no new work is."""

    draining: bool
    turns: int
    """Turns that still run."""
    posts: int
    """Posts that have not arrived yet."""
