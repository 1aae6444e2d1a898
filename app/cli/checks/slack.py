"""Checks of each agent's Slack app: its tokens, its scopes, its line, and what it has heard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from app.cli.checks import Finding, ok, problem, warning
from app.config import Configuration, SlackCredentials
from app.core.keys import adapter_name
from app.errors import PostError, ServiceRefused, StoreUnavailable
from app.services.slack import hearing
from app.services.slack.api import SlackApi
from app.services.slack.auth import identify
from app.services.slack.manifest import EVENTS, SCOPES
from app.services.slack.socket import Socket
from app.store.reading import reading

LOOKED_AT: Final = 2_000
"""Deliveries that are looked at: some days of a busy channel, in a blink."""


async def check_slack(configuration: Configuration) -> AsyncIterator[Finding]:
    """Ask Slack about the app of every agent that has one."""
    for (_, name), credentials in configuration.credentials.items():
        if isinstance(credentials, SlackCredentials):
            entry = configuration.agents[name]
            suffix = "" if entry.default else f"__{entry.suffix}"
            yield await _check(configuration.slack_api_url, credentials, name, suffix)


async def check_hearing(configuration: Configuration) -> AsyncIterator[Finding]:
    """See which events each agent's app was told of, since Slack does not say what it hears."""
    try:
        with reading(configuration.database_url) as stores:
            if stores is None:
                return
            for (_, name), credentials in configuration.credentials.items():
                if isinstance(credentials, SlackCredentials):
                    kept = await stores.deliveries.kept(
                        adapter_name("slack", name), limit=LOOKED_AT
                    )
                    yield _heard(name, hearing.events_in(kept))
    except StoreUnavailable:
        return  # which is told where the database is checked


def _heard(name: str, heard: Sequence[str]) -> Finding:
    what = f"slack events, {name}"
    if hearing.lacks_messages(heard):
        return warning(
            what,
            "mentions arrive, but not the messages of channels: replies in threads go unheard",
            f"In the app's settings, Event Subscriptions: add {', '.join(hearing.IN_CHANNELS)} and "
            f"whatever else `agent-bridge manifest slack {name}` lists, and install it again.",
        )
    silent = [event for event in EVENTS if event not in heard]
    if not silent:
        return ok(what, "every kind has arrived lately")
    return ok(
        what,
        f"arrived lately: {', '.join(heard) or 'none'}; not yet: {', '.join(silent)}. Slack does "
        "not say which an app hears; whatever was tried in vain is to be added in its settings",
    )


async def _check(url: str, credentials: SlackCredentials, name: str, suffix: str) -> Finding:
    what = f"slack, {name}"
    api = SlackApi(url, credentials.bot_token.get_secret_value())
    socket = Socket(name, suffix, credentials.app_token.get_secret_value())
    try:
        identity = await identify(api, name, suffix)
        await socket.try_out(api.client)
    except ServiceRefused as error:
        return problem(what, error.cause, error.remedy)
    except PostError as error:
        return warning(what, str(error), "Check the network and SLACK_API_URL, then try again.")
    finally:
        await api.close()
    lacking = sorted(set(SCOPES) - identity.scopes)
    if identity.scopes and lacking:
        return problem(
            what,
            f"its app lacks the scopes {', '.join(lacking)}",
            f"Add them as `agent-bridge manifest slack {name}` lists them, and install it again.",
        )
    return ok(what, f"it is {identity.user} in {identity.home or identity.team}, with a socket")
