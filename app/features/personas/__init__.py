"""Gives agents their characters: files that say who each one is and what it is told."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="personas",
    package=__name__,
    part="service:Personas",
    routes=("web:router", "web:pages", "web:forms"),
    commands={"agents": ""},
)
