"""Pauses everything, an agent or a place, and drains a bridge before it is stopped."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(name="pause", package=__name__, part="service:Pauses", routes=("web:router",))
