"""Verifies signed webhooks; pure, with the time as argument."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from app.errors import DeliveryRefused


class DeliveryStale(DeliveryRefused):
    """A request with a valid signature that was not sent just now: repeated or replayed.

    It is acknowledged: a platform that repeats what fails would only repeat it again.
    """


def verify_signature(body: bytes, given: bytes, secrets: Sequence[bytes], setting: str) -> str:
    """Check an HMAC-SHA256 in hexadecimal over the raw body.

    Returns the signature by the first secret, so that equal bytes are recognised after a rotation.

    Raises:
        DeliveryRefused: none of the secrets made this signature.
    """
    expected = [hmac.new(secret, body, hashlib.sha256).hexdigest() for secret in secrets]
    # All are compared, so that timing does not reveal which one matched.
    if not sum(hmac.compare_digest(each.encode(), given) for each in expected):
        raise DeliveryRefused(f"the signature is wrong: check {setting}")
    return expected[0]


def verify_time(sent_at: float, now: float, *, window: float) -> None:
    """Check that a request was sent just now.

    Raises:
        DeliveryStale: it was not.
    """
    if abs(now - sent_at) > window:
        raise DeliveryStale("the timestamp is not recent", status=200)
