"""Runs one turn: agent to life, prompt committed, prompt sent, updates followed, end written.

The prompt is committed before its bytes are written, and a turn that was stopped is never prompted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace

from app.core.clock import persist
from app.core.consent.gate import Gate
from app.core.consent.offers import with_colleagues
from app.core.consent.record import Decided
from app.core.consent.terms import Terms
from app.core.keys import adapter_name
from app.core.ports import AgentSession
from app.core.tasks import Tasks
from app.core.turns.agents import LiveAgent
from app.core.turns.briefing import brief
from app.core.turns.display import TurnDisplay
from app.core.turns.limits.budget import GRACE_SECONDS, Budget
from app.core.turns.limits.obstacles import Obstacle, obstacle, pause, spoken_obstacle
from app.core.turns.limits.patience import Patience
from app.core.turns.limits.slots import Slot
from app.core.turns.workshop import Workshop
from app.core.types import Attachment, Session, Turn, TurnRef, TurnState
from app.core.updates import (
    AskRequest,
    BridgeUpdate,
    FileUpdate,
    PromptEnd,
    TextUpdate,
    ToolUpdate,
    UsageUpdate,
)
from app.core.workspaces import Work
from app.errors import AgentError, AgentRefused, BridgeError, RepositoryError

logger = logging.getLogger(__name__)

PARKED = "Parked until the question above is answered."
CHOOSES = "Waits until somebody says in which repository."
CARRIES_ON = "The bridge restarted while this was being worked on; it carries on."
ANOTHER_IS_THERE = "Another session is at work in this folder; this one waits for it."
ODD_ENDS = {
    "max_tokens": "The agent reached its limit of tokens for one answer.",
    "max_turn_requests": "The agent reached its limit of requests for one turn.",
    "refusal": "The agent refused to go on.",
    "cancelled": "The agent ended its turn by itself.",
}


class TurnRun:
    """One turn while it runs; it is also what the agent talks to."""

    def __init__(self, shop: Workshop, session: Session, turn: Turn, slot: Slot) -> None:
        self._shop = shop
        self._session = session
        self._turn = turn
        self._slot = slot
        self._live: LiveAgent | None = None
        self._prompting = False
        self._may_cancel = False
        self._stopping = False
        self._leaving = False
        self._unheard = False
        """Whether people can answer nothing any more."""
        self._overdue = False
        self._parking = asyncio.Lock()
        self._parked = False
        self._terms = shop.terms.get(session.key.agent, Terms())
        self._budget = Budget(self._terms.budget_usd, session, shop.sessions, shop.clock)
        self._gate = Gate(shop.ledger, self._terms, TurnRef(session.id, turn.id), shop.clock)
        self._in_order = asyncio.Lock()
        """Judging takes a moment, and what was asked first is shown first."""
        self._patience = Patience(shop.clock)
        self._watches = Tasks(f"turn {turn.id}")
        self._shipped = ""
        self._where = ""
        """What is worth saying about where it works."""
        self._task: asyncio.Task[object] | None = None
        self._files: tuple[Attachment, ...] = ()
        self._display = TurnDisplay(shop, session, turn)
        self._router = self._display.router

    async def run(self) -> None:
        """Run the turn to its end; only a shutdown leaves it open."""
        self._task = asyncio.current_task()
        try:
            if not await self._knows_where():
                return
            end = await self._in_workspace()
        except asyncio.CancelledError:
            ours = self._parked or self._stopping
            if self._leaving or not ours or self._task is None:
                raise
            self._task.uncancel()
            if self._parked:
                await self._shop.live.end(self._session.id)
            else:
                await self._stopped()
        except AgentError as error:
            await self._trouble(error)
        except RepositoryError as error:
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
        """End the turn now, if it was stopped: nothing that the agent still does is shown."""
        kept = self._shop.turns.turn(self._turn.id)
        if self._stopping or kept is None or not kept.stopped:
            return
        self._stopping = True
        self._shop.ledger.withdraw(self._turn.id)
        if self._prompting and self._live is not None:
            await self._live.agent.cancel()
        elif self._may_cancel and self._task is not None:
            self._task.cancel()

    @contextmanager
    def _cancellable(self) -> Iterator[None]:
        """Let a stop cancel the task: only here, for an end that has begun must come."""
        self._may_cancel = True
        try:
            yield
        finally:
            self._may_cancel = False

    def leave(self) -> None:
        """Say that the bridge ends: a cancellation from now on is not the turn's own."""
        self._leaving = True

    def hear_no_answers(self) -> None:
        """Say that nobody can answer before the next start: a turn that asks does not wait."""
        self._unheard = True
        if self._patience.is_asking:
            self._put_off()

    def _put_off(self) -> None:
        if self._prompting and self._task is not None:
            self.leave()
            self._task.cancel()

    async def interrupt(self) -> None:
        """Put the turn back for the next start."""
        await self._router.close()
        await persist(self._shop.clock, self._shop.turns.interrupt, self._turn.id)

    async def on_update(self, update: BridgeUpdate) -> None:
        """Take what the agent does, unless somebody said stop."""
        if self._parking.locked():
            async with self._parking:
                pass  # whether anybody wants to hear of it is known now
        if self._stopping or self._parked:
            return
        self._patience.stir()
        if type(update) is FileUpdate:
            await self._take_file(update)
            return
        await self._router.take(update)
        if type(update) is UsageUpdate:
            await self._spend(update)

    async def _take_file(self, update: FileUpdate) -> None:
        """Keep a file that stands in the midst of an answer, and say there what it was."""
        await self._router.take(TextUpdate(update.words))
        if self._live is not None:
            await self._display.files.take(update, self._live.workspace)

    async def on_ask(self, request: AskRequest) -> str | None:
        """Let the rules decide, else a person; the turn needs no slot meanwhile."""
        if self._stopping or self._live is None:
            return None
        async with self._in_order:
            known = self._router.tool(request.call)
            outgoing = self._shop.workspaces.outgoing(self._session)
            judged = await self._gate.judge(request, known, self._live.workspace, outgoing)
            if self._stopping:
                return None
            if judged.decided is not None:
                await self._record(request, judged.decided)
                return judged.answer
            if request.tool is not None:
                # Some agents announce no call before they ask, and people must see what it is.
                await self._router.take(replace(request.tool, status=None))
            await self._router.flush()
        if self._unheard:
            self._put_off()
            return None
        with self._patience.asking():
            async with self._slot.lent():
                answer, decided = await self._gate.ask(judged.request)
        if self._stopping:
            return None
        await self._record(request, decided)
        return answer

    async def _record(self, request: AskRequest, decided: Decided) -> None:
        """Write down who or what decided on a call."""
        if request.call:
            await self._router.decide(request.tool or ToolUpdate(request.call), decided)

    async def _spend(self, usage: UsageUpdate) -> None:
        """Hold what the agent says it has cost against its budget."""
        was_spent = self._budget.is_spent
        if warning := await self._budget.take(usage):
            self._display.add(warning)
            await self._display.tell(warning)
        if self._budget.is_spent and not was_spent and self._live is not None:
            # Not here: whoever hears an agent must not wait for it.
            self._watches.start(self._cut_off(self._live.agent), name="budget")

    async def _cut_off(self, agent: AgentSession) -> None:
        """End a prompt that has spent its budget, unless it ends by itself just now."""
        await self._shop.clock.sleep(GRACE_SECONDS)
        await agent.cancel()

    async def _knows_where(self) -> bool:
        """See to it that it is known where to work; else the turn waits, and people are asked."""
        shop = self._shop
        with self._cancellable():
            found = await shop.choice.settle(
                self._session, self._turn.surface, lambda: shop.turns.messages(self._turn.id)
            )
            if found and isinstance(found, str):
                self._where = found
                await self._display.tell(found)
        if isinstance(found, AskRequest):
            await self._pause(found, until=shop.clock.now(), note=CHOOSES)
        return isinstance(found, str)

    async def _in_workspace(self) -> PromptEnd | None:
        """Work once nobody else is at work in the same folder, and deliver what came of it."""
        workspaces = self._shop.workspaces
        if workspaces.waits(self._session):
            self._display.note(ANOTHER_IS_THERE)
            self._display.progress()
        async with AsyncExitStack() as stack:
            with self._cancellable():
                attended = workspaces.attended(self._session, self, meanwhile=self._slot.lent)
                await stack.enter_async_context(attended)
            self._display.note(self._where)
            end = await self._work()
            await self._ship(end)
        return end

    async def _work(self) -> PromptEnd | None:
        if self._budget.is_spent:
            return PromptEnd("cancelled")
        self._display.add(CARRIES_ON if self._turn.continued else "")
        self._display.progress()
        with self._cancellable():
            prompt = await self._begin()
        if prompt is None or self._live is None:
            self._stopping = True
            return None
        self._shop.feed.notify(self._session.id)
        self._prompting = True
        self._watches.start(self._watch(self._live.agent), name="time limit")
        self._watches.start(self._watch_asks(), name="parking")
        try:
            return await self._live.agent.prompt(prompt, self, files=self._files)
        finally:
            self._prompting = False
            await self._watches.close()

    async def _watch_asks(self) -> None:
        """Park the turn when it has waited for nothing but people for a while."""
        while not self._parked:
            await self._patience.idled(self._terms.idle_seconds)
            if not await self._park():
                self._patience.stir()

    async def _park(self) -> bool:
        """Leave the turn to wait without a process, unless somebody answers just now."""
        shop = self._shop
        async with self._parking:
            await self._router.flush(final=True)
            content = self._display.content("waiting", note=PARKED)
            asks = shop.ledger.waiting(self._turn.id)
            parked = await persist(shop.clock, shop.turns.park, self._turn.id, content, asks)
            self._parked = parked
        if parked:
            logger.info("turn %d is parked until somebody answers", self._turn.id)
            self._display.wait(content)
            if self._prompting and self._task is not None:
                self._task.cancel()
        return parked

    async def _ship(self, end: PromptEnd | None) -> None:
        """Deliver what came of a turn that was done; whoever says stop stops that as well."""
        if end is None or self._stopping or self._overdue or self._budget.ended(end):
            return
        shop = self._shop
        title = self._router.title or self._session.title
        messages = shop.turns.messages(self._turn.id)
        work = Work(title, messages, self._session.link, self._turn.continued)
        try:
            with self._cancellable():
                self._shipped = await shop.workspaces.ship(self._session, work)
        except RepositoryError as error:
            self._shipped = f"Not shipped: {error}"

    async def _watch(self, agent: AgentSession) -> None:
        """End a prompt that takes too long; what people take to answer does not count."""
        await self._patience.worked(self._terms.turn_seconds)
        self._overdue = True
        self._shop.ledger.withdraw(self._turn.id)
        await agent.cancel()

    async def _begin(self) -> str | None:
        """Bring the agent to life and commit the prompt; None if somebody said stop."""
        shop = self._shop
        await self._display.announced()
        live = self._live = await shop.live.take(self._session, meanwhile=self._slot.lent)
        briefing = await brief(shop, self._session, self._turn, live)
        self._display.add(briefing.note)
        self._files = briefing.files
        committed = await persist(
            shop.clock,
            shop.turns.prompted,
            self._turn.id,
            briefing.prompt,
            live.agent.acp_session_id,
            live.generation,
            told=briefing.told,
        )
        return briefing.prompt if committed else None

    async def _trouble(self, error: AgentError) -> None:
        """End the turn, or let it wait if the agent only has to be left alone for a while."""
        found = None
        if isinstance(error, AgentRefused) and not self._stopping and not self._overdue:
            found = obstacle(error.code, error.message, error.data, self._shop.clock.now())
        if found is None:
            await self._fail(str(error))
        else:
            await self._wait_for(found)

    async def _wait_for(self, found: Obstacle) -> None:
        now, agent = self._shop.clock.now(), self._session.key.agent
        resume_at = found.until if self._terms.resume else None
        request = pause(agent, found, now, resumes=resume_at is not None)
        request = with_colleagues(request, self._colleagues())
        await self._pause(request, until=found.until or now, resume_at=resume_at)

    def _colleagues(self) -> list[str]:
        """List the agents that could take this turn over: here too, and not told of it before."""
        shop, surface = self._shop, self._turn.surface
        told = shop.turns.hearers(self._turn.id)
        here = {
            agent: shop.adapters.get(adapter_name(surface.service, agent)) for agent in shop.terms
        }
        return [
            agent
            for agent, adapter in here.items()
            if adapter is not None and adapter.is_shared(surface) and agent not in told
        ]

    async def _pause(
        self,
        request: AskRequest,
        *,
        until: float,
        resume_at: float | None = None,
        note: str = "",
    ) -> None:
        """Put the turn back until somebody says go on, and ask for that."""
        shop = self._shop
        await self._router.close()
        content = self._display.content("waiting", note=note or request.title)
        posts = await persist(
            shop.clock,
            shop.turns.pause,
            self._turn.id,
            content,
            shop.ledger.presentable(request),
            deadline=until + self._terms.ask_seconds,
            resume_at=resume_at,
        )
        if posts is None:
            await self._stopped()
            return
        self._display.wait(content)
        shop.outbox.send(*posts)
        shop.ledger.watch()

    async def _done(self, end: PromptEnd | None) -> None:
        if self._stopping or end is None:
            await self._stopped()
            return
        if self._overdue:
            await self._fail("")
            return
        if self._budget.ended(end):
            await self._pause(self._budget.pause(), until=self._shop.clock.now())
            return
        if found := spoken_obstacle(self._router.words, self._shop.clock.now()):
            await self._wait_for(found)
            return
        if end.usage is not None:
            await self._router.take(end.usage)
        odd = ODD_ENDS.get(end.stop_reason, "")
        note = self._shop.vault.redact(" ".join(filter(None, (odd, self._shipped))))
        await self._display.end(TurnState.DONE, "done", note)

    async def _fail(self, words: str) -> None:
        if self._stopping:
            await self._stopped()
            return
        if self._overdue:
            minutes = self._terms.turn_seconds / 60
            words = f"Ended after {minutes:g} minutes, the limit of one turn (TURN_MINUTES)."
        await self._display.end(TurnState.FAILED, "failed", self._shop.vault.redact(words))

    async def _stopped(self) -> None:
        waiting = self._shop.turns.waiting(self._session.id)
        behind = f" {waiting} more waiting: `queue now` or `queue drop`." if waiting else ""
        await self._display.end(TurnState.CANCELLED, "stopped", f"Stopped.{behind}")
