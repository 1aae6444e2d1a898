"""The ports of what comes in: deliveries, and what is decided on the messages in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.core.inbound import (
    Accepted,
    Changed,
    Corrected,
    Decision,
    Delivery,
    DeliveryLine,
    DeliveryState,
    Effect,
)
from app.core.keys import PlaceKey
from app.core.types import PlaceView


class DeliveryStore(Protocol):
    """What came in, as it came."""

    async def add(self, delivery: Delivery) -> None:
        """Keep a delivery; one that is known by id or by signature changes nothing."""
        ...

    async def pending(self, adapter: str, after: int) -> Sequence[Delivery]:
        """List what nobody has dealt with, in order of arrival."""
        ...

    async def settle(self, seq: int, state: DeliveryState, reason: str) -> None:
        """Say what became of a delivery that led to no message."""
        ...

    async def kept(self, adapter: str, *, limit: int) -> Sequence[Delivery]:
        """List what an adapter heard and is still kept, the newest first."""
        ...

    async def recent(self, *, before: int | None, limit: int) -> Sequence[DeliveryLine]:
        """List deliveries without what they held, the newest first."""
        ...


class IntakeStore(Protocol):
    """What the intake must know and what it decides."""

    def decided(self, place: PlaceKey, message_id: str) -> bool:
        """Tell whether this message was decided on before, by whichever adapter heard it."""
        ...

    def place(self, place: PlaceKey) -> PlaceView:
        """Tell who is in a place."""
        ...

    async def accept(self, decision: Decision) -> Accepted:
        """Write all that follows from one message."""
        ...

    async def correct(self, delivery: int, changed: Changed) -> Corrected:
        """Let a message that waits say something else, or drop it; settles the delivery."""
        ...

    async def change(self, place: PlaceKey, effects: Sequence[Effect]) -> Sequence[int]:
        """Write what an operator changed; returns the posts to send."""
        ...

    async def pin(self, place: PlaceKey, repository: str) -> str:
        """Give a place its repository if it has none; returns the one that it has."""
        ...
