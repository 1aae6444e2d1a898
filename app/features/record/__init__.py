"""Keeps a record that proves itself: who asked, who allowed, what ran and what was pushed."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="record",
    package=__name__,
    part="service:Record",
    routes=("web:router", "web:pages"),
    commands={"audit": "See, export and check the record of what was done."},
)
