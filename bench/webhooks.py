"""Signed webhooks as GitHub sends them: 12 KB of JSON, each one different from all others."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

SECRET = "the-secret-of-the-bench"
EVENT_HEADER = b"x-github-event"
DELIVERY_HEADER = b"x-github-delivery"
SIGNATURE_HEADER = b"x-hub-signature-256"
PATH = "/webhooks/bench"
BODY_BYTES = 12 * 1024
"""A usual comment on an issue, with all that GitHub says about repository and people."""

_KEY = SECRET.encode()


def signature(body: bytes) -> str:
    """Sign a body."""
    return "sha256=" + hmac.new(_KEY, body, hashlib.sha256).hexdigest()


def is_signed(headers: dict[bytes, bytes], body: bytes) -> bool:
    """Check the signature of a body, in constant time."""
    return hmac.compare_digest(signature(body).encode(), headers.get(SIGNATURE_HEADER, b""))


def request(
    event: dict[str, Any], delivery_id: str, port: int, *, forged: bool = False, agent: str = ""
) -> bytes:
    """Make the whole HTTP request of an event; a forged one has the signature of another."""
    path = f"{PATH}/{agent}" if agent else PATH
    body = json.dumps(event).encode()
    signed = signature(b"" if forged else body)
    head = (
        f"POST {path} HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{port}\r\n"
        "User-Agent: GitHub-Hookshot/0000000\r\n"
        "Accept: */*\r\n"
        "Content-Type: application/json\r\n"
        "X-GitHub-Event: issue_comment\r\n"
        f"X-GitHub-Delivery: {delivery_id}\r\n"
        "X-GitHub-Hook-ID: 1\r\n"
        f"X-Hub-Signature-256: {signed}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def comments(count: int, seed: str, port: int) -> list[bytes]:
    """Make requests of comments for no agent."""
    filler = {f"field_{number}": "https://api.example.com/repos/one/two" for number in range(200)}
    event = {"action": "created", "number": "", "repository": filler, "padding": ""}
    event["padding"] = "x" * (BODY_BYTES - len(json.dumps(event)) - len(seed) - 8)
    return [
        request({**event, "number": f"{seed}-{number:07}"}, f"{seed}-{number}", port)
        for number in range(count)
    ]
