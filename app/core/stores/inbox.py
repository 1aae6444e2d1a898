"""Ports for the inbox: deliveries, and the decisions on their messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.model.filters import EVERYTHING, ListFilter
from app.model.inbound import (
    Accepted,
    Changed,
    Corrected,
    Decision,
    Delivery,
    DeliveryLine,
    DeliveryState,
    Effect,
    Rated,
)
from app.model.keys import PlaceKey
from app.model.types import PlaceView, TurnRef


class DeliveryStore(Protocol):
    """Deliveries as they arrived."""

    async def add(self, delivery: Delivery) -> None:
        """Store a delivery; one known by id or by signature changes nothing."""
        ...

    async def outcome(self, adapter: str, delivery_id: str) -> DeliveryState | None:
        """Return what became of a delivery; None if it never arrived."""
        ...

    async def pending(self, adapter: str, after: int) -> Sequence[Delivery]:
        """List the unsettled deliveries, in order of arrival."""
        ...

    async def settle(self, seq: int, state: DeliveryState, reason: str) -> None:
        """Record the outcome of a delivery that led to no message."""
        ...

    async def kept(self, adapter: str, *, limit: int) -> Sequence[Delivery]:
        """List an adapter's stored deliveries, the newest first."""
        ...

    async def recent(
        self, only: ListFilter = EVERYTHING, *, before: int | None, limit: int
    ) -> Sequence[DeliveryLine]:
        """List deliveries without their content, the newest first."""
        ...


class IntakeStore(Protocol):
    """What the intake reads, and what it decides."""

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
        """Edit or drop a queued message; settles the delivery."""
        ...

    async def rate(self, delivery: int, rated: Rated) -> TurnRef | None:
        """Note a verdict with its turn, and settle the delivery; None if nothing is new."""
        ...

    async def change(self, place: PlaceKey, effects: Sequence[Effect]) -> Sequence[int]:
        """Write what an operator changed; returns the posts to send."""
        ...

    async def pin(self, place: PlaceKey, repository: str) -> str:
        """Give a place its repository if it has none; returns the one that it has."""
        ...
