"""Checks of each agent on Linear: does its token work, may it do enough, can Linear reach it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
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
