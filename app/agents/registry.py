"""Looks up agents by id and by name, also while they change.

An unknown name is an error, never a reason to take another agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from app.agents.agent import Agent, build_agent
from app.agents.catalog import AgentProgram
from app.agents.isolation import Shelter
from app.config import AgentConfig, AgentRecord, Configuration
from app.errors import AgentRemoved, NotFound


class Registry:
    """The agents of this bridge as they are now."""

    def __init__(
        self,
        configuration: Configuration,
        known: Iterable[AgentProgram] = (),
        records: Sequence[AgentRecord] = (),
    ) -> None:
        self._programs = {program.name: program for program in known}
        self.configuration = configuration
        """The configuration with the agents of this moment; never changed, only replaced."""
        self.records = tuple(records)
        """What the store has of every agent there is or was."""
        self.leaving: set[str] = set()
        """Agents that are being removed: nothing new begins for them."""
        self.shelters: dict[str, Shelter] = {}
        """Where each agent runs, by id; empty where none is started."""
        self.agents = CurrentAgents(self)
        self.names = CurrentNames(self.agents)

    def replace(self, configuration: Configuration, records: Sequence[AgentRecord]) -> None:
        """Let everything that looks from now on see other agents."""
        self.configuration = configuration
        self.records = tuple(records)

    def __iter__(self) -> Iterator[AgentConfig]:
        return iter(self.configuration.agents.values())

    def __contains__(self, agent: object) -> bool:
        return agent in self.configuration.agents

    @property
    def default(self) -> AgentConfig:
        """The agent that requests without a name are for."""
        return self.configuration.agents[self.configuration.default_agent]

    def get(self, agent: str) -> AgentConfig:
        """Return the agent of that id.

        Raises:
            NotFound: there is no such agent.
        """
        try:
            return self.configuration.agents[agent]
        except KeyError:
            raise NotFound("agent", agent) from None

    def find(self, name: str) -> AgentConfig:
        """Return the agent of that name.

        Raises:
            AgentRemoved: there was one.
            NotFound: there is no such agent.
        """
        try:
            return self.configuration.find(name)
        except NotFound:
            if any(record.name == name for record in self.records if not record.present):
                raise AgentRemoved(name) from None
            raise

    def last_removed(self, name: str) -> AgentRecord | None:
        """Return the last agent of a name, if all of that name were removed."""
        if any(entry.name == name for entry in self):
            return None
        return find_removed(name, self.records)

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
        if agent in self.configuration.agents:
            return self.configuration.agents[agent].name
        return self.removed().get(agent, agent)

    def title(self, agent: str) -> str:
        """Return the name that people see of an agent, or saw of one that was removed."""
        if agent in self.configuration.agents:
            return self.display_name(agent)
        known = next((each.title for each in self.records if each.id == agent), "")
        return known or self.name(agent)

    def program(self, agent: str) -> AgentProgram | None:
        """Return the agent's known program, or None.

        Raises:
            NotFound: there is no such agent.
        """
        return self._programs.get(self.get(agent).driver or "")

    def display_name(self, agent: str) -> str:
        """Return the name people see.

        Raises:
            NotFound: there is no such agent.
        """
        self.get(agent)
        return self.agents[agent].display_name


def find_removed(name: str, records: Iterable[AgentRecord]) -> AgentRecord | None:
    """Return the agent of that name that was removed last."""
    gone = [each for each in records if each.name == name and each.removed_at is not None]
    return max(gone, key=lambda record: record.removed_at or 0.0, default=None)


class CurrentAgents(Mapping[str, Agent]):
    """The agents by id, as they are whenever one looks."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._made: dict[str, Agent] = {}
        self._made_from: Configuration | None = None

    def __getitem__(self, agent: str) -> Agent:
        registry, current = self._registry, self._registry.configuration
        if current is not self._made_from:
            self._made, self._made_from = {}, current
        if agent not in self._made:
            config, program = current.agents[agent], registry.program(agent)
            shelter = registry.shelters.get(agent)
            self._made[agent] = build_agent(current, config, program, shelter)
        return self._made[agent]

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry.configuration.agents)

    def __len__(self) -> int:
        return len(self._registry.configuration.agents)


class CurrentNames(Mapping[str, str]):
    """What people call each agent, by id."""

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        self._agents = agents

    def __getitem__(self, agent: str) -> str:
        return self._agents[agent].display_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)
