"""Holds what every part of one bridge shares: a part gets it whole instead of piece by piece."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from app.agents.files import AgentFiles
from app.agents.registry import Registry
from app.clock import Clock, machine_zone
from app.config import Configuration
from app.core.adapters import Adapter
from app.core.availability import Availabilities
from app.core.consent.ledger import Ledger
from app.core.delegation.delegations import Delegations
from app.core.delegation.showing import Showing
from app.core.feed import Feed
from app.core.intake.dispatch import Dispatcher
from app.core.intake.reader import Intake
from app.core.outbox import Outbox
from app.core.repo_provider import RepoProvider
from app.core.repositories.ports import Forge
from app.core.session_manager import SessionManager
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.reach import Reach
from app.model.keys import PlaceKey
from app.model.ports import Counters
from app.repos.checkouts import GitCheckouts
from app.signals import Signals
from app.store.database import Database
from app.store.stores import Stores
from app.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One running bridge, as its parts see it."""

    clock: Clock
    vault: Vault
    database: Database
    stores: Stores
    signals: Signals
    """The other bridges that share the database."""
    metrics: Counters
    agents: Registry
    """The agents as they are now."""
    files: AgentFiles
    adapters: dict[str, Adapter]
    """Each agent's presence on each service, by its qualified name."""
    availability: Availabilities
    feed: Feed
    outbox: Outbox
    ledger: Ledger
    engine: EmbeddedTurnEngine
    manager: SessionManager
    dispatcher: Dispatcher
    intake: Intake
    workspaces: RepoProvider
    checkouts: GitCheckouts
    reach: Reach
    forge: Forge
    """Where repositories are hosted: proposals and reviews."""
    delegations: Delegations
    """What agents ask of agents."""
    showing: Showing
    """Where people see what agents do for others."""
    page: Callable[[PlaceKey], str]
    """Returns the address of a place's page; empty if only this machine could open it."""
    uploads: Path
    """The folder of attachments."""
    go_on: Callable[[], Awaitable[None]]
    """Begins the work of a bridge that did not begin it at its start."""

    @property
    def zone(self) -> str:
        """The time zone of rules that name none."""
        configuration = self.configuration
        return configuration.settings.time_zone or machine_zone(configuration.surroundings)

    @property
    def configuration(self) -> Configuration:
        """The configuration as it is now: its agents may change."""
        return self.agents.configuration
