"""Installations that somebody has begun: to a platform's consent page, and back with a code.

Whoever comes back must be whoever left, in the same log-in, with a state that is ours and that
nobody has come back with before.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Final

from itsdangerous import BadData, URLSafeSerializer
from pydantic import SecretStr

from app.core.adapters import InstallableAdapter
from app.core.ports import Clock
from app.core.stores.housekeeping import SealedStore

STATE_SECONDS: Final = 15 * 60.0
"""How long somebody may take to consent: as long as a log-in link works."""
STATE_BYTES: Final = 32
"""Nobody guesses 256 bits."""
_SIGNED_FOR: Final = "agent-bridge installation"


class StateOfNoUse(Exception):
    """Somebody comes back with what was not given to them, or not now, or for the second time."""


class Installations:
    """The installations that somebody has begun, each kept by the hash of its state."""

    def __init__(
        self,
        adapters: Mapping[str, InstallableAdapter],
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

    def knows(self, name: str) -> bool:
        """Tell whether there is something to install for an adapter."""
        adapter = self._adapters.get(name)
        return adapter is not None and adapter.consent_address("", "") is not None

    async def begin(self, name: str, login: str) -> str | None:
        """Send somebody to the consent page; an installation begun before is of no use any more.

        Raises:
            StoreUnavailable: it could not be kept.
        """
        until = self._clock.now() + STATE_SECONDS
        state = self._serializer.dumps([name, login, until, secrets.token_urlsafe(STATE_BYTES)])
        adapter = self._adapters.get(name)
        address = adapter and adapter.consent_address(self._back(name), str(state))
        if address:
            await self._pending.keep(f"install:{name}", _hash(str(state)))
        return address or None

    async def finish(self, name: str, login: str, *, state: str, code: str) -> str:
        """Install with what somebody brings back; returns who the agent is there.

        Raises:
            StateOfNoUse: it was not given to them, or not now, or was used.
            ServiceRefused: the platform gives nothing for the code.
            PostDelayed: not now.
        """
        await self.give_up(name, login, state=state)
        return await self._adapters[name].install(code, self._back(name))

    async def give_up(self, name: str, login: str, *, state: str) -> None:
        """Use up a state.

        Raises:
            StateOfNoUse: it was not given to them, or not now, or was used.
        """
        try:
            whose, by, until, _ = self._serializer.loads(state)
        except (BadData, ValueError, TypeError):
            raise StateOfNoUse from None
        if (whose, by) != (name, login) or until < self._clock.now():
            raise StateOfNoUse
        if await self._pending.take(f"install:{name}") != _hash(state):
            raise StateOfNoUse

    def _back(self, name: str) -> str:
        return f"{self._base_url}/install/{name.replace(':', '/')}/callback"


def _hash(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()
