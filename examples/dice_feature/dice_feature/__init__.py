"""Rolls dice: a command in chats, a tool for agents, and a path of the API."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="dice",
    package=__name__,
    part="service:Dice",
    routes=("web:router",),
    rights={"GET /api/v1/dice/{dice}": "viewer"},
    tools="service:list_tools",
)
