"""The verifier: signature first, then addressee and time, all before anything is kept."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DeliveryRefused
from app.services.common.webhooks import DeliveryStale
from app.services.linear.webhook import BODY_BYTES, LinearIdentity, verify

SECRET = "lin_wh_secret"
NOW = 1_800_000_000.0
ME = LinearIdentity("agent", "acme")
EVENT = {"webhookTimestamp": NOW * 1000, "organizationId": "acme", "appUserId": "agent"}


def request(event: object, *, secret: str = SECRET) -> tuple[dict[bytes, bytes], bytes]:
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()
    return {b"linear-signature": signature, b"linear-delivery": b"d1"}, body


def check(event: object, *, now: float = NOW, me: LinearIdentity | None = ME) -> Any:
    headers, body = request(event)
    return verify("linear:demo", SECRET, headers, body, now=now, identity=me)


def test_a_genuine_delivery_is_kept_as_it_came() -> None:
    headers, body = request(EVENT)

    delivery = verify("linear:demo", SECRET, headers, body, now=NOW, identity=ME)

    assert (delivery.adapter, delivery.delivery_id, delivery.body) == ("linear:demo", "d1", body)
    assert delivery.signature == headers[b"linear-signature"].decode()


@pytest.mark.parametrize("seconds", [-60.0, 60.0])
def test_a_minute_of_difference_is_allowed(seconds: float) -> None:
    assert check(EVENT, now=NOW + seconds).received_at == NOW + seconds


@pytest.mark.parametrize("seconds", [-60.1, 60.1, 3600.0])
def test_more_than_a_minute_is_stale(seconds: float) -> None:
    with pytest.raises(DeliveryStale):
        check(EVENT, now=NOW + seconds)


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ({**EVENT, "webhookTimestamp": None}, 200),
        ({**EVENT, "webhookTimestamp": True}, 200),
        ({**EVENT, "webhookTimestamp": str(NOW)}, 200),
        ({**EVENT, "webhookTimestamp": NOW * 1000 - 61_000}, 200),
        ({"data": EVENT, "organizationId": "acme"}, 200),
        ({**EVENT, "organizationId": "other"}, 200),
        ({**EVENT, "appUserId": "other"}, 200),
        ([EVENT], 400),
        (b"no json", 400),
        (b" " * (BODY_BYTES + 1), 413),
    ],
)
def test_what_is_signed_but_wrong_is_not_taken_and_acknowledged_if_it_is_linears(
    event: object, status: int
) -> None:
    with pytest.raises(DeliveryRefused) as refused:
        check(event)

    assert refused.value.status == status


def test_a_delivery_without_its_name_is_refused() -> None:
    headers, body = request(EVENT)
    del headers[b"linear-delivery"]

    with pytest.raises(DeliveryRefused):
        verify("linear:demo", SECRET, headers, body, now=NOW, identity=ME)


@given(st.binary(max_size=200), st.binary(max_size=80))
def test_nothing_passes_without_the_secret(body: bytes, signature: bytes) -> None:
    with pytest.raises(DeliveryRefused) as refused:
        verify("linear:demo", SECRET, {b"linear-signature": signature}, body, now=NOW)

    assert refused.value.status == 401


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_whatever_is_signed_is_kept_or_refused_and_nothing_else(event: object) -> None:
    with pytest.raises(DeliveryRefused):
        check(event)
