"""Workspace values: repositories, clones, folders, and what was shipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Literal

from app.model import wording
from app.model.keys import SessionKey
from app.model.posts import Fact, Pushed
from app.model.types import Session

Way = Literal["branch", "existing", "detached"]
Ship = Literal["pr", "push", "none"]
Scope = Literal["uncommitted", "committed", "pushed"]
"""How far a change got; what is pushed is not listed as committed again."""

FOLDER = "folder:"
"""Begins the name of a folder on this machine, where a repository could be named."""
ELSEWHERE = "elsewhere:"
"""Begins the name of another machine, where an agent has files of its own."""
NONE = "none"
"""Names no repository: an empty folder for each session."""

HEADS = "refs/heads/"
"""Begins the full ref name of a branch."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: the name people know, and the address git is told."""

    name: str
    url: str


Target = Repository | Path | None
"""What a session works on: a clone, a folder on this machine, or an empty folder."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """An open workspace: where an agent runs, and what it sees and may change around it."""

    folder: Path
    within: str = ""
    """Where in the folder its agent begins, if it was given a part of it."""
    outgoing: Path | None = None
    """Where its agent puts files for people; never inside the folder."""
    home: Path | None = None
    """Where its agent's own home is, if it has one."""
    visible: tuple[Path, ...] = ()
    """What else its agent must see: attachments, the git remote of a clone."""
    readonly: tuple[Path, ...] = ()
    """What its agent must not change in the folder."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for its agent, unless the agent has its own of that name."""

    elsewhere: str = ""
    """Where an agent on another machine works, as it calls that."""

    @property
    def start(self) -> Path:
        """Where its agent begins on this machine."""
        return self.folder / self.within

    @property
    def ruled(self) -> Path:
        """What the rules for its workspace apply to, as its agent calls that."""
        return Path(self.elsewhere) if self.elsewhere else self.start

    def show(self, paths: Sequence[Path]) -> list[PurePath]:
        """Return the paths of attachments as its agent is told them: elsewhere only their names."""
        return [PurePath(path.name) if self.elsewhere else path for path in paths]

    @property
    def own(self) -> tuple[Path, ...]:
        """Folders outside the workspace in which its agent may change files."""
        return tuple(filter(None, (self.outgoing, self.home)))


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A repository that a conversation may be about, and how likely that is, from 0 to 1."""

    name: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Author:
    """The author of commits."""

    name: str
    email: str

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


@dataclass(frozen=True, slots=True)
class Clone:
    """One session's clone: what it is of, how it is opened, and what may be pushed from it."""

    folder: Path
    home: str
    """The name of its session's home, in which git runs as the agent does."""
    session: SessionKey
    repository: Repository
    way: Way
    author: Author
    branch: str = ""
    """What it may push to: a new branch or an existing one; nothing when detached."""
    start: str = ""
    """What a detached clone looks at: a commit or a full ref name. Of others the full ref name of
    the branch that they are based on, if that is not the default branch."""

    @property
    def agent(self) -> str:
        """The agent that owns the clone."""
        return self.session.agent

    @property
    def base(self) -> str:
        """The branch that its changes are proposed for; empty for the default branch."""
        return "" if self.way == "detached" else self.start.removeprefix(HEADS)


@dataclass(frozen=True, slots=True)
class OpenedClone:
    """What a new clone began with."""

    base: str
    """The branch that its changes are proposed for, mostly the default branch."""
    commit: str
    has_branch: bool = False
    """Whether its new branch was pushed before."""


@dataclass(frozen=True, slots=True)
class Changes:
    """How much changed in a clone since it was opened."""

    files: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What others say about an open proposal."""

    checks: Literal["", "running", "passed", "failed"] = ""
    review: Literal["", "approved", "changes"] = ""
    """`changes` if a reviewer requests some."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A clone as it is stored."""

    session: int
    number: int
    """Which workspace of its session it is: another repository means another folder."""
    repository: Repository
    way: Way
    branch: str = ""
    start: str = ""
    base: str = ""
    commit: str = ""
    sent: str = ""
    """The commit that was pushed last."""
    told: str = ""
    """The commit that people were told of last, when it was proposed or named."""
    link: str = ""
    """Where its changes are proposed."""
    title: str = ""
    """The agent's own title for its proposal, if it gave one."""
    body: str = ""
    """The agent's own words about it."""
    state: Literal["opening", "ready", "gone"] = "opening"
    outcome: str = ""
    """`merged` or `closed` once its proposal is."""
    judged: Judged = Judged()
    changes: Changes | None = None
    """How much changed, as it was last measured."""
    machine: str = ""
    """The machine whose disk holds it; empty if it was made by a release without this."""


@dataclass(frozen=True, slots=True)
class PullHead:
    """What a place that is a pull request is about, in the repository of the place."""

    branch: str
    """Empty where only its author may push: a fork."""
    commit: str
    """What to read then: a commit, or a full ref name such as `refs/pull/7/head`."""
    base: str = ""
    """The branch that it is proposed for."""
    name: str = ""
    """The name of its branch, wherever that is."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The state of a clone after its uncommitted changes were committed."""

    commit: str
    problem: str = ""
    """Why nothing may be shipped, if so."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What came of bringing a branch's new commits into a clone."""

    state: Literal["current", "updated", "behind"]
    """`behind` if changes in the clone are in the way."""
    commit: str = ""
    """The last commit of the branch."""
    log: str = ""
    """The new commits, a line each."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A commit and what it changes."""

    commit: str
    base: str
    """The branch that it is compared to."""
    diff: str


@dataclass(frozen=True, slots=True)
class Hidden:
    """Ignore rules that appeared during the work, with what they keep from git."""

    source: str
    """The file with the rules."""
    names: tuple[str, ...] = ()
    """The first files and folders that they hide."""
    count: int = 0
    is_applied: bool = True
    """Whether they hide anything here; the bridge does not obey all of them."""


@dataclass(frozen=True, slots=True)
class Diff:
    """One part of what a session changed, as `git diff` writes it."""

    scope: Scope
    text: str = ""
    stat: str = ""
    """What `git diff --numstat -z` writes, where the text would be too long."""
    problem: str = ""
    """Why git cannot show it."""
    hidden: tuple[Hidden, ...] = ()
    """Rules that hide other changes."""
    repositories: tuple[str, ...] = ()
    """Folders that are repositories: git shows no files of them, and obeys them inside."""
    is_partial: bool = False
    """Whether there is too much to find all repositories."""

    def redact(self, redact: Callable[[str], str]) -> Diff:
        """Return the same without known secrets."""
        return replace(
            self,
            text=redact(self.text),
            stat=redact(self.stat),
            problem=redact(self.problem),
            hidden=tuple(
                replace(each, source=redact(each.source), names=tuple(map(redact, each.names)))
                for each in self.hidden
            ),
            repositories=tuple(map(redact, self.repositories)),
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return self == Diff(self.scope)


@dataclass(frozen=True, slots=True)
class Shipped:
    """What came of a turn's work."""

    pushed: Pushed | None = None
    note: str = ""
    """What people must know about it: why it was not pushed, what it conflicts with."""


@dataclass(frozen=True, slots=True)
class Unshipped:
    """A clone with work that is nowhere else."""

    repository: str
    branch: str
    held: str
    """What it holds, or why that is not known."""


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """What people see of a workspace."""

    kind: Literal["empty", "folder", "clone", "remote"]
    name: str = ""
    """Of the repository, the path of the folder, or the machine that has the agent's own files."""
    branch: str = ""
    base: str = ""
    link: str = ""
    sent: str = ""
    web: str = ""
    """The address of the repository for people, if it has one."""
    outcome: str = ""
    judged: Judged = Judged()
    changes: Changes | None = None

    @property
    def written(self) -> str:
        """How it is written: `owner/name`, `folder:<path>`, `elsewhere:<host>` or `none`."""
        match self.kind:
            case "empty":
                return NONE
            case "remote":
                return f"{ELSEWHERE}{self.name}"
            case "folder":
                return f"{FOLDER}{self.name}"
            case _:
                return self.name

    @property
    def delivered(self) -> tuple[Fact, ...]:
        """Where others find what was pushed; empty while it is only here."""
        if not self.sent:
            return ()
        branch = Fact(f"{self.name}, {self.branch}")
        return (branch, Fact(wording.PULL_REQUEST, self.link)) if self.link else (branch,)


def link_number(link: str) -> int:
    """Read the number of a pull request off its address; 0 if it has none."""
    last = link.rstrip("/").rpartition("/")[2]
    return int(last) if last.isdecimal() else 0


def web_address(repository: Repository) -> str:
    """Return the address of a repository for people; empty if it has none."""
    url = repository.url
    return url.removesuffix(".git") if url.startswith(("https://", "http://")) else ""


def folder_name(session: Session) -> str:
    """Name the folders that belong to a session alone: its workspace, its home."""
    return f"{session.id}-{session.key.agent}"


def attachment_folder(workspace: Path) -> Path:
    """Name the attachment folder of a workspace."""
    return workspace.parent / f"{workspace.name}.files"


def outgoing(workspace: Path) -> Path:
    """Name the folder of a workspace for outgoing files."""
    return workspace.with_name(f"{workspace.name}.out")
