"""How the simulated GitHub delivers webhooks: signed, logged, never again unless it is asked to."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from sim.github.state import App, new_number, stamp

PATIENCE_SECONDS = 10.0
"""How long GitHub waits for an answer."""
NO_ANSWER = 502
"""What its log says where nobody answered."""


@dataclass
class Event:
    """One event for one App, as it is sent."""

    app: App
    kind: str
    payload: dict[str, Any]
    guid: str = field(default_factory=lambda: str(uuid4()))

    @property
    def body(self) -> bytes:
        """The bytes that are signed."""
        return json.dumps(self.payload, separators=(",", ":")).encode()

    def headers(self, secret: str | None = None) -> dict[str, str]:
        """Sign it."""
        key = (secret or self.app.secret).encode()
        signature = hmac.new(key, self.body, hashlib.sha256).hexdigest()
        return {
            "content-type": "application/json",
            "user-agent": "GitHub-Hookshot/simulated",
            "x-github-hook-id": str(self.app.id),
            "x-github-event": self.kind,
            "x-github-delivery": self.guid,
            "x-github-hook-installation-target-type": "integration",
            "x-github-hook-installation-target-id": str(self.app.id),
            "x-hub-signature-256": f"sha256={signature}",
        }


@dataclass
class Attempt:
    """One line of an App's delivery log."""

    event: Event
    at: float
    status: int
    redelivery: bool
    id: int = field(default_factory=new_number)

    def json(self) -> dict[str, Any]:
        """Show it as GitHub does."""
        payload = self.event.payload
        return {
            "id": self.id,
            "guid": self.event.guid,
            "delivered_at": stamp(self.at),
            "redelivery": self.redelivery,
            "duration": 0.03,
            "status": "OK" if 200 <= self.status < 300 else f"Invalid HTTP Response: {self.status}",
            "status_code": self.status,
            "event": self.event.kind,
            "action": payload.get("action"),
            "installation_id": payload.get("installation", {}).get("id"),
            "repository_id": payload.get("repository", {}).get("id"),
            "throttled_at": None,
        }


class Hooks:
    """Sends events, one after another, and keeps the log of every App."""

    def __init__(self, now: Callable[[], float], changed: threading.Condition) -> None:
        self._now = now
        self._changed = changed
        self._waiting: queue.Queue[Event | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, daemon=True, name="simulated hooks")
        self.log: list[Attempt] = []
        self.held: list[Event] | None = None
        """While this is a list, events are kept in it instead of being sent."""
        self.unsent = 0

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def close(self) -> None:
        """Send nothing more."""
        self._waiting.put(None)
        self._thread.join(PATIENCE_SECONDS)

    def emit(self, event: Event) -> None:
        """Send an event when its turn comes."""
        with self._changed:
            if self.held is not None:
                self.held.append(event)
            else:
                self.unsent += 1
                self._waiting.put(event)

    def deliver(
        self, event: Event, *, redelivery: bool = False, headers: dict[str, str] | None = None
    ) -> int:
        """Send an event now; returns the status that came back."""
        try:
            status = _post(event.app.hook_url, event.body, headers or event.headers())
        except (OSError, http.client.HTTPException):
            status = NO_ANSWER
        with self._changed:
            self.log.append(Attempt(event, self._now(), status, redelivery))
            self._changed.notify_all()
        return status

    def of(self, app: App) -> list[Attempt]:
        """Read the log of an App, the newest first."""
        return [attempt for attempt in reversed(self.log) if attempt.event.app is app]

    def _work(self) -> None:
        while (event := self._waiting.get()) is not None:
            self.deliver(event)
            with self._changed:
                self.unsent -= 1
                self._changed.notify_all()


def _post(url: str, body: bytes, headers: dict[str, str]) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_SECONDS)
    try:
        connection.request("POST", parts.path, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()
