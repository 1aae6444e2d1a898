"""Checks of each agent's Slack app: are its tokens good, has it its scopes, does it get a line."""

from __future__ import annotations

from collections.abc import AsyncIterator

from app.cli.checks import Finding, ok, problem, warning
from app.config import Configuration, SlackCredentials
from app.errors import PostError, ServiceRefused
from app.services.slack.api import SlackApi
from app.services.slack.auth import identify
from app.services.slack.manifest import SCOPES
from app.services.slack.socket import Socket


async def check_slack(configuration: Configuration) -> AsyncIterator[Finding]:
    """Ask Slack about the app of every agent that has one."""
    for (_, name), credentials in configuration.credentials.items():
        if isinstance(credentials, SlackCredentials):
            entry = configuration.agents[name]
            suffix = "" if entry.default else f"__{entry.suffix}"
            yield await _check(configuration.slack_api_url, credentials, name, suffix)


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
