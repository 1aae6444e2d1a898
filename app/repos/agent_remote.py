"""Provides the remote of an agent's git: a folder that the agent sees, and sockets to its gate.

Access to a socket is the right to use it: only its own agent's sandbox shows it, so it needs no
token. Connections come from the agent, so only as many are served at a time as git needs.

Before a push is kept, git calls the hook of the gate, which asks the bridge over two named pipes
and waits for its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from app.children.environment import visible_prefixes
from app.children.homes import give
from app.children.process import Child
from app.errors import RepositoryError
from app.repos import lfs_relay, relay
from app.repos.fetching import promise
from app.repos.git import Git
from app.repos.inspection import FILE_BYTES, PUSH_BYTES
from app.tasks import Tasks

_INTERPRETER: Final = Path(sys.executable).resolve()
"""The interpreter itself, not the virtual environment that the bridge is installed in."""
_BACKLOG: Final = 8
_SILENCE_SECONDS: Final = 300.0
"""How long a push may be silent: a large repository takes minutes to pack."""
_ALLOCATION_BYTES: Final = 4 * FILE_BYTES
"""What receiving a push may take at once: the list of a million objects, or a file too large."""
_SIZE_BYTES: Final = 4
"""The length of a packet begins with its own length."""
_NAMES_BYTES: Final = 8 * 1024**2
"""The largest request of a relay: it asks for up to a hundred thousand objects at once."""
GUESTS: Final = 16
"""Connections at a time: twice what git-lfs opens, and each takes a handle of the bridge."""
FOLDER: Final = "door"
"""Where it is in the folder of its gate; the settings of clones name it."""
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
    """What one session's git pushes to and fetches from."""

    def __init__(self, folder: Path, owner: str, user: int | None = None) -> None:
        """Make one in a folder, for a session and the user that its agent runs as."""
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


_CHUNK_BYTES: Final = 65536
HOOK: Final = """\
#!/bin/sh
# Asks the bridge about a push and does as it says.
{ echo "$GIT_QUARANTINE_PATH"; cat; echo end; } >"$AGENT_BRIDGE_GATE/question" || exit 1
while read -r word rest; do
    case $word in
        taken) exit 0 ;;
        refused) exit 1 ;;
        say) printf '%s\\n' "$rest" >&2 ;;
    esac
done <"$AGENT_BRIDGE_GATE/answer"
exit 1
"""


@dataclass(frozen=True, slots=True)
class _Pipes:
    """The two named pipes of one push."""

    folder: Path
    asking: int
    answering: int

    async def question(self) -> list[str]:
        """Wait for what the hook asks."""
        loop = asyncio.get_running_loop()
        asked = bytearray()
        ready = asyncio.Event()
        loop.add_reader(self.asking, ready.set)
        try:
            while not asked.endswith(b"\nend\n"):
                await ready.wait()
                ready.clear()
                with contextlib.suppress(BlockingIOError):
                    asked += os.read(self.asking, _CHUNK_BYTES)
        finally:
            loop.remove_reader(self.asking)
        # Not splitlines: names of refs may hold other characters that Python takes for line ends.
        return asked.decode(errors="replace").split("\n")[:-2]

    def answer(self, refusal: str) -> None:
        """Tell the hook what to say and do; a reason fits into the pipe."""
        said = "".join(f"say {line}\n" for line in refusal[:4000].splitlines() if line)
        os.write(self.answering, f"{said}{'refused' if refusal else 'taken'}\n".encode())


@contextlib.contextmanager
def _pipes() -> Iterator[_Pipes]:
    """Create the pipes of one push; they are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="agent-bridge-push-") as name:
        folder = Path(name)
        ends = []
        for pipe in ("question", "answer"):
            os.mkfifo(folder / pipe, 0o600)
            # Open for reading and writing: neither side blocks, and what was written is not lost.
            ends.append(os.open(folder / pipe, os.O_RDWR | os.O_NONBLOCK))
        try:
            yield _Pipes(folder, *ends)
        finally:
            for end in ends:
                os.close(end)


async def receive_push(
    git: Git,
    repository: Path,
    hooks: Path,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    judge: Callable[[list[str]], Awaitable[str]],
) -> None:
    """Let git receive a push into a repository; its hook asks `judge`, who says why not to keep it.

    Raises:
        GitFailed: git cannot do it.
    """
    settings = {
        "core.hooksPath": str(hooks),
        "receive.maxInputSize": str(PUSH_BYTES),
        "receive.denyDeletes": "true",
        "receive.autogc": "false",
        "receive.unpackLimit": "1",
    }
    with _pipes() as asking:
        # A few kilobytes of differences can make a file of any size.
        more = {
            "AGENT_BRIDGE_GATE": str(asking.folder),
            "GIT_ALLOC_LIMIT": str(_ALLOCATION_BYTES),
        }

        async def answer() -> None:
            asking.answer(await judge(await asking.question()))

        async with (
            git.start(
                repository, "receive-pack", str(repository), settings=settings, more=more
            ) as child,
            asyncio.TaskGroup() as group,
        ):
            helpers = (
                group.create_task(_copy_input(reader, child)),
                group.create_task(answer()),
            )
            await _copy_output(child, writer)
            for helper in helpers:
                helper.cancel()


def error_packet(words: str) -> bytes:
    """Encode an error as git expects it in place of a list of refs (gitprotocol-pack(5))."""
    content = f"ERR {words}".encode()
    return f"{len(content) + _SIZE_BYTES:04x}".encode() + content


async def read_names(reader: asyncio.StreamReader) -> list[str]:
    """Read names of objects to the end.

    Raises:
        RepositoryError: there are too many.
    """
    read = bytearray()
    while data := await asyncio.wait_for(reader.read(_CHUNK_BYTES), IDLE_SECONDS):
        read += data
        if len(read) > _NAMES_BYTES:
            raise RepositoryError("too many objects requested at once.")
    return read.decode("ascii", "replace").split()


async def _copy_input(reader: asyncio.StreamReader, child: Child) -> None:
    """Copy the output of the agent's git to the bridge's."""
    try:
        # No shorter bound for the first bytes: a pre-push hook of the clone runs before them.
        while data := await asyncio.wait_for(reader.read(_CHUNK_BYTES), _SILENCE_SECONDS):
            child.write(data)
            await child.drain()
    except (BrokenPipeError, ConnectionError, TimeoutError):
        pass  # one side has finished
    child.close_input()


async def _copy_output(child: Child, writer: asyncio.StreamWriter) -> None:
    """Copy the answer of the bridge's git to the agent's."""
    while data := await child.stdout.read(_CHUNK_BYTES):
        if not writer.is_closing():
            writer.write(data)
            try:
                await asyncio.wait_for(writer.drain(), _SILENCE_SECONDS)
            except (ConnectionError, TimeoutError):
                writer.transport.abort()  # no one reads it; git still writes to its end
