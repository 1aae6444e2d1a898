"""Tells what became of every message, why nobody answered one, and how good the service is."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="outcomes",
    package=__name__,
    part="service:Outcomes",
    routes=("web:router", "web:pages"),
    commands={"why": "Tell what became of a message, and what to do about it."},
)
