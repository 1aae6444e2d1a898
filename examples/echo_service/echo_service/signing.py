"""Signs what goes out and checks what comes in; pure, the time is an argument."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from app.errors import DeliveryRefused
from app.model.inbound import Delivery

WINDOW_SECONDS = 300.0
"""How far a sender's clock may be from ours; the bridge remembers deliveries far longer."""


def sign(secret: str, timestamp: str, delivery: str, body: bytes) -> str:
    """Sign a body together with its time and its id."""
    signed = f"{timestamp}.{delivery}.".encode() + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def headers_for(secret: str, delivery: str, body: bytes, now: float) -> dict[str, str]:
    """Make the headers of a signed request."""
    timestamp = str(int(now))
    return {
        "content-type": "application/json",
        "x-echo-timestamp": timestamp,
        "x-echo-delivery": delivery,
        "x-echo-signature": sign(secret, timestamp, delivery, body),
    }


def verify(
    adapter: str, secret: str, headers: Mapping[bytes, bytes], body: bytes, now: float
) -> Delivery:
    """Check signature and time.

    Raises:
        DeliveryRefused: it was signed with another secret, or not just now.
    """
    timestamp, delivery, given = (
        headers.get(name, b"").decode("latin-1")
        for name in (b"x-echo-timestamp", b"x-echo-delivery", b"x-echo-signature")
    )
    expected = sign(secret, timestamp, delivery, body)
    if not delivery or not hmac.compare_digest(expected.encode(), given.encode()):
        raise DeliveryRefused("the signature is wrong")
    if not timestamp.isdecimal() or abs(now - int(timestamp)) > WINDOW_SECONDS:
        raise DeliveryRefused("the timestamp is too far from now")
    return Delivery(
        adapter=adapter,
        delivery_id=delivery,
        signature=given,
        headers={},
        body=body,
        received_at=now,
    )
