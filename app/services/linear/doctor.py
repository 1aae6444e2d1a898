"""Checks each agent on Linear: its token, its scopes, and whether Linear can reach it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Final

from pydantic import SecretStr

from app.clock import SystemClock
from app.config import find_secret_key
from app.config.sealing import Sealer
from app.errors import BridgeError, ConfigurationError, ServiceRefused, StoreUnavailable
from app.model.findings import Finding, ok, problem, warning
from app.model.keys import adapter_name
from app.services.common.addresses import REMEDY, is_public
from app.services.linear.api import LinearApi
from app.services.linear.auth import Tokens
from app.services.linear.grants import Grant, Grants
from app.services.linear.manifest import install_address
from app.services.linear.scopes import lacking, may_write
from app.services.linear.settings import NAME, LinearCredentials, LinearSettings
from app.services.service import CheckContext

LOOKED_AT: Final = 200
"""Deliveries to read: if Linear sent none of them, none arrive."""


async def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Check every agent that has credentials for Linear."""
    owners = context.configuration.credentials_of(LinearCredentials)
    for agent, credentials in owners.items():
        async for finding in _check_token(context, agent, credentials):
            yield finding
    if (unreachable := webhook(context.configuration.base_url)) is not None:
        yield unreachable
        return
    for agent in owners:
        yield await _check_webhooks(context, agent)


async def _check_token(
    context: CheckContext, agent: str, credentials: LinearCredentials
) -> AsyncIterator[Finding]:
    what = adapter_name(NAME, agent)
    try:
        grant = find_grant(context, what, credentials)
    except (StoreUnavailable, ConfigurationError) as error:
        yield problem(what, str(error), "The installation is stored in DATA_DIR: check it.")
        return
    if grant is None:
        async for finding in _check_viewer(context, what, credentials):
            yield finding
        return
    install = install_address(context.configuration.base_url, agent)
    if grant.ended:
        yield problem(what, grant.ended, f"Sign in to the page, then open {install}")
    elif grant.until <= time.time():
        words = "is installed; its token has expired and is renewed when the bridge runs"
        yield ok(what, words)
    else:
        async for finding in _check_viewer(
            context,
            what,
            with_grant(context, credentials, grant),
            remedy=f"Start the bridge, which renews it. If that fails, open {install}",
        ):
            yield finding


def with_grant(
    context: CheckContext, credentials: LinearCredentials, grant: Grant
) -> LinearCredentials:
    """Use an installation's token like one made by hand.

    Only the bridge renews it, since that works once.
    """
    context.vault.register(grant.access)
    token = SecretStr(grant.access)
    kept = {"access_token": token, "client_id": None, "client_secret": None}
    return credentials.model_copy(update=kept)


def find_grant(context: CheckContext, what: str, credentials: LinearCredentials) -> Grant | None:
    """Read the stored installation, if there is one."""
    key = find_secret_key(context.configuration)
    if credentials.client_id is None or key is None:
        return None
    with context.reading() as stores:
        if stores is None:
            return None
        return Grants(what, stores.sealed, Sealer(key)).read(credentials.client_id)


async def _check_viewer(
    context: CheckContext,
    what: str,
    credentials: LinearCredentials,
    *,
    remedy: str = "",
) -> AsyncIterator[Finding]:
    """Ask Linear whose token it is and what it can do."""
    clock, api_url = SystemClock(), context.configuration.settings_of(LinearSettings).api_url
    tokens = Tokens(what, credentials, api_url, clock, context.vault)
    api = LinearApi(api_url, tokens, clock)
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
            "the token belongs to a person, not to an agent",
            "Use a client id and secret, or a token made with actor=app.",
        )
    elif missing:
        yield problem(
            what,
            f"the token lacks {', '.join(missing)}",
            "Allow these scopes in the application's settings, then install it again or create a "
            "new token.",
        )
    elif writes is None:
        yield warning(
            what,
            f"is {viewer['name']} in {viewer['organization']['name']}; could not check whether "
            "it can write",
            "If answers do not appear in Linear, create a token with the scope write.",
        )
    else:
        yield ok(what, f"is {viewer['name']} in {viewer['organization']['name']}")


async def _check_webhooks(context: CheckContext, agent: str) -> Finding:
    """Check whether webhooks arrive: Linear does not report failed ones."""
    what, configuration = f"linear webhooks, {agent}", context.configuration
    address = configuration.base_url + configuration.webhook_paths(NAME, agent)[0]
    try:
        with context.reading() as stores:
            adapter = adapter_name(NAME, agent)
            kept = await stores.deliveries.kept(adapter, limit=LOOKED_AT) if stores else ()
    except StoreUnavailable:
        kept = ()  # the check of the database reports it
    if any(delivery.signature is not None for delivery in kept):
        return ok(what, f"they arrive at {address}")
    if not kept:
        return ok(what, f"none has arrived yet at {address}")
    secret = configuration.agents[agent].setting("LINEAR_WEBHOOK_SECRET")
    return warning(
        what,
        "none arrive: the bridge finds events only by polling, which is late",
        f"In the application's settings, set the webhook URL to {address}, and check that its "
        f"signing secret is the one in {secret}.",
    )


def webhook(base_url: str) -> Finding | None:
    """Check that Linear can reach the bridge: it sends only to public https addresses."""
    if is_public(base_url):
        return None
    return warning("linear", f"Linear cannot reach {base_url}", REMEDY)
