"""gidgethub on aiohttp, as its own documentation shows it: checks, parses, dispatches."""

from __future__ import annotations

import asyncio
import sys

import uvloop
from aiohttp import web
from gidgethub import routing, sansio

from app.server.listener import BACKLOG
from bench.machine import LISTENING, SERVER_CORE, pin
from bench.tally import Tally
from bench.webhooks import PATH, SECRET

tally = Tally(sys.argv[2])
router = routing.Router()


@router.register("issue_comment", action="created")
async def heard(_event: sansio.Event) -> None:
    """Count it, and nothing else."""
    tally.add()


async def handle(request: web.Request) -> web.Response:
    """Take one webhook."""
    body = await request.read()
    event = sansio.Event.from_http(request.headers, body, secret=SECRET)
    await router.dispatch(event)
    return web.Response(status=200)


async def serve(port: int) -> None:
    """Serve until killed."""
    application = web.Application()
    application.router.add_post(PATH, handle)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=BACKLOG).start()
    print(LISTENING, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    pin(SERVER_CORE)
    uvloop.run(serve(int(sys.argv[1])))
