"""The core on a real store, with scripted agents and adapters that hear what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

from typing_extensions import override

from app.agents.agent import Agent
from app.agents.files import AgentFiles
from app.children.kept_files import Traces
from app.clock import Clock, SystemClock
from app.config.agents import AgentLimits
from app.config.settings import Settings
from app.core.adapters import Adapter
from app.core.base import Base
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.files.attachments import Attachments
from app.core.files.outgoing import OutgoingFiles
from app.core.hooks import Hooks
from app.core.intake.dispatch import Dispatcher
from app.core.intake.floor import Access
from app.core.intake.reader import Intake
from app.core.outbox import Outbox
from app.core.repositories.following import Renames
from app.core.roster import Availabilities, Roster
from app.core.session_manager import SessionManager
from app.core.tools.people import PeopleTools, PlaceTools
from app.core.tools.proposals import ProposalTools
from app.core.tools.toolbox import Toolbox
from app.core.turns.agents import LiveAgents
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.limits import NO_LIMITS, DailyLimits
from app.core.turns.place import ContextFinder, RepositoryChoice
from app.core.turns.reach import Reach
from app.core.turns.turn_context import TurnContext
from app.features.delegation.service import Delegations
from app.features.delegation.tools import AgentTools
from app.features.memory.service import Memory
from app.features.memory.tools import MemoryTools
from app.features.schedules.service import Schedules
from app.features.schedules.tools import ScheduleTools
from app.metrics import Metrics
from app.model.agents import Choice, Choices, Scope
from app.model.background import Woken, Work
from app.model.conversations import EVERYTHING, ListFilter
from app.model.delegation import DelegationLimits
from app.model.inbound import (
    Accepted,
    Answered,
    Changed,
    Delivery,
    DeliveryLine,
    DeliveryState,
    Heard,
    Inbound,
)
from app.model.keys import PlaceKey, SessionKey
from app.model.policy import PRESETS, Policy
from app.model.ports import AgentListener, OpenedSession
from app.model.posts import PostSend, PostSent
from app.model.types import Attachment, Session, Speaker, Turn
from app.model.updates import PromptEnd, TextUpdate
from app.model.workspaces import Workspace
from app.services.web.adapter import AgentsAdapter
from app.signals import ALONE, Signals
from app.store.database import Database
from app.store.inbox import DeliveryStore
from app.store.stores import Stores
from app.vault import Vault
from tests.support.agent_values import make_agent
from tests.support.forge import Forge
from tests.support.memory import ANN, delivery, heard, open_stores
from tests.support.no_git import NoGit, directory, empty_folders
from tests.support.recorder import Recorder

STRANGER = Speaker("stranger", "Stranger")
"""Whom no platform lets trigger an agent."""

PATIENCE_SECONDS = 5.0

Hook = Callable[[], Awaitable[object]]
Script = Callable[[AgentListener], Awaitable[object]]


class Stir:
    """Wakes whoever waits for something to happen at the desk."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def __call__(self) -> None:
        self._changed.set()

    async def until(self, seen: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not seen():
                self._changed.clear()
                await self._changed.wait()


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was asked of an agent."""

    what: Literal["open", "configure", "prompt", "cancel", "close"]
    session: SessionKey
    words: str = ""
    """The prompt, the mode, or the conversation that is to be brought back."""


async def at_once() -> None:
    """Wait for nothing."""


async def say_ok(listener: AgentListener) -> None:
    """Answer as the agent that has nothing to say."""
    await listener.on_update(TextUpdate("ok"))


class ScriptedLauncher:
    """The launcher port; it keeps a transcript of what agents were told, and acts as told."""

    def __init__(self, stir: Stir) -> None:
        self.lines: list[Line] = []
        self.opened: list[Session] = []
        """The sessions as they were handed over."""
        self.opening: Hook = at_once
        self.cancelling: Hook = at_once
        self.closing: Hook = at_once
        self.script: Script = say_ok
        """What an agent does with a prompt."""
        self.scripts: dict[str, Script] = {}
        """What some agents do in place of that."""
        self.files: list[Attachment] = []
        """What came with prompts."""
        self.remembers = True
        """Whether agents can bring an earlier conversation back."""
        self._names = (f"conversation-{number}" for number in count(1))
        self._stir = stir

    def note(self, line: Line) -> None:
        """Keep a line of the transcript."""
        self.lines.append(line)
        self._stir()

    def told(self, what: str, place: str | None = None) -> list[str]:
        """List the words of one kind, in one place or everywhere."""
        return [
            line.words
            for line in self.lines
            if line.what == what and place in {None, line.session.external}
        ]

    async def open(
        self,
        session: Session,
        workspace: Workspace,
        listener: AgentListener,
        *,
        system: str = "",
        replay: bool = False,
    ) -> OpenedSession:
        self.opened.append(session)
        self.note(Line("open", session.key, session.acp_session_id or ""))
        await self.opening()
        if session.acp_session_id is None or not self.remembers:
            how: Literal["new", "lost"] = "lost" if session.acp_session_id else "new"
            return OpenedSession(ScriptedAgent(self, session.key, next(self._names)), how)
        return OpenedSession(ScriptedAgent(self, session.key, session.acp_session_id), "resumed")

    async def close(self) -> None:
        pass


class ScriptedAgent:
    """The port of one conversation; a cancelled prompt ends, however long its script is."""

    steerable = False
    woken: Woken | None = None
    work: tuple[Work, ...] = ()
    subagents = ()

    def __init__(self, launcher: ScriptedLauncher, key: SessionKey, name: str) -> None:
        self.acp_session_id = name
        self.alive = True
        self._launcher = launcher
        self._key = key
        self._cancelled = asyncio.Event()

    async def prompt(
        self,
        text: str,
        listener: AgentListener,
        *,
        files: Sequence[Attachment] = (),
        turn: int = 0,
    ) -> PromptEnd:
        self._launcher.files.extend(files)
        self._note("prompt", text)
        self._cancelled.clear()
        own = self._launcher.scripts.get(self._key.agent, self._launcher.script)
        script = asyncio.ensure_future(own(listener))
        stop = asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait({script, stop}, return_when=asyncio.FIRST_COMPLETED)
            if self._cancelled.is_set():
                return PromptEnd("cancelled")
            await script
            return PromptEnd("end_turn")
        finally:
            stop.cancel()
            script.cancel()
            await asyncio.wait({script, stop})

    async def steer(self, text: str, *, files: Sequence[Attachment] = ()) -> bool:
        return False

    async def follow(self, listener: AgentListener, *, turn: int) -> PromptEnd:
        return PromptEnd("end_turn")

    def make_way(self) -> None:
        pass

    async def silence(self) -> None:
        self.woken = None

    async def stop_subagent(self, key: str) -> bool:
        return False

    async def cancel(self) -> None:
        self._note("cancel")
        await self._launcher.cancelling()
        self._cancelled.set()

    @property
    def choices(self) -> Choices:
        return Choices((Choice("ask", "Ask"), Choice("free", "Free")), (), "ask")

    async def configure(self, *, mode: str | None, model: str | None) -> None:
        self._note("configure", mode or model or "")

    async def close(self) -> None:
        self._note("close")
        self.alive = False
        await self._launcher.closing()

    def _note(
        self, what: Literal["prompt", "cancel", "configure", "close"], words: str = ""
    ) -> None:
        self._launcher.note(Line(what, self._key, words))


class Presence(Recorder):
    """An adapter that hears in a delivery what the test put there; strangers may nothing."""

    def __init__(
        self, agent: str, inbound: Mapping[str, Inbound], stir: Stir, service: str = "web"
    ) -> None:
        super().__init__(agent, pace=0.0, service=service)
        self._inbound = inbound
        self._stir = stir

    @override
    def parse(self, delivery: Delivery) -> Inbound | None:
        return self._inbound[delivery.delivery_id]

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        return "you may not use this agent here" if speaker == STRANGER else None

    @override
    async def send(self, post: PostSend) -> PostSent:
        sent = await super().send(post)
        self._stir()
        return sent


class StirringDeliveries:
    """The delivery port as it is, and a word about everything that was settled."""

    def __init__(self, inner: DeliveryStore, stir: Stir) -> None:
        self._inner = inner
        self._stir = stir
        self.settled: list[tuple[DeliveryState, str]] = []

    async def add(self, delivery: Delivery) -> None:
        await self._inner.add(delivery)

    async def outcome(self, adapter: str, delivery_id: str) -> DeliveryState | None:
        return await self._inner.outcome(adapter, delivery_id)

    async def pending(self, adapter: str, after: int) -> Sequence[Delivery]:
        return await self._inner.pending(adapter, after)

    async def settle(self, seq: int, state: DeliveryState, reason: str) -> None:
        await self._inner.settle(seq, state, reason)
        self.settled.append((state, reason))
        self._stir()

    async def kept(self, adapter: str, *, limit: int) -> Sequence[Delivery]:
        return await self._inner.kept(adapter, limit=limit)

    async def recent(
        self, only: ListFilter = EVERYTHING, *, before: int | None, limit: int
    ) -> Sequence[DeliveryLine]:
        return await self._inner.recent(only, before=before, limit=limit)


class StirringFeed(Feed):
    """The feed as it is; whoever waits at the desk is woken with the followers."""

    def __init__(self, stores: Stores, stir: Stir, signals: Signals) -> None:
        super().__init__(stores.transcript, stores.sessions, stores.tree.above, signals=signals)
        self._stir = stir

    @override
    def notify(self, session: int) -> None:
        super().notify(session)
        self._stir()


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator may set."""

    agents: tuple[str, ...] = ("demo",)
    hidden: tuple[str, ...] = ()
    """Those that are not offered where people choose one."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What people call them."""
    max_turns: int = 4
    max_processes: int = 8
    idle_seconds: float = 600.0
    turn_seconds: float = 3600.0
    ask_seconds: float = 168 * 3600.0
    budget_usd: float | None = None
    daily: DailyLimits = NO_LIMITS
    resume: bool = False
    memory: Literal["off", "ask", "auto"] = "off"
    voice: Literal["own", "caller"] = "caller"
    policy: Policy = PRESETS["careful"]
    of_agent: Mapping[str, int] = field(default_factory=dict)
    """How many turns and processes of an agent there may be at once."""
    secrets: tuple[str, ...] = ()
    place_prompt: str = ""
    page: str = ""
    """Where others reach the page, if they do."""
    service: str = "web"
    """Where the agents are."""
    list_repositories: Callable[[str], Awaitable[Sequence[str]]] | None = None
    scopes: Mapping[str, Scope] = field(default_factory=dict)
    """The lists of agents that have some."""
    delegation: DelegationLimits = field(default_factory=DelegationLimits)


class Known(dict[str, Agent]):
    """Agents by id, as a registry has them."""

    def title(self, agent: str) -> str:
        """Return what people call an agent."""
        return self[agent].title if agent in self else agent


async def lend_nothing(_session: Session, _branch: str, _folder: str) -> str:
    """Let every session work in an empty folder."""
    return "none"


@dataclass
class Desk:
    """A core that runs, and what a test does with it."""

    database: Database
    stores: Stores
    clock: Clock
    stir: Stir
    launcher: ScriptedLauncher
    adapters: dict[str, Presence]
    deliveries: StirringDeliveries
    live: LiveAgents
    engine: EmbeddedTurnEngine
    manager: SessionManager
    intake: Intake
    ledger: Ledger
    schedules: Schedules
    delegations: Delegations
    toolbox: Toolbox
    memory: Memory
    availability: Availabilities
    feed: Feed
    outbox: Outbox
    reach: Reach
    inbound: dict[str, Inbound] = field(default_factory=dict)

    async def close(self) -> None:
        """Stop everything."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.delegations.close()
            await self.schedules.close()
            await self.intake.close()
            await self.engine.drain(grace=0)
            await self.ledger.close()
            await self.memory.finish()
            await self.delegations.finish()
            await self.live.close()
            await self.outbox.close(grace=0)

    async def until(self, seen: Callable[[], bool]) -> None:
        """Wait until something is so."""
        await self.stir.until(seen)

    async def hear(self, said: Heard, by: str | None = None) -> Accepted:
        """Let an adapter, usually the first, hear something; wait until it is decided."""
        arrived = delivery(by or next(iter(self.adapters)))
        self.inbound[arrived.delivery_id] = said
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.intake.settle(arrived)

    async def change(self, changed: Changed) -> None:
        """Let the first adapter hear that a message was edited; wait until it is settled."""
        arrived = delivery(next(iter(self.adapters)))
        self.inbound[arrived.delivery_id] = changed
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.intake.settle(arrived)

    async def answer(self, ask: int, option: str, speaker: Speaker = ANN) -> None:
        """Let the first adapter hear an answer, and wait until it is settled."""
        arrived = delivery(next(iter(self.adapters)))
        self.inbound[arrived.delivery_id] = Answered(ask, option, speaker)
        before = len(self.deliveries.settled)
        await self.intake.take(arrived)
        await self.until(lambda: len(self.deliveries.settled) > before)

    def session(self, place: str = "t1", agent: str = "demo") -> Session:
        """Read the session of an agent in a place."""
        service = next(iter(self.adapters)).partition(":")[0]
        found = self.stores.sessions.find(SessionKey(service, place, agent))
        assert found is not None
        return found

    def turn(self, turn: int) -> Turn:
        """Read a turn."""
        found = self.stores.turns.turn(turn)
        assert found is not None
        return found

    async def reached(self, turn: int, state: str) -> None:
        """Wait until a turn is in a state."""
        await self.until(lambda: self.turn(turn).state == state)

    async def last_delivery(self) -> DeliveryLine:
        """Read what became of the last delivery."""
        (last,) = await self.stores.deliveries.recent(before=None, limit=1)
        return last

    async def ask(self, *agents: str, place: str = "t1", text: str = "go") -> tuple[int, ...]:
        """Let a person ask agents; returns the turns that begin."""
        begun = await self.hear(replace(heard(text, place), mentions=agents))
        return tuple(ref.turn for ref in begun.turns)

    async def call(self, agent: str, tool: str, /, **arguments: Any) -> Mapping[str, Any]:
        """Use a tool as an agent, in the conversation in which it was prompted last."""
        prompts = (line for line in reversed(self.launcher.lines) if line.what == "prompt")
        key = next(line.session for line in prompts if line.session.agent == agent)
        session = self.stores.sessions.find(key)
        assert session is not None
        return await self.toolbox.call(session.id, tool, arguments)

    def posts(self, agent: str = "demo") -> list[PostSend]:
        """List what one agent's adapter was asked to send."""
        [own] = (each for each in self.adapters.values() if each.agent == agent)
        return own.calls


@asynccontextmanager
async def open_desk(
    folder: Path,
    *,
    clock: Clock | None = None,
    rules: Rules | None = None,
    guests: Sequence[Adapter] = (),
) -> AsyncIterator[Desk]:
    """Join a core; nothing of it runs before `start`. Guests are adapters of real platforms."""
    clock, rules = clock or SystemClock(), rules or Rules()
    with open_stores(folder, clock) as (database, stores):
        desk = join_desk(folder, clock, rules, database, stores, guests)
        try:
            yield desk
        finally:
            await desk.close()


@asynccontextmanager
async def running_desk(
    folder: Path,
    *,
    clock: Clock | None = None,
    rules: Rules | None = None,
    guests: Sequence[Adapter] = (),
) -> AsyncIterator[Desk]:
    """Join a core that reads its inbox and runs turns."""
    async with open_desk(folder, clock=clock, rules=rules, guests=guests) as desk:
        await desk.engine.start()
        desk.engine.resume()
        desk.ledger.start()
        desk.intake.start()
        desk.schedules.start()
        desk.delegations.start()
        yield desk


def join_desk(
    folder: Path,
    clock: Clock,
    rules: Rules,
    database: Database,
    stores: Stores,
    guests: Sequence[Adapter] = (),
    signals: Signals = ALONE,
    stir: Stir | None = None,
) -> Desk:
    """Join a core on a store that may have others."""
    stir, vault, metrics = stir or Stir(), Vault(rules.secrets), Metrics()
    inbound: dict[str, Inbound] = {}
    presences = [Presence(agent, inbound, stir, rules.service) for agent in rules.agents]
    apart = map(AgentsAdapter, rules.agents)
    adapters: dict[str, Adapter] = {
        each.service_name: each for each in (*presences, *guests, *apart)
    }
    launcher = ScriptedLauncher(stir)
    deliveries = StirringDeliveries(stores.deliveries, stir)
    feed = StirringFeed(stores, stir, signals)
    availability = Availabilities(clock, vault.redact, signals=signals)
    hooks = Hooks()
    workspaces = empty_folders(folder, stores, clock, vault)
    agents = {
        agent: make_agent(
            agent,
            display_name=rules.names.get(agent, agent),
            visible=agent not in rules.hidden,
            policy=rules.policy,
            turn_seconds=rules.turn_seconds,
            idle_seconds=rules.idle_seconds,
            ask_seconds=rules.ask_seconds,
            budget_usd=rules.budget_usd,
            tool_seconds=1e6,
            memory=rules.memory,
            delegation_voice=rules.voice,
            limits=AgentLimits(
                resume=rules.resume,
                max_turns=rules.of_agent.get(agent),
                max_processes=rules.of_agent.get(agent),
            ),
            **asdict(rules.scopes.get(agent, Scope())),
        )
        for agent in rules.agents
    }
    base = Base(
        clock=clock,
        vault=vault,
        stores=replace(stores, deliveries=cast("DeliveryStore", deliveries)),
        metrics=metrics,
        signals=signals,
        agents=agents,
        adapters=adapters,
        hooks=hooks,
        page=lambda place: rules.page and f"{rules.page}/{place}",
    )
    outbox = Outbox(base)
    ledger = Ledger(
        base,
        outbox,
        feed,
        submit=lambda session: engine.submit(session),
    )
    live = LiveAgents(base, launcher, workspaces, max_processes=rules.max_processes)
    live.on_change = feed.notify
    shop: TurnContext = base.extend(
        TurnContext,
        live=live,
        workspaces=workspaces,
        choice=RepositoryChoice(
            base,
            directory(folder),
            list_repositories=rules.list_repositories,
        ),
        attachments=Attachments(adapters),
        outgoing=OutgoingFiles(
            base,
            folder / "uploads",
            link=lambda url: rules.page and f"{rules.page}/uploads/{url}",
        ),
        surroundings=ContextFinder(base, messages=30),
        ledger=ledger,
        outbox=outbox,
        feed=feed,
        daily=rules.daily,
        check_room=at_once,
        verbosity=None,
        place_prompt=lambda _place: rules.place_prompt,
        availability=availability,
    )
    engine: EmbeddedTurnEngine = EmbeddedTurnEngine(shop, max_turns=rules.max_turns)
    traces = Traces(
        folder / "workspaces",
        folder / "gates",
        folder / "homes",
        folder / "uploads",
        base_homes=folder / "base",
        saved=folder / "saved",
        own=folder,
        user_of=lambda _agent: None,
    )
    reach = Reach(base, live, workspaces, traces, ended=engine.ended)
    roster = Roster(agents, availability=availability.of)
    limits = rules.delegation
    settings = Settings(
        delegation_depth=limits.depth,
        delegations_per_turn=limits.per_turn,
        delegations_per_tree=limits.per_tree,
        delegations_per_hour=limits.per_hour,
        delegation_minutes=limits.seconds / 60,
        delegation_usd=limits.usd,
    )
    runtime: Any = SimpleNamespace(
        clock=clock,
        vault=vault,
        stores=stores,
        signals=signals,
        files=AgentFiles(folder, vault),
        agents=Known(agents),
        feed=feed,
        outbox=outbox,
        ledger=ledger,
        engine=engine,
        adapters=adapters,
        roster=roster,
        page=lambda place: rules.page and f"{rules.page}/{place}",
        configuration=SimpleNamespace(settings=settings),
        workspaces=SimpleNamespace(lend=lend_nothing),
        toolbox=SimpleNamespace(tools=lambda _agent: ()),
        zone="UTC",
        intake=SimpleNamespace(wake=lambda adapter: intake.wake(adapter)),
    )
    schedules, memory, delegations = Schedules(runtime), Memory(runtime), Delegations(runtime)
    hooks.add((schedules, memory, delegations))
    manager = SessionManager(
        base,
        engine=engine,
        live=reach,
        outbox=outbox,
        feed=feed,
        directory=directory(folder),
    )
    dispatcher = Dispatcher(
        base,
        manager,
        ledger,
        access=Access(),
        untagged="mention",
        roster=roster,
    )
    intake: Intake = Intake(
        base,
        dispatcher,
        renames=Renames(
            base,
            NoGit(),  # type: ignore[arg-type]  # it answers only what may be asked
            directory(folder),
        ),
    )
    return Desk(
        schedules=schedules,
        delegations=delegations,
        memory=memory,
        availability=availability,
        toolbox=Toolbox(
            (
                *AgentTools(delegations).tools(),
                *PlaceTools(shop, stores.tree).tools(),
                *PeopleTools(engine).tools(),
                *ProposalTools(shop, Forge(folder / "forge.json")).tools(),
                *MemoryTools(memory).tools(),
                *ScheduleTools(schedules).tools(),
            ),
            agents,
            stores.sessions,
            stores.turns,
            metrics,
            running=engine.running,
        ),
        database=database,
        stores=stores,
        clock=clock,
        stir=stir,
        launcher=launcher,
        adapters={presence.service_name: presence for presence in presences},
        deliveries=deliveries,
        live=live,
        engine=engine,
        manager=manager,
        intake=intake,
        ledger=ledger,
        inbound=inbound,
        feed=feed,
        outbox=outbox,
        reach=reach,
    )
