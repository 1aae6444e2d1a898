"""The token of one agent: given by hand, or minted for its OAuth application and renewed in time.

A token is opened only where it is sent, and everything that leaves is checked against it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from app.config import LinearCredentials
from app.core.ports import Clock
from app.errors import PostDelayed, ServiceRefused

SCOPES: Final = ("read", "write", "app:assignable", "app:mentionable")
"""What an agent needs; asking for another set would revoke the tokens it has."""
EARLY_SECONDS: Final = 3600.0
"""How long before its end a token is renewed: longer than any call, much shorter than its life."""

Exchange = Callable[[str, dict[str, str]], Awaitable[tuple[int, Any]]]
"""Sends a form to an address; gives back status and answer."""


class Register(Protocol):
    """Whoever must know every secret."""

    def register(self, *values: str) -> None:
        """Keep values out of whatever leaves."""
        ...


class _Minted(BaseModel):
    model_config = ConfigDict(extra="ignore")

    access_token: SecretStr
    expires_in: float
    scope: str = ""


@dataclass(frozen=True, slots=True)
class _Held:
    token: SecretStr
    until: float


class Tokens:
    """One agent's token, whichever way it comes."""

    def __init__(
        self, name: str, credentials: LinearCredentials, api_url: str, clock: Clock, vault: Register
    ) -> None:
        self._name = name
        self._credentials = credentials
        self._address = token_address(api_url)
        self._clock = clock
        self._vault = vault
        self._held: _Held | None = None
        self._lock = asyncio.Lock()
        self.lacking: tuple[str, ...] = ()
        """The scopes that a minted token should have and has not."""

    async def current(self, exchange: Exchange) -> SecretStr:
        """Give the token to use now.

        Raises:
            ServiceRefused: there is none to be had.
            PostDelayed: not now.
        """
        async with self._lock:
            return await self._current(exchange)

    async def renewed(self, old: SecretStr, exchange: Exchange) -> SecretStr:
        """Give another token than one that Linear does not take any more.

        Raises:
            ServiceRefused: there is none to be had.
            PostDelayed: not now.
        """
        async with self._lock:
            if self._held is not None and self._held.token == old:
                self._held = None
            token = await self._current(exchange)
        if token == old:
            raise self.refused("Linear does not take the token")
        return token

    def refused(self, cause: str) -> ServiceRefused:
        """Say what is wrong with the credentials, and what to do."""
        if self._credentials.client_secret is None:
            remedy = (
                "Make a new LINEAR_ACCESS_TOKEN, or set LINEAR_CLIENT_ID and LINEAR_CLIENT_SECRET "
                "so that tokens are renewed."
            )
        else:
            remedy = (
                "Check LINEAR_CLIENT_ID and LINEAR_CLIENT_SECRET, and that client credentials "
                "are switched on in the application's settings."
            )
        return ServiceRefused(self._name, cause, remedy)

    async def _current(self, exchange: Exchange) -> SecretStr:
        given = self._credentials
        if given.client_id is None or given.client_secret is None:
            assert given.access_token is not None, "checked when the settings were read"
            return given.access_token
        if self._held is None or self._clock.now() > self._held.until - EARLY_SECONDS:
            self._held = await self._mint(exchange, given.client_id, given.client_secret)
        return self._held.token

    async def _mint(self, exchange: Exchange, client: str, secret: SecretStr) -> _Held:
        form = {
            "grant_type": "client_credentials",
            "client_id": client,
            "client_secret": secret.get_secret_value(),
            "scope": ",".join(SCOPES),
        }
        status, answer = await exchange(self._address, form)
        if status >= 500 or status == 429:
            raise PostDelayed(f"Linear gives no token now (status {status})")
        try:
            minted = _Minted.model_validate(answer)
        except ValidationError:
            raise self.refused(f"Linear gives no token (status {status})") from None
        self._vault.register(minted.access_token.get_secret_value())
        granted = set(minted.scope.replace(",", " ").split())
        self.lacking = tuple(scope for scope in SCOPES if granted and scope not in granted)
        return _Held(minted.access_token, self._clock.now() + minted.expires_in)


def token_address(api_url: str) -> str:
    """Say where tokens are minted: beside the GraphQL API."""
    parts = urlsplit(api_url)
    return urlunsplit((parts.scheme, parts.netloc, "/oauth/token", "", ""))
