"""Decides which installations an App works for: its owner's, and those that the operator lists.

Anyone can install a public App. Nothing from an installation outside of this list is read, and no
token is created for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from app.errors import DeliveryRefused, PostDelayed
from app.services.github.payloads import Event

KNOWN_SECONDS: Final = 10.0
"""How long a call waits for the owner of the App, which is looked up at the start."""
FOREIGN: Final = (
    "this installation belongs to another account; add the account or the number of the "
    "installation to GITHUB_INSTALLATIONS if the agent works for it"
)


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
            raise DeliveryRefused(FOREIGN, status=403)
