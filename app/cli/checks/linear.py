"""Checks of each agent on Linear: does its token work, may it do enough, can Linear reach it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from app.cli.checks import Finding, ok, problem, warning
from app.config import Configuration, LinearCredentials, ensure_secrets
from app.config.bridge_secrets import FILE_NAME
from app.config.fields import is_loopback
from app.config.sealing import Sealer
from app.core.clock import SystemClock
from app.core.keys import adapter_name
from app.errors import BridgeError, ConfigurationError, ServiceRefused, StoreUnavailable
from app.services.linear.api import LinearApi
from app.services.linear.auth import Tokens
from app.services.linear.events import SERVICE
from app.services.linear.grants import Grant, Grants
from app.services.linear.manifest import install_address
from app.services.linear.scopes import lacking, may_write
from app.store.reading import reading
from app.vault import Vault

LOOKED_AT: Final = 200
"""Deliveries that are looked at: if none of them was sent by Linear, none arrives."""


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
    if not owners:
        return
    if (unreachable := webhook(configuration.base_url)) is not None:
        yield unreachable
        return
    for agent in owners:
        yield await _arrived(configuration, agent)


async def _token(
    configuration: Configuration, agent: str, credentials: LinearCredentials, vault: Vault
) -> AsyncIterator[Finding]:
    what = adapter_name(SERVICE, agent)
    try:
        grant = _grant(configuration, what, credentials)
    except (StoreUnavailable, ConfigurationError) as error:
        yield problem(what, str(error), "Whether it is installed is kept in DATA_DIR.")
        return
    if grant is None:
        async for finding in _asked(configuration, what, credentials, vault):
            yield finding
        return
    install = install_address(configuration.base_url, agent)
    if grant.ended:
        yield problem(what, grant.ended, f"Sign in to the page, then open {install}")
    elif grant.until <= time.time():
        words = "it is installed; its token has run out and is renewed when the bridge runs"
        yield ok(what, words)
    else:
        # As a token made by hand: renewing is the bridge's alone, since that works once.
        vault.register(grant.access)
        token = SecretStr(grant.access)
        kept = {"access_token": token, "client_id": None, "client_secret": None}
        async for finding in _asked(
            configuration,
            what,
            credentials.model_copy(update=kept),
            vault,
            remedy=f"The bridge renews it when it runs; else open {install}",
        ):
            yield finding


def _grant(configuration: Configuration, what: str, credentials: LinearCredentials) -> Grant | None:
    """Read what is kept of an installation, if there was one."""
    key = configuration.secret_key
    if key is None and (configuration.data_dir / FILE_NAME).exists():
        key = ensure_secrets(configuration).secret_key
    if credentials.client_id is None or key is None:
        return None
    with reading(configuration.database_url) as stores:
        if stores is None:
            return None
        return Grants(what, stores.sealed, Sealer(key)).read(credentials.client_id)


async def _asked(
    configuration: Configuration,
    what: str,
    credentials: LinearCredentials,
    vault: Vault,
    *,
    remedy: str = "",
) -> AsyncIterator[Finding]:
    """Ask Linear what a token is good for."""
    clock = SystemClock()
    tokens = Tokens(what, credentials, configuration.linear_api_url, clock, vault)
    api = LinearApi(configuration.linear_api_url, tokens, clock)
    try:
        viewer = (await api.call("viewer"))["viewer"]
        writes = await may_write(api)
    except ServiceRefused as error:
        yield problem(what, error.cause, remedy or error.remedy)
        return
    except BridgeError as error:
        yield problem(what, str(error), "Check the network and LINEAR_API_URL.")
        return
    finally:
        await api.close()
    lacks = [*lacking(viewer), *(["write"] if writes is False else [])]
    missing = sorted({*lacks, *tokens.lacking})
    if not viewer["app"]:
        yield problem(
            what,
            "the token is a person's, not an agent's",
            "Use client id and secret, or a token that was made with actor=app.",
        )
    elif missing:
        yield problem(
            what,
            f"the token lacks {', '.join(missing)}",
            "Allow these scopes in the application's settings, then install it or make a token "
            "again.",
        )
    elif writes is None:
        yield warning(
            what,
            f"is {viewer['name']} in {viewer['organization']['name']}; whether it may write could "
            "not be found out",
            "If answers do not appear in Linear, make a token with the scope write.",
        )
    else:
        yield ok(what, f"is {viewer['name']} in {viewer['organization']['name']}")


async def _arrived(configuration: Configuration, agent: str) -> Finding:
    """See whether webhooks arrive: Linear does not say what became of them."""
    what, entry = f"linear webhooks, {agent}", configuration.agents[agent]
    path = "/webhooks/linear" if entry.default else f"/webhooks/linear/{agent}"
    address = f"{configuration.base_url}{path}"
    try:
        with reading(configuration.database_url) as stores:
            adapter = adapter_name(SERVICE, agent)
            kept = await stores.deliveries.kept(adapter, limit=LOOKED_AT) if stores else ()
    except StoreUnavailable:
        kept = ()  # which is told where the database is checked
    if any(delivery.signature is not None for delivery in kept):
        return ok(what, f"they arrive at {address}")
    if not kept:
        return ok(what, f"none has arrived yet at {address}")
    suffix = "" if entry.default else f"__{entry.suffix}"
    return warning(
        what,
        "none arrives: the bridge hears only of what it looks for itself, and too late",
        f"In the application's settings, the webhook URL must be {address}, and its signing secret "
        f"the one in LINEAR_WEBHOOK_SECRET{suffix}.",
    )


def webhook(base_url: str) -> Finding | None:
    """Judge whether Linear can reach the bridge at all: it sends only to public https addresses."""
    parts = urlsplit(base_url)
    if parts.scheme == "https" and not is_loopback(parts.hostname or ""):
        return None
    return warning(
        "linear",
        f"Linear cannot send webhooks to {base_url}",
        "Set BRIDGE_BASE_URL to the https address under which Linear reaches the bridge.",
    )
