"""Serves a bridge until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable

from app.core.tasks import Tasks
from app.main.bridge import Bridge
from app.server.listener import Listener
from app.server.local_socket import bind_local


async def serve(bridge: Bridge, port: socket.socket, *, listening: Callable[[], None]) -> None:
    """Serve on a port and on the socket in DATA_DIR until told to stop.

    TERM and Ctrl-C stop it gracefully, a second one at once.
    """
    tasks = Tasks("start")
    failed: list[BaseException] = []

    async def start() -> None:
        try:
            await bridge.start()
        except Exception as error:  # noqa: BLE001 - raised to the caller once the port is closed
            failed.append(error)
            leave()

    def listens() -> None:
        listening()
        tasks.start(start(), name="bridge")

    def leave() -> None:
        bridge.feed.close()
        if listener.should_exit:
            bridge.hurry()
        listener.leave()

    listener = Listener(bridge.application(), listens)
    local = bind_local(bridge.data_dir)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave)
    try:
        await listener.serve(sockets=[port, local])
    finally:
        await tasks.close()
        await bridge.stop()
    if failed:
        raise failed[0]
