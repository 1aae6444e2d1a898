"""Writes the manifest of an agent's Linear application, and the steps to create it; pure.

Linear's form takes the manifest in its address (linear.app/developers/oauth-app-manifests). The
scopes are the ones that tokens are minted with, so that the two never differ.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import quote

from app.config import AgentConfig, Configuration
from app.services.linear.auth import SCOPES
from app.services.linear.settings import NAME
from app.services.service import ManifestRequest, Setup, require_public

NEW_APPLICATION: Final = "https://linear.app/settings/api/applications/new"
SCHEMA: Final = "https://linear.app/.well-known/oauth-app-manifest.schema.json"
DEVELOPER: Final = "Agent Bridge"
NAME_CHARACTERS: Final = 80
"""Linear's limit for the name of an application."""
DESCRIPTION_CHARACTERS: Final = 1000
"""Linear's limit for its description."""
REASONS: Final = {
    "read": "read issues, comments and members",
    "write": "answer, show the plan, move the issue",
    "app:assignable": "be assigned issues",
    "app:mentionable": "be mentioned",
}
EVENTS: Final = {
    "AgentSessionEvent": (
        "Agent session events",
        "someone delegated an issue, mentioned the agent, replied or stopped",
    ),
    "AppUserNotification": ("Inbox notifications", "someone unassigned the agent from an issue"),
    "PermissionChange": (
        "Permission changes",
        "someone gave or took the agent access to a team, or removed it from the workspace",
    ),
}
"""The events to subscribe to: Linear's name of each, its label in the form, and the reason."""

_NOT_IN_A_NAME: Final = re.compile(r"linear|https?://", re.IGNORECASE)


def install_address(base_url: str, agent: str) -> str:
    """Return the address where an admin installs an agent's application."""
    return f"{base_url}/install/linear/{agent}"


def show(request: ManifestRequest) -> None:
    """Print the manifest on stdout, and the steps on stderr.

    Raises:
        ConfigurationError: Linear cannot reach the bridge.
    """
    configuration, agent = request.configuration, request.agent
    made = describe(configuration, agent, request.title)
    request.write(json.dumps(made, indent=2, ensure_ascii=False))
    request.explain(steps(request, made, install_address(configuration.base_url, agent.id)))


def describe(configuration: Configuration, agent: AgentConfig, title: str) -> dict[str, Any]:
    """Write the manifest of an agent of this bridge.

    Raises:
        ConfigurationError: Linear cannot reach the bridge.
    """
    require_public(configuration.base_url, "Linear")
    return manifest(
        agent.name,
        name=title,
        description=agent.description or "",
        base_url=configuration.base_url,
        path=configuration.webhook_paths(NAME, agent.id)[0],
        install=install_address(configuration.base_url, agent.id),
    )


def set_up(configuration: Configuration, agent: AgentConfig, title: str) -> Setup:
    """Say how to create an agent's application in the browser.

    Raises:
        ConfigurationError: Linear cannot reach the bridge.
    """
    labels = ", ".join(label for label, _ in EVENTS.values())
    return Setup(
        creation_address(describe(configuration, agent, title)),
        (
            "As an admin of the workspace, check that client credentials and webhooks are on, with "
            f"the events {labels}; then create the application.",
            "Copy its client ID, its client secret and the webhook signing secret.",
        ),
    )


def manifest(
    agent: str, *, name: str, description: str, base_url: str, path: str, install: str
) -> dict[str, Any]:
    """Write the manifest; Linear accepts only a public address in it."""
    made: dict[str, Any] = {
        "$schema": SCHEMA,
        "schemaVersion": "1.0.0",
        "distribution": "private",
        "developer": {"name": DEVELOPER},
        "oauth": {
            "client_name": _application_name(name, agent),
            "client_uri": base_url,
            "redirect_uris": [f"{install}/callback"],
            "grant_types": ["authorization_code", "client_credentials"],
        },
        "webhook": {
            "enabled": True,
            "url": f"{base_url}{path}",
            "resourceTypes": list(EVENTS),
        },
    }
    if description:
        made["display"] = {"description": description[:DESCRIPTION_CHARACTERS]}
    return made


def creation_address(made: dict[str, Any]) -> str:
    """Return the address of Linear's form, filled in from a manifest."""
    compact = json.dumps(made, separators=(",", ":"), ensure_ascii=False)
    return f"{NEW_APPLICATION}?manifest={quote(compact, safe='')}"


def steps(request: ManifestRequest, made: dict[str, Any], install: str) -> str:
    """List what to do, and which settings the bridge gets from it."""
    agent, name = request.agent.name, made["oauth"]["client_name"]
    where, then = "into .env", "Run `agent-bridge doctor`, then `agent-bridge serve`."
    if request.is_stored:
        where = f"with `agent-bridge agents set {agent} NAME=VALUE ...`"
        then = "Run `agent-bridge doctor`."
    labels = ", ".join(label for label, _ in EVENTS.values())
    return "\n".join(
        [
            f"To add {agent} to Linear:",
            "1. As an admin of the workspace, open this address. It fills in Linear's form:",
            f"   {creation_address(made)}",
            "   Check that client credentials and webhooks are on, with the events",
            f"   {labels}; then create the application.",
            f"2. Copy from the application {where}:",
            f"   Client ID              {request.called('LINEAR_CLIENT_ID')}",
            f"   Client secret          {request.called('LINEAR_CLIENT_SECRET')}",
            f"   Webhook signing secret {request.called('LINEAR_WEBHOOK_SECRET')}",
            f"3. {then}",
            f"4. In Linear, delegate an issue to {name}, or mention it in a comment.",
            "   If it is in no menu, if you turned client credentials off, or for someone else's",
            f"   workspace: sign in to the page of the bridge, open {install}",
            "   and consent as an admin of the workspace. The bridge then renews its tokens.",
            "",
            "Why the agent needs these scopes:",
            *(f"   {scope}: {REASONS[scope]}" for scope in SCOPES),
            "Why it subscribes to these events:",
            *(f"   {label}: {reason}" for label, reason in EVENTS.values()),
        ]
    )


def _application_name(name: str, agent: str) -> str:
    """Return a name that Linear accepts: 2 to 80 characters, neither `Linear` nor an address."""
    usable = " ".join(_NOT_IN_A_NAME.sub("", name).split())[:NAME_CHARACTERS]
    if len(usable) >= 2:
        return usable
    return f"{agent} agent" if not _NOT_IN_A_NAME.search(agent) else "Coding agent"
