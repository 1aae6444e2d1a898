"""Shows what a day may cost and has cost; a turn that would exceed it is paused by the pipe."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="spending",
    package=__name__,
    part="web:DailySpending",
    routes=("web:router",),
    commands={"spending": "Show what today has cost so far, or the last days."},
)
