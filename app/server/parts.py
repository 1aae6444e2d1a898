"""Declares the parts of a bridge that the API and the page use; `main` passes them in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Request
from fastapi.responses import Response

from app.agents.files import AgentFiles
from app.clock import Clock
from app.config import AgentConfig
from app.config.agents import EntrySource
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.intake.dispatch import Dispatcher
from app.core.intake.reader import Intake
from app.core.repo_provider import RepoProvider
from app.core.repositories.directory import RepositoryPicker
from app.core.repositories.following import WorkProgress
from app.core.session_manager import SessionManager
from app.errors import AgentRemoved, Conflict, NotFound
from app.metrics import Metrics, Vital
from app.model.agents import Availability, Choices, Tool
from app.model.keys import PlaceKey
from app.model.types import Session
from app.server.installations import PendingInstallations
from app.server.login_links import LoginLinks
from app.server.shapes import state_on
from app.services.service import Setup
from app.store.conversations import ConversationStore
from app.store.inbox import DeliveryStore
from app.store.posts import PostStore
from app.store.sessions import SessionStore
from app.store.transcript import TranscriptStore
from app.store.tree import DelegationTree
from app.store.turns import TurnStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AgentCard:
    """What the API shows of an agent."""

    id: str
    name: str
    display_name: str
    description: str
    default: bool
    command: str
    isolation: str
    """How it is isolated, in the words of the start-up probe."""
    checkout: str = ""
    """What settings in a checkout can do to it."""
    limits: str = ""
    """How much of the machine one of its sessions may use."""
    emoji: str = ""
    colour: str = ""
    """The name of its colour, if it chose one."""
    visible: bool = True
    """Whether it is offered where people choose an agent."""
    services: tuple[str, ...] = ()
    isolation_change: str = ""
    """How its isolation changed, until a person has seen it."""
    source: EntrySource = "environment"
    """Where its entry is."""
    origin: str = ""
    """Where it comes from, in a few words."""
    fixed: str = ""
    """Why it cannot be changed here, and what to do; empty if it can."""
    driver: str = ""
    """The title of the known program that it is, if it is one."""
    model: str = ""
    """The model that its entry names."""
    examples: tuple[str, ...] = ()
    """Example messages for a new user."""


@dataclass(frozen=True, slots=True)
class MissingAgent:
    """A known agent that is not on this machine."""

    title: str
    install: str
    """The command that installs it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One readiness check."""

    name: str
    ok: bool
    words: str = ""


class AgentChanger(Protocol):
    """Changes the registry while the bridge runs; what it refuses, it refuses in words."""

    def show(self, name: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """Return an agent's entry and the fields of its stored credentials, without secrets."""
        ...

    async def add(
        self,
        name: str,
        entry: Mapping[str, Any],
        credentials: Mapping[str, Mapping[str, str]] | None = None,
    ) -> AgentConfig:
        """Add an agent."""
        ...

    async def isolate(self, name: str) -> AgentConfig:
        """Give an agent that was found on PATH an entry, so that it runs isolated."""
        ...

    async def change(
        self,
        name: str,
        changes: Mapping[str, Any],
        credentials: Mapping[str, Any] | None = None,
    ) -> AgentConfig:
        """Change some keys of an entry, or credentials; tables are merged, None removes a key."""
        ...

    async def connect(
        self, name: str, service: str, credentials: Mapping[str, str]
    ) -> Sequence[str]:
        """Try credentials on a service, then store them; returns what could be better there."""
        ...

    def set_up(self, name: str, service: str) -> Setup:
        """Say how to make an agent's application on a service."""
        ...

    def removed(self) -> Sequence[tuple[str, float]]:
        """List the agents that were removed, the last one first: name and time."""
        ...

    async def rename(self, name: str, to: str) -> AgentConfig:
        """Give an agent another name."""
        ...

    async def choose_default(self, name: str) -> AgentConfig:
        """Let requests without a name go to this agent."""
        ...

    async def acknowledge(self, name: str) -> AgentConfig:
        """Note that a person has seen how an agent's isolation changed."""
        ...

    async def remove(self, name: str) -> None:
        """Remove an agent; its history stays readable."""
        ...

    async def reload(self) -> None:
        """Read the file with the agents of the settings again."""
        ...


async def _leave(_agent: str) -> None:
    """Change nothing."""


async def _find_nothing(_session: int, _address: str) -> None:
    """Have every page built here."""


def _need(part: T | None, problem: str) -> T:
    if part is None:
        raise Conflict(problem)
    return part


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a bridge that people reach over HTTP."""

    agents: Mapping[str, AgentCard]
    """The agents that there are now, by id."""
    intake: Intake
    dispatcher: Dispatcher
    manager: SessionManager
    ledger: Ledger
    feed: Feed
    sessions: SessionStore
    threads: ConversationStore
    turns: TurnStore
    transcript: TranscriptStore
    deliveries: DeliveryStore
    posts: PostStore
    clock: Clock
    metrics: Metrics
    vitals: Callable[[], Awaitable[Sequence[Vital]]]
    """Measures how the bridge is now."""
    door: LoginLinks
    uploads: Path
    """The folder of attachments."""
    admin_token: str
    ready: Callable[[], Awaitable[Sequence[Check]]]
    installs: PendingInstallations
    picker: RepositoryPicker
    files: AgentFiles
    availability: Callable[[str], Availability]
    """Returns whether an agent can work."""
    probe: Callable[[str], Awaitable[Availability]]
    """Checks that now, by starting the agent."""
    tree: DelegationTree
    """What agents asked of each other."""
    relabel: Callable[[str], Awaitable[None]] = _leave
    """Shows an agent as its identity file now says."""
    missing: Sequence[MissingAgent] = ()
    workspaces: RepoProvider | None = None
    progress: WorkProgress | None = None
    troubles: Callable[[], Mapping[str, str]] = dict
    """Returns the problem of each listening adapter; empty text if it has none."""
    offers: Callable[[str], Choices] = lambda _agent: Choices()
    """Returns what an agent offered when it was last tried."""
    tools: Callable[[str], Sequence[Tool]] = lambda _agent: ()
    """Returns the bridge's tools that an agent may use."""
    changes: AgentChanger | None = None
    notices: Callable[[PlaceKey | None, Iterable[str]], Sequence[str]] = lambda _place, _agents: ()
    """Returns what people must know on every page, or in one place with its agents."""
    removed: Callable[[], Mapping[str, str]] = dict
    """Returns the names of removed agents, by id."""
    removed_titles: Callable[[], Mapping[str, str]] = dict
    """Returns what people called removed agents, by id."""
    fetch_page: Callable[[int, str], Awaitable[Response | None]] = _find_nothing
    """Fetches a page about the files of a session from the member that has them."""

    @property
    def changer(self) -> AgentChanger:
        """What changes agents.

        Raises:
            Conflict: they cannot be changed here.
        """
        return _need(self.changes, "agents cannot be changed here")

    def find_agent(self, name: str) -> AgentCard:
        """Return the agent of that name.

        Raises:
            AgentRemoved: there was one.
            NotFound: there is no such agent.
        """
        found = next((card for card in self.agents.values() if card.name == name), None)
        if found is not None and found.id not in self.removed():
            return found
        if name in self.removed().values():
            raise AgentRemoved(name)
        raise NotFound("agent", name)

    def require_present(self, agent: str) -> None:
        """Refuse to go on with an agent that was removed.

        Raises:
            AgentRemoved: it was.
        """
        if (name := self.removed().get(agent)) is not None:
            raise AgentRemoved(name)

    def state_of(self, session: Session) -> str:
        """Return the state of a session; `disconnected` if its agent left the session's service."""
        card = self.agents.get(session.key.agent)
        return session.state if card is None else state_on(session, card.services)

    def name_of(self, agent: str) -> str:
        """Return the name of an agent by its id, present or removed."""
        card = self.agents.get(agent)
        return self.removed().get(agent, agent) if card is None else card.name


def parts_of(request: Request) -> Parts:
    """Find the parts of the bridge that serves a request."""
    parts: Parts = request.app.state.parts
    return parts


PartsOf = Annotated[Parts, Depends(parts_of)]
