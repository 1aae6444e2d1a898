"""What to fill in where Linear asks about an agent's application; pure.

The scopes are those that tokens are minted with, so that the two never differ.
"""

from __future__ import annotations

from typing import Final

from app.services.linear.auth import SCOPES

NEW_APPLICATION: Final = "https://linear.app/settings/api/applications/new"
REASONS: Final = {
    "read": "see issues, comments and who is a member",
    "write": "answer, show the plan, move the issue",
    "app:assignable": "be given issues",
    "app:mentionable": "be mentioned",
}
EVENTS: Final = {
    "Agent session events": "somebody gave the agent an issue, mentioned it, replied or said stop",
    "Inbox notifications": "somebody took an issue away from the agent",
    "OAuth app revoked": "somebody took the agent out of the workspace",
}


def install_address(base_url: str, agent: str) -> str:
    """Say where an admin installs an agent's application."""
    return f"{base_url}/install/linear/{agent}"


def steps(agent: str, *, name: str, base_url: str, path: str, suffix: str) -> str:
    """Say what to fill in, and which settings the bridge gets from it."""
    install = install_address(base_url, agent)
    return "\n".join(
        [
            f"How to put {agent} into Linear:",
            f"1. Open {NEW_APPLICATION} as an admin of the workspace and fill in:",
            f"   Application name   {name}",
            f"   Callback URL       {install}/callback",
            "   Client credentials on, or off and installed in step 4",
            "   Webhooks           on",
            f"   Webhook URL        {base_url}{path}",
            f"   Events             {', '.join(EVENTS)}",
            "2. Copy from the application into .env:",
            f"   Client ID              LINEAR_CLIENT_ID{suffix}",
            f"   Client secret          LINEAR_CLIENT_SECRET{suffix}",
            f"   Webhook signing secret LINEAR_WEBHOOK_SECRET{suffix}",
            "3. Set BRIDGE_BASE_URL to an https address under which Linear reaches the bridge,",
            "   run `agent-bridge doctor`, then `agent-bridge serve`.",
            "4. Without client credentials, or for the workspace of somebody else: sign in to the",
            f"   page of the bridge, then open {install}",
            "   and consent as an admin of the workspace. Tokens are then renewed by themselves.",
            f"5. In Linear: give an issue to {name}, or mention it in a comment.",
            "",
            "Why the agent wants these scopes:",
            *(f"   {scope}: {REASONS[scope]}" for scope in SCOPES),
            "Why it hears these events:",
            *(f"   {event}: {reason}" for event, reason in EVENTS.items()),
        ]
    )
