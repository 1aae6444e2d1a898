"""Implements the forge port with each agent's App: tokens, repositories, pull requests, guards.

An agent without its own App gets nothing: it never borrows the identity of another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import httpx
from cachetools import TTLCache
from gidgethub import GitHubException
from pydantic import ValidationError

from app.clock import Clock
from app.errors import PostError, PostRejected, RepositoryError
from app.model.keys import PlaceKey, SessionKey
from app.model.proposals import Examined, Proposal, Submission
from app.model.types import Session
from app.model.workspaces import Author, Judged, PullHead, Repository
from app.services.github import wording
from app.services.github.api import GithubApi
from app.services.github.auth import WRITING, GitHubApps
from app.services.github.checks import examine, read_judgement
from app.services.github.manifest import WORKFLOWS
from app.services.github.names import SERVICE, Spot
from app.services.github.payloads import Pull
from app.services.github.posting import submit
from app.services.github.render import quiet
from app.services.github.transport import retry_github

logger = logging.getLogger(__name__)

KEPT_SECONDS = 60.0
"""How long a list of repositories is used: after adding one, people try again after a minute."""
IDENTITY_SECONDS = 20.0
"""How long a turn waits for its agent's identity right after a start, GitHub's retries included."""
CACHED_LISTS = 100
"""More agents than a bridge has."""

Link = Callable[[int, SessionKey, PlaceKey], Awaitable[bool]]
T = TypeVar("T")


class GithubForge:
    """The forge port, for all agents that are on GitHub."""

    def __init__(
        self,
        apis: Mapping[str, GithubApi],
        directory: GitHubApps,
        clock: Clock,
        *,
        git_url: str,
        link: Link,
    ) -> None:
        """Speak for these agents; `link` makes a pull request a surface of a session."""
        self._apis = apis
        self._directory = directory
        self._clock = clock
        self._git_url = git_url
        self._link = link
        self._authors: dict[str, Author] = {}
        self._listing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._listed: TTLCache[str, Sequence[str]]
        self._listed = TTLCache(CACHED_LISTS, KEPT_SECONDS, timer=clock.monotonic)

    async def token(
        self, repository: Repository, agent: str, *, workflows: bool = False
    ) -> str | None:
        """Get a short-lived token that opens this repository and no other, None if there is none.

        Raises:
            RepositoryError: GitHub gives none.
        """
        may = {**WRITING, **WORKFLOWS} if workflows else WRITING
        trouble = wording.NO_TOKEN.format(agent=agent)
        return await self._ask(
            repository, agent, trouble, lambda api: api.token(repository.name, may)
        )

    async def workflow_refusal(self, repository: Repository, agent: str) -> str:
        """Say why an agent can never push workflow files, with the remedy; empty if it can."""
        api = self._api(repository, agent)
        if api is None:
            return ""
        try:
            call = partial(api.granted, repository.name)
            granted = await retry_github(self._clock, call, brief=True)
        except PostError as error:
            logger.warning("cannot ask GitHub what the App of %s may do: %s", agent, error)
            return ""  # the push itself will tell
        has_it = granted.items() >= WORKFLOWS.items()
        return "" if has_it else wording.NO_WORKFLOWS.format(agent=agent)

    async def repositories(self, agent: str) -> Sequence[str]:
        """List what an agent's App opens, by name, what changed last first.

        Raises:
            RepositoryError: GitHub does not say.
        """
        api = self._apis.get(agent)
        if api is None:
            return ()
        try:
            async with self._listing[agent]:
                if (names := self._listed.get(agent)) is None:
                    found = await api.opened()
                    found.sort(key=lambda each: each.pushed_at or "", reverse=True)
                    names = self._listed[agent] = tuple(each.full_name for each in found)
                return names
        except (PostError, GitHubException, httpx.HTTPError) as error:
            words = wording.NO_REPOSITORIES.format(agent=agent, error=error)
            raise RepositoryError(words) from error

    async def judged(self, repository: Repository, agent: str, branch: str) -> Judged | None:
        """Read the checks and the review of the open pull request of a branch; None without one.

        Raises:
            RepositoryError: GitHub does not say.
        """
        return await self._ask(
            repository,
            agent,
            wording.PULL_NOT_READ.format(branch=branch),
            lambda api: read_judgement(api, repository.name, branch, self._directory.us),
        )

    async def examine(self, repository: Repository, agent: str, branch: str) -> Examined | None:
        """Read all that checks and reviewers say about a branch's open pull request; None without.

        Raises:
            RepositoryError: GitHub does not say.
        """
        return await self._ask(
            repository,
            agent,
            wording.PULL_NOT_READ.format(branch=branch),
            lambda api: examine(api, repository.name, branch, self._directory.us),
        )

    async def author(self, agent: str) -> Author | None:
        """Return the name and address for an agent's commits; None leaves them to the bridge.

        Raises:
            RepositoryError: GitHub has not told yet who the agent is.
        """
        if agent not in self._apis:
            return None
        try:
            # The gate takes commits by one author only: it must not change while that is open.
            async with asyncio.timeout(IDENTITY_SECONDS):
                known = await self._directory.wait(agent)
        except TimeoutError:
            raise RepositoryError(wording.NO_IDENTITY.format(agent=agent)) from None
        return self._authors.setdefault(agent, Author(known.login, known.address))

    async def propose(self, proposal: Proposal) -> str:
        """Open a pull request, or update the open one of this head; returns its link.

        Raises:
            RepositoryError: it cannot be opened.
        """
        name, agent = proposal.repository.name, proposal.agent
        api = self._apis.get(agent)
        if api is None:
            raise RepositoryError(wording.NO_APP.format(agent=agent))
        proposal = replace(proposal, body=quiet(proposal.body))
        pull = await self._retry(
            wording.NOT_PROPOSED.format(branch=proposal.head),
            lambda: _open_or_update(api, proposal),
        )
        spot = Spot(name, pull.number)
        await self._link(proposal.session, SessionKey(SERVICE, str(spot), agent), spot.place)
        return pull.html_url

    async def review(self, submission: Submission) -> str | None:
        """Review the open pull request of a branch, once; None if GitHub has none, or no App.

        Raises:
            RepositoryError: GitHub does not take it.
        """
        api = self._api(submission.repository, submission.agent)
        if api is None:
            return None
        await self.author(submission.agent)  # a review that is there already has to be recognised
        return await self._retry(
            wording.NOT_REVIEWED.format(branch=submission.branch),
            lambda: submit(api, submission, self._directory.us),
        )

    async def head(self, session: Session) -> PullHead | None:
        """Tell what a session is about whose place is a pull request; None for other places.

        Raises:
            RepositoryError: GitHub does not say.
        """
        api = self._apis.get(session.key.agent)
        if session.place.service != SERVICE or api is None:
            return None
        return await self._head(api, Spot.parse(session.place.name), session.key.agent)

    async def pull(self, repository: Repository, agent: str, number: int) -> PullHead | None:
        """Return the head of a pull request; None if there is none of this number.

        Raises:
            RepositoryError: GitHub does not say.
        """
        api = self._api(repository, agent)
        if api is None:
            return None
        found = await self._head(api, Spot(repository.name, number), agent)
        return None if found is None else replace(found, branch="")

    async def _head(self, api: GithubApi, spot: Spot, agent: str) -> PullHead | None:
        async def find() -> Pull | None:
            return await api.pull(spot) if (await api.issue(spot)).is_pull else None

        pull = await self._retry(wording.NOT_READ.format(spot=spot), find)
        if pull is None:
            return None
        home = pull.head.repo
        is_fork = home is None or home.full_name != spot.repository
        by_colleague = self._directory.us.agent(pull.user) not in {None, agent}
        # A pull request of a fork or of another agent can be read, not pushed to.
        branch = "" if is_fork or by_colleague else pull.head.ref
        commit = f"refs/pull/{spot.number}/head" if is_fork else pull.head.sha
        return PullHead(branch, commit, pull.base.ref, pull.head.ref)

    async def guard(self, repository: Repository, agent: str, branch: str) -> str:
        """Say why pushes to a branch need a person's approval; empty if they do not."""
        api = self._api(repository, agent)
        if api is None:
            return ""  # without its own App it has no token, and cannot push to GitHub at all
        try:
            call = partial(_guard, api, repository.name, branch)
            return await retry_github(self._clock, call, brief=True)
        except (PostError, ValidationError) as error:
            logger.warning("cannot ask GitHub whether %s is protected: %s", branch, error)
            return wording.NOT_ASKED.format(error=error)

    def _api(self, repository: Repository, agent: str) -> GithubApi | None:
        """Find the App for a repository; None if that is not on GitHub, or there is no App."""
        is_here = repository.url == f"{self._git_url}/{repository.name}.git"
        return self._apis.get(agent) if is_here else None

    async def _ask(
        self,
        repository: Repository,
        agent: str,
        trouble: str,
        call: Callable[[GithubApi], Awaitable[T]],
    ) -> T | None:
        """Make a call with retries about a repository; None if the agent has no App for it."""
        api = self._api(repository, agent)
        return None if api is None else await self._retry(trouble, lambda: call(api))

    async def _retry(self, trouble: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call with retries; what GitHub refuses, or fails for too long, is an error."""
        try:
            return await retry_github(self._clock, call)
        except PostError as error:
            raise RepositoryError(f"{trouble}: {error}") from error


async def _open_or_update(api: GithubApi, proposal: Proposal) -> Pull:
    """Open the pull request of a branch, or change the one that is open; never a second one."""
    name, head = proposal.repository.name, proposal.head
    words = {"title": proposal.title, "body": proposal.body}
    known = await api.find_pull(name, head)
    if known is None:
        try:
            return await api.open_pull(name, {**words, "head": head, "base": proposal.base})
        except PostRejected:
            # It may have been opened meanwhile, or by an earlier call that got no answer.
            known = await api.find_pull(name, head)
            if known is None:
                raise
    if (known.title, known.body or "") == (proposal.title, proposal.body):
        return known
    return await api.change_pull(Spot(name, known.number), words)


async def _guard(api: GithubApi, repository: str, branch: str) -> str:
    """Say why pushes to a branch need a person's approval; empty if they do not."""
    if branch == await api.default_branch(repository):
        return wording.DEFAULT_BRANCH
    if await api.is_protected(repository, branch):
        return wording.PROTECTED
    match await api.pulls_onto(repository, branch):
        case []:
            return ""
        case [number]:
            return wording.BASE_OF_ONE.format(number=number)
        case numbers:
            return wording.BASE_OF_SEVERAL.format(pulls=len(numbers))
