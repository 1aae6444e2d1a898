"""Ports for repositories: what git does on this machine, and what their host does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

from app.model.reviews import Submission
from app.model.types import Session
from app.model.workspaces import (
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
    Repository,
)


class Checkouts(Protocol):
    """What git does for workspaces: clones, and the gates they push to."""

    async def open(
        self,
        clone: Clone,
        *,
        fresh: bool,
        start: str = "",
        on_sent: Callable[[str], Awaitable[None]],
        ask: Callable[[str, Sequence[str]], Awaitable[bool]],
    ) -> Opened | None:
        """Prepare a clone for its agent; a fresh one replaces anything in its folder.

        `start` is the commit that an existing one began with.
        `on_sent` is told of each commit that reached the remote, before the agent is; `ask` has a
        person decide on a push of files. None if it existed before.

        Raises:
            RepositoryError: it cannot be.
        """
        ...

    async def find_mirror(self, clone: Clone) -> None:
        """Have the mirror that a clone borrows from, fetched again if it was deleted.

        Raises:
            RepositoryError: it cannot be fetched now.
        """
        ...

    def resume(self, folder: Path) -> None:
        """Accept pushes from an open clone again."""
        ...

    async def pause(self, folder: Path) -> None:
        """Refuse pushes from an open clone for now; one that is under way is ended."""
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

    async def find_branch(self, repository: Repository, agent: str, branch: str) -> str | None:
        """Return the last commit of a branch of the remote; None if there is none of that name.

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

    async def changes_in_place(
        self, folder: Path, own: Path, agent: str, *, began: int
    ) -> Sequence[Diff]:
        """Show what is uncommitted in a person's folder; `own` is the session's own folder.

        What changed after the session began, in nanoseconds, may be the agent's.
        """
        ...

    async def find_repositories(
        self, folder: Path, own: Path, agent: str, *, began: int
    ) -> Sequence[str]:
        """List the repositories in a person's folder that its agent made or changed."""
        ...

    async def unshipped(self, clone: Clone, *, sent: str, start: str) -> str:
        """Say what a clone holds that is nowhere else; empty if it can be removed."""
        ...

    async def remove(self, folder: Path) -> None:
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
