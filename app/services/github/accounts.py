"""Knows accounts on GitHub: those of the settings, those that an App works for, and our own Apps.

A login can change hands, an account's number cannot. So a right that is given to a login belongs to
the account that has it when it is first looked up, for as long as the settings name it. Anyone can
install a public App: nothing from an installation outside of the list is read, and no token is
created for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Final

import orjson

from app.clock import Clock
from app.config.sealing import Sealer
from app.errors import DeliveryRefused, PostDelayed
from app.retry import persist
from app.services.common.identity import Roster
from app.services.github.names import Identities, Identity
from app.services.github.payloads import Event
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
            kept = self._read()
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

    def _read(self) -> dict[str, int]:
        sealed = self._store.kept(self._name)
        opened = self._sealer.open(self._name, sealed) if sealed is not None else None
        found: dict[str, int] = orjson.loads(opened) if opened is not None else {}
        return found


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

    def check(self, event: Event) -> None:
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


class Directory(Roster[Identity]):
    """The agents that have an App."""

    def __init__(self, agents: Iterable[str], absent: Mapping[str, str] | None = None) -> None:
        """Know the agents that have an App, and the logins of those that had one."""
        super().__init__(agents)
        self._absent = [Identity(agent, login) for agent, login in (absent or {}).items()]
        self.us = Identities.of(self._absent)
        """The ones known so far."""

    def introduce(self, identity: Identity) -> None:
        """Set an agent's identity."""
        self.add(identity.agent, identity)
        self.us = Identities.of((*self.known.values(), *self._absent))
