"""Serves a bridge until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence

from app.config import Configuration
from app.errors import BridgeError
from app.main.bridge import Bridge
from app.server.listener import Listener, bound
from app.server.local_socket import bind_local
from app.tasks import Tasks

logger = logging.getLogger(__name__)


def bind_ports(configuration: Configuration) -> list[socket.socket]:
    """Bind the port, and the one of webhooks if they have their own.

    Raises:
        ConfigurationError: one of them cannot be bound.
    """
    host, hooks = configuration.settings.host, configuration.settings.hooks_port
    own = [] if hooks is None else [bound(host, hooks, setting="HOOKS_PORT")]
    return [bound(host, configuration.settings.port), *own]


async def serve(
    bridge: Bridge, ports: Sequence[socket.socket], *, listening: Callable[[], None]
) -> None:
    """Serve on ports and on the socket in DATA_DIR until told to stop.

    TERM, Ctrl-C and the end of its terminal stop it gracefully, a second one at once. A HUP that
    is sent to it makes it read the file with its agents again.
    """
    tasks = Tasks("start")
    failed: list[BaseException] = []

    async def start() -> None:
        try:
            await bridge.start()
        except Exception as error:  # noqa: BLE001 - raised to the caller once the port is closed
            failed.append(error)
            leave()
        else:
            hang_up.started.set()

    def listens() -> None:
        listening()
        tasks.start(start(), name="bridge")

    def leave() -> None:
        bridge.feed.close()
        if listener.should_exit:
            bridge.hurry()
        listener.leave()

    hang_up = _HangUp(bridge, tasks, leave)
    listener = Listener(bridge.application(), listens, trusted_proxies=bridge.trusted_proxies)
    local = bind_local(bridge.data_dir)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave)
    loop.add_signal_handler(signal.SIGHUP, hang_up)
    try:
        await listener.serve(sockets=[*ports, local])
    finally:
        await tasks.close()
        await bridge.stop()
    if failed:
        raise failed[0]


class _HangUp:
    """Handles HUP: the terminal is gone, or someone wants the agents to be read again."""

    def __init__(self, bridge: Bridge, tasks: Tasks, leave: Callable[[], None]) -> None:
        self._bridge = bridge
        self._tasks = tasks
        self._leave = leave
        self.started = asyncio.Event()
        """Set once the bridge has started."""
        # What was started with nohup outlives its terminal.
        has_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        self._in_terminal = not has_nohup and _has_terminal()

    def __call__(self) -> None:
        """Leave with the terminal, else read the agents again."""
        if self._in_terminal and not _has_terminal():
            self._leave()
        else:
            self._tasks.start(self._reload(), name="reload")

    async def _reload(self) -> None:
        await self.started.wait()
        try:
            for part in self._bridge.features:
                await part.reload()
        except BridgeError as error:
            logger.warning("the agents were not read again, nothing changed: %s", error)
        else:
            logger.info("the agents were read again")


def _has_terminal() -> bool:
    """Tell whether this process still has the terminal it was started in."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
