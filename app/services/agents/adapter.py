"""The adapter of one agent where it works for agents; people read the transcript on the page."""

from __future__ import annotations

from typing_extensions import override

from app.errors import DeliveryRefused
from app.model.delegation import SERVICE
from app.model.inbound import Delivery, Inbound
from app.model.keys import PlaceKey, SessionKey
from app.model.types import Speaker
from app.services.agents.wording import NOT_HERE
from app.services.common.transcript_adapter import TranscriptAdapter


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
