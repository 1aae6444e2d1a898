"""Makes log-in links that work once, and the signed cookies that they are exchanged for.

A link is stored as its hash only, and a cookie counts only as long as its log-in lasts. On this
machine the page has a host name that only its visitors know: cookies are sent to every port of a
host, and agents may listen on some. A browser that does not resolve that name can use the plain
address of this machine, with a log-in of its own that counts nowhere else and ends soon.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from fastapi import HTTPException
from itsdangerous import BadData, URLSafeSerializer
from pydantic import SecretStr

from app.clock import Clock
from app.config import Configuration
from app.config.fields import LOCAL_HOSTS
from app.model.people import Person
from app.store.people import Login, LoginStore
from app.vault import Vault

logger = logging.getLogger(__name__)

BURST: Final = 20
"""Wrong guesses that an address may make at once: a script with an old token, and its retries."""
PER_SECOND: Final = 1.0
"""Wrong guesses that it may make after that: enough for a script that retries."""
ADDRESSES: Final = 1024
"""Addresses that are remembered; the one whose last guess is oldest is forgotten first."""


class TooManyGuesses(HTTPException):
    """An address made too many wrong guesses."""

    def __init__(self) -> None:
        super().__init__(429, "too many wrong tokens from this address; wait a second")


@dataclass(slots=True)
class _Bucket:
    """Guesses that an address has left; they refill over time."""

    left: float
    at: float

    def take(self, now: float) -> bool:
        """Take one guess; False if none is left."""
        self.left = min(BURST, self.left + (now - self.at) * PER_SECOND)
        self.at = now
        is_left = self.left >= 1
        self.left -= is_left
        return is_left


class Guesses:
    """Counts wrong guesses of the admin token and of log-in links, by source address.

    Only wrong ones are slowed down: the right token and a link that works are accepted at once,
    however many guesses others make, also from the same address. What keeps a guesser out is the
    length of both.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._by_address: OrderedDict[str, _Bucket] = OrderedDict()

    def count(self, peer: str) -> None:
        """Count a wrong guess.

        Raises:
            TooManyGuesses: its address made too many.
        """
        address, now = _address(peer), self._now()
        bucket = self._by_address.get(address)
        if bucket is None or now - bucket.at > BURST / PER_SECOND:
            bucket = self._by_address[address] = _Bucket(BURST, now)
            logger.warning("wrong admin token or log-in link from %s", address)
        self._by_address.move_to_end(address)
        if len(self._by_address) > ADDRESSES:
            self._by_address.popitem(last=False)
        if not bucket.take(now):
            raise TooManyGuesses


def _address(peer: str) -> str:
    """Name the owner of an address: with IPv6 one customer has a whole network."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return "an unknown address"
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(address), 64), strict=False))
    return str(address)


LINK_SECONDS = 15 * 60
"""How long a link can be opened: it is printed where a person looks at that moment."""
LOGIN_SECONDS = 30 * 24 * 3600
"""How long a log-in lasts: a new link is one command away."""
PLAIN_SECONDS = 12 * 3600
"""How long a log-in at the plain address lasts: a day's work, as other ports may see its cookie."""
FRESH_SECONDS = 10 * 60
"""How long a log-in may decide which programs run: a cookie is in the browser for weeks."""
TOKEN_BYTES = 32
"""256 bits cannot be guessed."""

_COOKIE = "agent_bridge"
_PLAIN = "plain"
_SIGNED_FOR = "agent-bridge log-in at "
_HOST_OF = b"agent-bridge host of the page"
_HOST_BYTES = 10
"""80 bits cannot be guessed, and their 16 letters still fit on a line."""
_FORM_OF = "agent-bridge form of "


class LoginLinks:
    """Makes links, exchanges them for cookies, and recognises those cookies."""

    def __init__(
        self,
        logins: LoginStore,
        clock: Clock,
        vault: Vault,
        *,
        base_url: str,
        secret_key: SecretStr,
        plain_url: str = "",
        kind: str = "",
    ) -> None:
        self._logins = logins
        self._clock = clock
        self._vault = vault
        self._key = secret_key.get_secret_value().encode()
        self._serializer = URLSafeSerializer(
            self._key,
            # For this address only: others may have seen a cookie for another address.
            salt=f"{_SIGNED_FOR}{kind}{base_url}",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )
        self.guesses = Guesses(clock.monotonic)
        self.base_url = base_url
        self.host = urlsplit(base_url).netloc.lower()
        self.secure = urlsplit(base_url).scheme == "https"
        self.cookie_name = _cookie_name(base_url, kind)
        self.is_plain = kind == _PLAIN
        self.seconds = PLAIN_SECONDS if self.is_plain else LOGIN_SECONDS
        self.plain: LoginLinks | None = None
        """The same at the plain address of this machine; None where the page has another one."""
        if plain_url:
            self.plain = LoginLinks(
                logins, clock, vault, base_url=plain_url, secret_key=secret_key, kind=_PLAIN
            )

    def at(self, host: str) -> LoginLinks:
        """Return the log-ins of a Host header: those of one address count at no other."""
        if self.plain is not None and host.lower() == self.plain.host:
            return self.plain
        return self

    def plain_link(self, link: str) -> str:
        """Return the same link at the plain address; empty where there is none."""
        token = link.rpartition("/")[2]
        return "" if self.plain is None else self.plain.link(token)

    async def make_link(self, person: int | None = None) -> str:
        """Make a link that logs in the first person who opens it, as a person or as the operator.

        Raises:
            StoreUnavailable: it could not be stored.
        """
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._vault.register(token)
        until = self._clock.now() + LINK_SECONDS
        await self._logins.offer(hash_secret(token), until=until, person_id=person)
        return self.link(token)

    def link(self, token: str) -> str:
        """Name the address of a token's link."""
        return f"{self.base_url}/login/{f'{_PLAIN}/' if self.is_plain else ''}{token}"

    def is_open(self, token: str) -> bool:
        """Return whether the link of a token can be used; this does not use it up."""
        return self._logins.is_open(hash_secret(token))

    def offered_to(self, token: str) -> Person | None:
        """Return the person that a link was made for; None if it asks for a name."""
        return self._logins.offered_to(hash_secret(token))

    async def exchange(
        self, token: str, earlier: str = "", person: int | None = None
    ) -> str | None:
        """Use up a token's link; returns the cookie's value, None if the link does not work.

        The log-in is that of the person the link was made for, else of `person`.
        """
        until = self._clock.now() + self.seconds
        login = await self._logins.begin(hash_secret(token), until=until, person_id=person)
        return None if login is None else self._bake(login, earlier)

    def _bake(self, login: str, earlier: str) -> str:
        """Make the cookie of a log-in.

        Pages that the same person opened in this browser with the `earlier` cookie can still send
        their forms. Another person's cookie must not do so: they know what its pages send.
        """
        found = self._logins.find(login)
        whose = found.person.id if found is not None and found.person is not None else 0
        _, before, forms = self._read(earlier)
        if before != whose or not forms:
            forms = login
        cookie = str(self._serializer.dumps([login, forms, whose]))
        self._vault.register(cookie)
        return cookie

    def login_of(self, cookie: str) -> Login | None:
        """Return the log-in of a cookie; None if it is not ours or has ended."""
        name, _, _ = self._read(cookie)
        found = self._logins.find(name) if name else None
        if found is not None:
            self._vault.register(cookie)  # a cookie from an earlier run is first seen here
        return found

    def lasts(self, login: str) -> bool:
        """Tell whether a log-in has neither ended nor been revoked."""
        return self._logins.lasts(login)

    def is_fresh(self, login: Login) -> bool:
        """Return whether a person has just proved who they are."""
        proved = login.proved_at
        return proved is not None and self._clock.now() < proved + FRESH_SECONDS

    def form_token(self, cookie: str) -> str:
        """Make the token that only our own pages of this browser can send."""
        _, _, forms = self._read(cookie)
        return hmac.new(self._key, f"{_FORM_OF}{forms}".encode(), hashlib.sha256).hexdigest()

    def _read(self, cookie: str) -> tuple[str, int, str]:
        """Read a cookie: its log-in, its person's number and its forms; empty if not ours."""
        try:
            match self._serializer.loads(cookie):
                case [str(login), str(forms), int(person)]:
                    return login, person, forms
                case [str(login), str(forms)]:  # as earlier releases wrote it
                    return login, 0, forms
                case str(login):
                    return login, 0, login
        except BadData:
            pass
        return "", 0, ""

    async def close(self, login: str) -> None:
        """End a log-in."""
        await self._logins.revoke(login)

    async def close_all(self) -> None:
        """End every log-in and every link."""
        await self._logins.revoke_all()


def private_host(secret_key: SecretStr) -> str:
    """Return the page's host name on this machine, the same at every start.

    An agent that knew the name could lead a browser to it on the agent's own port, with the cookie.
    Browsers resolve every name in `.localhost` to this machine.
    """
    key = secret_key.get_secret_value().encode()
    digest = hmac.new(key, _HOST_OF, hashlib.sha256).digest()[:_HOST_BYTES]
    return f"bridge-{base64.b32encode(digest).decode().lower()}.localhost"


def hash_secret(token: str) -> str:
    """Return what is stored of a secret that nobody can guess."""
    return hashlib.sha256(token.encode()).hexdigest()


def _cookie_name(base_url: str, kind: str) -> str:
    """Name the cookie: hosts share theirs among all ports, so two bridges need two names.

    The prefix makes browsers refuse one that was set without TLS or for a parent domain.
    """
    address = urlsplit(base_url)
    name = "_".join(filter(None, (_COOKIE, kind, str(address.port or ""))))
    return f"__Host-{name}" if address.scheme == "https" else name


def page_url_of(configuration: Configuration, secret_key: SecretStr) -> str:
    """Return the address at which people open the page."""
    if not plain_url_of(configuration):
        return configuration.base_url
    return f"http://{private_host(secret_key)}:{configuration.settings.port}"


def plain_url_of(configuration: Configuration) -> str:
    """Return the page's address for browsers that do not resolve its own name; else empty."""
    if configuration.settings.bridge_base_url or configuration.settings.host not in LOCAL_HOSTS:
        return ""
    return configuration.local_url
