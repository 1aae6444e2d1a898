"""Looks up agents by name.

An unknown name is an error, never a reason to take another agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from app.agents.catalog import AgentProgram
from app.config import AgentEntry, Configuration
from app.errors import NotFound


class Registry:
    """The agents of this bridge."""

    def __init__(self, configuration: Configuration, known: Iterable[AgentProgram] = ()) -> None:
        self._entries = dict(configuration.agents)
        self._default = configuration.default_agent
        self._programs = {program.name: program for program in known}

    def __iter__(self) -> Iterator[AgentEntry]:
        return iter(self._entries.values())

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all agents, in the order of the configuration."""
        return tuple(self._entries)

    @property
    def default(self) -> AgentEntry:
        """The agent that plain settings and plain webhook paths belong to."""
        return self._entries[self._default]

    def get(self, name: str) -> AgentEntry:
        """Return the agent of that name.

        Raises:
            NotFound: there is no such agent, or no longer.
        """
        try:
            return self._entries[name]
        except KeyError:
            raise NotFound("agent", name) from None

    def program(self, name: str) -> AgentProgram | None:
        """Return the agent's known program, or None.

        Raises:
            NotFound: there is no such agent.
        """
        return self._programs.get(self.get(name).driver or "")

    def display_name(self, name: str) -> str:
        """Return the name people see; two agents of one program keep their own names.

        Raises:
            NotFound: there is no such agent.
        """
        entry = self.get(name)
        if entry.display_name is not None:
            return entry.display_name
        program = self.program(name)
        drivers = Counter(other.driver for other in self)
        return program.title if program and drivers[entry.driver] == 1 else name
