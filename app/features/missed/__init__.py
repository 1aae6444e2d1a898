"""Finds messages that never arrived, and takes them through the inbox like any other."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(name="missed", package=__name__, part="service:Missed")
