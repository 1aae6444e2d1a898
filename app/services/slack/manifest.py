"""The manifest of an agent's Slack app: scopes and events, each with its reason; pure.

The code subscribes to nothing else and calls nothing that these scopes do not allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SCOPES: Final[Mapping[str, str]] = {
    "app_mentions:read": "hear when somebody mentions the agent",
    "assistant:write": "show that the agent is working, where agent sessions are not available",
    "channels:history": "read the thread it was called into, in public channels it was invited to",
    "chat:write": "answer in the thread, show progress and ask for permission",
    "files:read": "look at screenshots and files that people attach",
    "files:write": "send files that the agent makes, and what is too long for messages",
    "groups:history": "the same as channels:history, in private channels it was invited to",
    "im:history": "read what people write to it directly",
    "mpim:history": "the same as channels:history, in group conversations",
    "users:read": "know people's names, and tell members from guests",
}
EVENTS: Final[Mapping[str, str]] = {
    "agent_session_stopped": "somebody pressed Stop",
    "app_mention": "somebody mentioned the agent",
    "message.channels": "replies in threads, edits and deletions, in public channels",
    "message.groups": "the same in private channels",
    "message.im": "direct messages",
    "message.mpim": "the same in group conversations",
}
APP_SCOPE: Final = "connections:write"
"""What the app-level token needs: to open the socket, so that no public address is needed."""
NAME_CHARACTERS: Final = 35
DESCRIPTION_CHARACTERS: Final = 140
AGENT_DESCRIPTION_CHARACTERS: Final = 300


def manifest(name: str, description: str) -> dict[str, Any]:
    """Write the manifest of an agent's app."""
    words = description or f"{name}, a coding agent."
    return {
        "display_information": {
            "name": name[:NAME_CHARACTERS],
            "description": words[:DESCRIPTION_CHARACTERS],
        },
        "features": {
            "app_home": {"messages_tab_enabled": True, "messages_tab_read_only_enabled": False},
            "bot_user": {"display_name": name[:NAME_CHARACTERS], "always_online": True},
            "agent_view": {"agent_description": words[:AGENT_DESCRIPTION_CHARACTERS]},
        },
        "oauth_config": {"scopes": {"bot": sorted(SCOPES)}},
        "settings": {
            "event_subscriptions": {"bot_events": sorted(EVENTS)},
            "interactivity": {"is_enabled": True},
            "org_deploy_enabled": False,
            "socket_mode_enabled": True,
            "token_rotation_enabled": False,
        },
    }


def steps(agent: str, suffix: str) -> str:
    """Say what to do with the manifest, and why the app wants what it wants."""
    reasons = [f"  {scope}: {reason}" for scope, reason in SCOPES.items()]
    heard = [f"  {event}: {reason}" for event, reason in EVENTS.items()]
    return "\n".join(
        [
            f"How to put {agent} into Slack:",
            "1. Open https://api.slack.com/apps, choose Create New App, From a manifest,",
            "   and paste the manifest.",
            f"2. Basic Information, App-Level Tokens: generate one with the scope {APP_SCOPE};",
            f"   it is SLACK_APP_TOKEN{suffix}.",
            "3. Install App: install it into the workspace;",
            f"   the Bot User OAuth Token is SLACK_BOT_TOKEN{suffix}.",
            "4. Put both into .env, run `agent-bridge doctor`, then `agent-bridge serve`.",
            f"5. In Slack: /invite @{agent} into a channel, then mention it.",
            "",
            "Why the app wants these scopes:",
            *reasons,
            "Why it hears these events:",
            *heard,
        ]
    )
