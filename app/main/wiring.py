"""Joins the parts that decide and do the work; each is built on first use.

Nothing runs yet: the caller starts the parts in order, and stops them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from app import logs
from app.agents.daily_logs import DailyLogs
from app.agents.files import AgentFiles
from app.agents.isolation import homes_root
from app.agents.personas import AgentPersonas
from app.agents.prices import read_prices
from app.agents.registry import PerAgent
from app.children.traces import Traces
from app.children.warden import Warden
from app.core.adapters import Adapter
from app.core.availability import Availabilities
from app.core.consent.ledger import Ledger
from app.core.conversations import Conversations
from app.core.delegation.delegations import Delegations
from app.core.delegation.showing import Showing
from app.core.delegation.types import SERVICE
from app.core.files.attachments import Attachments
from app.core.files.outgoing import Outgoing
from app.core.intake.dispatch import Dispatcher
from app.core.intake.listeners import Listeners
from app.core.intake.reader import Intake
from app.core.memory.keeper import MemoryKeeper
from app.core.outbox import Outbox
from app.core.ports import Forge
from app.core.repositories.picker import RepositoryPicker
from app.core.repositories.proposals import Proposals
from app.core.repositories.renames import Renames
from app.core.reviewing import Review
from app.core.roster import Colleague, Roster
from app.core.schedules.book import ScheduleBook
from app.core.schedules.loop import Scheduler
from app.core.session_manager import SessionManager
from app.core.together.group import Grouping
from app.core.together.panel import Panel
from app.core.together.race import Race
from app.core.together.review_loop import ReviewLoop
from app.core.together.reviews import Reviews
from app.core.together.together import Together
from app.core.tools.agents import AgentTools
from app.core.tools.home import Homes
from app.core.tools.reviews import ReviewTools
from app.core.tools.scope import Scope
from app.core.tools.tool import Tool
from app.core.turns.agents import LiveAgents
from app.core.turns.choice import RepositoryChoice
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.place_context import Surroundings
from app.core.turns.reach import Reach
from app.core.turns.turn_context import TurnContext
from app.core.types import Session
from app.core.vitals import measure_members
from app.main.current_forge import CurrentForge
from app.main.launching import LateLauncher, acp_launcher
from app.main.resources import Resources
from app.main.terms import (
    access_of,
    daily_limits_of,
    file_link_of,
    idle_seconds,
    max_processes,
    max_turns,
    page_of,
    place_prompts,
    terms_of,
    zone_of,
)
from app.main.together import delegation_limits, description_of, own_tools, scope_of
from app.main.tooling import Tooling
from app.main.vitals import Vitals
from app.main.workshop import Workshop
from app.services.agents.adapter import AgentsAdapter
from app.timetable import CronTimetable

if TYPE_CHECKING:
    from app.main.fleet import Fleet

T = TypeVar("T")


class Joined(Workshop):
    """The parts of one bridge, each built from the others."""

    def __init__(
        self,
        base: Resources,
        adapters: Sequence[Adapter],
        *,
        timeouts: Mapping[str, float],
        forge: Forge | None,
        doubt: Callable[[str], None],
        fleet: Fleet | None = None,
    ) -> None:
        """Prepare; `doubt` is told the agent that could not be started for a turn.

        `fleet` is there if several bridges share the database.
        """
        super().__init__(base, CurrentForge(forge))
        self._fleet = fleet
        self._timeouts = timeouts
        apart = map(AgentsAdapter, base.configuration.agents)
        self.adapters = {adapter.service_name: adapter for adapter in (*adapters, *apart)}
        self._timetable = CronTimetable()
        self.availability = Availabilities(
            base.clock,
            base.vault.redact,
            name_of=base.registry.name,
            doubt=doubt,
            signals=base.signals,
        )

    @cached_property
    def outbox(self) -> Outbox:
        """Sends posts."""
        base = self._base
        return Outbox(
            self._stores.posts,
            self.adapters,
            base.clock,
            base.vault,
            base.metrics,
            signals=base.signals,
            ensure=self._ensure,
        )

    def _ensure(self) -> None:
        """End this process if others have its work."""
        if self._fleet is not None:
            self._fleet.membership.ensure()

    @cached_property
    def ledger(self) -> Ledger:
        """Records asks and their answers."""
        return Ledger(
            self._stores.asks,
            self._stores.sessions,
            self.outbox,
            self.feed,
            self._base.vault,
            clock=self._base.clock,
            submit=lambda session: self.engine.submit(session),
            page=page_of(self._configuration),
            remember=self.memory.start,
            plan=lambda: self.schedules.start(),
            name_asker=self._name_asker,
            find_voice=lambda session: self.showing.voice_of(session),
            signals=self._base.signals,
            counters=self._base.metrics,
        )

    def _name_asker(self, session: Session) -> str:
        return self._name_of(session.key.agent) if session.place.service == SERVICE else ""

    @cached_property
    def memory(self) -> MemoryKeeper:
        """Keeps what agents remember."""
        base = self._base
        return MemoryKeeper(
            self._stores.memory, DailyLogs(self.files), base.clock, signals=base.signals
        )

    @cached_property
    def launcher(self) -> LateLauncher:
        """Starts agents."""
        return LateLauncher(
            lambda: acp_launcher(self._base, self.warden, self.tooling.doors, self._timeouts)
        )

    @cached_property
    def tooling(self) -> Tooling:
        """Lets agents call the bridge's tools."""
        return Tooling(
            self._base, self._tools(), running=lambda session: self.engine.running(session)
        )

    def _tools(self) -> Iterator[Tool]:
        """List the tools, group by group."""
        stores = self._stores
        yield from self.agent_tools.tools()
        yield from ReviewTools(self.reviews, self.together, self.delegations).tools()
        yield from own_tools(
            self._turn_context,
            self.engine,
            Homes(stores.delegations, stores.sessions, stores.turns),
            self.schedules,
            self.forge,
            self.files,
        )

    @cached_property
    def warden(self) -> Warden:
        """Watches agents' resource use."""
        return Warden(self._disk)

    @cached_property
    def live(self) -> LiveAgents:
        """Keeps the running agents."""
        return LiveAgents(
            self.launcher,
            self.workspaces,
            self._stores.sessions,
            self._base.clock,
            self._base.vault,
            max_processes=self._configuration.limits.max_processes,
            idle_seconds=self._per_agent(idle_seconds),
            of_agent=self._per_agent(max_processes),
            signals=self._base.signals,
        )

    @property
    def files(self) -> AgentFiles:
        """Keeps the files of agents."""
        return self._base.files

    @cached_property
    def engine(self) -> EmbeddedTurnEngine:
        """Runs turns."""
        context, of_agent = self._turn_context, self._per_agent(max_turns)
        if self._fleet is not None:
            return self._fleet.build_engine(context, of_agent)
        return EmbeddedTurnEngine(
            context,
            max_turns=self._configuration.limits.max_turns,
            of_agent=of_agent,
            signals=self._base.signals,
        )

    @cached_property
    def vitals(self) -> Vitals:
        """Measures how the bridge is now."""
        alone = partial(measure_members, ["all"], silent=0.0, at_desk=True)
        members = alone if self._fleet is None else self._fleet.membership.measure
        return Vitals(self._stores.vitals, self.engine, self.live, self._disk, members)

    @cached_property
    def _turn_context(self) -> TurnContext:
        configuration, stores, base = self._configuration, self._stores, self._base
        return TurnContext(
            places=stores.decisions,
            turns=stores.turns,
            sessions=stores.sessions,
            transcript=stores.transcript,
            posts=stores.posts,
            live=self.live,
            workspaces=self.workspaces,
            choice=self._choice,
            attachments=Attachments(self.adapters),
            outgoing=self._outgoing,
            surroundings=Surroundings(
                stores.transcript,
                self.adapters,
                base.vault,
                messages=configuration.place_context,
                name_of=self._name_of,
            ),
            personas=AgentPersonas(
                self.files,
                base.registry,
                self.adapters,
                lambda agent: self.tooling.list_skills(agent),
            ),
            ledger=self.ledger,
            outbox=self.outbox,
            feed=self.feed,
            clock=base.clock,
            spending=stores.spending,
            daily=daily_limits_of(configuration),
            counters=base.metrics,
            vault=base.vault,
            check_room=self.room.check,
            verbosity=configuration.verbosity,
            page=page_of(configuration),
            place_prompt=place_prompts(configuration),
            adapters=self.adapters,
            speaking_of=_speaking_of,
            terms=self._per_agent(terms_of),
            showing=self.showing,
            memory=self.memory,
            look=self.progress.look,
            ensure=self._ensure,
            availability=self.availability,
            estimate=read_prices(configuration.shared_dir).estimate,
            delegations=stores.delegations,
            abandon=lambda asked: self.delegations.stop(asked),
        )

    @cached_property
    def showing(self) -> Showing:
        """Shows people what agents do for others."""
        return Showing(
            self._stores.tree,
            self._stores.sessions,
            self._stores.posts,
            adapters=self.adapters,
            terms=self._per_agent(terms_of),
            page=page_of(self._configuration),
            outbox=self.outbox,
            feed=self.feed,
            clock=self._base.clock,
            signals=self._base.signals,
        )

    @cached_property
    def _choice(self) -> RepositoryChoice:
        return RepositoryChoice(
            self._stores.decisions,
            self._stores.sessions,
            self._directory,
            self._base.clock,
            adapters=self.adapters,
            list_repositories=self.forge.repositories,
        )

    @cached_property
    def _outgoing(self) -> Outgoing:
        return Outgoing(
            self.uploads,
            self._stores.posts,
            self.adapters,
            self._base.vault,
            link=file_link_of(self._configuration),
        )

    @cached_property
    def manager(self) -> SessionManager:
        """Manages sessions and commands."""
        return SessionManager(
            self._stores.decisions,
            self._stores.sessions,
            self._stores.turns,
            engine=self.engine,
            live=self.reach,
            outbox=self.outbox,
            feed=self.feed,
            clock=self._base.clock,
            directory=self._directory,
            schedules=self.schedules,
            together=self.together,
            names=self._names,
        )

    @cached_property
    def schedules(self) -> ScheduleBook:
        """Makes, lists and changes schedules."""
        return ScheduleBook(
            self._stores.schedules,
            self._timetable,
            zone=zone_of(self._configuration),
            clock=self._base.clock,
            outbox=self.outbox,
            feed=self.feed,
            names=self._names,
            changed=lambda adapter: self.scheduler.change(adapter),
        )

    @cached_property
    def scheduler(self) -> Scheduler:
        """Runs schedules when they are due."""
        return Scheduler(
            self._stores.schedules,
            self._timetable,
            self._base.clock,
            adapters=self.adapters,
            deliver=self.intake.wake,
            signals=self._base.signals,
        )

    @cached_property
    def _roster(self) -> Roster:
        return Roster(self._list_colleagues, self._base.registry.removed, self.availability.of)

    def _list_colleagues(self) -> list[Colleague]:
        return [
            Colleague(
                entry.id,
                entry.name,
                self._names[entry.id],
                entry.visible,
                description_of(self._base.registry, entry.id),
            )
            for entry in self._base.registry
        ]

    @cached_property
    def delegations(self) -> Delegations:
        """Lets agents ask agents."""
        return Delegations(
            self._stores.delegations,
            self._stores.sessions,
            self._stores.turns,
            roster=self._roster,
            may_ask=self._may_ask,
            adapters=self.adapters,
            refusal=access_of(self._configuration).refusal,
            target=self._target_of,
            limits=lambda: delegation_limits(self._configuration),
            redact=self._base.vault.redact,
            engine=self.engine,
            outbox=self.outbox,
            feed=self.feed,
            clock=self._base.clock,
            signals=self._base.signals,
        )

    @cached_property
    def scopes(self) -> PerAgent[Scope]:
        """The lists of each agent."""
        return self._per_agent(scope_of)

    def _may_ask(self, agent: str, name: str) -> bool:
        return agent in self.scopes and self.scopes[agent].allows_agent(name)

    def _target_of(self, session: Session) -> str:
        chosen = self._stores.decisions.place(session.place).repository
        return self._directory.write(self.workspaces.target(session, chosen))

    @cached_property
    def agent_tools(self) -> AgentTools:
        """The tools with which agents ask agents."""
        return AgentTools(self.delegations, self._roster)

    @cached_property
    def reviews(self) -> Reviews:
        """Takes agents' reviews."""
        return Reviews(
            self._stores.reviews,
            self._stores.groups,
            self._stores.sessions,
            self.checkouts,
            self.forge,
            self.outbox,
            self.feed,
            self._base.clock,
            redact=self._base.vault.redact,
            names=self._names,
            subject_of=self.workspaces.find_subject,
            repository_of=self.workspaces.repository,
            home_of=self._home_of,
        )

    async def _home_of(self, review: Review) -> tuple[int, str]:
        """Tell where people see a review, and who speaks there if not the agent of the place."""
        branch = self._stores.tree.of_turn(review.turn)
        voice = None if branch is None else await self.showing.find_voice(branch)
        home = review.session if branch is None else branch.root_session
        return home, "" if voice is None else voice.agent

    @cached_property
    def together(self) -> Together:
        """Has agents work together."""
        grouping = Grouping(
            self._stores.groups,
            self.delegations,
            self._stores.delegations,
            self._stores.sessions,
            self._stores.turns,
            roster=self._roster,
            outbox=self.outbox,
            feed=self.feed,
            clock=self._base.clock,
            target_of=self._target_of,
            decided=self._stores.decisions.decided,
            redact=self._base.vault.redact,
        )
        review = ReviewLoop(
            grouping,
            self._stores.reviews,
            self._stores.checkouts,
            rounds=lambda: self._configuration.limits.review_rounds,
        )
        race = Race(
            grouping,
            self.workspaces,
            self.ledger,
            page=page_of(self._configuration),
            seconds=self._configuration.limits.ask_hours * 3600,
        )
        return Together(
            grouping,
            self.feed,
            review=review,
            panel=Panel(grouping),
            race=race,
            signals=self._base.signals,
        )

    @cached_property
    def picker(self) -> RepositoryPicker:
        """Offers and checks where new conversations can work."""
        return RepositoryPicker(
            self._directory,
            self._stores.sessions,
            choose=self.manager.choose,
            list_repositories=self.forge.repositories,
            reach=self.checkouts.reach,
        )

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """Decides what happens to each message."""
        return Dispatcher(
            self._stores.decisions,
            self.manager,
            self.ledger,
            adapters=self.adapters,
            access=access_of(self._configuration),
            untagged=self._configuration.untagged_replies,
            clock=self._base.clock,
            vault=self._base.vault,
            names=self._names,
            roster=self._roster,
        )

    @cached_property
    def intake(self) -> Intake:
        """Reads deliveries."""
        return Intake(
            self._stores.deliveries,
            self.dispatcher,
            adapters=self.adapters,
            clock=self._base.clock,
            counters=self._base.metrics,
            proposals=self._proposals,
            renames=self._renames,
            signals=self._base.signals,
        )

    @cached_property
    def _proposals(self) -> Proposals:
        return Proposals(
            self._stores.proposals,
            self.checkouts,
            self.ledger,
            self.outbox,
            self.feed,
            adapters=self.adapters,
            clock=self._base.clock,
            offer_seconds=self._configuration.limits.ask_hours * 3600,
            look=self.progress.look,
        )

    @cached_property
    def _renames(self) -> Renames:
        return Renames(
            self._stores.names,
            self.checkouts,
            adapters=self.adapters.values(),
            directory=self._directory,
            clock=self._base.clock,
        )

    @cached_property
    def conversations(self) -> Conversations:
        """Manages whole conversations."""
        return Conversations(
            self._stores.conversations,
            self._stores.sessions,
            self.manager,
            self.reach,
            self.workspaces,
            pause=self.intake.pause,
            outbox=self.outbox,
            feed=self.feed,
            clock=self._base.clock,
            names=self._names,
            signals=self._base.signals,
        )

    @cached_property
    def reach(self) -> Reach:
        """Reaches what members hold of sessions."""
        configuration = self._configuration
        traces = Traces(
            self._folders.root,
            configuration.data_dir / "gates",
            homes_root(configuration),
            self.uploads,
            saved=self.saving.folder,
            forget=self.saving.forget,
            base_homes=configuration.shared_dir / "homes",
            user_of=self._user_of,
        )
        return Reach(
            self.live,
            self._stores.sessions,
            self.workspaces,
            traces,
            self._base.signals,
            ended=self.engine.ended,
        )

    @cached_property
    def listeners(self) -> Listeners:
        """Listens to platforms that have a socket."""
        return Listeners(self.adapters.values(), self.intake, self._base.clock)


def _speaking_of(session: Session) -> AbstractContextManager[None]:
    return logs.bind(agent=session.key.agent, session=str(session.key))
