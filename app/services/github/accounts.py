"""Looks up the accounts that settings name by login, each once, and keeps their numbers.

A login can change hands, an account's number cannot. So a right that is given to a login belongs to
the account that has it when it is first looked up, for as long as the settings name it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

import orjson

from app.core.ports import Clock
from app.core.retry import persist
from app.core.stores.housekeeping import SealedStore, Sealer

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
