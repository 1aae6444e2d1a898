"""Shows what agents leave running between turns, bounds it, ends it, and tells when it is gone."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="background",
    package=__name__,
    part="service:BackgroundWork",
    routes=("web:router",),
)
