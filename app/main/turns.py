"""Joins the parts that run turns: from the agent's process to what people see of it.

Each is built on first use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from app.acp.late import LateLauncher, build_launcher
from app.agents.files import AgentFiles
from app.agents.prices import read_prices
from app.core.adapters import Adapter
from app.core.base import Base
from app.core.consent.ledger import Ledger
from app.core.files.attachments import Attachments
from app.core.files.outgoing import OutgoingFiles
from app.core.hooks import Hooks
from app.core.outbox import Outbox
from app.core.repositories.forge import CurrentForge, Forge
from app.core.roster import Availabilities
from app.core.runtime import Addresses
from app.core.turns.agents import LiveAgents
from app.core.turns.choice import RepositoryChoice
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.limits import DailyLimits
from app.core.turns.place_context import ContextFinder, operator_prompt
from app.core.turns.turn_context import TurnContext
from app.main.repositories import RepositoryParts
from app.main.resources import Resources
from app.main.vitals import Vitals
from app.mcp_server.endpoints import McpEndpoints
from app.metrics import measure_members
from app.services.web.adapter import AgentsAdapter

if TYPE_CHECKING:
    from app.main.fleet import Fleet


class TurnParts(RepositoryParts, ABC):
    """What runs the turns of one bridge."""

    def __init__(
        self,
        base: Resources,
        adapters: Sequence[Adapter],
        *,
        timeouts: Mapping[str, float],
        forge: Forge | None,
        fleet: Fleet | None = None,
    ) -> None:
        """Prepare; `fleet` is there if several bridges share the database."""
        super().__init__(base, CurrentForge(forge))
        self._fleet = fleet
        self._timeouts = timeouts
        self.hooks = Hooks()
        self._addresses = Addresses(base.configuration)
        apart = map(AgentsAdapter, base.configuration.agents)
        self.adapters = {adapter.service_name: adapter for adapter in (*adapters, *apart)}
        self.availability = Availabilities(
            base.clock,
            base.vault.redact,
            name_of=base.registry.name,
            signals=base.signals,
        )

    @property
    @abstractmethod
    def endpoints(self) -> McpEndpoints:
        """Serves the bridge's tools to agents."""

    @cached_property
    def outbox(self) -> Outbox:
        """Sends posts."""
        return Outbox(self._shared)

    @cached_property
    def _shared(self) -> Base:
        """What all parts are built on."""
        base = self._base
        shared = Base(
            clock=base.clock,
            vault=base.vault,
            stores=base.stores,
            metrics=base.metrics,
            signals=base.signals,
            agents=self._agents,
            adapters=self.adapters,
            hooks=self.hooks,
            page=self._addresses.page,
        )
        return (
            shared if self._fleet is None else replace(shared, ensure=self._fleet.membership.ensure)
        )

    @cached_property
    def ledger(self) -> Ledger:
        """Records asks and their answers."""
        return Ledger(
            self._shared,
            self.outbox,
            self.feed,
            submit=lambda session: self.engine.submit(session),
        )

    @cached_property
    def launcher(self) -> LateLauncher:
        """Starts agents."""
        return LateLauncher(
            lambda: build_launcher(
                self._base.registry,
                self._base.admission,
                self._stores.processes,
                self._base.clock,
                self._base.metrics,
                bridge=self._configuration.bridge_id,
                warden=self.warden,
                endpoints=self.endpoints,
                timeouts=self._timeouts,
            )
        )

    @cached_property
    def live(self) -> LiveAgents:
        """Keeps the running agents."""
        return LiveAgents(
            self._shared,
            self.launcher,
            self.workspaces,
            max_processes=self._configuration.settings.max_processes,
        )

    @property
    def files(self) -> AgentFiles:
        """Keeps the files of agents."""
        return self._base.files

    @cached_property
    def engine(self) -> EmbeddedTurnEngine:
        """Runs turns."""
        context = self._turn_context
        if self._fleet is not None:
            return self._fleet.build_engine(context)
        return EmbeddedTurnEngine(context, max_turns=self._configuration.settings.max_turns)

    @cached_property
    def vitals(self) -> Vitals:
        """Measures how the bridge is now."""
        alone = partial(measure_members, ["all"], silent=0.0, is_leader=True)
        members = alone if self._fleet is None else self._fleet.membership.measure
        return Vitals(self._stores.vitals, self.engine, self.live, self._disk, members)

    @cached_property
    def _turn_context(self) -> TurnContext:
        configuration = self._configuration
        return self._shared.extend(
            TurnContext,
            live=self.live,
            workspaces=self.workspaces,
            choice=self._choice,
            attachments=Attachments(self.adapters),
            outgoing=self._outgoing,
            surroundings=ContextFinder(
                self._shared,
                messages=configuration.settings.place_context,
                name_of=self._name_of,
            ),
            ledger=self.ledger,
            outbox=self.outbox,
            feed=self.feed,
            daily=DailyLimits.of(configuration),
            check_room=self.room.check,
            verbosity=configuration.settings.verbosity,
            place_prompt=partial(operator_prompt, configuration, self._directory.area_of),
            look=self.progress.look,
            availability=self.availability,
            estimate=read_prices(configuration.shared_dir).estimate,
        )

    @cached_property
    def _choice(self) -> RepositoryChoice:
        return RepositoryChoice(
            self._shared,
            self._directory,
            list_repositories=self.forge.repositories,
        )

    @cached_property
    def _outgoing(self) -> OutgoingFiles:
        return OutgoingFiles(self._shared, self.uploads, link=self._addresses.file)
