"""What GitHub is for repositories: each agent's App gives tokens, opens pull requests, knows heads.

An agent without an App of its own gets nothing: it never borrows the identity of another one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import httpx
from gidgethub import GitHubException

from app.core.keys import PlaceKey, SessionKey
from app.core.ports import Clock
from app.core.types import Session
from app.core.workspaces import Author, Head, Proposal, Repository
from app.errors import PostError, RepositoryError
from app.services.github.catalog import Catalog
from app.services.github.names import SERVICE, Spot
from app.services.github.patience import patiently
from app.services.github.repositories import GithubRepositories

Link = Callable[[int, SessionKey, PlaceKey], Awaitable[bool]]
T = TypeVar("T")


class GithubForge:
    """The ports of repositories, for all agents that are on GitHub."""

    def __init__(
        self,
        repositories: Mapping[str, GithubRepositories],
        catalogs: Mapping[str, Catalog],
        clock: Clock,
        *,
        git_url: str,
        link: Link,
    ) -> None:
        """Speak for these agents; `link` makes a pull request a surface of a session."""
        self._repositories = repositories
        self._catalogs = catalogs
        self._clock = clock
        self._git_url = git_url
        self._link = link

    async def token(self, repository: Repository, agent: str) -> str | None:
        """Get a short-lived token that opens this repository and no other, None if there is none.

        Raises:
            RepositoryError: GitHub gives none.
        """
        mine = self._repositories.get(agent)
        if mine is None or repository.url != self._address(repository.name):
            return None
        return await self._patiently(
            f"GitHub gives {agent} no token", lambda: mine.token(repository.name, write=True)
        )

    async def repositories(self, agent: str) -> Sequence[str]:
        """List what an agent's App opens, by name, what changed last first.

        Raises:
            RepositoryError: GitHub does not say.
        """
        mine = self._catalogs.get(agent)
        try:
            return () if mine is None else await mine.names()
        except (PostError, GitHubException, httpx.HTTPError) as error:
            raise RepositoryError(
                f"GitHub does not say which repositories {agent} may work in ({error}). Say "
                "`repo OWNER/NAME` or `repo none`, or send the message again later."
            ) from error

    async def author(self, agent: str) -> Author | None:
        """Tell whose name stands in an agent's commits; None leaves it to the bridge."""
        mine = self._repositories.get(agent)
        known = mine.author() if mine is not None else None
        return Author(*known) if known is not None else None

    async def propose(self, proposal: Proposal) -> str:
        """Open a pull request, or bring the open one of this head up to date; returns its link.

        Raises:
            RepositoryError: it cannot be opened.
        """
        name, agent = proposal.repository.name, proposal.agent
        mine = self._repositories.get(agent)
        if mine is None:
            raise RepositoryError(f"{agent} has no GitHub App")
        opened = await self._patiently(
            f"{proposal.head} cannot be proposed",
            lambda: mine.open_or_update(
                name, proposal.head, proposal.base, proposal.title, proposal.body
            ),
        )
        spot = Spot(name, opened.number)
        await self._link(proposal.session, SessionKey(SERVICE, str(spot), agent), spot.place)
        return opened.url

    async def head(self, session: Session) -> Head | None:
        """Tell what a session is about whose place is a pull request; None for other places.

        Raises:
            RepositoryError: GitHub does not say.
        """
        mine = self._repositories.get(session.key.agent)
        if session.place.service != SERVICE or mine is None:
            return None
        spot = Spot.parse(session.place.name)
        found = await self._patiently(
            f"{spot} cannot be read", lambda: mine.head(spot.repository, spot.number)
        )
        if found is None:
            return None
        # What a fork or another agent proposes is there to be looked at, not to be pushed to.
        branch = "" if found.is_fork or found.by_colleague else found.branch
        return Head(branch, f"refs/pull/{spot.number}/head" if found.is_fork else found.commit)

    async def _patiently(self, trouble: str, call: Callable[[], Awaitable[T]]) -> T:
        """Do what can be done again; what GitHub refuses, or cannot do for long, is an error."""
        try:
            return await patiently(self._clock, call)
        except PostError as error:
            raise RepositoryError(f"{trouble}: {error}") from error

    def _address(self, name: str) -> str:
        return f"{self._git_url}/{name}.git"
