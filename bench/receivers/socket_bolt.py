"""slack-bolt over Socket Mode, as its documentation shows it: parses, dispatches, keeps nothing."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import uvloop
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bench.machine import LISTENING, LOOK_SECONDS, SERVER_CORE, exchange, pin
from bench.tally import Tally


async def listen(port: int, tally: Tally) -> None:
    """Hear messages, for as long as there is a server to listen to."""
    client = AsyncWebClient(token="xoxb-1", base_url=f"http://127.0.0.1:{port}/api/")
    client.proxy = None
    app = AsyncApp(token="xoxb-1", client=client)

    @app.event("message")
    async def heard(event: dict[str, Any]) -> None:  # noqa: ARG001 - bolt gives it by name
        """Count it, and nothing else."""
        tally.add()

    while True:
        try:
            exchange(port, b"GET /api/api.test HTTP/1.1\r\nHost: x\r\n\r\n")
            break
        except ConnectionError:
            await asyncio.sleep(LOOK_SECONDS)  # it is not there yet
    handler = AsyncSocketModeHandler(app, "xapp-1", web_client=client)
    handler.client.proxy = None
    await handler.start_async()  # type: ignore[no-untyped-call]  # bolt's


if __name__ == "__main__":
    pin(SERVER_CORE)
    logging.disable()
    print(LISTENING, flush=True)
    uvloop.run(listen(int(sys.argv[1]), Tally(sys.argv[2])))
