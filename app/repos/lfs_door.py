"""The large files of one session: brought to its agent, and kept back until a push is taken.

What an agent's git-lfs hands over lies apart, checked, and nobody else sees it. Only when commits
that point to it pass the gate does it go on to the remote, before them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from app.core.workspaces import Clone
from app.errors import BridgeError
from app.repos.inspection import holds_secret, plain
from app.repos.lfs import OBJECT_BYTES, OID, LargeFiles, Pointer, beside, keep
from app.repos.mirror import Mirrors
from app.vault import Vault

logger = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""Files under way at a time: as many as git-lfs itself begins."""
_CHUNK_BYTES: Final = 1024**2
_SCANNED_BYTES: Final = 4 * 1024**2
_OVERLAP_BYTES: Final = 64 * 1024
"""What two looks at a file share: longer than any form of a secret."""
_SILENCE_SECONDS: Final = 120.0
"""How long the other side may say nothing."""
_NAMED: Final = 5


class _Refused(BridgeError):
    """It may not be, in words for the agent."""


class LargeFileDoor:
    """Where one session's git-lfs comes to."""

    def __init__(
        self, folder: Path, clone: Clone, *, files: LargeFiles, mirrors: Mirrors, vault: Vault
    ) -> None:
        self._folder = folder
        self._clone = clone
        self._files = files
        self._mirrors = mirrors
        self._vault = vault
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._refusals: dict[str, str] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Do what one connection asks for: bring a file, or take one."""
        try:
            async with self._at_once:
                await self._answer(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the agent's side broke off
        finally:
            writer.close()

    async def send(self, pointers: Mapping[Pointer, str]) -> str:
        """Send on what commits point to, given with paths; returns why they cannot go.

        Raises:
            RepositoryError: the server does not take one.
        """
        clone = self._clone
        files = {pointer: self._place(pointer.oid) for pointer in pointers}
        missing = await self._files.send(clone.repository, clone.agent, files)
        if missing:
            named = ", ".join(plain(pointers[each]) for each in missing[:_NAMED])
            reasons = (self._refusals.get(each.oid, "") for each in missing)
            why = next(filter(None, reasons), "Run `git lfs push origin HEAD`, then push again.")
            return f"The content of {named}, kept with Git LFS, has not come along. {why}"
        for pointer, file in files.items():
            if file.parent == self._folder and file.exists():
                await asyncio.to_thread(keep, file, self._files.kept(clone.repository, pointer.oid))
        return ""

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await asyncio.wait_for(reader.readline(), _SILENCE_SECONDS)
            what, pointer = _question(line)
            if what == "get":
                await self._bring(pointer, writer)
            else:
                await self._take(pointer, reader, writer)
        except (BridgeError, OSError, ValueError) as error:
            words = plain(self._vault.redact(str(error)))
            logger.info("a large file of %s: %s", self._clone.session, words)
            writer.write(f"no {words}\n".encode())
            await _drained(writer)

    async def _bring(self, pointer: Pointer, writer: asyncio.StreamWriter) -> None:
        waiting = self._folder / pointer.oid
        clone = self._clone
        file = waiting
        if not waiting.exists():
            file = await self._files.fetch(clone.repository, clone.agent, pointer)
        writer.write(b"ok\n")
        with file.open("rb") as source:
            while data := await asyncio.to_thread(source.read, _CHUNK_BYTES):
                writer.write(data)
                await _drained(writer)

    async def _take(
        self, pointer: Pointer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if not self._clone.branch:
            raise _Refused("This session only reads: there is nothing to push to.")
        if self._place(pointer.oid).exists():
            writer.write(b"have\n")
            return
        await self._mirrors.check_room(pointer.size)
        writer.write(b"send\n")
        try:
            await self._receive(pointer, reader)
        except _Refused as error:
            self._refusals[pointer.oid] = str(error)
            raise
        writer.write(b"ok\n")

    async def _receive(self, pointer: Pointer, reader: asyncio.StreamReader) -> None:
        target = self._folder / pointer.oid
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        with beside(target) as new:
            taken, left = hashlib.sha256(), pointer.size
            with new.open("wb") as output:
                while left:
                    wanted = min(_CHUNK_BYTES, left)
                    data = await asyncio.wait_for(reader.read(wanted), _SILENCE_SECONDS)
                    if not data:
                        raise _Refused("The file ended before its end.")
                    left -= len(data)
                    taken.update(data)
                    await asyncio.to_thread(output.write, data)
            if taken.hexdigest() != pointer.oid:
                raise _Refused("The file is not what its name says.")
            if await asyncio.to_thread(_scan, new, self._vault):
                raise _Refused(
                    "A file kept with Git LFS holds a secret that the bridge knows, so it is not "
                    "taken. Take it out of every commit, not only of the last one."
                )
            await asyncio.to_thread(keep, new, target)

    def _place(self, oid: str) -> Path:
        """Tell where a large file lies: with what was sent before, else with what waits."""
        sent = self._files.kept(self._clone.repository, oid)
        return sent if sent.exists() else self._folder / oid


def _question(line: bytes) -> tuple[Literal["get", "put"], Pointer]:
    try:
        asked = json.loads(line)
        what, oid, size = asked["what"], asked["oid"], asked["size"]
        fits = what in {"get", "put"} and type(size) is int and bool(OID.fullmatch(oid))
    except (ValueError, KeyError, TypeError, RecursionError):
        fits = False
    if not fits:
        raise _Refused("This is no question about a large file.")
    if not 0 <= size <= OBJECT_BYTES:
        raise _Refused(f"Large files have at most {OBJECT_BYTES // 1024**3} GiB here.")
    return what, Pointer(oid, size)


def _scan(file: Path, vault: Vault) -> bool:
    """Look through a file for secrets, piece by piece."""
    rest = b""
    with file.open("rb") as source:
        while data := source.read(_SCANNED_BYTES):
            if holds_secret(vault, rest + data):
                return True
            rest = data[-_OVERLAP_BYTES:]
    return False


async def _drained(writer: asyncio.StreamWriter) -> None:
    await asyncio.wait_for(writer.drain(), _SILENCE_SECONDS)
