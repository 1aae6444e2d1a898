"""Bundles what every turn needs: stores, agents, the outbox and the operator's settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from app.agents.agent import Agent
from app.agents.personas import Personas
from app.clock import Clock
from app.config import AgentConfig
from app.core.adapters import Adapter
from app.core.consent.ledger import Ledger
from app.core.delegation.showing import Showing
from app.core.feed import Feed
from app.core.files.attachments import Attachments
from app.core.files.outgoing import Outgoing
from app.core.memory.keeper import MemoryKeeper
from app.core.outbox import Outbox
from app.core.repo_provider import RepoProvider
from app.core.roster import Availabilities
from app.core.turns.agents import LiveAgents
from app.core.turns.choice import RepositoryChoice
from app.core.turns.limits import NO_LIMITS, DailyLimits, Estimate
from app.core.turns.place_context import Surroundings
from app.model.keys import PlaceKey
from app.model.ports import Counters
from app.model.posts import Verbosity
from app.store.decisions import IntakeStore
from app.store.delegations import DelegationStore
from app.store.posts import PostStore
from app.store.sessions import SessionStore
from app.store.spending import SpendingStore
from app.store.transcript import TranscriptStore
from app.store.turns import TurnStore
from app.vault import Vault


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What every turn needs."""

    places: IntakeStore
    turns: TurnStore
    sessions: SessionStore
    transcript: TranscriptStore
    posts: PostStore
    live: LiveAgents
    workspaces: RepoProvider
    choice: RepositoryChoice
    attachments: Attachments
    outgoing: Outgoing
    surroundings: Surroundings
    personas: Personas
    ledger: Ledger
    outbox: Outbox
    feed: Feed
    clock: Clock
    spending: SpendingStore
    counters: Counters
    vault: Vault
    check_room: Callable[[], Awaitable[None]]
    """Raises RepositoryError when the disk has no room for more work."""
    verbosity: Verbosity | None
    """How much a place sees by default; None leaves it to the service."""
    page: Callable[[PlaceKey], str]
    """The address of a place's page; empty if only this machine could open it."""
    place_prompt: Callable[[PlaceKey], str]
    """What the operator adds to the first prompt of a conversation in a place."""
    adapters: Mapping[str, Adapter]
    agents: Mapping[str, Agent]
    """The agents as they are now, by id."""
    availability: Availabilities
    """Is told how turns end, so that it is known which agents can work."""
    showing: Showing
    """Shows what agents do for others."""
    memory: MemoryKeeper
    """What agents remember across conversations."""
    delegations: DelegationStore
    """What agents asked of each other."""
    abandon: Callable[[Sequence[int]], Awaitable[None]]
    """Stops the delegations that a turn waited for when it failed."""
    ensure: Callable[[], None] | None = None
    """Ends this process if others have its work: called before what cannot be taken back."""
    look: Callable[[int], None] = lambda _session: None
    """Has the state of a session's work read again, after a turn."""
    daily: DailyLimits = NO_LIMITS
    """What a day may cost."""
    estimate: Estimate = lambda _model, _tokens: None
    """Estimates what tokens cost where an agent does not say."""

    def name_of(self, agent: str) -> str:
        """Return the name people see of an agent."""
        found = self.agents.get(agent)
        return (found and found.display_name) or agent

    def agent(self, agent: str) -> Agent:
        """Return an agent; one that was removed meanwhile as if nothing was set for it."""
        return self.agents.get(agent) or Agent(config=AgentConfig(name=agent))
