"""Decides which agents people and other agents may have work for them, for every way to ask.

People reach agents that are connected to their service, and an agent reaches through another one
nothing that it cannot reach itself. Only the operator allows more, by a name in `agents_allow`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from app.agents.agent import Agent, Bounds, find_excess
from app.model.agents import Scope
from app.model.delegation import Excess
from app.model.keys import adapter_name

Objection = Literal["", "unlisted", "absent", "isolation", "network", "permissions"]
"""Why an agent may not be asked; empty if it may."""


T = TypeVar("T")


def find_presence(adapters: Mapping[str, T], agent: str, service: str) -> T | None:
    """Return the adapter by which people of a service reach an agent; None if they do not.

    Every way to reach an agent asks here: mention, hand-over, button, panel, race, review,
    delegation and schedule.
    """
    return adapters.get(adapter_name(service, agent))


class Deputies:
    """Knows who may be asked by whom."""

    def __init__(
        self,
        agents: Mapping[str, Agent],
        adapters: Mapping[str, object],
        excess: Callable[[Bounds, Bounds], Excess] = find_excess,
    ) -> None:
        """Decide by the lists of agents; `excess` compares one that asks with the one it asks."""
        self._agents = agents
        self._adapters = adapters
        self._excess = excess

    def object_to(
        self, asked: Agent, service: str, *, agent: str, by: Literal["agent", "person"]
    ) -> Objection:
        """Say why an agent may not be asked for people of a service; empty if it may.

        `agent` is the one that asks or, if a person does, the one they talk to: its lists count.
        """
        asking = self._agents.get(agent)
        scope = Scope(agents_allow=()) if asking is None else asking.scope
        if by == "agent" and not scope.allows_agent(asked.name):
            return "unlisted"
        if scope.names_agent(asked.name) or (by == "agent" and asked.id == agent):
            return ""
        if find_presence(self._adapters, asked.id, service) is None:
            return "absent"
        if by == "person" or asking is None:
            return ""
        return self._excess(asking.bounds, self._agents[asked.id].bounds)
