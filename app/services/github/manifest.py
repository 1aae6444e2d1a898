"""What an agent's GitHub App may do and hears of, and the manifest that makes one; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.services.github.buttons import BUTTONS
from app.services.github.events import HEARD
from app.services.github.names import SERVICE
from app.services.github.naming import RENAMES
from app.services.github.news import NEWS

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
"""What does as well: without it turns are no checks, and logs are not quoted."""
EVENTS = tuple(dict.fromkeys((*HEARD, *NEWS, *RENAMES, *BUTTONS)))
"""What people say; what becomes of pull requests: their checks, and the branch they are for; what
repositories are called; and which buttons people press."""
NAME_CHARACTERS = 34
"""What GitHub takes as the name of an App."""

_LEVELS = ("", "read", "write", "admin")


def manifest(name: str, agent: str, *, base_url: str, redirect_url: str) -> dict[str, Any]:
    """Describe an agent's App as GitHub's manifest flow takes it."""
    return {
        "name": name[:NAME_CHARACTERS],
        "url": base_url,
        "hook_attributes": {"url": f"{base_url}/webhooks/{SERVICE}/{agent}", "active": True},
        "redirect_url": redirect_url,
        "public": False,
        "default_permissions": dict(PERMISSIONS),
        "default_events": list(EVENTS),
    }


def lacking(app: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """List the permissions and the events that an App should have and has not."""
    held = app.get("permissions", {})
    permissions = [
        f"{name}: {level}"
        for name, level in {**PERMISSIONS, **ENOUGH}.items()
        if _LEVELS.index(held.get(name, "")) < _LEVELS.index(level)
    ]
    without = BUTTONS if held.get("checks") != "write" else ()
    wanted = [event for event in EVENTS if event not in without]
    return permissions, [event for event in wanted if event not in app.get("events", ())]
