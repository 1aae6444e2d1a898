"""Sends signed JSON to an agent's callback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import httpx

from app.clock import Clock
from app.errors import PostDelayed, PostRejected
from echo_service.settings import EchoCredentials
from echo_service.signing import headers_for

CALL_SECONDS = 10.0
"""How long a callback may take to answer."""
BUSY = 429


class Callback:
    """The address that takes an agent's posts."""

    def __init__(self, credentials: EchoCredentials, clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock
        self._http = httpx.AsyncClient(timeout=CALL_SECONDS, trust_env=False)

    async def send(self, event: Mapping[str, Any]) -> None:
        """Send an event.

        Raises:
            PostDelayed: it cannot be taken now.
            PostRejected: it never will.
        """
        body = json.dumps(event).encode()
        secret = self._credentials.webhook_secret.get_secret_value()
        headers = headers_for(secret, uuid4().hex, body, self._clock.now())
        try:
            answer = await self._http.post(
                self._credentials.callback_url, content=body, headers=headers
            )
        except httpx.TransportError as error:
            raise PostDelayed(f"the callback cannot be reached: {type(error).__name__}") from error
        if answer.status_code == BUSY or answer.is_server_error:
            wait = answer.headers.get("retry-after", "")
            raise PostDelayed(
                f"the callback answered {answer.status_code}",
                retry_after=float(wait) if wait.isdecimal() else None,
            )
        if not answer.is_success:
            raise PostRejected(f"the callback answered {answer.status_code}")

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()
