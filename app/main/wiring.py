"""Joins the parts that decide what is done, on top of those that do it; each is built on first use.

Nothing runs yet: the caller starts the parts in order, and stops them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import cached_property, partial

from app.agents.isolation import homes_root
from app.children.kept_files import Traces
from app.core.delegation.delegations import Delegations, read_limits
from app.core.delegation.deputies import Deputies
from app.core.intake.dispatch import Dispatcher
from app.core.intake.floor import Access
from app.core.intake.listeners import Listeners
from app.core.intake.reader import Intake
from app.core.repositories.directory import RepositoryPicker
from app.core.repositories.following import Proposals, Renames
from app.core.roster import Roster
from app.core.runtime import Runtime
from app.core.session_manager import SessionManager
from app.core.tools.agents import AgentTools
from app.core.tools.home import Homes
from app.core.turns.reach import Reach
from app.main.together import own_tools
from app.main.tooling import Tooling
from app.main.turns import TurnParts
from app.model.agents import Tool


class Joined(TurnParts):
    """The parts of one bridge, each built from the others."""

    @cached_property
    def tooling(self) -> Tooling:
        """Lets agents call the bridge's tools."""
        return Tooling(
            self._base, self._tools(), running=lambda session: self.engine.running(session)
        )

    def _tools(self) -> Iterator[Tool]:
        """List the tools, group by group."""
        stores = self._stores
        yield from AgentTools(self.delegations, self._roster).tools()
        yield from own_tools(
            self._turn_context,
            self.engine,
            Homes(stores.delegations, stores.sessions, stores.turns),
            self.forge,
        )

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
        return Roster(registry.agents, registry.removed, self.availability.of, registry.title)

    @cached_property
    def delegations(self) -> Delegations:
        """Lets agents ask agents."""
        return Delegations(
            self._stores.delegations,
            self._stores.sessions,
            self._stores.turns,
            roster=self._roster,
            deputies=Deputies(self._agents, self.adapters),
            adapters=self.adapters,
            refusal=Access.of(self._configuration.settings).refusal,
            lend=self.workspaces.lend,
            limits=partial(read_limits, self._base.registry),
            redact=self._base.vault.redact,
            engine=self.engine,
            outbox=self.outbox,
            feed=self.feed,
            clock=self._base.clock,
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
            self._stores.proposals,
            self.checkouts,
            self.ledger,
            self.outbox,
            self.feed,
            adapters=self.adapters,
            clock=self._base.clock,
            offer_seconds=self._configuration.settings.ask_hours * 3600,
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

    def runtime(self, go_on: Callable[[], Awaitable[None]]) -> Runtime:
        """Return what features get; `go_on` begins the work of a bridge that did not begin it."""
        base = self._base
        return Runtime(
            clock=base.clock,
            vault=base.vault,
            database=base.database,
            stores=base.stores,
            signals=base.signals,
            metrics=base.metrics,
            agents=base.registry,
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
            delegations=self.delegations,
            showing=self.showing,
            page=self._addresses.page,
            uploads=self.uploads,
            go_on=go_on,
        )

    @cached_property
    def listeners(self) -> Listeners:
        """Listens to platforms that have a socket."""
        return Listeners(self.adapters.values(), self.intake, self._base.clock)
