"""Takes what people press, and writes what the bridge itself says about one message."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from app.core.adapters import Adapter, find_presence
from app.core.base import Base
from app.core.consent.ledger import Ledger
from app.core.intake.floor import Access
from app.core.roster import Roster
from app.core.session_manager import SessionManager
from app.errors import BridgeError, SpeakerUnknown
from app.model import wording
from app.model.asks import HAND_OVER
from app.model.inbound import Answered, Corrected, Delivery, Heard, Rated
from app.model.keys import SessionKey
from app.model.posts import NewPost, PostContent
from app.model.types import Speaker
from app.retry import persist
from app.vault import Vault

logger = logging.getLogger(__name__)

WHISPER_SECONDS = 10.0
"""How long a private message may take; nothing depends on it."""


def notice(delivery: Delivery, heard: Heard, agent: str, words: str) -> NewPost:
    """Say something in the place as the agent that heard the message."""
    hearer = delivery.adapter.partition(":")[2]
    target = SessionKey(heard.place.service, heard.external, hearer)
    content = PostContent(
        kind="notice", note=words, asker=heard.speaker.id, message_id=heard.message_id
    )
    return NewPost(f"notice:{heard.place}:{heard.message_id}:{agent}", target, content)


def refusal(delivery: Delivery, heard: Heard, agent: str, words: str) -> NewPost:
    """Refuse a person once per conversation: a stranger cannot make an agent post forever."""
    said = notice(delivery, heard, agent, words)
    conversation = SessionKey(heard.place.service, heard.external, agent)
    return replace(said, key=f"refusal:{conversation}:{heard.speaker.id}")


def speak(delivery: Delivery, heard: Heard, agent: str, words: str) -> NewPost:
    """Say something in the place as an agent."""
    said = notice(delivery, heard, agent, words)
    return replace(said, target=SessionKey(heard.place.service, heard.external, agent))


class Whispers:
    """Private messages, without known secrets."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def send(self, adapter: Adapter, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Send a private message; nothing waits for it, so it is tried once."""
        try:
            async with asyncio.timeout(WHISPER_SECONDS):
                await adapter.whisper(key, speaker, self._vault.redact(words))
        except Exception as error:  # noqa: BLE001 - it is decided, told or not
            logger.info("no private message to %s: %s", speaker.id, error)


class Answers:
    """Answers and verdicts, for all adapters."""

    def __init__(
        self,
        base: Base,
        manager: SessionManager,
        ledger: Ledger,
        access: Access,
        whispers: Whispers,
        roster: Roster,
    ) -> None:
        self._base = base
        self._decisions = base.stores.decisions
        self._manager = manager
        self._ledger = ledger
        self._access = access
        self._whispers = whispers
        self._roster = roster

    async def answer(self, answered: Answered) -> str | None:
        """Give an answer to the ledger if its speaker may trigger the agent.

        Returns why it does not count, if so.
        """
        try:
            why = await self._refusal_of(answered)
            if why is None:
                speaker = await self._name_speaker(answered)
                await persist(
                    self._base.clock,
                    self._ledger.answer,
                    answered.ask,
                    self._ledger.option(answered.ask, answered.option),
                    speaker.name,
                    speaker=speaker.id,
                    on_page=False,
                )
        except BridgeError as error:
            why = str(error)
        return why

    async def turn_down(self, delivery: Delivery, answered: Answered, why: str) -> None:
        """Tell the person who answered that it does not count."""
        key = self._ledger.surface(answered.ask)
        if key is not None:
            words = wording.DOES_NOT_COUNT.format(why=why)
            await self._whispers.send(
                self._base.adapters[delivery.adapter], key, answered.speaker, words
            )

    async def rate(self, delivery: Delivery, rated: Rated) -> str | None:
        """Keep a verdict with its turn, if its speaker may trigger the agent; returns why not."""
        adapter = self._base.adapters[delivery.adapter]
        try:
            why = await self._access.refusal(adapter, rated.speaker, rated.place)
        except SpeakerUnknown:
            why = wording.UNCHECKED
        if why is not None:
            return why
        named = replace(rated, speaker=await adapter.name_speaker(rated.speaker))
        ref = await persist(self._base.clock, self._decisions.rate, delivery.seq, named)
        if ref is not None:
            self._manager.show_correction(rated.place, Corrected("changed", (ref,)))
            key = SessionKey(rated.place.service, rated.external, adapter.agent)
            await self._whispers.send(adapter, key, rated.speaker, wording.THANKS)
        return None

    async def _refusal_of(self, answered: Answered) -> str | None:
        session = self._ledger.session(answered.ask)
        adapter = self._base.adapters.get(session.key.adapter)
        if adapter is None:
            return wording.NO_LONGER_HERE.format(agent=self._roster.title(session.key.agent))
        why = await self._access.refusal(adapter, answered.speaker, session.place)
        option = self._ledger.option(answered.ask, answered.option)
        if why is not None or not option.startswith(HAND_OVER):
            return why
        agent = option.removeprefix(HAND_OVER)
        receiver = find_presence(self._base.adapters, agent, session.place.service)
        if receiver is None:
            return wording.NO_LONGER_HERE.format(agent=self._roster.title(agent))
        return await self._access.refusal(receiver, answered.speaker, session.place)

    async def _name_speaker(self, answered: Answered) -> Speaker:
        """Look up the name of the person who answered, where the event has only the id."""
        adapter = self._base.adapters[self._ledger.session(answered.ask).key.adapter]
        return await adapter.name_speaker(answered.speaker)
