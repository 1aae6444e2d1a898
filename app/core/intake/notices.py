"""Writes what the bridge itself says about one message: in its place, or to its speaker alone."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from app.core.adapters import Adapter
from app.model.inbound import Delivery, Heard
from app.model.keys import SessionKey
from app.model.posts import NewPost, PostContent
from app.model.types import Speaker
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
