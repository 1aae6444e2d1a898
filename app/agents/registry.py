"""Holds the agents of a bridge by id, and looks them up by name, also while they change.

An unknown name is an error, never a reason to take another agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence

from app.agents.agent import Agent, build_agent
from app.agents.catalog import known_agents
from app.agents.isolation import Shelter
from app.config import AgentRecord, Configuration
from app.errors import AgentRemoved, NotFound


class Registry(Mapping[str, Agent]):
    """The agents of this bridge as they are now."""

    def __init__(
        self,
        configuration: Configuration,
        records: Sequence[AgentRecord] = (),
        shelters: Mapping[str, Shelter] | None = None,
    ) -> None:
        self.configuration = configuration
        """The configuration with the agents of this moment; never changed, only replaced."""
        self.records = tuple(records)
        """What the store has of every agent there is or was."""
        self.shelters = shelters or {}
        """Where each agent runs, by id; empty where none is started."""
        self.leaving: set[str] = set()
        """Agents that are being removed: nothing new begins for them."""
        self.lock = asyncio.Lock()
        """Held by what changes the agents: one change after another."""
        self.names = CurrentNames(self)
        self._built: dict[str, Agent] = {}

    def replace(
        self,
        configuration: Configuration,
        records: Sequence[AgentRecord] | None = None,
        shelters: Mapping[str, Shelter] | None = None,
    ) -> None:
        """Let everything that looks from now on see other agents."""
        self.configuration = configuration
        self.records = self.records if records is None else tuple(records)
        self.shelters = self.shelters if shelters is None else shelters
        self._built = {}

    def __getitem__(self, agent: str) -> Agent:
        if agent not in self._built:
            config = self.configuration.agents[agent]
            program = next((each for each in known_agents() if each.name == config.driver), None)
            self._built[agent] = build_agent(
                self.configuration, config, program, self.shelters.get(agent)
            )
        return self._built[agent]

    def __iter__(self) -> Iterator[str]:
        return iter(self.configuration.agents)

    def __len__(self) -> int:
        return len(self.configuration.agents)

    @property
    def default(self) -> Agent:
        """The agent that requests without a name are for."""
        return self[self.configuration.default_agent]

    def find(self, name: str) -> Agent:
        """Return the agent of that name.

        Raises:
            AgentRemoved: there was one, or it is being removed.
            NotFound: there is no such agent.
        """
        found = next((each for each in self.values() if each.name == name), None)
        if found is not None and found.id not in self.leaving:
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

    def record(self, agent: str) -> AgentRecord:
        """Return what the store has of an agent."""
        return next(each for each in self.records if each.id == agent)

    def last_removed(self, name: str) -> AgentRecord | None:
        """Return the last agent of a name, if all of that name were removed."""
        if any(agent.name == name for agent in self.values()):
            return None
        return find_removed(name, self.records)

    def user_of(self, agent: str) -> int | None:
        """Return the user that an agent's processes become, if not the bridge's own."""
        shelter = self.shelters.get(agent)
        return shelter.user if shelter else None

    def removed(self) -> dict[str, str]:
        """Return the names of agents that were removed or are being removed, by id."""
        return {
            record.id: record.name
            for record in self.records
            if not record.present or record.id in self.leaving
        }

    def removed_titles(self) -> dict[str, str]:
        """Return what people called agents that were removed or are being removed, by id."""
        return {agent: self.title(agent) for agent in self.removed()}

    def name(self, agent: str) -> str:
        """Return the name of an agent, present or removed; the id itself if it is unknown."""
        return self[agent].name if agent in self else self.removed().get(agent, agent)

    def title(self, agent: str) -> str:
        """Return the name that people see of an agent, or saw of one that was removed."""
        if agent in self:
            return self[agent].title
        known = next((each.title for each in self.records if each.id == agent), "")
        return known or self.name(agent)


def find_removed(name: str, records: Iterable[AgentRecord]) -> AgentRecord | None:
    """Return the agent of that name that was removed last."""
    gone = [each for each in records if each.name == name and each.removed_at is not None]
    return max(gone, key=lambda record: record.removed_at or 0.0, default=None)


class CurrentNames(Mapping[str, str]):
    """What people call each agent, by id."""

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        self._agents = agents

    def __getitem__(self, agent: str) -> str:
        return self._agents[agent].title

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)
