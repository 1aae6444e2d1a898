"""The Protocols that the outside implements for the core: time, agents, workspaces, repositories.

A port has one method per decision. Whatever must be true together is one method, hence one commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, Protocol

from app.core.types import (
    Attachment,
    File,
    Session,
)
from app.core.updates import AskRequest, BridgeUpdate, PromptEnd
from app.core.workspaces import (
    Author,
    Clone,
    Gathered,
    Head,
    Opened,
    Proposal,
    Repository,
    Work,
    WorkspaceView,
)


class Clock(Protocol):
    """Time, so that a test can play hours."""

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
    """Numbers that can be seen from outside."""

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to a counter."""
        ...


class TurnEngine(Protocol):
    """Runs turns; takes ids, never live objects."""

    def submit(self, session: int) -> None:
        """See to it that the queued turns of a session run."""
        ...

    async def cancel(self, session: int) -> None:
        """Stop the turn of a session that runs, if one does."""
        ...

    async def run(self, turn: int) -> None:
        """Run one turn to its end."""
        ...


class AgentListener(Protocol):
    """Whoever hears what an agent does."""

    async def on_update(self, update: BridgeUpdate) -> None:
        """Take one update; may wait for the store, never for a platform or for the agent."""
        ...

    async def on_ask(self, request: AskRequest) -> str | None:
        """Get a person's answer: an option id, free words where they count, None if cancelled."""
        ...


class AgentSession(Protocol):
    """One conversation with one live agent process."""

    @property
    def acp_session_id(self) -> str:
        """The agent's own name of the conversation."""
        ...

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        ...

    async def prompt(
        self, text: str, listener: AgentListener, *, files: Sequence[Attachment] = ()
    ) -> PromptEnd:
        """Say something and follow what happens until the agent ends its turn.

        The words name every file by its path; files go along in whatever form the agent takes.

        Raises:
            AgentError: it died, hung, misbehaved or answered with an error.
        """
        ...

    async def cancel(self) -> None:
        """Ask the agent to end its turn; returns when it did or when its time is over."""
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
    """What came of bringing an agent to life."""

    @property
    def session(self) -> AgentSession:
        """The conversation."""
        ...

    @property
    def how(self) -> Literal["new", "resumed", "loaded", "lost"]:
        """`lost`: there was a conversation, but the agent could not bring it back."""
        ...


class AgentLauncher(Protocol):
    """Brings agents to life."""

    async def open(
        self, session: Session, workspace: Path, listener: AgentListener
    ) -> OpenedSession:
        """Start the agent's process and its conversation, an earlier one if there was one.

        Raises:
            AgentError: it could not be started or did not answer.
        """
        ...

    async def close(self) -> None:
        """End every process that is still being started or ended."""
        ...


class Workspaces(Protocol):
    """Where agents work."""

    async def open(self, session: Session) -> Path:
        """Make the workspace of a session ready.

        Raises:
            RepositoryError: its repository or its folder cannot be used.
            OSError: it cannot be made.
        """
        ...

    async def close(self, session: int) -> None:
        """Let go of a workspace whose agent is gone; what is in it stays."""
        ...

    def attended(
        self,
        session: Session,
        listener: AgentListener,
        *,
        meanwhile: Callable[[], AbstractAsyncContextManager[None]],
    ) -> AbstractAsyncContextManager[None]:
        """Have a workspace for one turn: what needs a person in it is asked of that turn.

        Where sessions share a folder, whoever comes second waits, inside `meanwhile`.
        """
        ...

    def waits(self, session: Session) -> bool:
        """Tell whether another session is at work in the folder that this one needs."""
        ...

    def describe(self, session: Session) -> WorkspaceView:
        """Tell where a session works."""
        ...

    def outgoing(self, session: Session) -> Path:
        """Tell where a session's agent lays what people shall get."""
        ...

    async def ship(self, session: Session, work: Work) -> str:
        """Deliver what came of a turn; returns what to say about it, nothing if nothing changed.

        Raises:
            RepositoryError: it cannot be delivered.
        """
        ...

    async def bring(self, session: Session, files: Sequence[File]) -> Sequence[Path]:
        """Lay files beside a session's workspace and tell where they are.

        Raises:
            OSError: one of them cannot be read or written.
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
        ask: Callable[[str], Awaitable[bool]],
    ) -> Opened | None:
        """Make a clone ready for its agent; a fresh one is made anew, whatever lies in its place.

        `on_sent` hears of each commit that went on to the remote, before the agent does; `ask`
        has a person decide. None if it was there before.

        Raises:
            RepositoryError: it cannot be.
        """
        ...

    async def close(self, folder: Path) -> None:
        """Take no more pushes from a clone."""
        ...

    def visible(self, folder: Path) -> tuple[Path, ...]:
        """Tell what else an agent must see that works in a folder."""
        ...

    async def prepare(self, clone: Clone) -> str | None:
        """Run the repository's own preparation in a new clone; returns what it said, if any."""
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
        """List the files in which a commit and the base branch cannot both be kept."""
        ...

    async def collisions(
        self, repository: Repository, agent: str, base: str, branch: str
    ) -> tuple[str, tuple[str, ...]] | None:
        """Tell a branch's commit on the remote, and the files that conflict with the base.

        None if either branch is not there.

        Raises:
            RepositoryError: the remote cannot be reached.
        """
        ...

    async def rename(self, old: Repository, new: Repository) -> None:
        """Keep mirror and clones of a repository that is found elsewhere from now on."""
        ...

    async def diff(self, clone: Clone, since: str) -> str:
        """Show what a session changed."""
        ...

    async def unshipped(self, clone: Clone, *, sent: str, start: str) -> str:
        """Say what a clone holds that is nowhere else; nothing if it can be thrown away."""
        ...

    async def remove(self, clone: Clone) -> None:
        """Throw a clone and its gate away."""
        ...


class TokenSource(Protocol):
    """Where the bridge's own credentials for repositories come from."""

    async def token(self, repository: Repository, agent: str) -> str | None:
        """Get a short-lived token that opens this repository and no other, None if there is none.

        The value is registered with the vault by whoever made it.
        """
        ...

    async def author(self, agent: str) -> Author | None:
        """Tell whose name stands in an agent's commits; None leaves it to the bridge."""
        ...


class RepositoryCatalog(Protocol):
    """Which repositories there are to choose from."""

    async def repositories(self, agent: str) -> Sequence[str]:
        """List what an agent's own credentials open, by name, what changed last first.

        Raises:
            RepositoryError: it cannot be found out.
        """
        ...


class PullRequests(Protocol):
    """Where changes are proposed."""

    async def propose(self, proposal: Proposal) -> str:
        """Open a pull request, or bring the open one of this head up to date; returns its link.

        Twice the same is once: it is looked for by repository and head first.

        Raises:
            RepositoryError: it cannot be opened.
        """
        ...

    async def head(self, session: Session) -> Head | None:
        """Tell what a session is about whose place is a pull request; None for other places."""
        ...
