"""Provides the door of a gate: the folder that its agent sees, with programs and the sockets.

Access to a socket is the right to use it: only its own agent's sandbox shows it, so it needs no
token. Connections come from the agent, so only as many are served at a time as git needs.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from app.children.environment import visible_prefixes
from app.children.homes import give
from app.repos import lfs_relay, relay
from app.repos.partial import promise
from app.tasks import Tasks

_INTERPRETER: Final = Path(sys.executable).resolve()
"""The interpreter itself, not the virtual environment that the bridge is installed in."""
_BACKLOG: Final = 8
GUESTS: Final = 16
"""Connections at a time: twice what git-lfs opens, and each takes a handle of the bridge."""
IDLE_SECONDS: Final = 10.0
"""How long a client may take to send its request; the relays send it at once."""
_LARGE_FILES: Final = {
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
    "lfs.standalonetransferagent": "agent-bridge",
    # A file that cannot be fetched stays a pointer: the clone is still useful.
    "lfs.skipdownloaderrors": "true",
    "lfs.locksverify": "false",
}
# The machine's settings may name git-lfs although it is not installed.
_POINTERS_STAY: Final = {
    "filter.lfs.clean": "",
    "filter.lfs.smudge": "",
    "filter.lfs.process": "",
    "filter.lfs.required": "false",
}

Host = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
"""Handles one connection, and closes it."""


class AgentRemote:
    """One session's door."""

    def __init__(self, folder: Path, owner: str, user: int | None = None) -> None:
        """Make a door in a folder, for a session and the user that its agent runs as."""
        self.folder = folder
        self._user = user
        self._tasks = Tasks(f"gate of {owner}")
        self._servers: list[asyncio.Server] = []
        self._guests: set[asyncio.Task[None]] = set()

    def command(self, what: Literal["push", "fetch"], *, is_partial: bool) -> str:
        """Return the command with which an agent's git reaches the gate."""
        how = "partial" if is_partial else "whole"
        words = (str(_INTERPRETER), "-I", "-S", str(self.folder / "relay.py"), what, how)
        return " ".join(shlex.quote(word) for word in words)

    def settings(self, *, is_partial: bool, with_large_files: bool) -> dict[str, str]:
        """Return the settings with which a clone's git and git-lfs reach the gate."""
        remote = {
            "remote.origin.pushurl": str(self.folder),
            "remote.origin.receivepack": self.command("push", is_partial=is_partial),
            "remote.origin.uploadpack": self.command("fetch", is_partial=is_partial),
            **(promise("origin") if is_partial else {}),
        }
        if not with_large_files:
            return {**remote, **_POINTERS_STAY}
        words = ("-I", "-S", str(self.folder / "lfs_relay.py"))
        return {
            **remote,
            **_LARGE_FILES,
            "lfs.customtransfer.agent-bridge.path": str(_INTERPRETER),
            "lfs.customtransfer.agent-bridge.args": " ".join(shlex.quote(word) for word in words),
        }

    @property
    def visible(self) -> tuple[Path, ...]:
        """What an agent must see in order to push."""
        return (self.folder, *visible_prefixes((str(_INTERPRETER),), path=""))

    def lay(self) -> None:
        """Create the folder, with the programs that run in the agent's isolation."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.give(self.folder)
        for program in (relay.__file__, lfs_relay.__file__):
            self.give(shutil.copyfile(program, self.folder / Path(program).name))

    def give(self, path: Path) -> None:
        """Make the agent own a path in the folder, if the agent has its own user."""
        give(path, self._user)

    async def open(self, hosts: Mapping[str, Host]) -> None:
        """Listen, on a socket for each host."""
        for name, host in hosts.items():
            server = await asyncio.start_unix_server(
                self._make_receiver(name, host), sock=self._listen(name)
            )
            self._servers.append(server)

    async def close(self) -> None:
        """Stop listening; what is under way is ended."""
        for server in self._servers:
            server.close()
        self._servers = []
        await self._tasks.close()

    def _make_receiver(
        self, name: str, host: Host
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(self._guests) >= GUESTS:
                writer.close()
                return
            guest = self._tasks.start(host(reader, writer), name=name)
            self._guests.add(guest)
            guest.add_done_callback(self._guests.discard)

        return receive

    def _listen(self, name: str) -> socket.socket:
        place = self.folder / name
        place.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            # The path of a socket has room for 100 bytes, that of a folder for thousands.
            short = Path(f"/proc/self/fd/{folder}")
            listener.bind(str(short / name if short.exists() else place))
        finally:
            os.close(folder)
        place.chmod(0o600)
        self.give(place)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        return listener
