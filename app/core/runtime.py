"""Holds what every part of one bridge shares: a part gets it whole instead of piece by piece."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

from app.agents.checks import Admission
from app.agents.files import AgentFiles
from app.agents.registry import Registry
from app.children.network.dialing import Outside
from app.clock import Clock, machine_zone
from app.config import Configuration, describe_unserved
from app.config.fields import is_loopback
from app.core.adapters import Adapter
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.hooks import Hooks
from app.core.intake.dispatch import Dispatcher
from app.core.intake.listeners import Listeners
from app.core.intake.reader import Intake
from app.core.outbox import Outbox
from app.core.repo_provider import RepoProvider
from app.core.repositories.clones import Clones
from app.core.repositories.directory import RepositoryPicker
from app.core.repositories.folders import DiskRoom
from app.core.repositories.following import WorkProgress
from app.core.repositories.forge import CurrentForge, Forge
from app.core.roster import Availabilities, Roster
from app.core.session_manager import SessionManager
from app.core.tools.toolbox import Toolbox
from app.core.turns.agents import LiveAgents
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.reach import Reach
from app.errors import Conflict
from app.metrics import Metrics
from app.model.conversations import path_of
from app.model.delegation import SERVICE
from app.model.keys import PlaceKey
from app.repos.checkouts import GitCheckouts
from app.repos.search import RepositorySearch
from app.signals import Signals
from app.store.database import Database
from app.store.stores import Stores
from app.vault import Vault

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class Presences:
    """The adapters on some services, and the forge with the service it belongs to."""

    adapters: Sequence[Adapter]
    forge: Forge | None = None
    forge_service: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One running bridge, as its parts see it."""

    clock: Clock
    vault: Vault
    database: Database
    stores: Stores
    signals: Signals
    """The other bridges that share the database."""
    metrics: Metrics
    agents: Registry
    """The agents as they are now."""
    admission: Admission
    """How agents are isolated."""
    files: AgentFiles
    adapters: dict[str, Adapter]
    """Each agent's presence on each service, by its qualified name."""
    availability: Availabilities
    hooks: Hooks
    feed: Feed
    outbox: Outbox
    ledger: Ledger
    engine: EmbeddedTurnEngine
    manager: SessionManager
    dispatcher: Dispatcher
    intake: Intake
    listeners: Listeners
    live: LiveAgents
    workspaces: RepoProvider
    picker: RepositoryPicker
    progress: WorkProgress
    room: DiskRoom
    checkouts: GitCheckouts
    clones: Clones
    search: RepositorySearch
    """Finds texts in the repositories on this disk."""
    reach: Reach
    forge: CurrentForge
    """Where repositories are hosted: proposals and reviews."""
    roster: Roster
    """The agents as people know them."""
    toolbox: Toolbox
    """The tools that agents get."""
    page: Callable[[PlaceKey], str]
    """Returns the address of a place's page; empty if only this machine could open it."""
    uploads: Path
    """The folder of attachments."""
    connect: Callable[[Collection[str]], Presences]
    """Builds the adapters of all agents on some services."""
    accept: Callable[[Iterable[Adapter]], None]
    """Accepts the webhooks of these adapters from now on, and no others."""
    outside: Outside | None
    """What agents with their own network connect to, if not the internet."""
    timeouts: Mapping[str, float]
    """Seconds that agents may take by step, where they differ from the defaults."""
    starts_agents: bool
    """Whether each agent is started once in the background to see if it works."""
    go_on: Callable[[], Awaitable[None]]
    """Begins the work of a bridge that did not begin it at its start."""
    parts: list[object] = field(default_factory=list)
    """The parts of its features that are built so far."""

    def part(self, kind: type[T]) -> T:
        """Return the part of a feature that another one builds on."""
        return next(each for each in self.parts if isinstance(each, kind))

    @property
    def zone(self) -> str:
        """The time zone of rules that name none."""
        configuration = self.configuration
        return configuration.settings.time_zone or machine_zone(configuration.surroundings)

    @property
    def configuration(self) -> Configuration:
        """The configuration as it is now: its agents may change."""
        return self.agents.configuration

    def services_of(self, agent: str) -> tuple[str, ...]:
        """List the services where people meet an agent."""
        own = (
            name.partition(":")[0] for name, each in self.adapters.items() if each.agent == agent
        )
        return tuple(sorted(service for service in own if service != SERVICE))

    def troubles(self) -> dict[str, str]:
        """Say what keeps agents from receiving messages; empty text for one that has no problem."""
        waiting = describe_unserved(self.configuration)
        told = {waiting.subject: f"{waiting.problem}. {waiting.remedy}"} if waiting else {}
        if words := self.room.trouble:
            told["disk"] = words
        return told | self.listeners.troubles()

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
