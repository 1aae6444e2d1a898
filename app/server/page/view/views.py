"""Values that the page shows around a thread: agents, the list of threads, the state; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from app.core.keys import PlaceKey
from app.core.types import Entry, Session, SessionState, Thread
from app.server.page.view.mentions import Names

COLOURS = 8
"""Colours of agents in the style sheet."""
LAST_WORDS = 90
"""Characters of the last message in the list: a little more than one line shows."""

Dot = Literal["wait", "work", "limit", ""]
GROUPS: tuple[tuple[Dot, str], ...] = (
    ("wait", "Needs you"),
    ("work", "Working"),
    ("limit", "Waiting for a limit"),
    ("", "Earlier"),
)
_UNSAFE = re.compile(r"[^A-Za-z0-9._~:/-]")
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

    name: str
    title: str
    description: str = ""
    isolation: str = ""
    command: str = ""
    default: bool = False
    examples: tuple[str, ...] = ()
    letters: str = ""
    colour: int | None = None

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
    """All agents of the bridge, by name."""

    agents: Mapping[str, Agent]
    label_of: Callable[[str], str] = str
    """Returns what people call a service; empty text for the page itself."""

    @classmethod
    def of(cls, agents: Iterable[Agent], label_of: Callable[[str], str] = str) -> Cast:
        """Give each agent a colour and its letters; two letters where one is ambiguous."""
        listed = list(agents)
        first = Counter(agent.title[:1].upper() for agent in listed)
        return cls(
            {
                agent.name: replace(
                    agent,
                    colour=number % COLOURS,
                    letters=_letters(agent.title, 1 if first[agent.title[:1].upper()] == 1 else 2),
                )
                for number, agent in enumerate(listed)
            },
            label_of,
        )

    @property
    def names(self) -> Names:
        """The names of the agents in messages."""
        return Names.of((agent.name, agent.title) for agent in self.agents.values())

    def __getitem__(self, name: str) -> Agent:
        """Return an agent; one that was removed keeps its name and has no colour."""
        return self.agents.get(name) or Agent(name, name or "bridge", letters=_letters(name, 1))


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """One thread in the list."""

    path: str
    title: str
    words: str
    dot: Dot
    current: bool = False


@dataclass(frozen=True, slots=True)
class ThreadList:
    """The list of threads, in groups."""

    groups: tuple[tuple[str, tuple[ThreadLine, ...]], ...]
    more: str = ""
    """The address of the longer list."""


@dataclass(frozen=True, slots=True)
class Member:
    """An agent that is in a thread."""

    session: int
    agent: Agent
    state: str
    stoppable: bool
    mode: str = ""
    model: str = ""
    tokens: str = ""
    cost: str = ""


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
class Place:
    """A thread and its state, without its messages."""

    key: PlaceKey
    title: str
    link: str = ""
    service: str = ""
    """What people call the service; empty for the page itself."""
    began: Entry | None = None
    members: tuple[Member, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    decisions: tuple[Decided, ...] = ()
    untagged: tuple[str, ...] = ()
    """The agents that answer a message without a mention."""

    @property
    def path(self) -> str:
        """The path of the thread."""
        return path_of(self.key)

    @property
    def dot(self) -> Dot:
        """The worst of its members' states."""
        return _dot(member.state for member in self.members)

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
    examples: tuple[str, ...] = field(default_factory=tuple)
    picked: str = ""


def path_of(place: PlaceKey) -> str:
    """Return the path of a thread's page."""
    return f"/t/{place.service}/{in_path(place.name)}"


def in_path(name: str) -> str:
    """Escape a name for use in a path."""
    return _UNSAFE.sub(lambda sign: "".join(f"%{byte:02X}" for byte in sign[0].encode()), name)


def thread_list(
    threads: Sequence[Thread], cast: Cast, *, current: PlaceKey | None = None, more: str = ""
) -> ThreadList:
    """Group threads; those that wait for a person come first."""
    lines = [_line(thread, cast, current) for thread in threads]
    groups = ((title, tuple(line for line in lines if line.dot == dot)) for dot, title in GROUPS)
    return ThreadList(tuple((title, group) for title, group in groups if group), more)


def tokens(used: int | None, size: int | None) -> str:
    """Format how full an agent's context is."""
    if used is None:
        return ""
    return f"{_short(used)} of {_short(size)}" if size else _short(used)


def _line(thread: Thread, cast: Cast, current: PlaceKey | None) -> ThreadLine:
    agents = ", ".join(cast[session.key.agent].title for session in thread.sessions)
    service = cast.label_of(thread.place.service)
    words = " ".join(thread.last.text.replace("`", "").replace("**", "").split())[:LAST_WORDS]
    return ThreadLine(
        path=path_of(thread.place),
        title=thread.title or thread.place.name,
        words=" · ".join(filter(None, (service, agents, words))),
        dot=_dot(shown_state(session) for session in thread.sessions),
        current=thread.place == current,
    )


def _dot(states: Iterable[str]) -> Dot:
    seen = set(states)
    if seen & {SessionState.WAITING, HELD}:
        return "wait"
    if seen & _WORKING:
        return "work"
    return "limit" if SessionState.LIMITED in seen else ""


def shown_state(session: Session) -> str:
    """Return the state of a session as the page shows it."""
    return HELD if session.held and session.state == SessionState.QUEUED else session.state


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
