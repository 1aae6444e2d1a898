"""Only what GitHub signed for this App gets in."""

from __future__ import annotations

import hashlib
import hmac
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import DeliveryRefused
from app.services.github.webhook import AppWebhook

NEW, OLD = b"the secret in use", b"the secret before"
HOOK = AppWebhook("github:claude", "42", (NEW, OLD))
BODY = b'{"action":"created"}'
FUZZED = 10_000


def headers(body: bytes = BODY, secret: bytes = NEW, **changed: bytes | None) -> dict[bytes, bytes]:
    given = {
        b"content-type": b"application/json",
        b"x-github-event": b"issue_comment",
        b"x-github-delivery": b"58474f00-b361-11eb-836d-0e4f3503ccbe",
        b"x-github-hook-installation-target-type": b"integration",
        b"x-github-hook-installation-target-id": b"42",
        b"x-hub-signature-256": b"sha256="
        + hmac.new(secret, body, hashlib.sha256).hexdigest().encode(),
    }
    for name, value in changed.items():
        given[name.replace("_", "-").encode()] = value or b""
    return given


def test_what_github_signed_is_taken_as_it_came() -> None:
    delivery = HOOK.verify(headers(), BODY, 5.0)

    assert delivery.body == BODY
    assert delivery.delivery_id == "58474f00-b361-11eb-836d-0e4f3503ccbe"
    assert delivery.headers == {"event": "issue_comment"}
    assert (delivery.adapter, delivery.received_at) == ("github:claude", 5.0)


def test_while_the_secret_is_changed_both_are_taken_and_equal_bytes_are_known_again() -> None:
    before = HOOK.verify(headers(secret=OLD), BODY, 0.0)
    after = HOOK.verify(headers(secret=NEW), BODY, 0.0)

    assert before.signature == after.signature


def test_a_signature_is_enough_where_no_target_is_named() -> None:
    given = headers()
    for name in ("type", "id"):
        del given[f"x-github-hook-installation-target-{name}".encode()]

    assert HOOK.verify(given, BODY, 0.0).body == BODY


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"x_hub_signature_256": b""}, 401),
        ({"x_hub_signature_256": b"sha256=" + b"0" * 64}, 401),
        ({"x_hub_signature_256": b"sha1=" + b"0" * 40}, 401),
        ({"x_github_hook_installation_target_id": b"43"}, 403),
        ({"x_github_hook_installation_target_type": b"repository"}, 403),
        ({"x_github_delivery": b""}, 400),
        ({"x_github_delivery": b"a" * 500}, 400),
        ({"x_github_event": b"../../x"}, 400),
        ({"content_type": b"application/x-www-form-urlencoded"}, 415),
    ],
)
def test_anything_else_is_refused(changed: dict[str, bytes], status: int) -> None:
    with pytest.raises(DeliveryRefused) as refused:
        HOOK.verify(headers(**changed), BODY, 0.0)

    assert refused.value.status == status


def test_a_signature_of_another_secret_or_body_is_refused() -> None:
    for wrong in (headers(secret=b"guessed"), headers(body=BODY + b" "), headers(secret=b"")):
        with pytest.raises(DeliveryRefused):
            HOOK.verify(wrong, BODY, 0.0)


def test_of_ten_thousand_forged_signatures_and_bodies_none_is_taken() -> None:
    chance = random.Random(7)  # always the same ten thousand
    right = headers()[b"x-hub-signature-256"]
    refused = 0

    for _ in range(FUZZED):
        signature, body = chance.choice(
            ((_forge(right, chance), BODY), (right, _forge(BODY, chance)))
        )
        forged = headers(x_hub_signature_256=signature)
        body = BODY + b"!" if (signature, body) == (right, BODY) else body
        try:
            HOOK.verify(forged, body, 0.0)
        except DeliveryRefused as error:
            refused += 400 <= error.status < 500

    assert refused == FUZZED


@settings(max_examples=500)
@given(
    st.dictionaries(
        st.sampled_from([name.decode() for name in headers()]), st.binary(max_size=80), max_size=6
    ),
    st.binary(max_size=200),
)
def test_no_request_makes_the_check_fail_otherwise_than_by_refusing(
    given_headers: dict[str, bytes], body: bytes
) -> None:
    with pytest.raises(DeliveryRefused):
        HOOK.verify({name.encode(): value for name, value in given_headers.items()}, body, 0.0)


def _forge(right: bytes, chance: random.Random) -> bytes:
    forged = bytearray(right)
    match chance.randrange(5):
        case 0:
            forged[chance.randrange(len(forged))] ^= 1 << chance.randrange(8)
        case 1:
            del forged[chance.randrange(len(forged)) :]
        case 2:
            forged += chance.randbytes(chance.randrange(1, 9))
        case 3:
            forged = bytearray(chance.randbytes(chance.randrange(100)))
        case _:
            forged = bytearray(b"sha256=" + chance.randbytes(32).hex().encode())
    return bytes(forged)
