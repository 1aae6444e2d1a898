"""Redacts known secrets in answers of the page and the API, as the last step before sending.

However a view joins, strips or shortens text, the search runs on the bytes that are really sent.
"""

from __future__ import annotations

from app.server.front import Application, Message, Receive, Scope, Send
from app.vault import Vault

_TEXTS = (b"text/html", b"text/event-stream", b"application/json", b"application/problem+json")
_LENGTH = b"content-length"
HANDS_OUT = ("/login/", "/api/v1/login-links")
"""Paths that hand out a secret on purpose."""


class Redacting:
    """Wraps an application and redacts its answers."""

    def __init__(self, application: Application, vault: Vault) -> None:
        self._application = application
        self._vault = vault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and not scope["path"].startswith(HANDS_OUT):
            send = _Answer(send, self._vault).send
        await self._application(scope, receive, send)


class _Answer:
    """One outgoing answer: its headers wait until the length of its body is known."""

    def __init__(self, send: Send, vault: Vault) -> None:
        self._send = send
        self._vault = vault
        self._head: Message | None = None
        self._passes = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self._head = message
            return
        if self._head is not None:
            self._passes = _passes(self._head, message)
            message = self._redact(message)
            await self._send({**self._head, "headers": _with_length(self._head, message)})
            self._head = None
        else:
            message = self._redact(message)
        await self._send(message)

    def _redact(self, message: Message) -> Message:
        body = message.get("body", b"")
        if self._passes or not body:
            return message
        return {**message, "body": self._vault.redact(body.decode()).encode()}


def _passes(head: Message, body: Message) -> bool:
    """Return whether an answer is sent unchanged: no text, or a file, which was checked before."""
    headers = dict(head["headers"])
    in_pieces = body.get("more_body", False) and _LENGTH in headers
    return in_pieces or not headers.get(b"content-type", b"").startswith(_TEXTS)


def _with_length(head: Message, body: Message) -> list[tuple[bytes, bytes]]:
    length = b"%d" % len(body.get("body", b""))
    whole = not body.get("more_body", False)
    return [
        (name, length if name == _LENGTH and whole and body.get("body") else value)
        for name, value in head["headers"]
    ]
