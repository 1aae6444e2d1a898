"""Signs an App in: its JWT, where it is installed, and tokens for one repository each.

A token reaches one repository with the permissions that its use needs, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import jwt
from pydantic import SecretStr

from app.core.ports import Clock
from app.errors import PostRejected

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
LOOKING: Mapping[str, str] = {"metadata": "read"}
READING: Mapping[str, str] = {"contents": "read", "metadata": "read"}
WRITING: Mapping[str, str] = {"contents": "write", "metadata": "read"}


class AppNotInstalled(PostRejected):
    """The App cannot see a repository."""

    def __init__(self, repository: str) -> None:
        super().__init__(
            f"the App is not installed on {repository}; install it there, or give it access"
        )


class AppCall(Protocol):
    """Calls GitHub as the App itself."""

    async def __call__(self, path: str, data: Any = None) -> Any:
        """Get a path, or post something to it; None if GitHub knows no such thing."""
        ...


@dataclass(frozen=True, slots=True)
class _Token:
    value: str
    until: float


class AppAuth:
    """One App's keys: the JWT made from its private key, and tokens, kept while they last."""

    def __init__(
        self,
        app_id: str,
        private_key: SecretStr,
        clock: Clock,
        *,
        keep_secret: Callable[[str], None],
        installation: str | None = None,
    ) -> None:
        """Take the App's key; `keep_secret` is told every token before it is used."""
        self.app_id = app_id
        self._private_key = private_key
        self._clock = clock
        self._keep_secret = keep_secret
        self._only = installation
        self._installations: dict[str, int] = {}
        self._tokens: dict[tuple[str, frozenset[tuple[str, str]]], _Token] = {}
        self._lock = asyncio.Lock()

    def jwt(self) -> str:
        """Sign in as the App."""
        now = int(self._clock.now())
        claims = {"iss": self.app_id, "iat": now - SKEW_SECONDS, "exp": now + JWT_SECONDS}
        return jwt.encode(claims, self._private_key.get_secret_value(), algorithm="RS256")

    async def installation(self, repository: str, call: AppCall) -> int:
        """Find the installation that reaches a repository.

        Raises:
            AppNotInstalled: there is none.
        """
        if self._only is not None:
            return int(self._only)
        known = self._installations.get(repository)
        if known is None:
            found = await call(f"/repos/{repository}/installation")
            if found is None:
                raise AppNotInstalled(repository)
            known = self._installations[repository] = int(found["id"])
        return known

    async def token(self, repository: str, permissions: Mapping[str, str], call: AppCall) -> str:
        """Get a token for one repository, a kept one if it lasts.

        Raises:
            AppNotInstalled: the App does not reach it.
        """
        key = (repository, frozenset(permissions.items()))
        async with self._lock:
            kept = self._tokens.get(key)
            if kept is None or kept.until - RENEW_SECONDS < self._clock.now():
                kept = self._tokens[key] = await self._mint(repository, permissions, call)
        return kept.value

    def forget(self, repository: str) -> None:
        """Throw away what is kept for a repository: GitHub does not take it any more."""
        self._installations.pop(repository, None)
        for key in [key for key in self._tokens if key[0] == repository]:
            del self._tokens[key]

    async def listing(self, installation: int, call: AppCall) -> str | None:
        """Get a token that can do nothing but look, in all repositories of an installation."""
        asked = {"permissions": dict(LOOKING)}
        made = await call(f"/app/installations/{installation}/access_tokens", asked)
        if made is None:
            return None
        self._keep_secret(made["token"])
        return str(made["token"])

    async def _mint(self, repository: str, permissions: Mapping[str, str], call: AppCall) -> _Token:
        number = await self.installation(repository, call)
        asked = {
            "repositories": [repository.partition("/")[2]],
            "permissions": dict(permissions),
        }
        made = await call(f"/app/installations/{number}/access_tokens", asked)
        if made is None:
            self.forget(repository)
            raise AppNotInstalled(repository)
        self._keep_secret(made["token"])
        return _Token(made["token"], datetime.fromisoformat(made["expires_at"]).timestamp())
