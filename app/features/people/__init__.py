"""Shows people who sign in, gives them roles, and makes tokens for their scripts."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="people",
    package=__name__,
    part="service:People",
    routes=("web:router", "pages:pages", "pages:forms"),
    commands={
        "people": "See who signs in, and give them roles.",
        "tokens": "Make and revoke tokens for scripts.",
    },
)
