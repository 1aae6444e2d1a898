"""Has several agents work on one thing: a review in rounds, a panel, a race."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="together",
    package=__name__,
    part="service:Together",
    tools="service:list_tools",
    needs=("delegation",),
)
