"""Defines the permissions, events and manifest of an agent's GitHub App; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.services.github.auth import WORKFLOWS
from app.services.github.events import BUTTONS, ROUTES

PERMISSIONS: Mapping[str, str] = {
    "metadata": "read",
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "statuses": "read",
    "actions": "read",
}
"""Reading and answering, branches, pull requests, how their checks ended and what workflows wrote,
and checks with buttons; nothing about the organisation."""
ENOUGH = {"checks": "read", "actions": ""}
"""Lower permissions that are enough: then turns show no checks, and logs are not quoted."""
EVENTS = tuple(ROUTES)
"""What people say; what becomes of pull requests: their checks, and the branch they are for; what
repositories are called; and which buttons people press."""
CHECKS = {BUTTONS, "check_suite"}
NAME_CHARACTERS = 34
"""The longest name of an App that GitHub accepts."""

_LEVELS = ("", "read", "write", "admin")


def manifest(
    name: str, *, base_url: str, path: str, redirect_url: str, workflows: bool = False
) -> dict[str, Any]:
    """Describe an agent's App as GitHub's manifest flow takes it."""
    return {
        "name": name[:NAME_CHARACTERS],
        "url": base_url,
        "hook_attributes": {"url": f"{base_url}{path}", "active": True},
        "redirect_url": redirect_url,
        "public": False,
        "default_permissions": {**PERMISSIONS, **(WORKFLOWS if workflows else {})},
        "default_events": list(EVENTS),
    }


def lacking(app: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """List the permissions and the events that an App lacks."""
    held = app.get("permissions", {})
    permissions = [
        f"{name}: {level}"
        for name, level in {**PERMISSIONS, **ENOUGH}.items()
        if _LEVELS.index(held.get(name, "")) < _LEVELS.index(level)
    ]
    # An App that writes checks hears of them without a subscription; another has no buttons.
    unasked = CHECKS if held.get("checks") == "write" else {BUTTONS}
    wanted = [event for event in EVENTS if event not in unasked]
    return permissions, [event for event in wanted if event not in app.get("events", ())]
