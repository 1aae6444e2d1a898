"""Transfers the large files of one session, and holds uploads back until a push is accepted.

What an agent's git-lfs uploads is checked and kept apart, where no one else sees it. It goes to the
remote only when commits that point to it pass the gate, and before them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from app.errors import BridgeError, RepositoryError
from app.model.workspaces import Clone
from app.repos.agent_remote import IDLE_SECONDS
from app.repos.inspection import holds_secret, plain
from app.repos.lfs import OBJECT_BYTES, OID, LargeFiles, Pointer, keep, object_path, temporary_file
from app.repos.mirror import Mirrors
from app.vault import Vault

logger = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""Transfers at a time: as many as git-lfs itself starts."""
_CHUNK_BYTES: Final = 1024**2
_SCANNED_BYTES: Final = 4 * 1024**2
_OVERLAP_BYTES: Final = 64 * 1024
"""The overlap of two scanned pieces of a file: longer than any form of a secret."""
_SILENCE_SECONDS: Final = 120.0
"""How long the other side may be silent."""
_NAMED: Final = 5


class _Refused(BridgeError):
    """A request is refused, in words for the agent."""


class LargeFileTransfer:
    """Serves one session's git-lfs."""

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
        """Handle one connection: send a file, or receive one."""
        try:
            async with self._at_once:
                await self._answer(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the agent's side closed the connection
        finally:
            writer.close()

    async def send(self, pointers: Mapping[Pointer, str]) -> str:
        """Send the files that commits point to, given with paths; returns why that is refused.

        Raises:
            RepositoryError: the server refuses one.
        """
        clone = self._clone
        missing = [pointer for pointer in pointers if not await self._can_be_had(pointer)]
        if missing:
            named = ", ".join(plain(pointers[each]) for each in missing[:_NAMED])
            reasons = (self._refusals.get(each.oid, "") for each in missing)
            why = next(filter(None, reasons), "Run `git lfs push origin HEAD`, then push again.")
            return f"The Git LFS content of {named} was not uploaded. {why}"
        oids = dict.fromkeys(pointer.oid for pointer in pointers)
        waiting = [oid for oid in oids if object_path(self._folder, oid).exists()]
        await self._files.send(clone.repository, clone.agent, self._folder, waiting)
        for oid in waiting:
            kept = self._files.kept(clone.repository, oid)
            await asyncio.to_thread(keep, object_path(self._folder, oid), kept)
        return ""

    async def _can_be_had(self, pointer: Pointer) -> bool:
        """Tell whether a large file is here or on the server."""
        if self._place(pointer.oid).exists():
            return True
        try:
            await self._files.fetch(self._clone.repository, self._clone.agent, pointer)
        except RepositoryError as error:
            logger.info("large file of %s: %s", self._clone.session, error)
            return False
        return True

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await asyncio.wait_for(reader.readline(), IDLE_SECONDS)
            what, pointer = _parse_request(line)
            if what == "get":
                await self._bring(pointer, writer)
            else:
                await self._take(pointer, reader, writer)
        except (BridgeError, OSError, ValueError) as error:
            words = plain(self._vault.redact(str(error)))
            logger.info("large file of %s: %s", self._clone.session, words)
            writer.write(f"no {words}\n".encode())
            await _drain(writer)

    async def _bring(self, pointer: Pointer, writer: asyncio.StreamWriter) -> None:
        clone = self._clone
        file = object_path(self._folder, pointer.oid)
        if not file.exists():
            file = await self._files.fetch(clone.repository, clone.agent, pointer)
        writer.write(b"ok\n")
        with file.open("rb") as source:
            while data := await asyncio.to_thread(source.read, _CHUNK_BYTES):
                writer.write(data)
                await _drain(writer)

    async def _take(
        self, pointer: Pointer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if not self._clone.branch:
            raise _Refused("This session is read-only and has no branch to push to.")
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
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        with temporary_file(self._folder / pointer.oid) as new:
            taken, left = hashlib.sha256(), pointer.size
            with new.open("wb") as output:
                while left:
                    wanted = min(_CHUNK_BYTES, left)
                    data = await asyncio.wait_for(reader.read(wanted), _SILENCE_SECONDS)
                    if not data:
                        raise _Refused("The file is truncated.")
                    left -= len(data)
                    taken.update(data)
                    await asyncio.to_thread(output.write, data)
            if taken.hexdigest() != pointer.oid:
                raise _Refused("The file does not match its hash.")
            if await asyncio.to_thread(_scan, new, self._vault):
                raise _Refused(
                    "A Git LFS file holds a secret that the bridge knows, so it was not uploaded. "
                    "Remove it from every commit, not only from the last one."
                )
            await asyncio.to_thread(keep, new, object_path(self._folder, pointer.oid))

    def _place(self, oid: str) -> Path:
        """Return where a large file is: with what was sent before, else with what waits."""
        sent = self._files.kept(self._clone.repository, oid)
        return sent if sent.exists() else object_path(self._folder, oid)


def _parse_request(line: bytes) -> tuple[Literal["get", "put"], Pointer]:
    try:
        asked = json.loads(line)
        what, oid, size = asked["what"], asked["oid"], asked["size"]
        fits = what in {"get", "put"} and type(size) is int and bool(OID.fullmatch(oid))
    except (ValueError, KeyError, TypeError, RecursionError):
        fits = False
    if not fits:
        raise _Refused("Invalid request for a large file.")
    if not 0 <= size <= OBJECT_BYTES:
        raise _Refused(f"The limit is {OBJECT_BYTES // 1024**3} GiB per Git LFS file.")
    return what, Pointer(oid, size)


def _scan(file: Path, vault: Vault) -> bool:
    """Search a file for secrets, piece by piece."""
    rest = b""
    with file.open("rb") as source:
        while data := source.read(_SCANNED_BYTES):
            if holds_secret(vault, rest + data):
                return True
            rest = data[-_OVERLAP_BYTES:]
    return False


async def _drain(writer: asyncio.StreamWriter) -> None:
    await asyncio.wait_for(writer.drain(), _SILENCE_SECONDS)
