"""Brings asks that nobody answered to those who may answer them, and tells agents who asked."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(name="reminders", package=__name__, part="service:Reminders")
