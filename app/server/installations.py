"""Tracks installations in progress: to a platform's consent page, and back with a code.

The person who comes back must have the same log-in as the one who left, with a state that the
bridge issued and that was not used before.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Final

from itsdangerous import BadData, URLSafeSerializer
from pydantic import SecretStr

from app.clock import Clock
from app.core.adapters import Adapter
from app.store.sealed import SealedStore

STATE_SECONDS: Final = 15 * 60.0
"""How long a person may take to consent: as long as a log-in link works."""
STATE_BYTES: Final = 32
"""256 bits cannot be guessed."""
_SIGNED_FOR: Final = "agent-bridge installation"


class StateInvalid(Exception):
    """A state was issued to another log-in, has expired or was used before."""


def is_installable(adapters: Mapping[str, Adapter], name: str) -> bool:
    """Tell whether there is something to install for an adapter."""
    adapter = adapters.get(name)
    return adapter is not None and adapter.consent_address("", "") is not None


class PendingInstallations:
    """The installations in progress, each stored by the hash of its state."""

    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        pending: SealedStore,
        clock: Clock,
        *,
        base_url: str,
        secret_key: SecretStr,
    ) -> None:
        self._adapters = adapters
        self._pending = pending
        self._clock = clock
        self._base_url = base_url
        self._serializer = URLSafeSerializer(
            secret_key.get_secret_value().encode(),
            salt=_SIGNED_FOR,
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    async def begin(self, name: str, login: str) -> str | None:
        """Return the consent page's address; an installation started before becomes invalid.

        Raises:
            StoreUnavailable: it could not be stored.
        """
        until = self._clock.now() + STATE_SECONDS
        state = self._serializer.dumps([name, login, until, secrets.token_urlsafe(STATE_BYTES)])
        adapter = self._adapters.get(name)
        address = adapter and adapter.consent_address(self._callback_url(name), str(state))
        if address:
            await self._pending.keep(f"install:{name}", _hash(str(state)))
        return address or None

    async def finish(self, name: str, login: str, *, state: str, code: str) -> str:
        """Install with the code from the platform; returns who the agent is there.

        Raises:
            StateInvalid: the state is of another log-in, expired or used.
            ServiceRefused: the platform rejects the code.
            PostDelayed: the platform cannot be reached now.
        """
        await self.give_up(name, login, state=state)
        return await self._adapters[name].install(code, self._callback_url(name))

    async def give_up(self, name: str, login: str, *, state: str) -> None:
        """Use up a state.

        Raises:
            StateInvalid: the state is of another log-in, expired or used.
        """
        try:
            whose, by, until, _ = self._serializer.loads(state)
        except (BadData, ValueError, TypeError):
            raise StateInvalid from None
        if (whose, by) != (name, login) or until < self._clock.now():
            raise StateInvalid
        if await self._pending.take(f"install:{name}") != _hash(state):
            raise StateInvalid

    def _callback_url(self, name: str) -> str:
        return f"{self._base_url}/install/{name.replace(':', '/')}/callback"


def _hash(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()
