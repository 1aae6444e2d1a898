"""Protocols that the outside implements for the core: time, agents, workspaces, repositories.

A port has one method per decision. What must be true together is one method and one commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from app.core.keys import PlaceKey
from app.core.posts import Verbosity
from app.core.reviewing import Submission
from app.core.types import Attachment, Session
from app.core.updates import AskRequest, BridgeUpdate, Choices, PromptEnd
from app.core.workspaces import (
    Author,
    Changes,
    Clone,
    Compared,
    Diff,
    Examined,
    Followed,
    Gathered,
    Head,
    Judged,
    Opened,
    Proposal,
    Rebuilt,
    Repository,
    Workspace,
)


class Clock(Protocol):
    """Time, so that a test can skip hours."""

    def now(self) -> float:
        """Tell the wall clock, in seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Tell a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Counters(Protocol):
    """Counters, durations and stages of turns that can be read from outside."""

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to a counter."""
        ...

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add a duration to a histogram."""
        ...

    def trace(self, stage: str, turn: int, began: float, ended: float, **facts: str) -> None:
        """Record a stage of a turn, from one time to another."""
        ...


class TurnEngine(Protocol):
    """Runs turns; takes ids, never live objects."""

    def submit(self, session: int) -> None:
        """Run the queued turns of a session."""
        ...

    async def cancel(self, session: int) -> None:
        """Stop the running turn of a session, if there is one, and those stopped with it."""
        ...

    def show(self, place: PlaceKey, verbosity: Verbosity) -> None:
        """Change how much detail the running turns of a place show from now on."""
        ...


class AgentListener(Protocol):
    """Receives what an agent does."""

    async def on_update(self, update: BridgeUpdate) -> None:
        """Take one update; may wait for the store, never for a platform or for the agent."""
        ...

    async def on_ask(self, request: AskRequest) -> str | None:
        """Get a person's answer: an option id, free text where allowed, None if cancelled."""
        ...


class AgentSession(Protocol):
    """One conversation with one live agent process."""

    @property
    def acp_session_id(self) -> str:
        """The agent's id of the conversation."""
        ...

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        ...

    @property
    def choices(self) -> Choices:
        """The modes and models that it offers."""
        ...

    async def prompt(
        self, text: str, listener: AgentListener, *, files: Sequence[Attachment] = ()
    ) -> PromptEnd:
        """Send a prompt and follow what happens until the agent ends its turn.

        The text names every file by its path; files are sent in a form that the agent accepts.

        Raises:
            AgentError: it died, hung, misbehaved or answered with an error.
        """
        ...

    async def cancel(self) -> None:
        """Ask the agent to end its turn; returns when it did or on timeout."""
        ...

    async def configure(self, *, mode: str | None, model: str | None) -> None:
        """Set mode and model where the agent offers them.

        Raises:
            AgentRefused: it does not offer that.
        """
        ...

    async def close(self) -> None:
        """End the process and everything it started."""
        ...


class OpenedSession(Protocol):
    """The result of starting an agent."""

    @property
    def session(self) -> AgentSession:
        """The conversation."""
        ...

    @property
    def how(self) -> Literal["new", "resumed", "loaded", "lost"]:
        """`lost`: there was a conversation, but the agent could not restore it."""
        ...

    @property
    def instructed(self) -> bool:
        """Whether it took the system prompt."""
        ...


class AgentLauncher(Protocol):
    """Starts agents."""

    async def open(
        self,
        session: Session,
        workspace: Workspace,
        listener: AgentListener,
        *,
        system: str = "",
    ) -> OpenedSession:
        """Start the agent's process and its conversation, resuming an earlier one if there is one.

        `system` is its system prompt, if it takes one.

        Raises:
            AgentError: it could not be started or did not answer.
        """
        ...

    async def close(self) -> None:
        """End every process that is still starting or stopping."""
        ...


class Shelf(Protocol):
    """Files that every machine of a bridge finds, by name; each is replaced as a whole."""

    async def put(self, name: str, file: Path) -> None:
        """Store a copy of a file.

        Raises:
            OSError: it cannot be stored.
        """
        ...

    async def get(self, name: str, into: Path) -> bool:
        """Copy a stored file to a path; False if there is none.

        Raises:
            OSError: it cannot be read or written.
        """
        ...

    async def names(self, folder: str) -> Sequence[str]:
        """List the stored files below a folder, by their whole names.

        Raises:
            OSError: they cannot be listed.
        """
        ...

    async def remove(self, name: str) -> None:
        """Remove a stored file, if there is one.

        Raises:
            OSError: it cannot be removed.
        """
        ...


class Checkouts(Protocol):
    """What git does for workspaces: clones, and the gates they push to."""

    async def open(
        self,
        clone: Clone,
        *,
        fresh: bool,
        on_sent: Callable[[str], Awaitable[None]],
        ask: Callable[[str, Sequence[str]], Awaitable[bool]],
    ) -> Opened | None:
        """Prepare a clone for its agent; a fresh one replaces anything in its folder.

        `on_sent` is told of each commit that reached the remote, before the agent is; `ask` has a
        person decide on a push of files. None if it existed before.

        Raises:
            RepositoryError: it cannot be.
        """
        ...

    async def rebuild(
        self,
        clone: Clone,
        state: str,
        *,
        start: str,
        on_sent: Callable[[str], Awaitable[None]],
        ask: Callable[[str, Sequence[str]], Awaitable[bool]],
    ) -> Rebuilt | None:
        """Make a clone from its saved state; None if the state is gone or broken.

        `start` is the commit that the clone began with. What is in its folder is removed.

        Raises:
            RepositoryError: it cannot be made now.
        """
        ...

    async def save(self, clone: Clone, *, known: str, bases: Sequence[str]) -> str:
        """Save the state of an open clone, if it is not the known one; returns its name.

        `bases` are commits that the remote has.

        Raises:
            RepositoryError: it cannot be saved.
        """
        ...

    async def forget_states(self, clone: Clone, but: str = "") -> None:
        """Remove the saved states of a clone, but for one.

        Raises:
            OSError: they cannot be removed.
        """
        ...

    async def close(self, folder: Path) -> None:
        """Take no more pushes from a clone."""
        ...

    def visible(self, folder: Path) -> tuple[Path, ...]:
        """Return what else the agent of a folder must see."""
        ...

    async def protected(self, folder: Path, agent: str) -> tuple[Path, ...]:
        """Return what an agent must not change in a person's folder, because git obeys it.

        Raises:
            RepositoryError: it cannot be found out.
        """
        ...

    async def prepare(self, clone: Clone) -> str | None:
        """Run the repository's preparation in a new clone; returns its output, if any."""
        ...

    async def gather(self, clone: Clone, message: str) -> Gathered:
        """Commit what its agent left uncommitted.

        Raises:
            RepositoryError: git cannot do it there.
        """
        ...

    async def push(self, clone: Clone, commit: str) -> str:
        """Push a commit through the gate; returns why it was refused, if it was.

        Raises:
            RepositoryError: it did not reach the gate.
        """
        ...

    async def conflicts(self, clone: Clone, base: str, commit: str) -> tuple[str, ...]:
        """List the files in which a commit conflicts with the base branch."""
        ...

    async def collisions(
        self, repository: Repository, agent: str, base: str, branch: str
    ) -> tuple[str, tuple[str, ...]] | None:
        """Return a branch's commit on the remote, and the files that conflict with the base.

        None if either branch does not exist.

        Raises:
            RepositoryError: the remote cannot be reached.
        """
        ...

    async def compare(
        self, repository: Repository, agent: str, head: str, base: str
    ) -> Compared | None:
        """Show what a commit or a ref of the remote changes in the base, or the default branch.

        None if either does not exist.

        Raises:
            RepositoryError: the remote cannot be reached.
        """
        ...

    async def check_out(self, clone: Clone, commit: str) -> None:
        """Check out another commit in a clone for reading; changes in it are dropped.

        Raises:
            RepositoryError: git cannot do it there.
        """
        ...

    async def follow(self, clone: Clone, commit: str) -> Followed:
        """Bring the branch of a clone up to the remote, unless it has this commit already.

        Raises:
            RepositoryError: the remote cannot be reached.
        """
        ...

    async def rename(self, old: Repository, new: Repository) -> None:
        """Keep the mirror and clones of a repository that has a new name."""
        ...

    async def changes(self, clone: Clone, *, start: str, sent: str) -> Sequence[Diff]:
        """Show what a session changed since the commit it began with, by how far it got."""
        ...

    async def count_changes(self, clone: Clone, since: str) -> Changes | None:
        """Measure how much a session changed; None if git cannot tell."""
        ...

    async def changes_in_place(self, folder: Path, own: Path, agent: str) -> Sequence[Diff]:
        """Show what is uncommitted in a person's folder; `own` is the session's own folder."""
        ...

    async def unshipped(self, clone: Clone, *, sent: str, start: str) -> str:
        """Say what a clone holds that is nowhere else; empty if it can be removed."""
        ...

    async def remove(self, clone: Clone) -> None:
        """Remove a clone and its gate."""
        ...


class Forge(Protocol):
    """The host of repositories: tokens, commit authors, pull requests."""

    async def token(
        self, repository: Repository, agent: str, *, workflows: bool = False
    ) -> str | None:
        """Get a short-lived token for this repository and no other; None if there is none.

        Only one for `workflows` can change workflow files. The value is registered with the vault
        by the forge that made it.
        """
        ...

    async def workflow_refusal(self, repository: Repository, agent: str) -> str:
        """Say why an agent can never push workflow files, with the remedy; empty if it can."""
        ...

    async def author(self, agent: str) -> Author | None:
        """Return the author of an agent's commits; None leaves it to the bridge."""
        ...

    async def repositories(self, agent: str) -> Sequence[str]:
        """List the repositories that an agent's credentials open, the latest change first.

        Raises:
            RepositoryError: it cannot be found out.
        """
        ...

    async def propose(self, proposal: Proposal) -> str:
        """Open a pull request, or update the open one of this head; returns its link.

        Idempotent: it is looked for by repository and head first.

        Raises:
            RepositoryError: it cannot be opened.
        """
        ...

    async def judged(self, repository: Repository, agent: str, branch: str) -> Judged | None:
        """Read the checks and the review of the open pull request of a branch; None without one.

        Raises:
            RepositoryError: the host does not say.
        """
        ...

    async def review(self, submission: Submission) -> str | None:
        """Publish an agent's review of a branch; returns its link, None where there is no place.

        Idempotent: it is looked for by its mark first.

        Raises:
            RepositoryError: the host does not take it.
        """
        ...

    async def examine(self, repository: Repository, agent: str, branch: str) -> Examined | None:
        """Read all that checks and reviewers say about a branch's open pull request; None without.

        Raises:
            RepositoryError: the host does not say.
        """
        ...

    async def head(self, session: Session) -> Head | None:
        """Return the head of a session whose place is a pull request; None for other places."""
        ...

    async def pull(self, repository: Repository, agent: str, number: int) -> Head | None:
        """Return the head of a pull request; None if there is none of this number.

        Raises:
            RepositoryError: the host does not say.
        """
        ...

    async def guard(self, repository: Repository, agent: str, branch: str) -> str:
        """Say why pushes to a branch need a person's approval; empty if they do not.

        Guarded are default branches, protected ones, and bases of open pull requests. If that
        cannot be found out, the reason says so.
        """
        ...
