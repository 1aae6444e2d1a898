"""Writes what the bridge itself says about one message, as the agent that heard it."""

from __future__ import annotations

from dataclasses import replace

from app.core.inbound import Delivery, Heard
from app.core.keys import SessionKey
from app.core.posts import NewPost, PostContent


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
