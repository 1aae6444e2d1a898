"""The manifest of an agent's Slack app: scopes and events, each with its reason; pure.

The code subscribes to nothing else and calls nothing that these scopes do not allow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from app.config import AgentConfig, Configuration
from app.services.service import REMEDY, ManifestRequest, Setup, is_public
from app.services.slack.events import SHORTCUT

SCOPES: Final[Mapping[str, str]] = {
    "app_mentions:read": "hear when someone mentions the agent",
    "assistant:write": "show that the agent is working, where agent sessions are not available",
    "channels:history": "read the thread it was called into, in public channels it was invited to",
    "channels:read": "list the public channels it was invited to, to find messages it missed",
    "chat:write": "answer in the thread, show progress and ask for permission",
    "commands": 'offer "Ask ..." in the menu of every message',
    "files:read": "read screenshots and files that people attach",
    "files:write": "send files that the agent makes, and text that is too long for messages",
    "groups:history": "the same as channels:history, in private channels it was invited to",
    "groups:read": "the same as channels:read, for private channels",
    "im:history": "read direct messages to it",
    "im:read": "the same as channels:read, for direct messages",
    "im:write": "remind people of its questions in a direct message",
    "mpim:history": "the same as channels:history, in group conversations",
    "mpim:read": "the same as channels:read, for group conversations",
    "reactions:write": "mark your message when the agent is done with it",
    "users:read": "know people's names, and tell members from guests",
}
OPTIONAL: Final = frozenset(
    {
        "channels:read",
        "commands",
        "groups:read",
        "im:read",
        "im:write",
        "mpim:read",
        "reactions:write",
    }
)
"""Scopes without which everything but their own feature works."""
PROMPTS: Final[Mapping[str, str]] = {
    "What can you do?": "What can you do here, and which repository would you work in?",
    "Explain the code": "Explain in ten lines how this code base is built.",
    "Fix a failing test": "Run the tests. If one fails, find out why and fix it.",
    "Review the latest changes": "Review the latest changes, and say what you would improve.",
}
"""Prompts that Slack suggests in a new conversation with the agent, by title."""
EVENTS: Final[Mapping[str, str]] = {
    "agent_session_stopped": "someone pressed Stop",
    "app_mention": "someone mentioned the agent",
    "message.channels": "replies in threads, edits and deletions, in public channels",
    "message.groups": "the same in private channels",
    "message.im": "direct messages",
    "message.mpim": "the same in group conversations",
}
APP_SCOPE: Final = "connections:write"
"""The app-level token's scope: it opens the socket, so that no public address is needed."""
NAME_CHARACTERS: Final = 35
DESCRIPTION_CHARACTERS: Final = 140
AGENT_DESCRIPTION_CHARACTERS: Final = 300
SHORTCUT_CHARACTERS: Final = 24
NEW_APP: Final = "https://api.slack.com/apps?new_app=1"
ADDRESS_CHARACTERS: Final = 8000
"""Longer addresses are refused by common servers and proxies."""


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
            "agent_view": {
                "agent_description": words[:AGENT_DESCRIPTION_CHARACTERS],
                "suggested_prompts": [
                    {"title": title, "message": message} for title, message in PROMPTS.items()
                ],
            },
            "shortcuts": [
                {
                    "name": f"Ask {name}"[:SHORTCUT_CHARACTERS],
                    "type": "message",
                    "callback_id": SHORTCUT,
                    "description": "Ask the agent to handle this message",
                }
            ],
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


def creation_address(made: dict[str, Any]) -> str | None:
    """Return the address of Slack's form, filled in from a manifest; None if it is too long."""
    compact = json.dumps(made, separators=(",", ":"), ensure_ascii=False)
    address = f"{NEW_APP}&manifest_json={quote(compact, safe='')}"
    return address if len(address) <= ADDRESS_CHARACTERS else None


def show(request: ManifestRequest) -> None:
    """Print the manifest on stdout, and the steps on stderr."""
    made = manifest(request.title, request.agent.description or "")
    request.write(json.dumps(made, indent=2, ensure_ascii=False))
    putting = "Put both into .env, run `agent-bridge doctor`, then `agent-bridge serve`."
    if request.is_stored:
        putting = f"Set both with `agent-bridge agents set {request.agent.name} NAME=VALUE ...`."
    request.explain(steps(request.title, made, request.called, putting))
    base_url = request.configuration.base_url
    if not is_public(base_url):
        request.explain(
            "\nSlack itself needs no public address, but people on other machines cannot reach\n"
            f"{base_url} when they follow a link to the page. {REMEDY}"
        )


def set_up(_configuration: Configuration, agent: AgentConfig, title: str) -> Setup:
    """Say how to create an agent's app in the browser."""
    address = creation_address(manifest(title, agent.description or ""))
    by_hand = (
        f"Choose From a manifest and paste what `agent-bridge manifest slack {agent.name}` prints."
    )
    return Setup(
        address or NEW_APP,
        (
            *(() if address else (by_hand,)),
            "In Slack's form, choose the workspace, then Create.",
            "Under Basic Information, App-Level Tokens, generate a token with the scope "
            f"`{APP_SCOPE}`. It is the app token.",
            "Under Install App, install the app in the workspace. The Bot User OAuth Token is the "
            "bot token.",
        ),
    )


def steps(agent: str, made: dict[str, Any], called: Callable[[str], str], putting: str) -> str:
    """Say how to create the app, what to do with its tokens, and why it needs what it asks for."""
    reasons = [f"   {scope}: {reason}" for scope, reason in SCOPES.items()]
    heard = [f"   {event}: {reason}" for event, reason in EVENTS.items()]
    address = creation_address(made)
    by_hand = f"{NEW_APP}, choose From a manifest and paste the manifest above."
    filled_in = ["1. Open this address. It fills in Slack's form:", f"   {address}"]
    return "\n".join(
        [
            f"To add {agent} to Slack:",
            *([*filled_in, f"   Or open {by_hand}"] if address else [f"1. Open {by_hand}"]),
            "   Choose the workspace, then Create.",
            "2. Under Basic Information, App-Level Tokens, generate a token with the scope",
            f"   {APP_SCOPE}. It is {called('SLACK_APP_TOKEN')}.",
            "3. Under Install App, install the app in the workspace.",
            f"   The Bot User OAuth Token is {called('SLACK_BOT_TOKEN')}.",
            f"4. {putting}",
            f"5. In Slack, /invite @{agent} to a channel, then mention it.",
            "",
            "Why the app needs these scopes:",
            *reasons,
            "Why it subscribes to these events:",
            *heard,
        ]
    )
