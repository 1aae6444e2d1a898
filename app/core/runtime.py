"""Holds what every part of one bridge shares: a part gets it whole instead of piece by piece."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from app.agents.files import AgentFiles
from app.agents.registry import Registry
from app.clock import Clock, machine_zone
from app.config import Configuration
from app.config.fields import is_loopback
from app.core.adapters import Adapter
from app.core.consent.ledger import Ledger
from app.core.delegation.delegations import Delegations
from app.core.delegation.showing import Showing
from app.core.feed import Feed
from app.core.intake.dispatch import Dispatcher
from app.core.intake.reader import Intake
from app.core.outbox import Outbox
from app.core.repo_provider import RepoProvider
from app.core.repositories.clones import Clones
from app.core.repositories.forge import Forge
from app.core.roster import Availabilities
from app.core.session_manager import SessionManager
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.reach import Reach
from app.errors import Conflict
from app.model.conversations import path_of
from app.model.keys import PlaceKey
from app.model.ports import Counters
from app.repos.checkouts import GitCheckouts
from app.repos.search import RepositorySearch
from app.signals import Signals
from app.store.database import Database
from app.store.stores import Stores
from app.vault import Vault


class Addresses:
    """The addresses of one bridge; empty if only this machine could open them."""

    def __init__(self, configuration: Configuration) -> None:
        base = configuration.base_url
        self._base = "" if is_loopback(urlsplit(base).hostname or "") else base

    def page(self, place: PlaceKey) -> str:
        """Return the address of a place's page."""
        return self._base and f"{self._base}{path_of(place)}"

    def file(self, url: str) -> str:
        """Return the address of a stored file."""
        return self._base and f"{self._base}/uploads/{quote(url)}"


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
    clones: Clones
    search: RepositorySearch
    """Finds texts in the repositories on this disk."""
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

    async def end_work(self, session: int, *, drop: bool = False) -> None:
        """Stop the turn of a session, and end its agent's process.

        Raises:
            NotFound: there is no such session.
            Conflict: the turn does not stop.
        """
        await self.manager.stop(session, drop=drop)
        try:
            await self.reach.rest(session)
        except TimeoutError:
            raise Conflict("its work does not stop; try again later") from None
