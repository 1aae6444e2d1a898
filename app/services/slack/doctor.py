"""Checks each agent's Slack app: its tokens, scopes, socket and the events it received."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from app.errors import PostError, ServiceRefused, StoreUnavailable
from app.model.findings import Finding, ok, problem, warning
from app.model.keys import adapter_name
from app.services.service import CheckContext
from app.services.slack import event_coverage
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.auth import identify
from app.services.slack.manifest import EVENTS, OPTIONAL, SCOPES
from app.services.slack.settings import NAME, SlackCredentials, SlackSettings
from app.services.slack.socket import Socket

LOOKED_AT: Final = 2_000
"""Deliveries to read: some days of a busy channel, and still fast."""

SESSIONS_REMEDY: Final = (
    "The thread shows a simpler status, without the Stop button; `!stop` works. For the button, "
    "turn on Agents in the app's settings (this cannot be undone), or ask Slack to enable it."
)
_NO_SESSIONS: Final = {
    "feature_disabled": "this workspace has no agent sessions (feature_disabled)",
    "not_an_agent": "its app is not declared as an agent (not_an_agent)",
    "unknown_method": "this Slack has no agent sessions (unknown_method)",
}


async def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Check the app of every agent that has one."""
    configuration = context.configuration
    url = configuration.settings_of(SlackSettings).api_url
    owners = configuration.credentials_of(SlackCredentials)
    for agent, credentials in owners.items():
        entry = configuration.agents[agent]
        yield await _check(url, credentials, entry.name, entry.setting(""))
    async for finding in check_events(context, owners):
        yield finding


async def check_events(context: CheckContext, agents: Iterable[str]) -> AsyncIterator[Finding]:
    """Report which events each app received, since Slack does not list its subscriptions."""
    try:
        with context.reading() as stores:
            if stores is None:
                return
            for agent in agents:
                kept = await stores.deliveries.kept(adapter_name(NAME, agent), limit=LOOKED_AT)
                name = context.configuration.agents[agent].name
                yield _judge_events(name, event_coverage.events_in(kept))
    except StoreUnavailable:
        return  # the check of the database reports it


def _judge_events(name: str, heard: Sequence[str]) -> Finding:
    what = f"slack events, {name}"
    if event_coverage.lacks_messages(heard):
        return warning(
            what,
            "mentions arrive, but channel messages do not: the agent misses replies in threads",
            "In the app's settings, under Event Subscriptions, add "
            f"{', '.join(event_coverage.IN_CHANNELS)} and every other event that "
            f"`agent-bridge manifest slack {name}` lists, then reinstall the app.",
        )
    silent = [event for event in EVENTS if event not in heard]
    if not silent:
        return ok(what, "every kind arrived recently")
    return ok(
        what,
        f"arrived recently: {', '.join(heard) or 'none'}; not yet: {', '.join(silent)}. Slack does "
        "not list an app's events: subscribe to any missing event in the app's settings",
    )


async def _check(url: str, credentials: SlackCredentials, name: str, suffix: str) -> Finding:
    what = f"slack, {name}"
    api = SlackApi(url, credentials.bot_token.get_secret_value())
    socket = Socket(name, suffix, credentials.app_token.get_secret_value())
    try:
        identity = await identify(api, name, suffix)
        await socket.try_out(api.client)
        lack = await _find_lack(api)
    except ServiceRefused as error:
        return problem(what, error.cause, error.remedy)
    except PostError as error:
        return warning(what, str(error), "Check the network and SLACK_API_URL, then try again.")
    finally:
        await api.close()
    lacking = sorted(set(SCOPES) - identity.scopes)
    if identity.scopes and lacking:
        judge = warning if set(lacking) <= OPTIONAL else problem
        return judge(
            what,
            f"its app lacks the scopes {', '.join(lacking)}",
            f"Add the scopes that `agent-bridge manifest slack {name}` lists, then reinstall it.",
        )
    words = f"is {identity.user} in {identity.home or identity.team}, with a socket"
    if lack in _NO_SESSIONS:
        return warning(what, f"{words}, but {_NO_SESSIONS[lack]}", SESSIONS_REMEDY)
    return ok(what, words)


async def _find_lack(api: SlackApi) -> str:
    """Ask Slack why the app has no agent sessions; nothing is made, there is no such channel."""
    try:
        await api.call(
            "agents.sessions.setStatus", channel_id="C0", thread_ts="1.0", status="active"
        )
    except SlackRefused as error:
        return error.error
    return ""
