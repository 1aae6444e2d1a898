"""Shows what people let agents do for good, and takes it back."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="grants",
    package=__name__,
    routes=("web:router",),
    commands={"grants": "See and take back what people always allow."},
)
