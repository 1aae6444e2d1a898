"""Tests of signed webhooks, and of paged lists."""

from __future__ import annotations

import hashlib
import hmac
import logging

import pytest

from app.errors import DeliveryRefused
from app.services.common.webhooks import (
    DeliveryStale,
    read_pages,
    verify_signature,
    verify_time,
)

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
    with pytest.raises(DeliveryStale) as stale:
        verify_time(1000.0, 1000.0 + seconds, window=60.0)

    assert stale.value.sent_at == 1000.0


pytestmark = pytest.mark.anyio


async def test_pages_are_read_to_the_end_or_to_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    async def read(cursor: str | None) -> tuple[list[int], str | None]:
        page = int(cursor or 0)
        return [2 * page, 2 * page + 1], str(page + 1) if page < 2 else None

    whole = [item async for item in read_pages(read, pages=3, what="a list")]
    assert (whole, caplog.messages) == ([0, 1, 2, 3, 4, 5], [])

    with caplog.at_level(logging.WARNING):
        cut = [item async for item in read_pages(read, pages=2, what="a list")]
    assert (cut, caplog.messages) == ([0, 1, 2, 3], ["read only the first 2 pages of a list"])
