"""Values that a page shows around a thread: its agents, their state and where they work; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.model.agents import Choice
from app.model.asks import Grant
from app.model.background import Work
from app.model.conversations import path_of
from app.model.keys import PlaceKey
from app.model.types import Entry
from app.model.workspaces import Changes, WorkspaceView
from app.server.page.view.blocks import DelegatedHead
from app.server.page.view.listing import Dot, ThreadList, dot_of, short_name
from app.server.page.view.roster import AgentView, PageRoster, Trouble

_OUTCOMES = {"merged": ("merged", "acc"), "closed": ("closed", "")}
_CHECKS = {
    "running": ("checks running", "warn"),
    "passed": ("checks passed", "good"),
    "failed": ("checks failed", "bad"),
}
_REVIEWS = {"approved": ("approved", "good"), "changes": ("changes requested", "warn")}


@dataclass(frozen=True, slots=True)
class WorkLine:
    """Where one agent works, or several that share it."""

    agent: str
    name: str
    title: str
    session: int = 0
    """The session whose page shows the changes."""
    is_folder: bool = False
    web: str = ""
    """The address of its repository."""
    branch: str = ""
    base: str = ""
    is_pushed: bool = False
    pull: str = ""
    """The address of its pull request."""
    marks: tuple[tuple[str, str], ...] = ()
    """State, checks and review of the pull request: the words of each, and its colour."""
    changes: Changes | None = None
    """How much changed; None if that is not known."""

    @property
    def key(self) -> tuple[str, str]:
        """What is the same for agents that share it."""
        return self.title, self.branch

    @property
    def pull_name(self) -> str:
        """What people call the pull request."""
        number = self.pull.rstrip("/").rpartition("/")[2]
        return f"#{number}" if number.isdigit() else "pull request"


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
class ThreadAgent:
    """An agent that is in a thread."""

    session: int
    agent: AgentView
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
    work: tuple[Work, ...] = ()
    """What it has running besides its turns."""
    unshown: Mapping[str, int] = field(default_factory=dict)
    """What it sent and no one can be shown: how often, by what it is."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Messages that are queued for an agent."""

    session: int
    agent: AgentView
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
class WorkOrigin:
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
    members: tuple[ThreadAgent, ...] = ()
    gone: tuple[AgentView, ...] = ()
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
    origin: WorkOrigin | None = None
    """Who asked, if agents work for others here."""
    delegated: tuple[DelegatedHead, ...] = ()
    """What its agents asked others, and is not done yet."""
    work: tuple[WorkLine, ...] = ()
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
                *((each.state, False, 0.0) for each in self.delegated),
            )
        )

    @property
    def linked(self) -> set[int]:
        """The sessions whose changes are counted, and linked there."""
        return {each.session for each in self.work if each.changes and each.changes.files}

    @property
    def busy(self) -> tuple[ThreadAgent, ...]:
        """The members that can be stopped."""
        return tuple(member for member in self.members if member.stoppable)


@dataclass(frozen=True, slots=True)
class PageView:
    """Everything that a page shows."""

    roster: PageRoster
    threads: ThreadList
    csrf: str
    visitor: str
    assets: Mapping[str, str]
    place: Place | None = None
    log: str = ""
    events: str = ""
    after: int = 0
    earlier: str = ""
    missing: tuple[tuple[str, str], ...] = ()
    """Known agents that are not on this machine: the title of each, and what installs it."""
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


def work_of(agent: str, session: int, view: WorkspaceView) -> WorkLine:
    """Describe the workspace of a session."""
    match view.kind:
        case "empty":
            return WorkLine(agent, "", "None. Files are in a scratch folder.", session)
        case "remote":
            return WorkLine(agent, "", f"Its own files at {view.name}.", session)
        case "folder":
            return WorkLine(agent, short_name(view.written), view.name, session, is_folder=True)
    return WorkLine(
        agent,
        view.name,
        view.name,
        session,
        web=view.web,
        branch=view.branch,
        base=view.base,
        is_pushed=bool(view.sent),
        pull=view.link,
        marks=_marks(view),
        changes=view.changes,
    )


def _marks(view: WorkspaceView) -> tuple[tuple[str, str], ...]:
    state = _OUTCOMES.get(view.outcome)
    if state is not None:
        return (state,)
    more = (_CHECKS.get(view.judged.checks), _REVIEWS.get(view.judged.review))
    return (("open", "good"), *filter(None, more))


def _short(number: int) -> str:
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.1f}".removesuffix(".0") + "k"
    return f"{number / 1_000_000:.1f}".removesuffix(".0") + "M"
