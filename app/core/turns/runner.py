"""Runs one turn: agent to life, prompt committed, prompt sent, updates followed, end written.

The prompt is committed before its bytes are written, and a turn that was stopped is never prompted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from app.core.clock import persist
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.core.ports import (
    Clock,
    Counters,
    PostStore,
    SessionStore,
    TranscriptStore,
    TurnStore,
    Workspaces,
)
from app.core.turns.agents import LiveAgent, LiveAgents
from app.core.turns.prompt import Asked, compose
from app.core.turns.slots import Slot
from app.core.types import (
    AskRequest,
    BridgeUpdate,
    Entry,
    PostContent,
    PromptEnd,
    Session,
    Turn,
    TurnRef,
    TurnState,
)
from app.core.update_router import UpdateRouter
from app.errors import AgentError, BridgeError
from app.vault import Vault

logger = logging.getLogger(__name__)

HISTORY_ENTRIES = 60
"""What an agent is told of a conversation it lost: some thirty exchanges."""
CARRIES_ON = "The bridge restarted while this was being worked on; it carries on."
MEMORY_LOST = (
    "The agent could not bring its conversation back, so it was given the transcript instead."
)
ODD_ENDS = {
    "max_tokens": "The agent reached its limit of tokens for one answer.",
    "max_turn_requests": "The agent reached its limit of requests for one turn.",
    "refusal": "The agent refused to go on.",
    "cancelled": "The agent ended its turn by itself.",
}


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every turn needs."""

    turns: TurnStore
    sessions: SessionStore
    transcript: TranscriptStore
    posts: PostStore
    live: LiveAgents
    workspaces: Workspaces
    ledger: Ledger
    outbox: Outbox
    feed: Feed
    clock: Clock
    counters: Counters
    vault: Vault
    speaking_of: Callable[[Session], AbstractContextManager[None]]
    """Puts agent and session into every line that is logged meanwhile."""


class TurnRun:
    """One turn while it runs; it is also what the agent talks to."""

    def __init__(self, shop: Workshop, session: Session, turn: Turn, slot: Slot) -> None:
        self._shop = shop
        self._session = session
        self._turn = turn
        self._slot = slot
        self._ref = TurnRef(session.id, turn.id)
        self._live: LiveAgent | None = None
        self._prompting = False
        self._stopping = False
        self._task: asyncio.Task[object] | None = None
        self._post = shop.posts.of_turn(turn.id)
        self._router = UpdateRouter(
            self._ref,
            transcript=shop.transcript,
            feed=shop.feed,
            clock=shop.clock,
            vault=shop.vault,
            on_progress=self._progress,
        )

    async def run(self) -> None:
        """Run the turn to its end; only a shutdown leaves it open."""
        self._task = asyncio.current_task()
        try:
            end = await self._work()
        except asyncio.CancelledError:
            if not self._stopping or self._task is None:
                raise
            self._task.uncancel()
            await self._stopped()
        except AgentError as error:
            await self._fail(str(error))
        except Exception as error:
            logger.exception("turn %d", self._turn.id)
            await self._shop.live.end(self._session.id)
            known = str(error) if isinstance(error, BridgeError) else type(error).__name__
            await self._fail(f"Something went wrong in the bridge: {known}")
        else:
            await self._done(end)
        finally:
            await self._shop.live.give_back(self._session.id)

    async def stop(self) -> None:
        """End the turn now: nothing that the agent still does is shown."""
        if self._stopping:
            return
        self._stopping = True
        self._shop.ledger.withdraw(self._turn.id)
        if self._prompting and self._live is not None:
            await self._live.agent.cancel()
        elif self._task is not None:
            self._task.cancel()

    async def interrupt(self) -> None:
        """Put the turn back for the next start."""
        await self._router.close()
        await persist(self._shop.clock, self._shop.turns.interrupt, self._turn.id)

    async def on_update(self, update: BridgeUpdate) -> None:
        """Take what the agent does, unless somebody said stop."""
        if not self._stopping:
            await self._router.take(update)

    async def on_ask(self, request: AskRequest) -> str | None:
        """Let a person decide; the turn needs no slot meanwhile."""
        if self._stopping:
            return None
        await self._router.flush()
        async with self._slot.lent():
            answer = await self._shop.ledger.ask(request, self._ref)
        return None if self._stopping else answer

    async def _work(self) -> PromptEnd | None:
        shop = self._shop
        self._note_continuation()
        self._live = await shop.live.take(self._session)
        prompt = await self._compose(self._live)
        agent = self._live.agent
        if not await persist(
            shop.clock, shop.turns.prompted, self._turn.id, prompt, agent.acp_session_id
        ):
            self._stopping = True
            return None
        shop.feed.notify(self._session.id)
        self._prompting = True
        try:
            return await agent.prompt(prompt, self)
        finally:
            self._prompting = False

    def _note_continuation(self) -> None:
        if self._turn.continued:
            self._router.note = CARRIES_ON
        self._progress(self._router.content("working"))

    async def _compose(self, live: LiveAgent) -> str:
        shop = self._shop
        history: tuple[Entry, ...] = ()
        if live.how == "lost":
            self._router.note = " ".join(filter(None, (self._router.note, MEMORY_LOST)))
            notice = Entry("notice", MEMORY_LOST, session=self._session.id, turn=self._turn.id)
            await persist(shop.clock, shop.transcript.append, [notice])
            history = tuple(
                await shop.transcript.history(
                    self._session.id, before_turn=self._turn.id, limit=HISTORY_ENTRIES
                )
            )
        messages = shop.turns.messages(self._turn.id)
        files = [file for message in messages for file in message.files]
        return compose(
            Asked(
                surface=self._turn.surface,
                messages=messages,
                files=await shop.workspaces.bring(self._session, files) if files else (),
                link=self._session.link,
                history=history,
                continued=self._turn.continued,
            )
        )

    async def _done(self, end: PromptEnd | None) -> None:
        if self._stopping or end is None:
            await self._stopped()
            return
        if end.usage is not None:
            await self._router.take(end.usage)
        await self._end(TurnState.DONE, "done", ODD_ENDS.get(end.stop_reason, ""))

    async def _fail(self, words: str) -> None:
        if self._stopping:
            await self._stopped()
        else:
            await self._end(TurnState.FAILED, "failed", self._shop.vault.redact(words))

    async def _stopped(self) -> None:
        waiting = self._shop.turns.waiting(self._session.id)
        behind = f" {waiting} more waiting: `queue now` or `queue drop`." if waiting else ""
        await self._end(TurnState.CANCELLED, "stopped", f"Stopped.{behind}")

    async def _end(self, state: TurnState, shown: str, note: str) -> None:
        """Write the end of the turn and everything that shows it, in one commit."""
        shop = self._shop
        await self._router.close()
        if self._router.title:
            await persist(shop.clock, shop.sessions.rename, self._session.id, self._router.title)
        words = " ".join(filter(None, (self._router.note, note)))
        entries = (
            [Entry("notice", note, session=self._session.id, turn=self._turn.id)] if note else []
        )
        posts = await persist(
            shop.clock,
            shop.turns.finish,
            self._turn.id,
            state,
            self._router.content(shown, note=words),
            entries,
            note if state is TurnState.FAILED else "",
        )
        shop.counters.count("turns", agent=self._session.key.agent, state=state)
        shop.outbox.send(*posts or ())
        shop.feed.notify(self._session.id)

    def _progress(self, content: PostContent) -> None:
        if self._post is not None:
            self._shop.outbox.progress(self._post.id, self._post.target, content)
