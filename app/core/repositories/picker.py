"""Lists where a new conversation can work, and checks a choice before anything starts.

A list may be late or incomplete; a choice that only the remote can judge is passed on if the remote
does not answer in time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.repositories.directory import Directory
from app.errors import Conflict, RepositoryError, RepositoryGone
from app.model import repository_wording as wording
from app.model.inbound import Effect
from app.model.keys import PlaceKey
from app.model.workspaces import FOLDER, NONE, Repository
from app.store.sessions import SessionStore

logger = logging.getLogger(__name__)

RECENT = 8
"""Recent repositories and folders that are offered: what people remember."""
LISTED = 500
"""Repositories in one list: more than people look through, and few enough to send at once."""
LIST_SECONDS = 10.0
"""How long a person waits for the list; without it names can still be typed."""
REACH_SECONDS = 10.0
"""How long a person waits for a remote's answer; a later one is told by the turn."""


@dataclass(frozen=True, slots=True)
class Offered:
    """Where a new conversation can work."""

    recent: tuple[str, ...]
    """What was chosen last, the latest first: `owner/name` or `folder:<path>`."""
    listed: tuple[str, ...]
    """What the agent's credentials open."""
    problem: str = ""
    """Why there is no list, if so."""


class RepositoryPicker:
    """Offers and checks repositories and folders."""

    def __init__(
        self,
        directory: Directory,
        sessions: SessionStore,
        *,
        choose: Callable[[PlaceKey, str], tuple[Effect, ...]],
        list_repositories: Callable[[str], Awaitable[Sequence[str]]] | None,
        reach: Callable[[Repository, str], Awaitable[None]],
    ) -> None:
        """Take the rules for a place from `choose`; `reach` raises if a remote refuses."""
        self._directory = directory
        self._sessions = sessions
        self._choose = choose
        self._list = list_repositories
        self._reach = reach

    def default(self, place: PlaceKey) -> str:
        """Return where a place works if nothing is chosen; empty for a folder of its own."""
        match self._directory.target(place, None):
            case Repository(name=name):
                return name
            case Path() as folder:
                return f"{FOLDER}{folder}"
            case _:
                return ""

    async def offer(self, agent: str) -> Offered:
        """List what can be chosen for an agent."""
        recent = tuple(await self._sessions.repositories(limit=RECENT))
        try:
            return Offered(recent, (await self._names(agent))[:LISTED])
        except (RepositoryError, TimeoutError) as error:
            logger.info("no list of repositories for %s: %s", agent, error)
            return Offered(recent, (), wording.NOT_LISTED)

    async def check(self, place: PlaceKey, agent: str, text: str) -> str:
        """Check a choice for a conversation that begins; returns how it is written.

        Raises:
            Conflict: it cannot be used; says what to do.
        """
        if not text:
            return ""
        self._choose(place, text)
        target = self._directory.read(text)
        if isinstance(target, Path):
            return f"{FOLDER}{target}"
        if text.lower() == NONE or not isinstance(target, Repository):
            return text
        try:
            names = {name.casefold(): name for name in await self._names(agent)}
        except (RepositoryError, TimeoutError) as error:
            logger.info("%s is not checked for %s: %s", text, agent, error)
            return text
        if names and text.casefold() not in names:
            raise Conflict(
                f"This agent's GitHub App can't open {text}. Install it there, or choose another "
                "repository."
            )
        if not names:
            await self._try_to_reach(target, agent)
        return names.get(text.casefold(), text)

    async def _names(self, agent: str) -> tuple[str, ...]:
        if self._list is None:
            return ()
        async with asyncio.timeout(LIST_SECONDS):
            return tuple(await self._list(agent))

    async def _try_to_reach(self, repository: Repository, agent: str) -> None:
        try:
            async with asyncio.timeout(REACH_SECONDS):
                await self._reach(repository, agent)
        except RepositoryGone as gone:
            raise Conflict(
                f"{repository.name} can't be opened: {gone.words}. Check the name. For a private "
                "repository, give this agent a GitHub App: `agent-bridge manifest github`."
            ) from gone
        except RepositoryError as error:
            raise Conflict(str(error)) from error
        except TimeoutError:
            logger.info("no answer about %s in time", repository.name)
