"""Values of delegations: what one agent asked another one to do, and how far it may go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from app.model.keys import PlaceKey, SessionKey
from app.model.types import Speaker, TurnState

SERVICE: Final = "agents"
"""The service of places in which agents work for agents; people talk elsewhere."""

Kind = str
"""How it was asked: a message, a spawn, or what a feature has several agents do."""
WorkspaceKind = Literal["", "new-branch", "same-branch", "read-only"]
"""What it works on; empty: the branch of the agent that asked, for reading."""


@dataclass(frozen=True, slots=True)
class Delegation:
    """What an agent, or a person for it, asked another agent to do."""

    id: int
    kind: Kind
    agent: str
    """Who does it, by its id."""
    caller_session: int
    caller_turn: int | None
    """The turn that asked; None if a person's command did."""
    session: int
    """The session that does it."""
    turn: int
    root_session: int
    """The session in the place of people where it all began."""
    root_turn: int | None
    depth: int
    """1: asked by an agent that people talk to."""
    task: str
    state: TurnState
    """The state of its turn."""
    person: Speaker
    """Whose rights it needs."""
    name: str = ""
    workspace: WorkspaceKind = ""
    group: str = ""
    """Names several that belong together; empty for one alone."""
    round: int = 1
    told: bool = False
    """Whether the agent that asked knows the answer."""
    created_at: float = 0.0
    ended_at: float | None = None
    title: str = ""
    """What people call the session that does it."""
    created: bool = True
    """Whether that session was made for it."""


@dataclass(frozen=True, slots=True)
class NewDelegation:
    """A delegation that is asked for."""

    kind: Kind
    agent: str
    caller_session: int
    caller_turn: int | None
    task: str
    person: Speaker
    """Whose rights it needs: the person who asked the first agent."""
    session: int | None = None
    """The session that goes on with it; None: a new one, in a new place."""
    speaker: Speaker | None = None
    """Who asks, as the agent and people are told; None: the person."""
    context: str = ""
    """What comes with the task as data: the words of other agents."""
    repository: str = ""
    """What a new session works on, as places keep it: `owner/name`, `folder:<path>`, `none`."""
    name: str = ""
    workspace: WorkspaceKind = ""
    branch: str = ""
    """The branch that it works on, starts from or reads; empty: that of the one who asks."""
    folder: str = ""
    """Where in the repository or the folder it works; empty: in all of it."""
    group: str = ""
    round: int = 1


@dataclass(frozen=True, slots=True)
class DelegatedWork:
    """What a session was begun for by another one, and on what it works."""

    caller: int
    """The session that asked."""
    workspace: WorkspaceKind
    branch: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True)
class DelegatedCall:
    """A tool call of an agent that was asked."""

    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a delegation so far."""

    text: str = ""
    """The words that its turn ended with; of a turn that works, what it has said so far."""
    problem: str = ""
    """Why it failed, if it did."""
    seconds: float = 0.0
    cost: float = 0.0
    calls: tuple[DelegatedCall, ...] = ()
    """What it did, in order."""


@dataclass(frozen=True, slots=True)
class DelegationLimits:
    """How far agents may go among themselves; a message of a person resets it."""

    depth: int = 1
    per_turn: int = 4
    per_tree: int = 12
    per_hour: int = 30
    seconds: float = 7200.0
    usd: float | None = None


Limit = Literal["", "cycle", "depth", "turn", "tree", "hour", "time", "budget"]
"""What was reached; empty: nothing."""


@dataclass(frozen=True, slots=True)
class TreeCounts:
    """How far agents have gone since a person last said something, with what is asked for now."""

    agents: frozenset[str]
    """Those that led to it: who asks, who asked that one, and so on."""
    depth: int
    """How deep it is."""
    by_turn: int
    """How many delegations the same turn began."""
    in_tree: int
    in_hour: int
    """How many began in the same place within an hour."""
    seconds: float
    """How long ago the first of the tree began."""
    usd: float = 0.0
    """What the tree has cost so far."""


def find_reached(counts: TreeCounts, agent: str, limits: DelegationLimits) -> Limit:
    """Return the limit that keeps an agent from being asked."""
    if agent in counts.agents:
        return "cycle"
    if counts.depth > limits.depth:
        return "depth"
    if counts.by_turn >= limits.per_turn:
        return "turn"
    if counts.in_tree >= limits.per_tree:
        return "tree"
    if counts.in_hour >= limits.per_hour:
        return "hour"
    if counts.seconds >= limits.seconds:
        return "time"
    if limits.usd is not None and counts.usd >= limits.usd:
        return "budget"
    return ""


@dataclass(frozen=True, slots=True)
class StartedDelegation:
    """A delegation that was begun, or why it was not."""

    delegation: Delegation | None
    limit: Limit = ""
    """The limit that was reached."""
    is_known: bool = False
    """Whether it had begun before: the same call of a turn that was cut off."""
    posts: tuple[int, ...] = ()
    """What is to be sent: the post of its turn, or, once per tree, that a limit was reached."""


BranchState = Literal["queued", "working", "waiting", "done", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Branch:
    """One delegated turn in its tree."""

    id: int
    """The number of the delegation."""
    agent: str
    task: str
    state: BranchState
    session: int
    turn: int
    """Its turn; the one that goes on with it if it was parked and answered."""
    place: PlaceKey
    """Where its agent works for the one that asked."""
    caller_agent: str
    caller_session: int
    caller_turn: int | None
    """The turn that asked; None if a person's command did."""
    root: SessionKey
    """The conversation of people in which it all began."""
    root_place: PlaceKey
    root_session: int
    root_turn: int | None
    person: str
    """The name of the person for whom all of it is done."""
    depth: int = 1
    kind: str = "message"
    created_at: float = 0.0
    ended_at: float | None = None
    root_end: Literal["", "done", "failed", "stopped"] = ""
    """How the turn ended where it all began; empty while it goes on."""

    @property
    def is_over(self) -> bool:
        """Whether its agent is done with it."""
        return self.state in {"done", "failed", "stopped"}

    @property
    def seconds(self) -> float:
        """How long it took; 0 while it goes on."""
        return self.ended_at - self.created_at if self.ended_at else 0.0


ANSWERS: Final = "answer to your question: {question}"


Excess = Literal["", "isolation", "network", "permissions"]
"""What an agent has more of than the one that asks it: freedom from isolation, hosts, rights."""
