"""Authenticates an App, and knows the accounts that it works for and our own Apps.

A login can change hands, an account's number cannot. So a right that is given to a login belongs to
the account that has it when it is first looked up, for as long as the settings name it. Anyone can
install a public App: nothing from an installation outside of the list is read, and no token is
created for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, cast

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import SecretStr

from app.clock import Clock
from app.config.process import Sealer
from app.errors import DeliveryRefused, PostDelayed
from app.retry import persist
from app.services.common.people import PlatformAgents
from app.services.github.names import GitHubIdentity, Identities
from app.services.github.payloads import GitHubEvent
from app.services.github.wording import OTHER_ACCOUNT
from app.store.sealed import SealedStore

logger = logging.getLogger(__name__)


LookUp = Callable[[str], Awaitable[int | None]]


class Accounts:
    """The numbers of the accounts that settings name."""

    def __init__(
        self, logins: Iterable[str], host: str, store: SealedStore, sealer: Sealer, clock: Clock
    ) -> None:
        self._logins = tuple(dict.fromkeys(logins))
        self._name = f"accounts:{host}"
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._numbers: dict[str, int] | None = None
        self._resolving = asyncio.Lock()

    def number_of(self, login: str) -> int | None:
        """Return the number of the account that a login meant."""
        return (self._numbers or {}).get(login.casefold())

    def logins_of(self, number: int) -> list[str]:
        """List the logins of the settings that mean an account."""
        return [login for login in self._logins if self.number_of(login) == number]

    async def resolve(self, look_up: LookUp) -> None:
        """Look up the logins that were not looked up before, once for all Apps.

        Raises:
            PostError: GitHub does not say.
        """
        async with self._resolving:
            if self._numbers is not None:
                return
            sealed = self._store.kept(self._name)
            opened = self._sealer.open(self._name, sealed) if sealed is not None else None
            kept: dict[str, int] = orjson.loads(opened) if opened is not None else {}
            wanted = {login.casefold() for login in self._logins}
            numbers = {login: number for login, number in kept.items() if login in wanted}
            for login in sorted(wanted.difference(numbers)):
                number = await look_up(login)
                if number is None:
                    logger.warning("GitHub has no account %s, which the settings name", login)
                else:
                    numbers[login] = number
            if numbers != kept:
                sealed = self._sealer.seal(self._name, orjson.dumps(numbers).decode())
                await persist(self._clock, self._store.keep, self._name, sealed)
            self._numbers = numbers


KNOWN_SECONDS: Final = 10.0
"""How long a call waits for the owner of the App, which is looked up at the start."""


class Installations:
    """The installations that one App works for."""

    def __init__(self, listed: Collection[str] = (), only: str | None = None) -> None:
        """Take what the operator lists, logins or numbers of installations, or the only one."""
        self.only = only
        self.logins = tuple(each for each in listed if not each.isdigit())
        self._numbers = frozenset(listed).difference(self.logins)
        self._accounts: set[int] = set()
        self._known = asyncio.Event()
        if only is not None:
            self._known.set()

    def add_owner(self, app: Mapping[str, Any]) -> None:
        """Work for the account that owns the App; an enterprise owns none."""
        owner = app.get("owner") or {}
        if "login" in owner:
            self._accounts.add(int(owner["id"]))

    def complete(self, accounts: Iterable[int]) -> None:
        """Work for these accounts too, and for no further ones."""
        self._accounts.update(accounts)
        self._known.set()

    async def wait(self) -> None:
        """Wait until they are known."""
        await self._known.wait()

    async def wait_briefly(self) -> None:
        """Wait until they are known, for as long as a call may take.

        Raises:
            PostDelayed: they are not known yet.
        """
        try:
            async with asyncio.timeout(KNOWN_SECONDS):
                await self.wait()
        except TimeoutError:
            raise PostDelayed("the owner of the App is not known yet") from None

    def includes(self, installation: int, account: int | None) -> bool:
        """Tell whether the App works for an installation, which belongs to an account."""
        if self.only is not None:
            return str(installation) == self.only
        return str(installation) in self._numbers or account in self._accounts

    def check(self, event: GitHubEvent) -> None:
        """Refuse an event of an installation that the App does not work for.

        Raises:
            DeliveryRefused: it is one.
        """
        where, repository = event.installation, event.repository
        if where is None and repository is None:
            return
        account = repository.owner.id if repository is not None and repository.owner else None
        if where is None or not self.includes(where, account):
            raise DeliveryRefused(OTHER_ACCOUNT, status=403)


class GitHubApps(PlatformAgents[GitHubIdentity]):
    """The agents that have an App."""

    def __init__(self, agents: Iterable[str], absent: Mapping[str, str] | None = None) -> None:
        """Know the agents that have an App, and the logins of those that had one."""
        super().__init__(agents)
        self._absent = [GitHubIdentity(agent, login) for agent, login in (absent or {}).items()]
        self.us = Identities.of(self._absent)
        """The ones known so far."""

    def introduce(self, identity: GitHubIdentity) -> None:
        """Set an agent's identity."""
        self.add(identity.agent, identity)
        self.us = Identities.of((*self.known.values(), *self._absent))


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
