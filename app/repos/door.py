"""The door of a gate: the folder that its agent sees of it, with two small relays and the sockets.

A socket itself is the right to use it. Only its own agent's sandbox shows it, so it needs no
token. What comes through is the agent's, so no more is let in at a time than a git would be.
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

from app.children.prefixes import visible_prefixes
from app.core.tasks import Tasks
from app.repos import lfs_relay, relay
from app.repos.partial import promise

_INTERPRETER: Final = Path(sys.executable).resolve()
"""The interpreter itself: the environment that the bridge is installed in is of no concern."""
_BACKLOG: Final = 8
_GUESTS: Final = 64
"""Who may be in at once by one socket; more is no git, and each takes a handle of the bridge's."""
_LARGE_FILES: Final = {
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
    "lfs.standalonetransferagent": "agent-bridge",
    # What cannot be had stays a pointer: that is no reason to have no clone at all.
    "lfs.skipdownloaderrors": "true",
    "lfs.locksverify": "false",
}
# The settings of the machine may name git-lfs although it is not there.
_POINTERS_STAY: Final = {
    "filter.lfs.clean": "",
    "filter.lfs.smudge": "",
    "filter.lfs.process": "",
    "filter.lfs.required": "false",
}

Host = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
"""Does what one connection wants, and closes it."""


class Door:
    """One session's door."""

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder = folder
        self._tasks = Tasks(f"gate of {owner}")
        self._servers: list[asyncio.Server] = []

    def command(self, what: Literal["push", "fetch"], *, is_partial: bool) -> str:
        """Tell the command by which an agent's git reaches the gate."""
        how = "partial" if is_partial else "whole"
        words = (str(_INTERPRETER), "-I", "-S", str(self.folder / "relay.py"), what, how)
        return " ".join(shlex.quote(word) for word in words)

    def settings(self, *, is_partial: bool, with_large_files: bool) -> dict[str, str]:
        """Tell the settings by which the git of a clone, and its git-lfs, reach the gate."""
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
        """Have the folder, and in it what an agent's git and git-lfs call."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for program in (relay.__file__, lfs_relay.__file__):
            shutil.copyfile(program, self.folder / Path(program).name)

    async def open(self, hosts: Mapping[str, Host]) -> None:
        """Listen, on a socket for each host."""
        for name, host in hosts.items():
            server = await asyncio.start_unix_server(
                self._received(name, host), sock=self._listen(name)
            )
            self._servers.append(server)

    async def close(self) -> None:
        """Listen no longer; what is under way ends."""
        for server in self._servers:
            server.close()
        self._servers = []
        await self._tasks.close()

    def _received(
        self, name: str, host: Host
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        guests: set[asyncio.Task[None]] = set()

        def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(guests) >= _GUESTS:
                writer.close()
                return
            guest = self._tasks.start(host(reader, writer), name=name)
            guests.add(guest)
            guest.add_done_callback(guests.discard)

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
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        return listener
