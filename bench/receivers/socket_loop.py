"""Reads a frame and acknowledges it, in a loop on aiohttp: the limit of Socket Mode in Python."""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import orjson
import uvloop

from bench.machine import LISTENING, LOOK_SECONDS, SERVER_CORE, pin
from bench.tally import Tally


async def listen(port: int, tally: Tally) -> None:
    """Acknowledge everything, for as long as there is a server to listen to."""
    async with aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.ws_connect(f"ws://127.0.0.1:{port}/link") as socket:
                    async for message in socket:
                        frame = orjson.loads(message.data)
                        if "envelope_id" in frame:
                            tally.add()
                            answer = orjson.dumps({"envelope_id": frame["envelope_id"]})
                            await socket.send_str(answer.decode())
            except aiohttp.ClientError:
                await asyncio.sleep(LOOK_SECONDS)  # it is not there yet


if __name__ == "__main__":
    pin(SERVER_CORE)
    print(LISTENING, flush=True)
    uvloop.run(listen(int(sys.argv[1]), Tally(sys.argv[2])))
