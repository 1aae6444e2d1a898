"""Authenticates as an App: signs in with its key, finds its installations, creates tokens.

A token reaches one repository with the permissions that its use needs, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, cast

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import SecretStr

from app.clock import Clock
from app.errors import PostRejected
from app.services.github import wording
from app.services.github.accounts import Installations
from app.services.github.payloads import Opened
from app.services.github.transport import (
    MOST_PAGES,
    PAGE,
    Gone,
    Transport,
    Unauthorized,
    Unprocessable,
)

JWT_SECONDS = 9 * 60
"""A minute less than GitHub allows."""
SKEW_SECONDS = 60
"""How far GitHub's clock may be behind ours."""
RENEW_SECONDS = 10 * 60
"""A token that ends sooner than this is not used for anything new."""

TALKING: Mapping[str, str] = {"issues": "write", "pull_requests": "write", "metadata": "read"}
"""What it takes to read and to answer."""
CHECKING: Mapping[str, str] = {"checks": "read", "metadata": "read"}
"""What it takes to see how checks ended."""
REPORTED: Mapping[str, str] = {"statuses": "read", "metadata": "read"}
"""What it takes to see what services say about a commit without a check."""
LOGS: Mapping[str, str] = {"actions": "read", "metadata": "read"}
"""What it takes to see what a workflow wrote."""
SHOWING: Mapping[str, str] = {"checks": "write", "metadata": "read"}
"""What it takes to show a turn as a check."""
RESOLVING: Mapping[str, str] = {
    "contents": "write",
    "pull_requests": "write",
    "metadata": "read",
}
"""What it takes to resolve a thread of a review: GitHub asks for the right to push as well."""
LOOKING: Mapping[str, str] = {"metadata": "read"}
READING: Mapping[str, str] = {"contents": "read", "metadata": "read"}
WRITING: Mapping[str, str] = {"contents": "write", "metadata": "read"}


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


class AppAuth:
    """One App's credentials."""

    def __init__(
        self,
        app_id: str,
        private_key: SecretStr,
        clock: Clock,
        *,
        keep_secret: Callable[[str], None],
        installations: Installations,
    ) -> None:
        """Take the App's key; `keep_secret` is told every token before it is used."""
        self.app_id = app_id
        self._private_key = private_key
        self._clock = clock
        self.keep_secret = keep_secret
        self.installations = installations

    def jwt(self) -> str:
        """Sign in as the App."""
        now = int(self._clock.now())
        claims = {"iss": self.app_id, "iat": now - SKEW_SECONDS, "exp": now + JWT_SECONDS}
        return jwt.encode(claims, self._signing_key, algorithm="RS256")

    @cached_property
    def _signing_key(self) -> RSAPrivateKey:
        """The parsed private key; parsing takes 50 ms, a hundred times as long as signing."""
        key = load_pem_private_key(self._private_key.get_secret_value().encode(), password=None)
        return cast("RSAPrivateKey", key)  # PyJWT refuses every other kind


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

    async def opened(self) -> list[Opened]:
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
                kept = self._tokens[key] = await self._mint(repository, permissions)
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

    async def _mint(self, repository: str, permissions: Mapping[str, str]) -> _Token:
        number = await self.installation(repository)
        name = repository.partition("/")[2]
        made = await self._make_token(number, {"repositories": [name]}, permissions)
        if made is None:
            self.forget(repository)
            raise AppNotInstalled(repository)
        return made

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

    async def _list_repositories(self, installation: int) -> list[Opened]:
        token = await self._listing_token(installation)
        found: list[Opened] = []
        if token is None:
            return found
        for page in range(1, MOST_PAGES + 1):
            path = f"/installation/repositories?per_page={PAGE}&page={page}"
            answer = await self._transport.get(path, token=token)
            some = [Opened.model_validate(each) for each in answer["repositories"]]
            found += some
            if len(some) < PAGE:
                break
        return [each for each in found if not each.archived and not each.disabled]


def whose(installation: Mapping[str, Any]) -> tuple[int, int | None]:
    """Return the number of an installation and of its account; an enterprise is none."""
    account = installation.get("account") or {}
    return int(installation["id"]), int(account["id"]) if "login" in account else None
