"""Keeps what agents ask and people answer: one row, shown in the place, answered once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from app.core.feed import Feed
from app.core.outbox import Outbox
from app.core.stores import AskStore, SessionStore
from app.core.types import Session, TurnRef
from app.core.updates import Ask, AskRequest
from app.errors import Conflict, NotFound
from app.vault import Vault

TITLE_CHARACTERS = 2_000
"""What an ask may say; a command that is longer cannot be judged at a glance anyway."""
OPTION_CHARACTERS = 150
"""What a button may say: a little more than platforms show."""
OPTIONS = 20
"""Buttons of one ask; the most an agent was seen to offer is six."""


class Ledger:
    """The open asks of all sessions."""

    def __init__(
        self, asks: AskStore, sessions: SessionStore, outbox: Outbox, feed: Feed, vault: Vault
    ) -> None:
        self._asks = asks
        self._sessions = sessions
        self._outbox = outbox
        self._feed = feed
        self._vault = vault
        self._waiting: dict[int, tuple[TurnRef, asyncio.Future[str | None]]] = {}

    async def ask(self, request: AskRequest, ref: TurnRef) -> str | None:
        """Show an ask and wait for a person; None if it was withdrawn."""
        ask, post = await self._asks.open(self._presentable(request), ref)
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._waiting[ask.id] = (ref, future)
        self._outbox.send(post)
        self._feed.notify(ref.session)
        try:
            return await future
        finally:
            self._waiting.pop(ask.id, None)

    async def answer(self, ask_id: int, option: str, by: str) -> Ask:
        """Take a person's answer; the first one counts.

        Raises:
            NotFound: there is no such ask or no such option.
            Conflict: it is not open any more.
        """
        ask = self._known(ask_id)
        if option not in {offered.id for offered in ask.options}:
            raise NotFound("option", option)
        posts = await self._asks.answer(ask_id, option, by)
        if posts is None:
            raise Conflict(_closed(self._known(ask_id)))
        self._outbox.send(*posts)
        self._feed.notify(ask.session)
        ref_and_future = self._waiting.get(ask_id)
        if ref_and_future is not None and not ref_and_future[1].done():
            ref_and_future[1].set_result(option)
        return self._known(ask_id)

    def withdraw(self, turn: int) -> None:
        """Wake whoever waits for an answer in a turn that ends."""
        for ref, future in self._waiting.values():
            if ref.turn == turn and not future.done():
                future.set_result(None)

    def session(self, ask_id: int) -> Session:
        """Tell whose ask it is.

        Raises:
            NotFound: there is no such ask.
        """
        session = self._sessions.session(self._known(ask_id).session)
        if session is None:
            raise NotFound("ask", ask_id)
        return session

    async def list(self, state: str | None, *, after: int, limit: int) -> Sequence[Ask]:
        """List asks, oldest first."""
        return await self._asks.asks(state, after=after, limit=limit)

    def _presentable(self, request: AskRequest) -> AskRequest:
        """Make an ask fit to be shown: short enough, and without secrets."""
        redact = self._vault.redact
        return replace(
            request,
            call=redact(request.call),
            title=redact(request.title)[:TITLE_CHARACTERS],
            options=tuple(
                replace(option, name=redact(option.name)[:OPTION_CHARACTERS])
                for option in request.options[:OPTIONS]
            ),
        )

    def _known(self, ask_id: int) -> Ask:
        ask = self._asks.ask(ask_id)
        if ask is None:
            raise NotFound("ask", ask_id)
        return ask


def _closed(ask: Ask) -> str:
    match ask.state:
        case "answered":
            return f"{ask.answered_by} has answered this already"
        case "lost":
            return "the bridge restarted before this was answered; it is asked anew if it matters"
        case _:
            return "this is not needed any more"
