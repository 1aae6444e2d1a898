"""Joins the parts that decide what is done, on top of those that do it; each is built on first use.

Nothing runs yet: the caller starts the parts in order, and stops them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from functools import cached_property

from app.agents.isolation import homes_root
from app.children.kept_files import Traces
from app.core.adapters import Adapter
from app.core.intake.dispatch import Dispatcher
from app.core.intake.floor import Access
from app.core.intake.listeners import Listeners
from app.core.intake.reader import Intake
from app.core.repositories.directory import RepositoryPicker
from app.core.repositories.following import Proposals, Renames
from app.core.roster import Roster
from app.core.runtime import Presences, Runtime
from app.core.session_manager import SessionManager
from app.core.tools.people import PeopleTools
from app.core.tools.place import PlaceTools
from app.core.tools.proposals import ProposalTools
from app.core.tools.toolbox import Toolbox
from app.core.turns.reach import Reach
from app.main.turns import TurnParts
from app.mcp_server.endpoints import McpEndpoints
from app.model.agents import Tool


class Joined(TurnParts):
    """The parts of one bridge, each built from the others."""

    @cached_property
    def toolbox(self) -> Toolbox:
        """Lets agents use the bridge's tools."""
        base = self._base
        return Toolbox(
            self._tools(),
            base.registry,
            self._stores.sessions,
            self._stores.turns,
            base.metrics,
            running=lambda session: self.engine.running(session),
        )

    def _tools(self) -> Iterator[Tool]:
        """List the tools with which an agent works for the people who asked it."""
        yield from PlaceTools(self._turn_context, self._stores.tree).tools()
        yield from PeopleTools(self.engine).tools()
        yield from ProposalTools(self._turn_context, self.forge).tools()

    @cached_property
    def endpoints(self) -> McpEndpoints:
        """Serves the tools to agents."""
        return McpEndpoints(self._configuration.data_dir / "tools", self.toolbox, self._base.vault)

    @cached_property
    def manager(self) -> SessionManager:
        """Manages sessions and commands."""
        return SessionManager(
            self._shared,
            engine=self.engine,
            live=self.reach,
            outbox=self.outbox,
            feed=self.feed,
            directory=self._directory,
        )

    @cached_property
    def _roster(self) -> Roster:
        registry = self._base.registry
        return Roster(registry, registry.removed, self.availability.of, registry.title)

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
            self._shared,
            self.manager,
            self.ledger,
            access=Access.of(self._configuration.settings),
            untagged=self._configuration.settings.untagged_replies,
            roster=self._roster,
        )

    @cached_property
    def intake(self) -> Intake:
        """Reads deliveries."""
        return Intake(
            self._shared, self.dispatcher, proposals=self._proposals, renames=self._renames
        )

    @cached_property
    def _proposals(self) -> Proposals:
        return Proposals(
            self._shared,
            self.checkouts,
            self.ledger,
            self.outbox,
            self.feed,
            offer_seconds=self._configuration.settings.ask_hours * 3600,
            look=self.progress.look,
        )

    @cached_property
    def _renames(self) -> Renames:
        return Renames(self._shared, self.checkouts, self._directory)

    @cached_property
    def reach(self) -> Reach:
        """Reaches what members hold of sessions."""
        configuration = self._configuration
        traces = Traces(
            self._folders.root,
            configuration.data_dir / "gates",
            homes_root(configuration),
            self.uploads,
            saved=configuration.shared_dir / "kept",
            own=configuration.data_dir,
            base_homes=configuration.shared_dir / "homes",
            user_of=self._user_of,
        )
        return Reach(
            self._shared,
            self.live,
            self.workspaces,
            traces,
            ended=self.engine.ended,
        )

    def runtime(
        self,
        *,
        go_on: Callable[[], Awaitable[None]],
        connect: Callable[[Collection[str]], Presences],
        accept: Callable[[Iterable[Adapter]], None],
        starts_agents: bool,
    ) -> Runtime:
        """Return what features get."""
        base = self._base
        return Runtime(
            clock=base.clock,
            vault=base.vault,
            database=base.database,
            stores=base.stores,
            signals=base.signals,
            metrics=base.metrics,
            agents=base.registry,
            admission=base.admission,
            hooks=self.hooks,
            listeners=self.listeners,
            picker=self.picker,
            progress=self.progress,
            room=self.room,
            files=base.files,
            adapters=self.adapters,
            availability=self.availability,
            feed=self.feed,
            outbox=self.outbox,
            ledger=self.ledger,
            engine=self.engine,
            manager=self.manager,
            dispatcher=self.dispatcher,
            intake=self.intake,
            workspaces=self.workspaces,
            checkouts=self.checkouts,
            clones=self.clones,
            search=self.repository_search,
            reach=self.reach,
            forge=self.forge,
            roster=self._roster,
            toolbox=self.toolbox,
            page=self._addresses.page,
            uploads=self.uploads,
            go_on=go_on,
            connect=connect,
            accept=accept,
            starts_agents=starts_agents,
            timeouts=self._timeouts,
            outside=base.outside,
            live=self.live,
        )

    @cached_property
    def listeners(self) -> Listeners:
        """Listens to platforms that have a socket."""
        return Listeners(self.adapters.values(), self.intake, self._base.clock)
