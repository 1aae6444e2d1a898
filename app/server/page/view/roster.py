"""Lists the agents as the page shows them, and finds those that a message mentions; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from app.model.agents import Availability
from app.server.page.view import markdown

COLOURS = 8
"""Colours of agents in the style sheet."""
READY = Availability()


@dataclass(frozen=True, slots=True)
class AgentView:
    """An agent as the page shows it."""

    id: str
    name: str
    """What people write after an @."""
    title: str
    description: str = ""
    isolation: str = ""
    command: str = ""
    default: bool = False
    examples: tuple[str, ...] = ()
    emoji: str = ""
    visible: bool = True
    """Whether it is offered where people choose an agent."""
    source: str = ""
    """Where its entry is."""
    isolation_change: str = ""
    """How its isolation changed, until a person has seen it."""
    letters: str = ""
    """Its picture: its emoji, else the first letters of its title."""
    colour: int | None = None
    availability: Availability = READY

    @property
    def able(self) -> bool:
        """Whether it can work, as far as is known."""
        return self.availability.state == "ready"

    @property
    def label(self) -> str:
        """Its emoji and its title, where there is no picture."""
        return f"{self.emoji} {self.title}".lstrip()

    @property
    def isolated(self) -> bool:
        """Whether it is isolated."""
        return self.isolation.startswith("isolated")

    @property
    def isolation_label(self) -> str:
        """Whether it is isolated, in two words."""
        if self.isolation.startswith("not ours"):
            return "not ours"
        return "isolated" if self.isolated else "not isolated"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A problem that keeps an agent from receiving messages on a service."""

    words: str
    install: str = ""
    """The address that installs its application, if that may help."""


@dataclass(frozen=True)
class PageRoster:
    """All agents of the bridge, by id."""

    agents: Mapping[str, AgentView]
    removed: Mapping[str, str]
    """The names of agents that were removed, by id."""
    titles: Mapping[str, str]
    """What people called those agents, by id."""
    label_of: Callable[[str], str] = str
    """Returns what people call a service; empty text for the page itself."""

    @classmethod
    def of(
        cls,
        agents: Iterable[AgentView],
        label_of: Callable[[str], str] = str,
        removed: Mapping[str, str] = MappingProxyType({}),
        titles: Mapping[str, str] = MappingProxyType({}),
    ) -> PageRoster:
        """Give each agent a colour and a picture; two letters where one is ambiguous."""
        listed = list(agents)
        first = Counter(agent.title[:1].upper() for agent in listed)
        return cls(
            {
                agent.id: replace(
                    agent,
                    colour=number % COLOURS if agent.colour is None else agent.colour,
                    letters=agent.emoji
                    or _letters(agent.title, 1 if first[agent.title[:1].upper()] == 1 else 2),
                )
                for number, agent in enumerate(listed)
            },
            removed,
            titles,
            label_of,
        )

    @property
    def offered(self) -> tuple[AgentView, ...]:
        """The agents that people can choose from."""
        return tuple(agent for agent in self.agents.values() if agent.visible)

    @property
    def exposed(self) -> tuple[AgentView, ...]:
        """The agents that lost their isolation, and no person has seen it yet."""
        return tuple(
            agent for agent in self.agents.values() if agent.isolation_change and not agent.isolated
        )

    @property
    def names(self) -> MentionNames:
        """The names of the agents in messages; that of a removed one too, until another has it."""
        there = [(agent.id, agent.name, agent.title) for agent in self.agents.values()]
        taken = {name for _, name, _ in there}
        gone = [(agent, name, "") for agent, name in self.removed.items() if name not in taken]
        return MentionNames.of((*there, *gone))

    def __getitem__(self, agent: str) -> AgentView:
        """Return an agent by its id; one that was removed keeps its name and has no colour."""
        if agent in self.agents:
            return self.agents[agent]
        name = self.removed.get(agent, agent)
        called = self.titles.get(agent, name)
        title = f"{called} (removed)" if agent in self.removed else called or "bridge"
        return AgentView(agent, name, title, letters=_letters(called, 1))


@dataclass(frozen=True)
class MentionNames:
    """The names of agents that may follow an @; no two agents share one."""

    spoken: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, agents: Iterable[tuple[str, str, str]]) -> MentionNames:
        """Take ids, names and titles; a title that could mean two agents means none."""
        listed = list(agents)
        names = {name.casefold(): agent for agent, name, _ in listed}
        titles = Counter(title.casefold() for _, _, title in listed)
        for agent, _, title in listed:
            if titles[title.casefold()] == 1 and title.strip():
                names.setdefault(title.casefold(), agent)
        return cls(tuple(names.items()))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Match a mention: the longest name first, never part of a word or an address."""
        longest = sorted((spoken for spoken, _ in self.spoken), key=len, reverse=True)
        choice = "|".join(map(re.escape, longest)) or r"(?!)"
        return re.compile(rf"(?<![\w@./:-])@({choice})(?![\w-])", re.IGNORECASE)

    def mentioned(self, text: str) -> tuple[str, ...]:
        """List the agents that a message mentions, in order, each once."""
        agents = dict(self.spoken)
        words = markdown.prose(text)
        found = (agents.get(each[1].casefold()) for each in self.pattern.finditer(words))
        return tuple(dict.fromkeys(name for name in found if name is not None))

    def after(self, text: str) -> str:
        """Return a message without the mentions that it begins with."""
        rest = text.strip()
        while found := self.pattern.match(rest):
            rest = rest[found.end() :].lstrip(" ,:\n\t")
        return rest


def _letters(title: str, count: int) -> str:
    return title[:count].capitalize() or "?"
