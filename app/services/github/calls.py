"""Calls GitHub about one repository: with a token for it, within the rate limits, page by page.

Every call has a token for one repository, with only the permissions that the call needs. Everything
that is written is cleaned first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from app.clock import Clock
from app.config.network import HostPattern
from app.errors import PostDelayed
from app.services.common.outgoing import Outgoing
from app.services.github.auth import TALKING, AppAuth, AppClient
from app.services.github.transport import (
    LIMITED_SECONDS,
    MOST_PAGES,
    PAGE,
    PLAIN,
    Method,
    Pace,
    Unauthorized,
)
from app.vault import Vault

OWN_HOSTS = ("github.com", "*.githubusercontent.com")
"""Where pictures may be: what is fetched from there tells GitHub alone."""


class RepositoryClient(AppClient):
    """One App's calls about the repositories that it reaches."""

    def __init__(
        self,
        auth: AppAuth,
        clock: Clock,
        *,
        api_url: str,
        vault: Vault | None = None,
        pictures: Sequence[HostPattern] = (),
    ) -> None:
        """Call as an App; `pictures` are further hosts that pictures may come from."""
        super().__init__(auth, clock, api_url=api_url)
        self._api_url = api_url
        self.outgoing = Outgoing(vault or Vault(), OWN_HOSTS, pictures)
        self._paces: dict[int, Pace] = defaultdict(Pace)

    async def _all(
        self, repository: str, path: str, below: str = "", *, may: Mapping[str, str] = TALKING
    ) -> list[Any]:
        """Read a list to its end; `below` names it where the answer is more than the list."""
        found: list[Any] = []
        for page in range(1, MOST_PAGES + 1):
            answer = await self._get(repository, f"{path}?per_page={PAGE}&page={page}", may=may)
            some = answer[below] if below else answer
            found += some
            if len(some) < PAGE:
                break
        return found

    async def _get(
        self,
        repository: str,
        path: str = "",
        variables: Mapping[str, str] | None = None,
        *,
        may: Mapping[str, str] = TALKING,
        accept: str = PLAIN,
    ) -> Any:
        """Read what is below a repository."""
        whole = f"/repos/{repository}/{path}".rstrip("/")

        async def call(token: str) -> Any:
            return await self._transport.get(whole, variables, token=token, accept=accept)

        return await self._with_token(repository, call, may)

    async def _write(
        self,
        repository: str,
        method: Method,
        path: str,
        data: Mapping[str, object],
        *,
        progress: bool = False,
        may: Mapping[str, str] = TALKING,
    ) -> Any:
        """Create or change content, if the installation's rate limit allows it."""
        whole, shown = f"/repos/{repository}/{path}", self.outgoing.clean(dict(data))

        async def call(token: str) -> Any:
            return await self._transport.send(method, whole, shown, token=token)

        return await self._paced(repository, call, may, progress=progress)

    async def _query(
        self, repository: str, document: str, may: Mapping[str, str], **variables: object
    ) -> Any:
        """Read something by GraphQL."""

        async def call(token: str) -> Any:
            return await self._transport.query(document, variables, token=token)

        return await self._with_token(repository, call, may)

    async def _mutate(
        self, repository: str, document: str, may: Mapping[str, str], **variables: object
    ) -> Any:
        """Change something by GraphQL that only tidies up."""

        async def call(token: str) -> Any:
            return await self._transport.query(document, variables, token=token)

        return await self._paced(repository, call, may, progress=True)

    async def _paced(
        self,
        repository: str,
        call: Callable[[str], Awaitable[Any]],
        may: Mapping[str, str],
        *,
        progress: bool,
    ) -> Any:
        """Make a call that creates or changes content."""
        pace = self._paces[await self.installation(repository)]
        wait = pace.wait(self._clock.monotonic(), progress=progress)
        if wait > 0:
            raise PostDelayed("GitHub's write limit is reached", retry_after=wait)
        pace.wrote(self._clock.monotonic())
        try:
            return await self._with_token(repository, call, may)
        except PostDelayed as error:
            pace.rest(self._clock.monotonic() + (error.retry_after or LIMITED_SECONDS))
            raise

    async def _with_token(
        self,
        repository: str,
        call: Callable[[str], Awaitable[Any]],
        may: Mapping[str, str] = TALKING,
    ) -> Any:
        """Call with a token; one that GitHub no longer accepts is replaced once."""
        try:
            return await call(await self.token(repository, may))
        except Unauthorized:
            self.forget(repository)
        return await call(await self.token(repository, may))
