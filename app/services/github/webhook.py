"""Verifies that GitHub sent a delivery to this App, without parsing it; pure.

The signature is over the raw bytes. During a rotation two secrets are valid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.core.inbound import Delivery
from app.errors import DeliveryRefused
from app.services.common.signatures import verify_signature

_DELIVERY_ID = re.compile(rb"[A-Za-z0-9-]{8,64}")
_EVENT = re.compile(rb"[a-z_]{1,64}")
_SIGNATURE = re.compile(rb"sha256=[0-9a-f]{64}")

EVENT = "event"


@dataclass(frozen=True, slots=True)
class Hook:
    """One App's webhook."""

    adapter: str
    app_id: str
    secrets: tuple[bytes, ...]
    """The current one first, then the previous one while it is valid."""

    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Make a delivery of a request that GitHub signed for this App.

        Raises:
            DeliveryRefused: it did not, or it is for another App.
        """
        signature = headers.get(b"x-hub-signature-256", b"")
        if not _SIGNATURE.fullmatch(signature):
            raise DeliveryRefused("X-Hub-Signature-256 is missing")
        signed = verify_signature(body, signature[7:], self.secrets, "GITHUB_WEBHOOK_SECRET")
        self._check_target(headers)
        delivery_id = headers.get(b"x-github-delivery", b"")
        event = headers.get(b"x-github-event", b"")
        if not _DELIVERY_ID.fullmatch(delivery_id) or not _EVENT.fullmatch(event):
            raise DeliveryRefused("X-GitHub-Delivery or X-GitHub-Event is missing", status=400)
        if not headers.get(b"content-type", b"").startswith(b"application/json"):
            raise DeliveryRefused(
                "set the content type of the App's webhook to application/json", status=415
            )
        return Delivery(
            adapter=self.adapter,
            delivery_id=delivery_id.decode(),
            signature=signed,
            headers={EVENT: event.decode()},
            body=body,
            received_at=now,
        )

    def _check_target(self, headers: dict[bytes, bytes]) -> None:
        """Refuse what names another target; the signature is enough where nothing is named."""
        kind = headers.get(b"x-github-hook-installation-target-type") or b"integration"
        own = self.app_id.encode()
        target = headers.get(b"x-github-hook-installation-target-id") or own
        if kind != b"integration" or target != own:
            raise DeliveryRefused("this webhook belongs to another GitHub App", status=403)
