"""Holds what the parts of one bridge are built on: each gets it whole instead of piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from app.agents.agent import Agent
from app.clock import Clock
from app.config import AgentConfig
from app.core.adapters import Adapter
from app.core.hooks import Hooks
from app.model.keys import PlaceKey
from app.model.ports import Counters
from app.signals import ALONE, Signals
from app.store.stores import Stores
from app.vault import Vault

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What there is before any part."""

    clock: Clock
    vault: Vault
    stores: Stores
    metrics: Counters
    signals: Signals = ALONE
    """The other bridges that share the database."""
    agents: Mapping[str, Agent] = field(default_factory=dict)
    """The agents as they are now, by id."""
    adapters: Mapping[str, Adapter] = field(default_factory=dict)
    """Each agent's presence on each service, by its qualified name."""
    hooks: Hooks = field(default_factory=Hooks)
    """The features, as the pipe asks them."""
    page: Callable[[PlaceKey], str] = lambda _place: ""
    """Returns the address of a place's page; empty if only this machine could open it."""
    ensure: Callable[[], None] = lambda: None
    """Ends this process if others have its work: called before what cannot be taken back."""

    def name_of(self, agent: str) -> str:
        """Return the name people see of an agent; its id if it is not here."""
        found = self.agents.get(agent)
        return (found and found.display_name) or agent

    def agent(self, agent: str) -> Agent:
        """Return an agent; one that was removed meanwhile as if nothing was set for it."""
        return self.agents.get(agent) or Agent(config=AgentConfig(name=agent))

    def extend(self, kind: Callable[..., T], **more: Any) -> T:
        """Build something that has all of this, and more."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(self)}, **more)
