"""Lets agents ask agents: who may ask whom, how far, and what comes of it."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="delegation",
    package=__name__,
    part="service:Delegations",
    tools="tools:list_tools",
)
