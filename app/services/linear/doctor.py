"""Checks each agent on Linear for `doctor`, and tries there what the bridge assumes about it.

A session that `doctor --live` opened cannot be deleted: it is ended, and its comment is removed.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final
from uuid import uuid4

from pydantic import SecretStr

from app.clock import SystemClock
from app.config import find_secret_key
from app.config.process import Sealer
from app.errors import BridgeError, ConfigurationError, ServiceRefused, StoreUnavailable
from app.model.keys import adapter_name
from app.services.common.live import (
    LiveStep,
    LiveVerdict,
    Seen,
    compare,
    no_credentials,
    wrong_place,
)
from app.services.linear.api import LinearApi, LinearFailed, LinearRefused
from app.services.linear.auth import Grants, LinearGrant, LinearTokens
from app.services.linear.manifest import install_address
from app.services.linear.settings import NAME, LinearCredentials, LinearSettings
from app.services.service import (
    REMEDY,
    CheckContext,
    Finding,
    LiveRequest,
    is_public,
    ok,
    problem,
    warning,
)


def lacking(viewer: dict[str, Any]) -> list[str]:
    """List the scopes that an app user lacks; reading it proves `read`."""
    shown = {"app:assignable": "isAssignable", "app:mentionable": "isMentionable"}
    return [scope for scope, field in shown.items() if not viewer[field]]


async def may_write(api: LinearApi) -> bool | None:
    """Try to change a session that does not exist; None if the answer is unclear.

    Raises:
        PostDelayed: not now.
        ServiceRefused: not with these credentials.
    """
    try:
        await api.call("update_session", id=str(uuid4()), input={"plan": []})
    except LinearFailed:
        return None
    except LinearRefused as error:
        if error.missing:
            return True
        return False if error.forbidden else None
    return None


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
    context: CheckContext, credentials: LinearCredentials, grant: LinearGrant
) -> LinearCredentials:
    """Use an installation's token like one made by hand.

    Only the bridge renews it, since that works once.
    """
    context.vault.register(grant.access)
    token = SecretStr(grant.access)
    kept = {"access_token": token, "client_id": None, "client_secret": None}
    return credentials.model_copy(update=kept)


def find_grant(
    context: CheckContext, what: str, credentials: LinearCredentials
) -> LinearGrant | None:
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
    tokens = LinearTokens(what, credentials, api_url, clock, context.vault)
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


MINUTES: Final = 2.0
"""How long the step waits for a person who presses a button."""
LOOK_SECONDS: Final = 5.0
"""Pause between two looks whether someone did."""
LABEL: Final = "The label"
VALUE: Final = "the-value"
PLACE: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*-\d+")
WORDS: Final = "Agent Bridge tries how Linear shows options. It ends and removes this itself."


@asynccontextmanager
async def live(request: LiveRequest) -> AsyncIterator[Sequence[LiveStep]]:
    """Open Linear as an agent, and list the steps.

    Raises:
        ConfigurationError: this is no issue, or the agent is not on Linear.
        BridgeError: Linear does not accept the agent.
    """
    context, what = request.context, adapter_name(NAME, request.agent)
    credentials = context.configuration.credentials_of(LinearCredentials).get(request.agent)
    if credentials is None:
        raise no_credentials(request.agent)
    if not PLACE.fullmatch(request.place):
        raise wrong_place("an issue, such as ENG-12")
    grant = find_grant(context, what, credentials)
    if grant is not None and not grant.ended:
        credentials = with_grant(context, credentials, grant)
    url = context.configuration.settings_of(LinearSettings).api_url
    tokens = LinearTokens(what, credentials, url, request.clock, context.vault)
    api = LinearApi(url, tokens, request.clock, context.vault)
    try:
        viewer = (await api.call("viewer"))["viewer"]
        yield (
            LiveStep(
                "menu",
                "the app user can be assigned and mentioned",
                partial(_look_at_menu, viewer),
            ),
            LiveStep(
                "select",
                "the buttons of a question show the value of each option, not its label",
                partial(_try_select, request, api),
                minutes=MINUTES,
            ),
        )
    finally:
        await api.close()


async def _look_at_menu(viewer: dict[str, Any]) -> Seen:
    missing = lacking(viewer)
    if missing:
        words = f"{viewer['name']} is in no menu: it lacks {', '.join(missing)}"
    else:
        words = f"{viewer['name']} can be assigned and mentioned"
    return compare(words, as_assumed=not missing)


async def _try_select(request: LiveRequest, api: LinearApi) -> Seen:
    """Ask with an option whose label differs from its value, and wait for a person to press it."""
    session = await _open_session(request, api)
    options = [{"label": LABEL, "value": VALUE}, {"label": "Another label", "value": "another"}]
    await _act(
        api,
        session["id"],
        {"type": "elicitation", "body": f"{WORDS} Press the first button."},
        signal="select",
        signalMetadata={"options": options},
    )
    until = request.clock.monotonic() + MINUTES * 60
    while (left := until - request.clock.monotonic()) > 0:
        request.progress(f"press a button in {request.place}; {left:.0f} s left")
        await request.clock.sleep(min(LOOK_SECONDS, left))
        found = await api.call("prompts", id=session["id"])
        if nodes := found["agentSession"]["activities"]["nodes"]:
            said = str(nodes[0]["content"].get("body", ""))
            words = f"Linear took both; the pressed button says {said!r}"
            return compare(words, as_assumed=said != LABEL)
    words = (
        f"Linear took label and value; no one pressed a button. Look at {request.place}, with "
        f"--only select: does the button show {LABEL!r} or {VALUE!r}?"
    )
    return Seen(words, LiveVerdict.LOOK)


async def _open_session(request: LiveRequest, api: LinearApi) -> dict[str, Any]:
    async def make() -> dict[str, Any]:
        # With a link of its own, so that a running bridge knows that no person asked.
        link = {"label": "Agent Bridge", "url": request.context.configuration.base_url}
        wanted = {"issueId": request.place, "externalUrls": [link]}
        made = await api.call("create_session", input=wanted)
        session: dict[str, Any] = made["agentSessionCreateOnIssue"]["agentSession"]
        return session

    async def remove(session: dict[str, Any]) -> None:
        await _act(api, session["id"], {"type": "response", "body": WORDS})
        if session["comment"] is not None:
            await api.call("delete_comment", id=session["comment"]["id"])

    return await request.undo.make(f"the session in {request.place}", make(), remove)


async def _act(api: LinearApi, session: str, content: dict[str, str], **more: object) -> None:
    wanted = {"id": str(uuid4()), "agentSessionId": session, "content": content, **more}
    await api.call("create_activity", input=wanted)
