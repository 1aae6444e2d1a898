"""Makes the tokens with which people's scripts use the API, and recognises them.

A token is shown once, when it is made; only its hash is stored.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Final

from app.clock import Clock
from app.model.people import Person, Role, Token
from app.server.login_links import TOKEN_BYTES, hash_secret
from app.store.people import TokenStore
from app.vault import Vault

PREFIX: Final = "abt_"
"""Says what a token is where one is found that should not be there."""
DAY_SECONDS: Final = 24 * 3600
USED_SECONDS: Final = 60.0
"""How exactly the last use of a token is known: a write for each request would be too much."""


class Tokens:
    """The tokens of people."""

    def __init__(self, store: TokenStore, clock: Clock, vault: Vault) -> None:
        self._store = store
        self._clock = clock
        self._vault = vault

    async def make(self, person: Person, *, name: str, role: Role, days: int) -> tuple[Token, str]:
        """Make a token that may do at most what its person may; returns its secret too."""
        secret = f"{PREFIX}{secrets.token_urlsafe(TOKEN_BYTES)}"
        self._vault.register(secret)
        made = await self._store.add(
            person.id,
            hash_secret(secret),
            name=name,
            role=role.limited_to(person.role),
            until=self._clock.now() + days * DAY_SECONDS,
        )
        return made, secret

    def find(self, secret: str) -> tuple[Token, Person] | None:
        """Return the token of a secret, with what it may do now, and whose it is."""
        found = self._store.find(hash_secret(secret)) if secret.startswith(PREFIX) else None
        if found is None:
            return None
        self._vault.register(secret)  # one from an earlier run is first seen here
        token, person = found
        return replace(token, role=token.role.limited_to(person.role)), person

    async def note_use(self, token: Token) -> None:
        """Note that a token was used, unless that was noted a moment ago."""
        if token.used_at is None or token.used_at < self._clock.now() - USED_SECONDS:
            await self._store.note_use(token.id)

    def lasts(self, token: int) -> bool:
        """Tell whether a token has neither expired nor been revoked."""
        return self._store.lasts(token)
