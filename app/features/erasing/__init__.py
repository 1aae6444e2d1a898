"""Erases on demand, on every machine: a text that leaked, and a person who is to be forgotten."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="erasing",
    package=__name__,
    part="service:Erasing",
    routes=("web:router",),
    commands={
        "purge": "Erase a text that leaked, wherever it was kept or posted.",
        "forget": "Forget a person: what they said and decided, their name.",
    },
)
