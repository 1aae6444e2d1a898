"""Gathers what people and other agents said in a place since this agent was last told.

Each message is told once and is never an instruction: the prompt marks all of it as data.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.config import Configuration
from app.core.base import Base
from app.core.turns.prompt import QuotedMessage
from app.model.inbound import RUN
from app.model.keys import PlaceKey
from app.model.types import Earlier, Entry, File, Message, Session, Turn

logger = logging.getLogger(__name__)

PLATFORM_SECONDS = 10.0
"""How long a platform may take to list earlier messages: people wait for the answer."""
FILES = 20
"""How many files of earlier messages are fetched, the last ones."""
NOT_READ = "(Earlier messages here could not be read.)"


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
