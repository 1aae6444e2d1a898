"""Checks that Linear sent a request, and that it did so just now; pure.

Only the timestamp inside the signed body counts. Linear repeats a delivery as the same bytes, so
a repeated one is always too old: whoever misses the first must look for what it missed.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any, Final

import orjson

from app.core.inbound import Delivery
from app.errors import DeliveryRefused, DeliveryUnreadable

BODY_BYTES: Final = 5 * 1024 * 1024
"""What Linear's own library accepts."""
WINDOW_SECONDS: Final = 60.0
"""How far the time of a delivery may be from ours, as in Linear's own library."""


class DeliveryStale(DeliveryRefused):
    """Linear sent this, but not now: it is repeated, or replayed."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who an agent is on Linear, and where."""

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
    """Check signature, time and addressee; that last one later, where it is not known yet.

    Raises:
        DeliveryStale: it is genuine, but not of this minute.
        DeliveryRefused: it is not Linear's, or not for this agent.
    """
    if len(body) > BODY_BYTES:
        raise DeliveryRefused("the body is too large", status=413)
    given = headers.get(b"linear-signature", b"")
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), given):
        raise DeliveryRefused("the signature is wrong")
    name = headers.get(b"linear-delivery", b"").decode("latin-1")
    if not name:
        raise DeliveryRefused("Linear-Delivery is missing", status=400)
    event = _object(body)
    _check_addressee(event, identity)
    _check_time(event.get("webhookTimestamp"), now)
    return Delivery(
        adapter=adapter,
        delivery_id=name,
        signature=expected,
        headers={},
        body=body,
        received_at=now,
    )


def check_stored(delivery: Delivery, identity: Identity) -> None:
    """Check whom a delivery is for that may have been kept before it was known who the agent is.

    Raises:
        DeliveryUnreadable: it is for somebody else.
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
        raise DeliveryRefused("the body is no JSON object", status=400)
    return event


def _check_addressee(event: dict[str, Any], identity: Identity | None) -> None:
    if identity is None:
        return
    if event.get("organizationId") != identity.organization:
        raise DeliveryRefused("this organisation is not the agent's", status=403)
    if event.get("appUserId", identity.user) != identity.user:
        raise DeliveryRefused("this is for another agent", status=403)


def _check_time(stamp: object, now: float) -> None:
    if isinstance(stamp, bool) or not isinstance(stamp, int | float):
        raise DeliveryRefused("webhookTimestamp is missing", status=400)
    if abs(now - stamp / 1000) > WINDOW_SECONDS:
        raise DeliveryStale("webhookTimestamp is not of this minute", status=400)
