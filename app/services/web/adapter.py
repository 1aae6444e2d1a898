"""The adapter of one agent on the page; people read the transcript there, so nothing is sent."""

from __future__ import annotations

from typing_extensions import override

from app.model.inbound import Delivery, Heard
from app.model.keys import PlaceKey
from app.model.types import Speaker
from app.services.common.transcript_adapter import PACE_SECONDS, TranscriptAdapter
from app.services.web import events


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
