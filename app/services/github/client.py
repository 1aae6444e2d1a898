"""Calls GitHub as an App, and with the App's tokens for the repositories that it reaches.

Tokens are for one repository and as few permissions as a call needs; they are kept while they last.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import httpx

from app.clock import Clock
from app.config.network import HostPattern
from app.errors import PostDelayed, PostRejected
from app.services.common.outgoing import Outgoing
from app.services.github import wording
from app.services.github.auth import LOOKING, RENEW_SECONDS, TALKING, AppAuth, Installations
from app.services.github.payloads import AccessibleRepository
from app.services.github.transport import (
    LIMITED_SECONDS,
    MOST_PAGES,
    PAGE,
    PLAIN,
    Gone,
    Method,
    Pace,
    Transport,
    Unauthorized,
    Unprocessable,
)
from app.vault import Vault


class AppNotInstalled(PostRejected):
    """The App cannot see a repository."""

    def __init__(self, repository: str) -> None:
        super().__init__(wording.NOT_INSTALLED.format(repository=repository))


class PermissionMissing(PostRejected):
    """The App was not granted what a call needs."""

    def __init__(self, permissions: Mapping[str, str]) -> None:
        named = ", ".join(f"{name}: {level}" for name, level in permissions.items())
        super().__init__(wording.LACKS_PERMISSION.format(permissions=named))


@dataclass(frozen=True, slots=True)
class _Token:
    value: str
    until: float


class AppClient:
    """GitHub as the App itself sees it, and the App's tokens, kept while they last."""

    def __init__(self, auth: AppAuth, clock: Clock, *, api_url: str) -> None:
        self._auth = auth
        self._clock = clock
        self._transport = Transport(clock, api_url)
        self._found: dict[str, int] = {}
        self._tokens: dict[tuple[str, frozenset[tuple[str, str]]], _Token] = {}
        self._minting = asyncio.Lock()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.client.aclose()

    @property
    def client(self) -> httpx.AsyncClient:
        """The HTTP client, for requests outside the API."""
        return self._transport.client

    @property
    def installations(self) -> Installations:
        """The installations that the App works for."""
        return self._auth.installations

    async def app(self) -> dict[str, Any] | None:
        """Read what GitHub knows of the App; None if it knows none by its number."""
        found: dict[str, Any] | None = await self.as_app("/app")
        return found

    async def is_public(self, slug: str) -> bool:
        """Tell whether anyone can install an App: GitHub shows only public Apps to everyone."""
        try:
            await self._transport.get("/apps/{slug}", {"slug": slug})
        except (Gone, Unauthorized):
            return False
        return True

    async def account_id(self, login: str) -> int | None:
        """Find the number of an account; None if no account has the login."""
        installed = await self._active_installations()
        token = await self._listing_token(installed[0]) if installed else None
        try:
            user = await self._transport.get("/users/{login}", {"login": login}, token=token)
        except Gone:
            return None
        return int(user["id"])

    async def as_app(self, path: str, data: Any = None) -> Any:
        """Get a path as the App, or post something to it; None if there is no such thing."""
        try:
            if data is None:
                return await self._transport.get(path, jwt=self._auth.jwt())
            return await self._transport.send("post", path, data, jwt=self._auth.jwt())
        except Gone:
            return None

    def deliveries(self) -> AsyncGenerator[dict[str, Any], None]:
        """List what GitHub tried to deliver, the newest first."""
        path = f"/app/hook/deliveries?per_page={PAGE}"
        return self._transport.iterate(path, jwt=self._auth.jwt())

    async def installed(self) -> list[dict[str, Any]]:
        """List all installations, of any account."""
        found: list[dict[str, Any]] = []
        path = f"/app/installations?per_page={PAGE}"
        async with aclosing(self._transport.iterate(path, jwt=self._auth.jwt())) as installations:
            async for each in installations:
                found.append(each)
                if len(found) == MOST_PAGES * PAGE:
                    break
        return found

    async def opened(self) -> list[AccessibleRepository]:
        """List the repositories that the App can work in."""
        await self.installations.wait_briefly()
        numbers = await self._active_installations()
        return [each for number in numbers for each in await self._list_repositories(number)]

    async def token(self, repository: str, permissions: Mapping[str, str]) -> str:
        """Get a token for one repository, a kept one if it lasts.

        Raises:
            AppNotInstalled: the App does not reach it.
        """
        key = (repository, frozenset(permissions.items()))
        async with self._minting:
            kept = self._tokens.get(key)
            if kept is None or kept.until - RENEW_SECONDS < self._clock.now():
                scope = {"repositories": [repository.partition("/")[2]]}
                number = await self.installation(repository)
                kept = await self._make_token(number, scope, permissions)
                if kept is None:
                    self.forget(repository)
                    raise AppNotInstalled(repository)
                self._tokens[key] = kept
        return kept.value

    def forget(self, repository: str) -> None:
        """Drop what is cached for a repository: its tokens and its installation."""
        self._found.pop(repository, None)
        for key in [key for key in self._tokens if key[0] == repository]:
            del self._tokens[key]

    async def installation(self, repository: str) -> int:
        """Find the installation that reaches a repository.

        Raises:
            AppNotInstalled: there is none, or none that the App works for.
            PostDelayed: it is not known yet which ones those are.
        """
        if self.installations.only is not None:
            return int(self.installations.only)
        known = self._found.get(repository)
        if known is None:
            await self.installations.wait_briefly()
            found = await self.as_app(f"/repos/{repository}/installation")
            if found is None or not self.installations.includes(*whose(found)):
                raise AppNotInstalled(repository)
            known = self._found[repository] = int(found["id"])
        return known

    async def granted(self, repository: str) -> dict[str, str]:
        """Read which permissions the App has where it is installed on a repository.

        Raises:
            AppNotInstalled: it is not installed there.
        """
        found = await self.as_app(f"/repos/{repository}/installation")
        if found is None:
            raise AppNotInstalled(repository)
        return dict(found.get("permissions", {}))

    async def _listing_token(self, installation: int) -> str | None:
        """Get a token that can only read metadata, for all repositories of an installation."""
        made = await self._make_token(installation, {}, LOOKING)
        return made.value if made is not None else None

    async def _make_token(
        self, installation: int, scope: Mapping[str, object], permissions: Mapping[str, str]
    ) -> _Token | None:
        path = f"/app/installations/{installation}/access_tokens"
        try:
            made = await self.as_app(path, {**scope, "permissions": dict(permissions)})
        except Unprocessable as error:
            if "permissions" in str(error):
                raise PermissionMissing(permissions) from error
            made = None  # it does not reach the repository
        if made is None:
            return None
        self._auth.keep_secret(made["token"])
        return _Token(made["token"], datetime.fromisoformat(made["expires_at"]).timestamp())

    async def _active_installations(self) -> list[int]:
        return [
            each["id"]
            for each in await self.installed()
            if self.installations.includes(*whose(each)) and not each.get("suspended_at")
        ]

    async def _list_repositories(self, installation: int) -> list[AccessibleRepository]:
        token = await self._listing_token(installation)
        found: list[AccessibleRepository] = []
        if token is None:
            return found
        for page in range(1, MOST_PAGES + 1):
            path = f"/installation/repositories?per_page={PAGE}&page={page}"
            answer = await self._transport.get(path, token=token)
            some = [AccessibleRepository.model_validate(each) for each in answer["repositories"]]
            found += some
            if len(some) < PAGE:
                break
        return [each for each in found if not each.archived and not each.disabled]


def whose(installation: Mapping[str, Any]) -> tuple[int, int | None]:
    """Return the number of an installation and of its account; an enterprise is none."""
    account = installation.get("account") or {}
    return int(installation["id"]), int(account["id"]) if "login" in account else None


OWN_HOSTS = ("github.com", "*.githubusercontent.com")
"""Where pictures may be: what is fetched from there tells GitHub alone."""


class RepositoryClient(AppClient):
    """One App's calls about the repositories that it reaches."""

    def __init__(
        self,
        auth: AppAuth,
        clock: Clock,
        *,
        api_url: str,
        vault: Vault | None = None,
        pictures: Sequence[HostPattern] = (),
    ) -> None:
        """Call as an App; `pictures` are further hosts that pictures may come from."""
        super().__init__(auth, clock, api_url=api_url)
        self._api_url = api_url
        self.outgoing = Outgoing(vault or Vault(), OWN_HOSTS, pictures)
        self._paces: dict[int, Pace] = defaultdict(Pace)

    async def _all(
        self, repository: str, path: str, below: str = "", *, may: Mapping[str, str] = TALKING
    ) -> list[Any]:
        """Read a list to its end; `below` names it where the answer is more than the list."""
        found: list[Any] = []
        for page in range(1, MOST_PAGES + 1):
            answer = await self._get(repository, f"{path}?per_page={PAGE}&page={page}", may=may)
            some = answer[below] if below else answer
            found += some
            if len(some) < PAGE:
                break
        return found

    async def _get(
        self,
        repository: str,
        path: str = "",
        variables: Mapping[str, str] | None = None,
        *,
        may: Mapping[str, str] = TALKING,
        accept: str = PLAIN,
    ) -> Any:
        """Read what is below a repository."""
        whole = f"/repos/{repository}/{path}".rstrip("/")
        call = partial(self._transport.get, whole, variables, accept=accept)
        return await self._with_token(repository, call, may)

    async def _write(
        self,
        repository: str,
        method: Method,
        path: str,
        data: Mapping[str, object],
        *,
        progress: bool = False,
        may: Mapping[str, str] = TALKING,
    ) -> Any:
        """Create or change content, if the installation's rate limit allows it."""
        whole, shown = f"/repos/{repository}/{path}", self.outgoing.clean(dict(data))
        call = partial(self._transport.send, method, whole, shown)
        return await self._paced(repository, call, may, progress=progress)

    async def _query(
        self, repository: str, document: str, may: Mapping[str, str], **variables: object
    ) -> Any:
        """Read something by GraphQL, or change something that only tidies up."""
        call = partial(self._transport.query, document, variables)
        if document.lstrip().startswith("mutation"):
            return await self._paced(repository, call, may, progress=True)
        return await self._with_token(repository, call, may)

    async def _paced(
        self,
        repository: str,
        call: Callable[..., Awaitable[Any]],
        may: Mapping[str, str],
        *,
        progress: bool,
    ) -> Any:
        """Make a call that creates or changes content."""
        pace = self._paces[await self.installation(repository)]
        wait = pace.wait(self._clock.monotonic(), progress=progress)
        if wait > 0:
            raise PostDelayed("GitHub's write limit is reached", retry_after=wait)
        pace.wrote(self._clock.monotonic())
        try:
            return await self._with_token(repository, call, may)
        except PostDelayed as error:
            pace.rest(self._clock.monotonic() + (error.retry_after or LIMITED_SECONDS))
            raise

    async def _with_token(
        self,
        repository: str,
        call: Callable[..., Awaitable[Any]],
        may: Mapping[str, str] = TALKING,
    ) -> Any:
        """Call with a token; one that GitHub no longer accepts is replaced once."""
        try:
            return await call(token=await self.token(repository, may))
        except Unauthorized:
            self.forget(repository)
        return await call(token=await self.token(repository, may))
