"""Gathers what was said around a turn: by people and other agents, since this agent was last told.

It is told once, and it is never an instruction: the prompt marks all of it as data.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.adapters import Adapter
from app.core.stores.sessions import TranscriptStore
from app.core.turns.prompt import Said
from app.core.types import Earlier, File, Message, Session, Turn
from app.vault import Vault

logger = logging.getLogger(__name__)

PLATFORM_SECONDS = 10.0
"""How long a platform may take to say what stands above a message: people wait for the answer."""
FILES = 20
"""Files from above a message that are brought along, the last ones."""
NOT_READ = "(What was said here before could not be read.)"


@dataclass(frozen=True, slots=True)
class Background:
    """What stands around the words of a turn."""

    said: tuple[Said, ...]
    files: tuple[File, ...]
    upto: int
    """The last row of the transcript that this takes in."""


class Surroundings:
    """Where the background of a turn is found: in the transcript, and on the platform itself."""

    def __init__(
        self,
        transcript: TranscriptStore,
        adapters: Mapping[str, Adapter],
        vault: Vault,
        *,
        messages: int,
    ) -> None:
        """Bring at most so many messages, the last ones."""
        self._transcript = transcript
        self._adapters = adapters
        self._vault = vault
        self._messages = messages

    async def gather(self, session: Session, turn: Turn, messages: Sequence[Message]) -> Background:
        """Say what the agent has not been told yet."""
        overheard = await self._transcript.overheard(turn.id, limit=self._messages)
        earlier: Sequence[Earlier] = ()
        said: list[Said] = []
        if not overheard.introduced and self._messages:
            try:
                earlier = await self._earlier(session, turn, messages)
            except Exception as error:  # noqa: BLE001 - whatever it is, the agent is told and works
                logger.warning("what was said before %s cannot be read: %s", turn.surface, error)
                said.append(Said("bridge", NOT_READ))
        said += [Said(each.speaker.name, each.text) for each in earlier if each.text]
        said += [Said(entry.speaker, entry.text) for entry in overheard.entries]
        redact = self._vault.redact
        return Background(
            said=tuple(
                Said(redact(each.name), redact(each.text)) for each in said[-self._messages :]
            )
            if self._messages
            else (),
            files=tuple(file for each in earlier for file in each.files)[-FILES:],
            upto=overheard.upto,
        )

    async def _earlier(
        self, session: Session, turn: Turn, messages: Sequence[Message]
    ) -> Sequence[Earlier]:
        """Read what the platform has and the bridge never heard; agents stand in the transcript."""
        adapter = self._adapters.get(turn.surface.adapter)
        if adapter is None or not messages:
            return ()
        async with asyncio.timeout(PLATFORM_SECONDS):
            found = await adapter.earlier(turn.surface, messages[0].message_id)
        names = [each.message_id for each in found]
        known = await self._transcript.known(session.place, names)
        return [
            each
            for each in found
            if each.message_id not in known
            and each.speaker.kind != "agent"
            and (each.text or each.files)
        ]
