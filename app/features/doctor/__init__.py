"""Checks this machine, the settings and the services, and says what to do about what is wrong."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="doctor",
    package=__name__,
    commands={"doctor": "Check this machine, the settings and the services."},
)
