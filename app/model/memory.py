"""Holds the notes that agents keep, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeptNote:
    """A note that belongs into its agent's file."""

    id: int
    agent: str
    session: int
    text: str
    at: float
