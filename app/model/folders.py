"""Holds a saved folder, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SavedFolder:
    """One folder of a session as it was saved last."""

    session: int
    kind: str
    saved: str
    """The name of what was saved."""
    machine: str
    """The machine whose disk has it."""
