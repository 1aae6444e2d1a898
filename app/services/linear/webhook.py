"""Verifies that Linear sent a request, and sent it just now; pure.

Only the timestamp inside the signed body counts. Linear repeats a delivery as the same bytes, so
a repeated one is always too old: an agent that misses the first must catch up. What Linear signed
is acknowledged even if it is not taken: Linear turns a webhook off that answers with errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from app.errors import DeliveryRefused, DeliveryUnreadable
from app.model.inbound import Delivery
from app.services.common.signatures import DeliveryStale, verify_signature, verify_time

BODY_BYTES: Final = 5 * 1024 * 1024
"""Size limit, as in Linear's own library."""
WINDOW_SECONDS: Final = 60.0
"""How far a delivery's time may be from ours, as in Linear's own library."""


@dataclass(frozen=True, slots=True)
class Identity:
    """An agent's user and organisation on Linear."""

    user: str
    organization: str


def verify(
    adapter: str,
    secret: str,
    headers: dict[bytes, bytes],
    body: bytes,
    *,
    now: float,
    identity: Identity | None = None,
) -> Delivery:
    """Check signature, time and recipient; the recipient later, if `identity` is unknown yet.

    Raises:
        DeliveryStale: it is genuine, but not from just now; acknowledged.
        DeliveryRefused: it is not from Linear, or, acknowledged, not for this agent.
    """
    if len(body) > BODY_BYTES:
        raise DeliveryRefused("the body is too large", status=413)
    given = headers.get(b"linear-signature", b"")
    signature = verify_signature(body, given, [secret.encode()], "LINEAR_WEBHOOK_SECRET")
    name = headers.get(b"linear-delivery", b"").decode("latin-1")
    if not name:
        raise DeliveryRefused("Linear-Delivery is missing", status=400)
    event = _object(body)
    _check_addressee(event, identity)
    _check_time(event.get("webhookTimestamp"), now)
    return Delivery(
        adapter=adapter,
        delivery_id=name,
        signature=signature,
        headers={},
        body=body,
        received_at=now,
    )


def check_stored(delivery: Delivery, identity: Identity) -> None:
    """Check the recipient of a stored delivery: the agent's identity may have been unknown before.

    Raises:
        DeliveryUnreadable: it is for another agent.
    """
    try:
        _check_addressee(_object(delivery.body), identity)
    except DeliveryRefused as refused:
        raise DeliveryUnreadable(refused.reason) from None


def _object(body: bytes) -> dict[str, Any]:
    try:
        event = orjson.loads(body)
    except orjson.JSONDecodeError:
        event = None
    if not isinstance(event, dict):
        raise DeliveryRefused("the body is not a JSON object", status=400)
    return event


def _check_addressee(event: dict[str, Any], identity: Identity | None) -> None:
    if identity is None:
        return
    if event.get("organizationId") != identity.organization:
        raise DeliveryRefused("webhook belongs to another organisation", status=200)
    if event.get("appUserId", identity.user) != identity.user:
        raise DeliveryRefused("webhook belongs to another agent", status=200)


def _check_time(stamp: object, now: float) -> None:
    if isinstance(stamp, bool) or not isinstance(stamp, int | float):
        raise DeliveryStale("webhookTimestamp is missing", status=200)
    verify_time(stamp / 1000, now, window=WINDOW_SECONDS)
