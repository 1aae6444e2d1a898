"""Runs an agent again and again: a cron rule and words, made by people or proposed by agents."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="schedules",
    package=__name__,
    part="service:Schedules",
    routes=("web:router", "web:pages", "web:forms"),
    tools="tools:list_tools",
    commands={"schedules": "Ask agents the same thing again and again."},
)
