"""How the simulated Linear tells an app that something happened: signed, timed, sent again.

A delivery that is sent again is the same bytes, hence has the same timestamp and signature. Every
answer but 200 is a failure; after many in a row the hook is off until an admin turns it on.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from sim.linear.records import App, new_id

ANSWER_SECONDS: Final = 5.0
"""How long Linear waits for an answer."""
RETRY_SECONDS: Final = (60.0, 3600.0, 6 * 3600.0)
"""When Linear sends what was not answered with 200 again."""
FAILURES: Final = 12
"""How many failures in a row turn a hook off; Linear publishes no number, only that it happens."""
_ACKNOWLEDGED: Final = 200


@dataclass(slots=True)
class HookDelivery:
    """One event on its way, and what was answered each time; 0 stands for no answer."""

    app: App
    headers: Mapping[str, str]
    body: bytes
    sent_at: float
    answers: list[int] = field(default_factory=list)

    @property
    def acknowledged(self) -> bool:
        """Whether Linear rests."""
        return _ACKNOWLEDGED in self.answers

    @property
    def due(self) -> float | None:
        """When it is sent again, if it is."""
        tried = len(self.answers)
        if self.acknowledged or not 0 < tried <= len(RETRY_SECONDS):
            return None
        return self.sent_at + sum(RETRY_SECONDS[:tried])


class Hooks:
    """All deliveries, in order."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._http = httpx.Client(timeout=ANSWER_SECONDS, trust_env=False, verify=False)
        self.sent: list[HookDelivery] = []

    def send(self, app: App, event: Mapping[str, Any], *, secret: str = "") -> HookDelivery:
        """Tell an app of an event, signed with its secret or with a wrong one."""
        body = json.dumps(event).encode()
        key = (secret or app.webhook_secret).encode()
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "Linear-Webhook",
            "Linear-Delivery": new_id(),
            "Linear-Event": str(event["type"]),
            "Linear-Signature": hmac.new(key, body, hashlib.sha256).hexdigest(),
        }
        delivery = HookDelivery(app, headers, body, self._now())
        self.sent.append(delivery)
        self.repeat(delivery)
        return delivery

    def repeat(self, delivery: HookDelivery) -> int:
        """Send the same bytes; an app whose hook is off or has no address gets nothing."""
        app = delivery.app
        if not app.webhook_url or not app.hook_enabled:
            return 0
        try:
            answer = self._http.post(
                app.webhook_url, content=delivery.body, headers=delivery.headers
            )
        except httpx.TransportError:
            delivery.answers.append(0)
        else:
            delivery.answers.append(answer.status_code)
        status = delivery.answers[-1]
        app.hook_failures = 0 if status == _ACKNOWLEDGED else app.hook_failures + 1
        app.hook_enabled = app.hook_failures < FAILURES
        return status

    def next_due(self) -> HookDelivery | None:
        """Find what is to be sent again next."""
        waiting = [each for each in self.sent if each.due is not None and each.app.hook_enabled]
        return min(waiting, key=lambda each: each.due or 0.0, default=None)

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()
