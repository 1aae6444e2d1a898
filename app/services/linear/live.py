"""Tries on the real Linear what the bridge assumes about it, in an issue that is only for tests.

A session that was opened cannot be deleted: it is ended, and its comment is removed.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final
from uuid import uuid4

from app.model.keys import adapter_name
from app.services.common.live import LiveStep, Seen, Verdict, compare, no_credentials, wrong_place
from app.services.linear.api import LinearApi
from app.services.linear.auth import Tokens
from app.services.linear.doctor import find_grant, with_grant
from app.services.linear.scopes import lacking
from app.services.linear.settings import NAME, LinearCredentials, LinearSettings
from app.services.service import LiveRequest

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
    tokens = Tokens(what, credentials, url, request.clock, context.vault)
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
        if (said := await _read_answer(api, session["id"])) is not None:
            words = f"Linear took both; the pressed button says {said!r}"
            return compare(words, as_assumed=said != LABEL)
    words = (
        f"Linear took label and value; no one pressed a button. Look at {request.place}, with "
        f"--only select: does the button show {LABEL!r} or {VALUE!r}?"
    )
    return Seen(words, Verdict.LOOK)


async def _read_answer(api: LinearApi, session: str) -> str | None:
    found = await api.call("prompts", id=session)
    nodes = found["agentSession"]["activities"]["nodes"]
    return str(nodes[0]["content"].get("body", "")) if nodes else None


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
