"""Runs one turn: starts the agent, commits and sends the prompt, follows it, writes the end.

The prompt is committed before its bytes are written, and a turn that was stopped is never prompted.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from functools import partial

from app.core.turns.agents import LiveAgent
from app.core.turns.briefing import brief
from app.core.turns.display import TurnDisplay
from app.core.turns.ending import TurnEnding
from app.core.turns.lateness import find_lateness
from app.core.turns.limits import GRACE_SECONDS, Budget, Slot
from app.core.turns.own import Talk, join_agent
from app.core.turns.prompt import SystemPrompt, brings_words
from app.core.turns.steering import TurnSteering
from app.core.turns.subagents import TurnSubagents
from app.core.turns.turn_context import TurnContext
from app.core.turns.waits import Course, TurnAsks, TurnWaits
from app.errors import RepositoryError
from app.model import wording
from app.model.keys import PlaceKey
from app.model.phase import CANCELLABLE, PROMPTED, Event, Phase
from app.model.ports import AgentSession
from app.model.posts import Verbosity
from app.model.proposals import Work
from app.model.steering import MAYBE_KNOWN, Steered
from app.model.subagents import SubagentUpdate
from app.model.types import Session, Turn, TurnState
from app.model.updates import (
    Ask,
    AskRequest,
    BridgeUpdate,
    FileUpdate,
    NoticeUpdate,
    PromptEnd,
    TextUpdate,
    ToolUpdate,
    UsageUpdate,
)
from app.model.workspaces import Shipped
from app.repos.wording import NOT_PUSHED
from app.retry import persist
from app.tasks import Tasks

logger = logging.getLogger(__name__)

RAN = frozenset({"completed", "failed"})
"""States of a tool call that has run."""
PARK_SECONDS = 1.0
"""How long a turn of a bridge that is being drained waits for people before it is parked: as long
as it takes to show an ask and to see that no one answers at once."""


class TurnRun:
    """One running turn; it also receives the agent's updates and asks."""

    def __init__(self, context: TurnContext, session: Session, turn: Turn, slot: Slot) -> None:
        self._context = context
        self._session = session
        self._turn = turn
        self._slot = slot
        self._course = Course(turn.id, context.clock, context.metrics)
        self._live: LiveAgent | None = None
        self._agent = context.agent(session.key.agent)
        self._name = context.name_of(session.key.agent)
        """What people call the agent."""
        self._budget = Budget(context, context.daily, session, turn.id)
        self._idle_seconds = self._agent.idle_seconds
        """How long it waits for people before it is parked."""
        self._watches = Tasks(f"turn {turn.id}")
        self._hurried = asyncio.Event()
        """Set when the session has something else to do than what comes after its turn."""
        self._has_read = session.read_others
        self._where = ""
        """What to say about the repository it works on, if anything."""
        self._late = ""
        """What to say about messages that were found late, if anything."""
        self._shipped = Shipped()
        self._place = context.stores.decisions.place(session.place)
        self._display = TurnDisplay(context, session, turn, self._place, name=self._name)
        self._router = self._display.router
        self._steering = TurnSteering(context, session, turn, self._display)
        self._subagents = TurnSubagents(context, session, turn, self._display)
        self._ending = TurnEnding(
            context,
            session,
            turn,
            course=self._course,
            display=self._display,
            budget=self._budget,
        )
        self._asks = TurnAsks(
            context,
            session,
            turn,
            agent=self._agent,
            slot=slot,
            course=self._course,
            display=self._display,
        )
        self.waits = TurnWaits(context.clock, slot, self._asks.timer, self._watches)
        """Its waits for work that others do for it."""

    @property
    def turn_id(self) -> int:
        """The id of the turn."""
        return self._turn.id

    async def run(self) -> None:
        """Run the turn to its end; only a shutdown leaves it open."""
        try:
            question = await self._settle()
            end = None if question else await self._run_in_workspace()
        except asyncio.CancelledError:
            if not self._course.recover():
                raise
            if self._course.phase is Phase.PARKED:
                await self._context.live.end(self._session.id)
            else:
                await self._ending.stop()
        except Exception as error:  # noqa: BLE001 - people are told, unexpected errors are logged
            self._course.take(Event.END)
            await self._ending.handle(error, started=self._live is not None)
        else:
            self._course.take(Event.END)
            if question:
                picks = question.kind == "repository"
                await self._ending.pause(question, note=wording.PICKS_REPOSITORY if picks else "")
            else:
                await self._ending.finish(end, self._shipped)
                await self._follow_up()
        finally:
            await self._context.live.give_back(self._session.id)
            self._context.look(self._session.id)

    async def stop(self) -> None:
        """End the turn now, if it was stopped; nothing that the agent still does is shown."""
        kept = self._context.stores.turns.turn(self._turn.id)
        before = self._course.phase
        if before is Phase.STOPPING or kept is None or not kept.stopped:
            return
        self._course.take(Event.STOP)
        self._context.ledger.withdraw(self._turn.id)
        if before in CANCELLABLE:
            self._course.cancel()
        elif before in PROMPTED and self._live is not None:
            await self._context.workspaces.leave(self._session.id)
            await self._live.agent.cancel()

    def hurry(self) -> None:
        """Take what was said meanwhile; make way, if this turn is over but for its features."""
        self._steering.look()
        self._hurried.set()

    def leave(self) -> None:
        """Note the shutdown: a cancellation from now on does not come from the turn itself."""
        self._course.take(Event.SHUTDOWN)

    def park_soon(self) -> None:
        """Park the turn as soon as it waits for people."""
        self._idle_seconds = PARK_SECONDS
        if self._course.phase is Phase.WORKING:
            self._watches.start(self._asks.park_when_idle(PARK_SECONDS), name="parking soon")

    def stop_waiting_for_answers(self) -> None:
        """Stop waiting for answers: none can arrive before the next start."""
        self._asks.stop_waiting()

    def refresh(self) -> None:
        """Show how far the work is that others do for the turn."""
        self._display.refresh()

    def show(self, place: PlaceKey, verbosity: Verbosity) -> None:
        """Show as much as the place wants from now on, if the turn runs there."""
        if place == self._session.place:
            self._display.verbosity = verbosity

    async def interrupt(self) -> None:
        """Requeue the turn for the next start."""
        await self._router.close()
        await persist(self._context.clock, self._context.stores.turns.interrupt, self._turn.id)

    async def on_update(self, update: BridgeUpdate) -> None:
        """Take what the agent does, unless the turn was stopped."""
        if type(update) is SubagentUpdate:
            # Also of a stopped turn: it says how what it started came to its end.
            await self._router.flush()
            await self._subagents.take(update)
        elif not await self._course.is_over():
            self._asks.timer.stir()
            await self._take(update)

    async def _take(self, update: BridgeUpdate) -> None:
        if type(update) is FileUpdate:
            await self._router.take(TextUpdate(update.words))
            if self._live is not None:
                await self._display.files.take(update, self._live.workspace.start)
            return
        await self._router.take(update)
        if type(update) is NoticeUpdate and update.compaction:
            # What it took is in its summary, where no mark shows it.
            await persist(self._context.clock, self._context.stores.turns.read, self._turn.id)
        if type(update) is UsageUpdate:
            await self._spend(update)
        elif type(update) is ToolUpdate:
            own = self._context.hooks.own_word_tools
            if brings_words(self._router.tool(update.call) or update, own):
                await self._note_reading()
            if update.status in RAN:
                await self._check_asked(update.call)

    async def on_ask(self, request: AskRequest) -> str | None:
        """Let the rules decide, or else a person; the turn holds no slot meanwhile."""
        if self._course.is_closed or self._live is None:
            return None
        return await self._asks.answer(request, self._live.workspace)

    async def ask(self, request: AskRequest, *, patience: float) -> Ask | None:
        """Ask people a question of a tool; returns it as it is after a while."""
        return await self._asks.put(request, patience=patience)

    async def _note_reading(self) -> None:
        """Record that the agent reads more than what people tell it."""
        if not self._has_read:
            self._has_read = True
            sessions = self._context.stores.sessions
            await persist(self._context.clock, sessions.reads_others, self._session.id)

    async def _check_asked(self, call: str) -> None:
        """End the prompt of an agent that did something it should have asked for."""
        live = self._live
        if live is not None and await self._asks.check(call, live.workspace):
            # In a task: the code that handles an agent's updates must not wait for the agent.
            self._watches.start(live.agent.cancel(), name="unasked")

    async def _spend(self, usage: UsageUpdate) -> None:
        """Check the cost that the agent reports against its budget."""
        was_spent = self._budget.is_spent
        if warning := await self._budget.take(usage):
            self._display.add(warning)
            await self._display.tell(warning)
        if self._budget.is_spent and not was_spent and self._live is not None:
            self._watches.start(self._cut_off(self._live.agent), name="budget")

    async def _cut_off(self, agent: AgentSession) -> None:
        """End a prompt that has spent its budget, unless it ends by itself first."""
        await self._context.clock.sleep(GRACE_SECONDS)
        await agent.cancel()

    async def _settle(self) -> AskRequest | None:
        """Return what people have to decide before the agent works; it may do so already."""
        if self._turn.is_own:
            return None
        self._late, question = await find_lateness(self._context, self._turn, self._name)
        if self._late:
            await self._display.tell(self._late)
        return question or await self._settle_repository()

    async def _settle_repository(self) -> AskRequest | None:
        """Choose what to work on; returns a question if people have to choose."""
        context = self._context
        found = await context.choice.settle(
            self._session,
            self._turn.surface,
            self._place.repository,
            lambda: context.stores.turns.messages(self._turn.id),
        )
        if isinstance(found, AskRequest):
            return found
        self._display.target = context.workspaces.target(self._session, found.repository)
        if self._display.target is not None:
            await self._note_reading()
        if found.words:
            self._where = found.words
            await self._display.tell(found.words)
        return None

    async def _run_in_workspace(self) -> PromptEnd | None:
        """Wait until no other session works in the folder, work, and deliver the result."""
        workspaces, target = self._context.workspaces, self._display.target
        if workspaces.is_occupied(target):
            self._display.note(wording.FOLDER_IN_USE)
            self._display.progress()
        async with AsyncExitStack() as stack:
            attended = workspaces.attended(self._session, target, self, meanwhile=self._slot.lend)
            self.waits.hold = await stack.enter_async_context(attended)
            self._display.note(self._where)
            end = await self._work()
            self._course.take(Event.END)
            await self._ship(end)
        return end

    async def _work(self) -> PromptEnd | None:
        await self._budget.look()
        if self._budget.is_spent:
            await self._context.live.silence(self._session.id)
            return PromptEnd("cancelled")
        self._display.add(self._late)
        if self._turn.continued:
            self._display.add(wording.PICKS_UP.format(agent=self._name))
            await self._subagents.recall()
        self._display.progress()
        if self._turn.is_own:
            await self._display.wait_until_announced()
            live, talk = await join_agent(self._context, self._session, self._turn, self)
            self._live = live
        else:
            live, talk = await self._begin()
        if talk is None:
            self._course.take(Event.STOP)
            return None
        self._context.feed.notify(self._session.id)
        self._course.take(Event.PROMPT)
        self._watches.start(self._watch(live.agent), name="time limit")
        self._watches.start(self._steering.follow(live), name="steering")
        self._watches.start(self._asks.park_when_idle(self._idle_seconds), name="parking")
        self._context.ensure()
        try:
            return await talk()
        finally:
            self._course.take(Event.END)
            self.waits.close()
            await self._watches.close()
            if not live.agent.alive:
                await self._subagents.settle(is_stopped=self._course.phase is Phase.STOPPING)

    async def _watch(self, agent: AgentSession) -> None:
        """End a prompt that takes too long; the time people take to answer does not count."""
        await self._asks.timer.wait_until_worked(self._agent.turn_seconds)
        self._course.take(Event.OVERDUE)
        self._context.ledger.withdraw(self._turn.id)
        await agent.cancel()

    async def _begin(self) -> tuple[LiveAgent, Talk | None]:
        """Start the agent and commit the prompt, which is then to be sent unless it was stopped."""
        context, display = self._context, self._display
        await context.check_room()
        await display.wait_until_announced()
        parts = await context.hooks.system_parts(self._session.key, self._turn.id)
        system_prompt = SystemPrompt(**parts)
        messages = context.stores.turns.messages(self._turn.id)
        said = [each.text for each in messages]
        joined = await context.workspaces.join(self._session, display.target, said)
        display.add(joined.told)
        live = self._live = await context.live.take(
            self._session,
            display.target,
            system_prompt,
            replay=any(each.steered in MAYBE_KNOWN for each in messages),
            meanwhile=self._slot.lend,
        )
        briefing = await brief(
            context,
            self._session,
            self._turn,
            live,
            display.target,
            system_prompt,
            joined,
            is_fork=self._place.is_fork,
        )
        display.add(briefing.note)
        if briefing.files:
            await self._note_reading()
        digests = system_prompt.digests()
        committed = await persist(
            context.clock,
            context.stores.turns.prompted,
            self._turn.id,
            briefing.prompt,
            live.agent.acp_session_id,
            live.generation,
            told=briefing.told,
            system=live.system,
            standing=digests,
            messages=[each.number for each in briefing.messages],
            read=live.known,
            steerable=live.agent.steerable and self._agent.config.while_busy == "steer",
        )
        if not committed:
            return live, None
        for message in briefing.messages:
            if message.steered is Steered.JOINED:
                display.mark(message.message_id)
        for call in briefing.on_sent:
            await call()
        live.told, live.system = digests, ""
        send = partial(live.agent.prompt, files=briefing.files, turn=self._turn.id)
        return live, partial(send, briefing.prompt, self)

    async def _ship(self, end: PromptEnd | None) -> None:
        """Deliver the work of a turn that is done; a stop stops this as well."""
        if end is None or end.failed or self._budget.has_ended(end):
            return
        if not self._course.take(Event.SHIP):
            return
        context = self._context
        title = self._router.title or self._session.title
        messages = context.stores.turns.messages(self._turn.id)
        work = Work(title, messages, self._session.link, self._turn.continued)
        context.ensure()
        try:
            self._shipped = await context.workspaces.ship(self._session, self._display.target, work)
        except RepositoryError as error:
            self._shipped = Shipped(note=NOT_PUSHED.format(problem=error))

    async def _follow_up(self) -> None:
        """Let features use the agent of a turn that is done, until the session has other work."""
        turns, live = self._context.stores.turns, self._live
        ended = turns.turn(self._turn.id)
        if live is None or ended is None or ended.state is not TurnState.DONE:
            return
        self._hurried.clear()
        if turns.next_turn(self._session.id) is None:
            hooks = self._context.hooks
            await hooks.after_turn(self._session, self._turn, live.agent, self._hurried.wait)
