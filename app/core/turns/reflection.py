"""Asks an agent after its turn what is worth keeping, and keeps it or asks people.

People have their answer by then: it ends as soon as the session has something else to do.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from app.agents.agent import Agent
from app.core.memory import wording
from app.core.memory.keeper import NOTE_CHARACTERS, note_request, worth_keeping
from app.core.turns.prompt import holds_words_of_others
from app.core.turns.turn_context import TurnContext
from app.errors import BridgeError
from app.model.delegation import SERVICE
from app.model.ports import AgentSession
from app.model.types import Entry, Session, Turn, TurnRef
from app.model.updates import AskRequest, BridgeUpdate, TextUpdate, ToolUpdate
from app.retry import persist
from app.tasks import Tasks

logger = logging.getLogger(__name__)

SECONDS: Final = 60.0
"""How long an agent may think about it: its answer is a few lines."""
_ANSWER_CHARACTERS: Final = 4 * NOTE_CHARACTERS


_READING: Final = frozenset({"read", "search", "fetch", "execute", "other"})
"""Kinds of calls that can bring text which no person here wrote."""
_MEMORY_TOOLS: Final = ("memory_read", "memory_search", "memory_write")


def brings_words(tool: ToolUpdate) -> bool:
    """Tell whether a tool call can bring words of others into a conversation: a file, a page.

    The bridge knows what its own tools bring; those for the memory bring the agent's own notes.
    """
    if tool.kind in {None, "other"}:
        return not any(name in (tool.title or "") for name in _MEMORY_TOOLS)
    return tool.kind in _READING


async def is_trusted(context: TurnContext, session: Session) -> bool:
    """Tell whether an agent was told only words of people who may direct it, and read nothing else.

    What a fork brings from the place it was copied from is not known here, and what an agent does
    for another one may be that one's own idea.
    """
    now = context.stores.sessions.session(session.id)
    if now is None or now.read_others or session.place.service == SERVICE:
        return False
    turns = await context.stores.turns.turns(session.id)
    is_fork = context.stores.decisions.place(session.place).is_fork
    return not is_fork and not any(holds_words_of_others(each.prompt) for each in turns)


class Reflection:
    """What one agent remembers of one turn; it receives the agent's updates meanwhile."""

    def __init__(self, context: TurnContext, session: Session, turn: Turn, agent: Agent) -> None:
        self._context = context
        self._session = session
        self._turn = turn
        self._agent = agent
        self._text = ""
        self._has_read = False
        self._needed = asyncio.Event()

    def hurry(self) -> None:
        """End it: the session has something else to do."""
        self._needed.set()

    async def run(self, agent: AgentSession) -> None:
        """Ask the agent, then keep what it says, or ask people about it."""
        try:
            text = self._context.vault.redact(worth_keeping(await self._ask(agent)))
            if text:
                await self._keep(text)
        except BridgeError as error:
            logger.info("nothing is remembered of turn %d: %s", self._turn.id, error)

    async def on_update(self, update: BridgeUpdate) -> None:
        """Collect the answer."""
        if type(update) is TextUpdate and len(self._text) < _ANSWER_CHARACTERS:
            self._text += update.text
        elif type(update) is ToolUpdate and brings_words(update):
            self._has_read = True

    async def on_ask(self, _request: AskRequest) -> str | None:
        """Allow nothing."""
        return None

    async def _ask(self, agent: AgentSession) -> str:
        tasks = Tasks(f"memory of turn {self._turn.id}")
        tasks.start(self._end(agent), name="end")
        tasks.start(self._watch(), name="time limit")
        try:
            end = await agent.prompt(wording.WORTH_KEEPING, self)
        finally:
            await tasks.close()
        return "" if end.stop_reason == "cancelled" else self._text

    async def _end(self, agent: AgentSession) -> None:
        await self._needed.wait()
        await agent.cancel()

    async def _watch(self) -> None:
        await self._context.clock.sleep(SECONDS)
        self._needed.set()

    async def _keep(self, text: str) -> None:
        context, session = self._context, self._session
        agent, ref = session.key.agent, TurnRef(session.id, self._turn.id)
        name = context.name_of(agent)
        auto = self._agent.memory == "auto" and not self._has_read
        if auto and await is_trusted(context, session):
            await context.memory.keep(agent, session.id, text)
            words = wording.KEPT.format(agent=name, text=text)
            notice = Entry("notice", words, session=session.id, turn=self._turn.id)
            await persist(context.clock, context.stores.transcript.append, [notice])
        else:
            request = context.ledger.present(note_request(name, text))
            seconds = self._agent.ask_seconds
            posts = await context.memory.propose(agent, ref, text, request, seconds=seconds)
            context.outbox.send(*posts)
            context.ledger.watch()
        context.feed.notify(session.id)
