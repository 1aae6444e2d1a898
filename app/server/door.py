"""Lets a browser in: links that work once, and the signed cookies that they are exchanged for.

A link is kept as its hash only, and a cookie counts only as long as its log-in lasts.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import urlsplit

from itsdangerous import BadData, URLSafeSerializer
from pydantic import SecretStr

from app.core.ports import Clock
from app.core.stores.housekeeping import LoginStore
from app.vault import Vault

LINK_SECONDS = 15 * 60
"""How long a link can be opened: it is printed where somebody looks at that moment."""
LOGIN_SECONDS = 30 * 24 * 3600
"""How long a log-in lasts: a new link is one command away."""
TOKEN_BYTES = 32
"""Nobody guesses 256 bits."""

_COOKIE = "agent_bridge"
_SIGNED_FOR = "agent-bridge log-in"
_FORM_OF = "agent-bridge form of "


class Door:
    """Makes links, exchanges them for cookies, and knows those cookies again."""

    def __init__(
        self,
        logins: LoginStore,
        clock: Clock,
        vault: Vault,
        *,
        base_url: str,
        secret_key: SecretStr,
    ) -> None:
        self._logins = logins
        self._clock = clock
        self._vault = vault
        self._key = secret_key.get_secret_value().encode()
        self._serializer = URLSafeSerializer(
            self._key,
            salt=_SIGNED_FOR,
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )
        self.base_url = base_url
        self.secure = urlsplit(base_url).scheme == "https"
        self.cookie_name = _cookie_name(base_url)

    async def make_link(self) -> str:
        """Make a link that logs in whoever opens it first.

        Raises:
            StoreUnavailable: it could not be kept.
        """
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._vault.register(token)
        await self._logins.offer(_hash(token), until=self._clock.now() + LINK_SECONDS)
        return f"{self.base_url}/login/{token}"

    async def exchange(self, token: str) -> str | None:
        """Use up the link of a token; returns what the cookie holds, None if it does not work."""
        until = self._clock.now() + LOGIN_SECONDS
        login = await self._logins.begin(_hash(token), until=until)
        return None if login is None else str(self._serializer.dumps(login))

    def login_of(self, cookie: str) -> str | None:
        """Name the log-in of a cookie; None if it is not ours or does not last any more."""
        try:
            login = self._serializer.loads(cookie)
        except BadData:
            return None
        return login if isinstance(login, str) and self._logins.lasts(login) else None

    def form_token(self, login: str) -> str:
        """Make what only our own pages of this log-in can send along."""
        return hmac.new(self._key, f"{_FORM_OF}{login}".encode(), hashlib.sha256).hexdigest()

    async def close(self, login: str) -> None:
        """End a log-in."""
        await self._logins.revoke(login)

    async def close_all(self) -> None:
        """End every log-in and every link."""
        await self._logins.revoke_all()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _cookie_name(base_url: str) -> str:
    """Name the cookie: hosts share theirs among all ports, so two bridges need two names.

    The prefix makes browsers refuse one that was set without TLS or for a parent domain.
    """
    address = urlsplit(base_url)
    name = _COOKIE if address.port is None else f"{_COOKIE}_{address.port}"
    return f"__Host-{name}" if address.scheme == "https" else name
