"""Defines the host of repositories, and passes calls on to the one that the services have now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.model.proposals import Examined, Proposal, Submission
from app.model.types import Session
from app.model.workspaces import Author, Judged, PullHead, Repository


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

    async def head(self, session: Session) -> PullHead | None:
        """Return the head of a session whose place is a pull request; None for other places."""
        ...

    async def pull(self, repository: Repository, agent: str, number: int) -> PullHead | None:
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


class CurrentForge:
    """The forge port; `forge` is replaced when agents get or lose their credentials."""

    def __init__(self, forge: Forge | None) -> None:
        self.forge = forge
        self.service = ""
        """The service that it belongs to, once it was replaced."""

    async def token(
        self, repository: Repository, agent: str, *, workflows: bool = False
    ) -> str | None:
        """Get a short-lived token for this repository; None if there is none."""
        forge = self.forge
        return None if forge is None else await forge.token(repository, agent, workflows=workflows)

    async def workflow_refusal(self, repository: Repository, agent: str) -> str:
        """Say why an agent can never push workflow files; empty if it can."""
        return "" if self.forge is None else await self.forge.workflow_refusal(repository, agent)

    async def author(self, agent: str) -> Author | None:
        """Return the author of an agent's commits; None leaves it to the bridge."""
        return None if self.forge is None else await self.forge.author(agent)

    async def repositories(self, agent: str) -> Sequence[str]:
        """List the repositories that an agent's credentials open."""
        return () if self.forge is None else await self.forge.repositories(agent)

    async def propose(self, proposal: Proposal) -> str:
        """Open or update a pull request; returns its link, empty without a forge."""
        return "" if self.forge is None else await self.forge.propose(proposal)

    async def judged(self, repository: Repository, agent: str, branch: str) -> Judged | None:
        """Read the checks and the review of an open pull request."""
        return None if self.forge is None else await self.forge.judged(repository, agent, branch)

    async def review(self, submission: Submission) -> str | None:
        """Publish an agent's review of a branch; None where there is no place for it."""
        return None if self.forge is None else await self.forge.review(submission)

    async def examine(self, repository: Repository, agent: str, branch: str) -> Examined | None:
        """Read all that others say about an open pull request."""
        return None if self.forge is None else await self.forge.examine(repository, agent, branch)

    async def head(self, session: Session) -> PullHead | None:
        """Return the head of a session whose place is a pull request."""
        return None if self.forge is None else await self.forge.head(session)

    async def pull(self, repository: Repository, agent: str, number: int) -> PullHead | None:
        """Return the head of a pull request."""
        return None if self.forge is None else await self.forge.pull(repository, agent, number)

    async def guard(self, repository: Repository, agent: str, branch: str) -> str:
        """Say why pushes to a branch need a person's approval; empty if they do not."""
        return "" if self.forge is None else await self.forge.guard(repository, agent, branch)
