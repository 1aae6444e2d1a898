"""Adapters where people read the transcript itself: the page, and where agents work for agents."""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from app.core.adapters import Adapter
from app.errors import DeliveryRefused
from app.model.delegation import SERVICE
from app.model.inbound import Delivery, Heard, Inbound
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import Cleaned, PostSend, PostSent
from app.model.types import Speaker
from app.services.common.wording import NOT_HERE
from app.services.web import events
from app.vault import Vault

PACE_SECONDS: Final = 60.0
"""Progress reaches the page through the transcript, so posts need not be frequent."""


class TranscriptAdapter(Adapter):
    """The half of the adapter port that sends."""

    def __init__(self, service: str, agent: str, *, pace: float = PACE_SECONDS) -> None:
        super().__init__(service, agent, pace=pace)

    @override
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Do nothing: the page reports a refusal in its response."""

    @override
    async def send(self, post: PostSend) -> PostSent:
        """Note a post as sent: the page shows the transcript."""
        return PostSent(remote_id=post.remote_id or post.marker, consumed=len(post.content.text))

    @override
    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Return None: sending a post again would change nothing."""
        return None

    @override
    async def purge(self, key: SessionKey, vault: Vault) -> Cleaned:
        """Do nothing: everything shown here is in the store."""
        return Cleaned()


class WebAdapter(TranscriptAdapter):
    """The adapter port for the page and the API."""

    def __init__(self, agent: str, *, pace: float = PACE_SECONDS) -> None:
        super().__init__(events.SERVICE, agent, pace=pace)

    @override
    def parse(self, delivery: Delivery) -> Heard:
        """Parse a message from the page."""
        return events.heard(delivery)

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        """Allow everyone: a person who gets this far is signed in."""
        return None


class AgentsAdapter(TranscriptAdapter):
    """The adapter port for places of agents; nothing comes in and nothing is sent."""

    def __init__(self, agent: str) -> None:
        super().__init__(SERVICE, agent)

    @override
    def parse(self, delivery: Delivery) -> Inbound:
        """Refuse every delivery: there are none here."""
        raise DeliveryRefused("nothing is delivered here", status=404)

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str:
        """Refuse everyone: people talk where it all began."""
        return NOT_HERE

    @override
    def is_shared(self, key: SessionKey) -> bool:
        """Tell that no other agent answers here."""
        return False
