"""What an App does for repositories: short-lived tokens, pull requests, whose head one is."""

from __future__ import annotations

from dataclasses import dataclass

from app.errors import PostRejected
from app.services.github.api import GithubApi
from app.services.github.auth import READING, WRITING
from app.services.github.directory import Directory
from app.services.github.names import Spot
from app.services.github.payloads import Account, Pull


@dataclass(frozen=True, slots=True)
class OpenedPull:
    """A pull request that was opened or brought up to date."""

    url: str
    number: int


@dataclass(frozen=True, slots=True)
class PullHead:
    """What a pull request is about."""

    repository: str
    """Where its branch is: elsewhere, if it comes from a fork."""
    branch: str
    commit: str
    base: str
    is_fork: bool
    by_colleague: bool
    """Whether another one of our agents opened it."""


class GithubRepositories:
    """The repositories that one agent's App reaches."""

    def __init__(self, agent: str, api: GithubApi, directory: Directory) -> None:
        self._agent = agent
        self._api = api
        self._directory = directory

    async def token(self, repository: str, *, write: bool) -> str:
        """Get a token that reaches one repository, to read it or to push to it.

        Raises:
            PostRejected: the App is not installed there, or may not.
            PostDelayed: not now.
        """
        return await self._api.token(repository, WRITING if write else READING)

    async def open_or_update(
        self, repository: str, head: str, base: str, title: str, body: str
    ) -> OpenedPull:
        """Open the pull request of a branch, or change the one that is open; never a second one.

        Raises:
            PostRejected: GitHub takes no such pull request.
            PostDelayed: not now.
        """
        known = await self._api.find_pull(repository, head)
        if known is None:
            asked = {"title": title, "body": body, "head": head, "base": base}
            try:
                return _opened(await self._api.open_pull(repository, asked))
            except PostRejected:
                # It may have been opened meanwhile, or before although no answer came.
                known = await self._api.find_pull(repository, head)
                if known is None:
                    raise
        if (known.title, known.body or "") == (title, body):
            return _opened(known)
        spot = Spot(repository, known.number)
        return _opened(await self._api.change_pull(spot, {"title": title, "body": body}))

    async def head(self, repository: str, number: int) -> PullHead | None:
        """Tell what a pull request is about; None if the number is an issue's."""
        spot = Spot(repository, number)
        if (await self._api.issue(spot)).pull_request is None:
            return None
        pull = await self._api.pull(spot)
        home = pull.head.repo.full_name if pull.head.repo is not None else ""
        return PullHead(
            home,
            pull.head.ref,
            pull.head.sha,
            pull.base.ref,
            is_fork=home != repository,
            by_colleague=self._is_colleague(pull.user),
        )

    def _is_colleague(self, account: Account | None) -> bool:
        if account is None:
            return False
        us = self._directory.us
        who = us.agent(bot_id=account.id, login=account.login, is_bot=account.is_bot)
        return who not in {None, self._agent}

    def author(self) -> tuple[str, str] | None:
        """Tell the name and the address that stand in the agent's commits, once they are known."""
        known = self._directory.of(self._agent)
        return (known.login, known.address) if known is not None else None


def _opened(pull: Pull) -> OpenedPull:
    return OpenedPull(pull.html_url, pull.number)
