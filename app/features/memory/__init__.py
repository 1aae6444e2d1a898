"""Lets agents remember across conversations: noted after a turn, kept in files, found by words."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="memory",
    package=__name__,
    part="service:Memory",
    routes=("web:router", "web:pages", "web:forms"),
    tools="tools:list_tools",
    commands={"agents": ""},
)
