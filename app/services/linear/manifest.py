"""Explains how to create an agent's application in Linear; pure.

The scopes are the ones that tokens are minted with, so that the two never differ.
"""

from __future__ import annotations

from typing import Final

from app.services.linear.auth import SCOPES
from app.services.linear.settings import NAME
from app.services.service import ManifestRequest

NEW_APPLICATION: Final = "https://linear.app/settings/api/applications/new"
REASONS: Final = {
    "read": "read issues, comments and members",
    "write": "answer, show the plan, move the issue",
    "app:assignable": "be assigned issues",
    "app:mentionable": "be mentioned",
}
EVENTS: Final = {
    "Agent session events": "someone delegated an issue, mentioned the agent, replied or stopped",
    "Inbox notifications": "someone unassigned the agent from an issue",
    "OAuth app revoked": "someone removed the agent from the workspace",
}


def install_address(base_url: str, agent: str) -> str:
    """Return the address where an admin installs an agent's application."""
    return f"{base_url}/install/linear/{agent}"


def show(request: ManifestRequest) -> None:
    """Print the steps."""
    configuration, agent = request.configuration, request.agent
    request.write(
        steps(
            agent.name,
            name=request.title,
            base_url=configuration.base_url,
            path=configuration.webhook_paths(NAME, agent.name)[0],
            suffix=agent.setting(""),
        )
    )


def steps(agent: str, *, name: str, base_url: str, path: str, suffix: str) -> str:
    """List what to fill in, and which settings the bridge gets from it."""
    install = install_address(base_url, agent)
    return "\n".join(
        [
            f"To add {agent} to Linear:",
            f"1. Open {NEW_APPLICATION} as an admin of the workspace and fill in:",
            f"   Application name   {name}",
            f"   Callback URL       {install}/callback",
            "   Client credentials on, or off if you install it in step 4",
            "   Webhooks           on",
            f"   Webhook URL        {base_url}{path}",
            f"   Events             {', '.join(EVENTS)}",
            "2. Copy from the application into .env:",
            f"   Client ID              LINEAR_CLIENT_ID{suffix}",
            f"   Client secret          LINEAR_CLIENT_SECRET{suffix}",
            f"   Webhook signing secret LINEAR_WEBHOOK_SECRET{suffix}",
            "3. Set BRIDGE_BASE_URL to an https address where Linear can reach the bridge,",
            "   run `agent-bridge doctor`, then `agent-bridge serve`.",
            "4. Without client credentials, or for someone else's workspace: sign in to the page",
            f"   of the bridge, then open {install}",
            "   and consent as an admin of the workspace. The bridge then renews its tokens.",
            f"5. In Linear, delegate an issue to {name}, or mention it in a comment.",
            "",
            "Why the agent needs these scopes:",
            *(f"   {scope}: {REASONS[scope]}" for scope in SCOPES),
            "Why it subscribes to these events:",
            *(f"   {event}: {reason}" for event, reason in EVENTS.items()),
        ]
    )
