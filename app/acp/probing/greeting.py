"""Greets an agent: sees whether it answers, in which version, and whether it wants a login.

It opens a conversation and says nothing in it, so that no model is called.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from app.acp.handshake import Handshake
from app.acp.probing.visit import Visits
from app.descent import discard
from app.errors import AgentLoginNeeded
from app.model.folders import attachment_folder
from app.model.updates import AskRequest, BridgeUpdate, Choices


@dataclass(frozen=True, slots=True)
class Greeting:
    """How an agent answered."""

    title: str
    version: str
    """As the agent reported them; empty if it did not."""
    logged_in: bool | None
    """Whether it opens a conversation; None if that was not tried."""
    choices: Choices = Choices()  # noqa: RUF009 - frozen
    """What it offers in a conversation."""


class Deaf:
    """Listens to an agent that is asked nothing."""

    async def on_update(self, update: BridgeUpdate) -> None:
        """Ignore what it says."""

    async def on_ask(self, _request: AskRequest) -> str | None:
        """Refuse: no one is asked."""
        return None


async def greet(visits: Visits, *, authenticate: bool = False) -> Greeting:
    """Start an agent, introduce ourselves and open a conversation.

    An agent with a login method over ACP is logged in by it only with `authenticate`, since it may
    open a browser; without that, no conversation is opened with such an agent.

    Raises:
        AgentError: it did not answer, or not as it should.
    """
    try:
        async with visits.begin(Deaf()) as peer:
            handshake = Handshake(peer, visits.launch, visits.workspace, visits.timeouts)
            info = (await handshake.introduce()).agent_info
            logged_in, choices = None, None
            if authenticate or visits.launch.auth is None:
                choices = await _open_conversation(handshake)
                logged_in = choices is not None
    finally:
        await asyncio.to_thread(_clear, visits)
    title, version = (info.title or info.name, info.version) if info is not None else ("", "")
    return Greeting(title, version, logged_in, choices or Choices())


async def _open_conversation(handshake: Handshake) -> Choices | None:
    """Open a conversation; returns what is offered there, None if a login is needed first."""
    try:
        await handshake.authenticate()
        return (await handshake.new()).offers.choices
    except AgentLoginNeeded:
        return None


def _clear(visits: Visits) -> None:
    for folder in (visits.workspace, attachment_folder(visits.workspace)):
        discard(folder)
