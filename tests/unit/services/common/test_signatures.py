"""Webhooks are verified by signature and by time."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from app.errors import DeliveryRefused
from app.services.common.signatures import DeliveryStale, verify_signature, verify_time

BODY = b'{"action": "created"}'


def signed(secret: bytes) -> str:
    return hmac.new(secret, BODY, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("secret", [b"new", b"old"])
def test_each_secret_of_a_rotation_is_valid_and_equal_bytes_are_recognised(secret: bytes) -> None:
    found = verify_signature(BODY, signed(secret).encode(), [b"new", b"old"], "A_SECRET")

    assert found == signed(b"new")


@pytest.mark.parametrize("given", [b"", b"\xff", signed(b"other").encode()])
def test_any_other_signature_is_refused_with_the_setting_to_check(given: bytes) -> None:
    with pytest.raises(DeliveryRefused, match="check A_SECRET"):
        verify_signature(BODY, given, [b"new", b"old"], "A_SECRET")


@pytest.mark.parametrize("seconds", [-60.0, 0.0, 60.0])
def test_a_recent_request_is_accepted(seconds: float) -> None:
    verify_time(1000.0, 1000.0 + seconds, window=60.0)


@pytest.mark.parametrize("seconds", [-60.1, 60.1])
def test_an_old_or_early_request_is_refused(seconds: float) -> None:
    with pytest.raises(DeliveryStale):
        verify_time(1000.0, 1000.0 + seconds, window=60.0)
