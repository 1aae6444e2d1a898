"""Manages whole conversations: list, search, rename, pin, archive, clear, fork, export, delete."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="conversations",
    package=__name__,
    part="service:Conversations",
    routes=("web:router", "pages:pages", "pages:forms"),
    commands={
        "conversations": "List, search and manage conversations of the running bridge.",
        "sessions": "Show the work of agents in conversations.",
    },
)
