"""Values that the page shows around a thread: agents, the list of threads, the state; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from app.model.agents import Availability, Choice
from app.model.asks import Grant
from app.model.conversations import path_of
from app.model.keys import PlaceKey
from app.model.types import Entry, Session, SessionState
from app.server.page.view.blocks import ErrandHead
from app.server.page.view.mentions import Names
from app.server.page.view.work import Work

COLOURS = 8
"""Colours of agents in the style sheet."""

Dot = Literal["wait", "work", "limit", "fail", ""]
MARKS: Mapping[Dot, str] = {
    "wait": "Needs you",
    "work": "Working",
    "limit": "Rate-limited",
    "fail": "Failed",
    "": "Done",
}
READY = Availability()
_WORKING = {SessionState.WORKING, SessionState.QUEUED}
STOPPABLE = {
    SessionState.WORKING,
    SessionState.WAITING,
    SessionState.QUEUED,
    SessionState.LIMITED,
}
HELD = "held"
"""The state shown when nothing runs and a stop holds the queue."""


@dataclass(frozen=True, slots=True)
class Agent:
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


@dataclass(frozen=True, slots=True)
class Missing:
    """A known agent that is not on this machine."""

    title: str
    install: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """A problem that keeps an agent from receiving messages on a service."""

    words: str
    install: str = ""
    """The address that installs its application, if that may help."""


@dataclass(frozen=True)
class Cast:
    """All agents of the bridge, by id."""

    agents: Mapping[str, Agent]
    removed: Mapping[str, str]
    """The names of agents that were removed, by id."""
    titles: Mapping[str, str]
    """What people called those agents, by id."""
    label_of: Callable[[str], str] = str
    """Returns what people call a service; empty text for the page itself."""

    @classmethod
    def of(
        cls,
        agents: Iterable[Agent],
        label_of: Callable[[str], str] = str,
        removed: Mapping[str, str] = MappingProxyType({}),
        titles: Mapping[str, str] = MappingProxyType({}),
    ) -> Cast:
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
    def offered(self) -> tuple[Agent, ...]:
        """The agents that people can choose from."""
        return tuple(agent for agent in self.agents.values() if agent.visible)

    @property
    def exposed(self) -> tuple[Agent, ...]:
        """The agents that lost their isolation, and no person has seen it yet."""
        return tuple(
            agent for agent in self.agents.values() if agent.isolation_change and not agent.isolated
        )

    @property
    def names(self) -> Names:
        """The names of the agents in messages; that of a removed one too, until another has it."""
        there = [(agent.id, agent.name, agent.title) for agent in self.agents.values()]
        taken = {name for _, name, _ in there}
        gone = [(agent, name, "") for agent, name in self.removed.items() if name not in taken]
        return Names.of((*there, *gone))

    def __getitem__(self, agent: str) -> Agent:
        """Return an agent by its id; one that was removed keeps its name and has no colour."""
        if agent in self.agents:
            return self.agents[agent]
        name = self.removed.get(agent, agent)
        called = self.titles.get(agent, name)
        title = f"{called} (removed)" if agent in self.removed else called or "bridge"
        return Agent(agent, name, title, letters=_letters(called, 1))


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """One thread in the list."""

    path: str
    title: str
    words: str
    dot: Dot
    current: bool = False
    at: float = 0.0
    last: int = 0
    """The number of its last row, by which a browser knows what is new."""
    said: str = ""
    """The last words in it."""
    faces: tuple[Agent, ...] = ()
    """Its agents, for their pictures."""
    repository: str = ""
    """Where its agents work, as short as a chip is."""
    pinned: bool = False
    found: tuple[str, str, str] = ("", "", "")
    """What a search found in it: the text before the word, the word, and the text after it."""

    @property
    def mark(self) -> str:
        """Its state in words."""
        return MARKS[self.dot]


@dataclass(frozen=True, slots=True)
class ThreadList:
    """The list of threads, in groups."""

    groups: tuple[tuple[str, tuple[ThreadLine, ...]], ...]
    more: str = ""
    """The address of the longer list."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What an agent does right now."""

    since: float = 0.0
    turn: str = ""
    """The element of its turn; empty as long as nothing came of it."""
    verb: str = ""
    what: str = ""
    """What it does, such as `running` and `pytest`; empty while no tool runs."""


NOTHING = Doing()


@dataclass(frozen=True, slots=True)
class Steps:
    """The plan of an agent's last turn."""

    steps: tuple[Mapping[str, str], ...]

    @property
    def done(self) -> int:
        """How many steps are completed."""
        return sum(step.get("status") == "completed" for step in self.steps)

    @property
    def current(self) -> int:
        """The number of the step that is in progress, or the next."""
        at = [step.get("status") for step in self.steps]
        return at.index("in_progress") + 1 if "in_progress" in at else min(self.done + 1, len(at))


@dataclass(frozen=True, slots=True)
class Member:
    """An agent that is in a thread."""

    session: int
    agent: Agent
    state: str
    stoppable: bool
    failed: bool = False
    """Whether its last turn failed."""
    updated: float = 0.0
    mode: str = ""
    model: str = ""
    modes: tuple[Choice, ...] = ()
    models: tuple[Choice, ...] = ()
    tokens: str = ""
    cost: str = ""
    doing: Doing = NOTHING
    plan: Steps | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Messages that are queued for an agent."""

    session: int
    agent: Agent
    messages: tuple[tuple[int, str, str], ...]
    """The number of each message, its speaker and its text."""
    held: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision of a person."""

    at: float
    title: str
    note: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asked for the work in a place of agents, and where people talk about it."""

    agent: str
    person: str
    asked_in: str
    """The path of the thread in which it was asked."""
    path: str
    """The path of the thread where it all began."""
    title: str
    turn: str = ""
    """The element of the turn that asked."""


@dataclass(frozen=True, slots=True)
class Place:
    """A thread and its state, without its messages."""

    key: PlaceKey
    title: str
    link: str = ""
    service: str = ""
    """What people call the service; empty for the page itself."""
    began: Entry | None = None
    members: tuple[Member, ...] = ()
    gone: tuple[Agent, ...] = ()
    """The agents that were removed, where no other one is left."""
    waiting: tuple[Waiting, ...] = ()
    decisions: tuple[Decided, ...] = ()
    grants: tuple[Grant, ...] = ()
    """What people always allow in it."""
    untagged: tuple[str, ...] = ()
    """The agents that answer a message without a mention."""
    latest: str = ""
    """The agent that a new thread begun here goes to."""
    pinned: bool = False
    archived: bool = False
    origin: Origin | None = None
    """Who asked, if agents work for others here."""
    errands: tuple[ErrandHead, ...] = ()
    """What its agents asked others, and is not done yet."""
    work: tuple[Work, ...] = ()
    """Where its agents work; once, if they share a folder or have nothing of their own yet."""

    @property
    def path(self) -> str:
        """The path of the thread."""
        return path_of(self.key)

    @property
    def dot(self) -> Dot:
        """The worst state of its members and of those who work for them."""
        return dot_of(
            (
                *((each.state, each.failed, each.updated) for each in self.members),
                *((each.state, False, 0.0) for each in self.errands),
            )
        )

    @property
    def linked(self) -> set[int]:
        """The sessions whose changes are counted, and linked there."""
        return {each.session for each in self.work if each.changes and each.changes.files}

    @property
    def busy(self) -> tuple[Member, ...]:
        """The members that can be stopped."""
        return tuple(member for member in self.members if member.stoppable)


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that a page shows."""

    cast: Cast
    threads: ThreadList
    csrf: str
    visitor: str
    assets: Mapping[str, str]
    place: Place | None = None
    log: str = ""
    events: str = ""
    after: int = 0
    earlier: str = ""
    missing: tuple[Missing, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    paused: tuple[str, ...] = ()
    """What the operator paused, each in a sentence."""
    told: str = ""
    """What a form has just done."""
    examples: tuple[str, ...] = field(default_factory=tuple)
    query: str = ""
    found: ThreadList | None = None
    """What a search for the query found."""
    grouped: str = ""
    """How the list of threads is grouped: by `agent`, by `repository`, or by day."""
    archived: bool = False
    """Whether archived threads are listed."""
    picked: str = ""
    repository: str = ""
    """Where a new thread works if nothing is chosen; empty for a scratch folder."""


def tokens(used: int | None, size: int | None) -> str:
    """Format how full an agent's context is."""
    if used is None:
        return ""
    return f"{_short(used)} of {_short(size)}" if size else _short(used)


def dot_of(agents: Iterable[tuple[str, bool, float]]) -> Dot:
    """Mark a thread by the state of its agents, and by how the last of them ended."""
    listed = list(agents)
    seen = {state for state, _, _ in listed}
    if seen & {SessionState.WAITING, HELD}:
        return "wait"
    if seen & _WORKING:
        return "work"
    if SessionState.LIMITED in seen:
        return "limit"
    _, failed, _ = max(listed, key=lambda each: each[2], default=("", False, 0.0))
    return "fail" if failed else ""


def shown_state(session: Session, state: str = "") -> str:
    """Return the state of a session as the page shows it; `state` if it is known better."""
    held = session.held and session.state == SessionState.QUEUED
    return HELD if held else state or session.state


def stoppable(session: Session) -> bool:
    """Return whether a session has anything to stop."""
    return shown_state(session) in STOPPABLE


def _letters(title: str, count: int) -> str:
    return title[:count].capitalize() or "?"


def _short(number: int) -> str:
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.1f}".removesuffix(".0") + "k"
    return f"{number / 1_000_000:.1f}".removesuffix(".0") + "M"
