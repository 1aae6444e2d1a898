"""Finds out in which repository a new conversation works, where nothing says so; asks if need be.

Nobody is asked where there is nothing to choose, and a conversation that has begun stays where it
is.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from app.core.adapters import Adapter, SuggestingAdapter
from app.core.clock import persist
from app.core.consent.offers import CHOICE
from app.core.keys import PlaceKey, SessionKey
from app.core.ports import Clock, RepositoryCatalog
from app.core.repositories.directory import NONE, Directory
from app.core.stores.inbox import IntakeStore
from app.core.stores.sessions import SessionStore
from app.core.types import Message, Session
from app.core.updates import AskOption, AskRequest
from app.core.workspaces import Repository, Suggestion
from app.errors import PostError, ServiceRefused

logger = logging.getLogger(__name__)

OFFERED = 99
"""Repositories in one question: Slack shows a hundred options, and one of them is none."""
SURE = 0.9
"""How likely a repository must be to be taken without asking: a wrong one costs a whole turn."""
SUGGESTION_SECONDS = 10.0
"""What a service may take to say which are likely; without it the order is another one."""

REPOSITORY = "repository"
"""Names the question, and why its turn waits."""
_QUESTION = "Which repository shall {agent} work in? New conversations here will do so too."
_MORE = " These are the {shown} that changed last; `repo OWNER/NAME` takes any other."
_NAMED = "Works in {name}, which the message names; `repo OWNER/NAME` takes another."
_LIKELY = "Works in {name}, most likely what this is about; `repo OWNER/NAME` takes another."

# As people write one: alone, in an address of the web, or in one of git.
_MENTIONED = re.compile(
    r"(?<![\w./-])(?:https?://[^\s/]+/|[\w.-]+@[\w.-]+:)?([A-Za-z0-9][A-Za-z0-9-]*/[\w.-]*\w)"
)


class RepositoryChoice:
    """The repositories of conversations that begin."""

    def __init__(
        self,
        places: IntakeStore,
        sessions: SessionStore,
        directory: Directory,
        clock: Clock,
        *,
        adapters: Mapping[str, Adapter],
        catalog: RepositoryCatalog | None,
    ) -> None:
        """Choose; without a catalog there is nothing to choose from."""
        self._places = places
        self._sessions = sessions
        self._directory = directory
        self._clock = clock
        self._adapters = adapters
        self._catalog = catalog

    async def settle(
        self, session: Session, surface: SessionKey, messages: Callable[[], Sequence[Message]]
    ) -> AskRequest | str:
        """See to it that a session's place has a repository, unless it is to have none.

        Returns what is to be asked before anything can begin, else what is worth saying about it.

        Raises:
            RepositoryError: it cannot be found out what there is to choose from.
        """
        place, agent = session.place, session.key.agent
        if place.area is None or self._is_settled(place):
            return ""
        remembered = self._places.place(place.area).repository
        if remembered is not None:
            return await self._pin(place, remembered)
        if self._directory.default is not None:
            return ""
        names = await self._catalog.repositories(agent) if self._catalog is not None else ()
        if len(names) <= 1:
            return await self._pin(place, names[0]) if names else ""
        if (found := named((each.text for each in messages()), names)) is not None:
            return await self._pin(place, found, _NAMED)
        suggested = await self._suggestions(surface, names)
        sure = [each.name for each in suggested if each.confidence >= SURE]
        if len(sure) == 1:
            return await self._pin(place, sure[0], _LIKELY)
        return question(agent, [*(each.name for each in suggested), *names])

    def _is_settled(self, place: PlaceKey) -> bool:
        return (
            self._directory.fixes(place)
            or self._places.place(place).repository is not None
            or any(each.acp_session_id is not None for each in self._sessions.in_place(place))
        )

    async def _pin(self, place: PlaceKey, name: str, words: str = "") -> str:
        chosen = await persist(self._clock, self._places.pin, place, name)
        return words.format(name=name) if chosen == name else ""

    async def _suggestions(self, surface: SessionKey, names: Sequence[str]) -> list[Suggestion]:
        """Ask the service what is likely, the likeliest first; nothing if it does not say."""
        adapter = self._adapters.get(surface.adapter)
        if not isinstance(adapter, SuggestingAdapter):
            return []
        read = map(self._directory.read, names)
        known = {each.name: each for each in read if isinstance(each, Repository)}
        try:
            async with asyncio.timeout(SUGGESTION_SECONDS):
                found = await adapter.suggestions(surface, list(known.values()))
        except (PostError, ServiceRefused, TimeoutError) as error:
            logger.info("nobody suggests a repository for %s: %s", surface, error)
            return []
        fitting = (each for each in found if each.name in known)
        return sorted(fitting, key=lambda each: -each.confidence)


def named(texts: Iterable[str], names: Sequence[str]) -> str | None:
    """Find the one repository that words name in full; None if they name none, or several."""
    known = {name.casefold(): name for name in names}
    said = (match.removesuffix(".git") for text in texts for match in _MENTIONED.findall(text))
    found = {known[each.casefold()] for each in said if each.casefold() in known}
    return found.pop() if len(found) == 1 else None


def question(agent: str, names: Sequence[str]) -> AskRequest:
    """Ask which of these it shall be, or none."""
    each = list(dict.fromkeys(names))
    offered = [AskOption(name, name, CHOICE) for name in each[:OFFERED]]
    more = _MORE.format(shown=OFFERED) if len(each) > OFFERED else ""
    options = (*offered, AskOption(NONE, "No repository", CHOICE))
    return AskRequest(REPOSITORY, _QUESTION.format(agent=agent) + more, options, kind="repository")
