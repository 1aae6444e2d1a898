"""Pauses everything, an agent or a place, and drains a bridge before it is stopped."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="pause",
    package=__name__,
    part="service:Pauses",
    routes=("web:router",),
    commands={
        "pause": "Pause everything, one agent, or one place.",
        "resume": "Let what was paused go on.",
        "pauses": "List what is paused.",
        "drain": "Let running turns end, and begin no others.",
    },
)
