"""Checks of each agent on Linear: does its token work, may it do enough, can Linear reach it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from app.cli.checks import Finding, ok, problem, warning
from app.config import Configuration, LinearCredentials
from app.config.fields import is_loopback
from app.core.clock import SystemClock
from app.core.keys import adapter_name
from app.errors import BridgeError, ServiceRefused
from app.services.linear.api import LinearApi
from app.services.linear.auth import Tokens
from app.services.linear.events import SERVICE
from app.vault import Vault


async def check_linear(configuration: Configuration, vault: Vault) -> AsyncIterator[Finding]:
    """Check every agent that has credentials for Linear."""
    owners = {
        agent: credentials
        for (_, agent), credentials in configuration.credentials.items()
        if isinstance(credentials, LinearCredentials)
    }
    for agent, credentials in owners.items():
        async for finding in _token(configuration, agent, credentials, vault):
            yield finding
    if owners:
        yield webhook(configuration.base_url)


async def _token(
    configuration: Configuration, agent: str, credentials: LinearCredentials, vault: Vault
) -> AsyncIterator[Finding]:
    what, clock = adapter_name(SERVICE, agent), SystemClock()
    tokens = Tokens(what, credentials, configuration.linear_api_url, clock, vault)
    api = LinearApi(configuration.linear_api_url, tokens, clock)
    try:
        viewer = (await api.call("viewer"))["viewer"]
    except ServiceRefused as error:
        reason, _, remedy = str(error).partition(". ")
        yield problem(what, reason, remedy)
        return
    except BridgeError as error:
        yield problem(what, str(error), "Check the network and LINEAR_API_URL.")
        return
    finally:
        await api.close()
    if not viewer["app"]:
        yield problem(
            what,
            "the token is a person's, not an agent's",
            "Use client id and secret, or a token that was made with actor=app.",
        )
    elif tokens.lacking:
        yield problem(
            what,
            f"the token lacks {', '.join(tokens.lacking)}",
            "Allow these scopes in the application's settings.",
        )
    else:
        yield ok(what, f"is {viewer['name']} in {viewer['organization']['name']}")


def webhook(base_url: str) -> Finding:
    """Judge whether Linear can reach the bridge at all: it sends only to public https addresses."""
    parts = urlsplit(base_url)
    if parts.scheme == "https" and not is_loopback(parts.hostname or ""):
        return ok("linear", f"webhooks arrive at {base_url}/webhooks/linear")
    return warning(
        "linear",
        f"Linear cannot send webhooks to {base_url}",
        "Set BRIDGE_BASE_URL to the https address under which Linear reaches the bridge.",
    )
