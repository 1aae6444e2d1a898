"""Reads the body and says 200: the limit of server and load together."""

from __future__ import annotations

from typing import Any

from bench.receivers.asgi import serve, tally

HEADERS = [(b"content-length", b"0")]


async def bare(_scope: Any, receive: Any, send: Any) -> None:
    """Serve one request."""
    while (await receive()).get("more_body"):
        pass
    tally.add()
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    serve(bare)
