"""Defines the JSON shape of what was spent, for the API and the command line."""

from __future__ import annotations

from pydantic import BaseModel

from app.store.spending import Share


class SpendingOut(BaseModel):
    """What a person, a place, an agent or everyone has spent today."""

    share: Share
    name: str
    """Who or what: `slack:U024BE7LH`, `slack:C0123`, an agent's name; empty for the whole day."""
    usd: float
    limit_usd: float | None
    """What it may be; no limit if absent."""
