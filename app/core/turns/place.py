"""Reads what its place gives a turn: the repository to work in, and what was said there before.

People are not asked where there is nothing to choose, and a conversation that has begun keeps its
repository. Each message is told once and is never an instruction: the prompt marks it as data.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from app.config import Configuration
from app.core.base import Base
from app.core.repositories.directory import Directory
from app.core.turns.prompt import NOT_READ, QuotedMessage
from app.errors import PostError, ServiceRefused
from app.model import wording
from app.model.asks import CHOICE
from app.model.inbound import RUN
from app.model.keys import PlaceKey, SessionKey
from app.model.types import Earlier, Entry, File, Message, Session, Turn
from app.model.updates import AskOption, AskRequest
from app.model.workspaces import NONE, Repository, Suggestion, web_address
from app.retry import persist

logger = logging.getLogger(__name__)

OFFERED = 99
"""Repositories in one question: some platforms show 100 options, and one is for none."""
SURE = 0.9
"""How likely a repository must be to be taken without asking: a wrong one costs a whole turn."""
SUGGESTION_SECONDS = 10.0
"""How long a service may take to suggest some; without it only their order differs."""

REPOSITORY = "repository"
"""The id of the question, and the reason why its turn waits."""

# As people write one: alone, in a web address or in a git address.
_MENTIONED = re.compile(
    r"(?<![\w./-])(?:https?://[^\s/]+/|[\w.-]+@[\w.-]+:)?([A-Za-z0-9][A-Za-z0-9-]*/[\w.-]*\w)"
)
PLATFORM_SECONDS = 10.0
"""How long a platform may take to list earlier messages: people wait for the answer."""
FILES = 20
"""How many files of earlier messages are fetched, the last ones."""


@dataclass(frozen=True, slots=True)
class ChosenRepository:
    """The repository of a place, and what to say about it, if anything."""

    repository: str | None
    """`owner/name`, `folder:<path>` or `none`; None leaves it to the settings."""
    words: str = ""


class RepositoryChoice:
    """Chooses the repositories of new conversations."""

    def __init__(
        self,
        base: Base,
        directory: Directory,
        *,
        list_repositories: Callable[[str], Awaitable[Sequence[str]]] | None,
    ) -> None:
        """Take the list of an agent's repositories from the forge; without it none is offered."""
        self._base = base
        self._places = base.stores.decisions
        self._sessions = base.stores.sessions
        self._directory = directory
        self._list = list_repositories

    async def settle(
        self,
        session: Session,
        surface: SessionKey,
        chosen: str | None,
        messages: Callable[[], Sequence[Message]],
    ) -> AskRequest | ChosenRepository:
        """Choose the repository of a session's place, if it needs one.

        `chosen` is what its place has already. Returns a question if people have to choose.

        Raises:
            RepositoryError: the repositories cannot be listed.
        """
        place, agent = session.place, session.key.agent
        area = self._directory.area_of(place)
        if self._base.agent(agent).host:
            return ChosenRepository(chosen)
        if area is None or chosen is not None or self._is_settled(place):
            return ChosenRepository(chosen)
        remembered = self._places.place(area).repository
        if remembered is not None:
            return await self._pin(place, remembered)
        if self._directory.default is not None:
            return ChosenRepository(None)
        names = await self._list(agent) if self._list is not None else ()
        if len(names) <= 1:
            return await self._pin(place, names[0]) if names else ChosenRepository(None)
        if (found := find_named((each.text for each in messages()), names)) is not None:
            return await self._pin(place, found, wording.WORKS_IN_NAMED)
        suggested = await self._suggestions(surface, names)
        sure = [each.name for each in suggested if each.confidence >= SURE]
        if len(sure) == 1:
            return await self._pin(place, sure[0], wording.WORKS_IN_LIKELY)
        return question(agent, [*(each.name for each in suggested), *names], self._address)

    def _address(self, name: str) -> str:
        """Return the address of a repository on the web; empty if it has none."""
        found = self._directory.read(name)
        return web_address(found) if isinstance(found, Repository) else ""

    def _is_settled(self, place: PlaceKey) -> bool:
        return self._directory.fixes(place) or any(
            each.acp_session_id is not None for each in self._sessions.in_place(place)
        )

    async def _pin(self, place: PlaceKey, name: str, words: str = "") -> ChosenRepository:
        chosen = await persist(self._base.clock, self._places.pin, place, name)
        return ChosenRepository(chosen, words.format(name=name) if chosen == name else "")

    async def _suggestions(self, surface: SessionKey, names: Sequence[str]) -> list[Suggestion]:
        """Ask the service for suggestions, the likeliest first; none if it does not answer."""
        adapter = self._base.adapters.get(surface.adapter)
        if adapter is None:
            return []
        read = map(self._directory.read, names)
        known = {each.name: each for each in read if isinstance(each, Repository)}
        try:
            async with asyncio.timeout(SUGGESTION_SECONDS):
                found = await adapter.suggestions(surface, list(known.values()))
        except (PostError, ServiceRefused, TimeoutError) as error:
            logger.info("no repository suggestions for %s: %s", surface, error)
            return []
        fitting = (each for each in found if each.name in known)
        return sorted(fitting, key=lambda each: -each.confidence)


def find_named(texts: Iterable[str], names: Sequence[str]) -> str | None:
    """Find the one repository that texts name in full; None if they name none, or several."""
    known = {name.casefold(): name for name in names}
    said = (match.removesuffix(".git") for text in texts for match in _MENTIONED.findall(text))
    found = {known[each.casefold()] for each in said if each.casefold() in known}
    return found.pop() if len(found) == 1 else None


def question(
    agent: str, names: Sequence[str], address: Callable[[str], str] = lambda _name: ""
) -> AskRequest:
    """Ask which of these repositories to use, or none."""
    each = list(dict.fromkeys(names))
    offered = [AskOption(name, name, CHOICE, url=address(name)) for name in each[:OFFERED]]
    more = wording.PICK_OTHER.format(shown=OFFERED) if len(each) > OFFERED else ""
    options = (*offered, AskOption(NONE, wording.NO_REPOSITORY, CHOICE))
    return AskRequest(
        REPOSITORY, wording.PICK_REPOSITORY.format(agent=agent) + more, options, kind="repository"
    )


@dataclass(frozen=True, slots=True)
class PlaceContext:
    """The context of a turn's messages."""

    said: tuple[QuotedMessage, ...]
    files: tuple[File, ...]
    upto: int
    """The last row of the transcript that this covers."""


def operator_prompt(
    configuration: Configuration, area_of: Callable[[PlaceKey], PlaceKey | None], place: PlaceKey
) -> str:
    """Return what the operator adds to the first prompt of a conversation in a place."""
    settings = configuration.service_settings.get(place.service)
    name = (area_of(place) or place).name
    return settings.area_prompts().get(name, "") if settings is not None else ""


class ContextFinder:
    """Finds the context of a turn in the transcript and on the platform itself."""

    def __init__(self, base: Base, *, messages: int, name_of: Callable[[str], str] = str) -> None:
        """Gather at most this many messages, the last ones.

        `name_of` returns what people call an agent.
        """
        self._name_of = name_of
        self._base = base
        self._transcript = base.stores.transcript
        self._messages = messages

    async def gather(
        self, session: Session, turn: Turn, messages: Sequence[Message]
    ) -> PlaceContext:
        """Gather what the agent has not been told yet."""
        overheard = await self._transcript.overheard(turn.id, limit=self._messages)
        earlier: Sequence[Earlier] = ()
        said: list[QuotedMessage] = []
        if not overheard.introduced and self._messages:
            try:
                earlier = await self._read_earlier(session, turn, messages)
            except Exception as error:  # noqa: BLE001 - the agent is told, and works without it
                logger.warning("cannot read the earlier messages of %s: %s", turn.surface, error)
                said.append(QuotedMessage("bridge", NOT_READ))
        said += [QuotedMessage(each.speaker.name, each.text) for each in earlier if each.text]
        said += [QuotedMessage(self._speaker(entry), entry.text) for entry in overheard.entries]
        redact = self._base.vault.redact
        return PlaceContext(
            said=tuple(
                QuotedMessage(redact(each.name), redact(each.text))
                for each in said[-self._messages :]
            )
            if self._messages
            else (),
            files=tuple(file for each in earlier for file in each.files)[-FILES:],
            upto=overheard.upto,
        )

    def _speaker(self, entry: Entry) -> str:
        return entry.speaker if entry.session is None else self._name_of(entry.speaker)

    async def _read_earlier(
        self, session: Session, turn: Turn, messages: Sequence[Message]
    ) -> Sequence[Earlier]:
        """Read messages that only the platform has; those of agents are in the transcript."""
        adapter = self._base.adapters.get(turn.surface.adapter)
        if adapter is None or not messages:
            return ()
        async with asyncio.timeout(PLATFORM_SECONDS):
            said = (each.message_id for each in messages if not each.message_id.startswith(RUN))
            found = await adapter.earlier(turn.surface, next(said, ""))
        if not found:
            return ()
        names = [each.message_id for each in found]
        known = await self._transcript.known(session.place, names)
        return [
            each
            for each in found
            if each.message_id not in known
            and each.speaker.kind != "agent"
            and (each.text or each.files)
        ]
