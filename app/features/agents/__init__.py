"""Changes agents while the bridge runs, connects them to services, and checks whether they work."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="agents",
    package=__name__,
    part="service:Agents",
    routes=("web:router", "web:pages", "web:forms"),
    commands={"agents": "List, add, change, probe and log in agents."},
)
