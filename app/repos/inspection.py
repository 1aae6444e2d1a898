"""Looks at what is about to be pushed and says why it may not be, in words for the agent.

Only what is not on the remote yet is looked at: everything that the mirror or the gate already has
was there before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.children.process import Child
from app.errors import GitFailed
from app.repos.git import Git
from app.repos.lfs import POINTER_BYTES, Pointer, is_used, parse_pointer
from app.vault import Vault

PUSH_BYTES: Final = 256 * 1024**2
"""What one push may bring, packed; GitHub itself takes 2 GiB, which nobody reviews."""
FILE_BYTES: Final = 50 * 1024**2
"""What one file may have: from here on GitHub warns, at twice as much it refuses."""
_NEW: Final = ("--not", "--alternate-refs")
_ZERO: Final = frozenset("0")
_NAMED: Final = 5
"""How many files a reason names: enough to find the rest."""
_SCAN_SECONDS: Final = 600.0
"""What reading everything that is new may take."""


@dataclass(frozen=True, slots=True)
class Update:
    """One ref that a push wants to change."""

    old: str
    new: str
    ref: str

    @property
    def creates(self) -> bool:
        """Whether the ref is new."""
        return set(self.old) <= _ZERO

    @property
    def deletes(self) -> bool:
        """Whether the ref shall go."""
        return set(self.new) <= _ZERO


@dataclass(frozen=True, slots=True)
class Incoming:
    """A push that waits for its verdict: its objects lie apart from those of the gate."""

    updates: tuple[Update, ...]
    view: Mapping[str, str]
    """The environment in which git sees them."""


def parse(question: Sequence[str], gate: Path) -> Incoming:
    """Read what the hook of a gate asks: where the objects are, then a line per ref."""
    quarantine, *lines = question
    updates = tuple(Update(*line.split(" ", 2)) for line in lines)
    view = {
        "GIT_OBJECT_DIRECTORY": quarantine,
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(gate / "objects"),
    }
    return Incoming(updates, view)


@dataclass(frozen=True, slots=True)
class Inspector:
    """Looks at pushes into one gate."""

    git: Git
    gate: Path
    vault: Vault
    branch: str
    """The only branch that may be pushed to; none for a session that only reads."""
    file_bytes: int = FILE_BYTES

    def objection(self, updates: Sequence[Update]) -> str:
        """Say what is wrong with the refs of a push, before its content is looked at."""
        if not self.branch:
            return "This session only reads: there is nothing to push to."
        foreign = [update.ref for update in updates if update.ref != f"refs/heads/{self.branch}"]
        if foreign:
            named = ", ".join(plain(ref) for ref in foreign[:_NAMED])
            return f"This session pushes to {self.branch} and nowhere else, so not to {named}."
        if any(update.deletes for update in updates):
            return f"{self.branch} may not be deleted."
        return "" if len(updates) == 1 else f"Push one commit to {self.branch} at a time."

    async def refusal(self, incoming: Incoming, known: str | None) -> str:
        """Say why a push may not go on, or nothing; `known` is where the branch is on the remote.

        Raises:
            GitFailed: it cannot be looked at.
        """
        for update in incoming.updates:
            for before in {update.old, known} - {None}:
                if (
                    before
                    and set(before) - _ZERO
                    and not await self._follows(incoming, before, update)
                ):
                    return (
                        f"This would overwrite what is on {self.branch}. Force pushes are not "
                        "taken: `git fetch origin`, then merge or rebase onto "
                        f"`origin/{self.branch}`, and push again."
                    )
            objects = await self._objects(incoming, update.new)
            if reason := await self._too_large(incoming, objects) or await self._secret(
                incoming, objects
            ):
                return reason
        return ""

    async def workflows(self, incoming: Incoming) -> list[str]:
        """List the workflow files that new commits touch: they run with rights of their own."""
        touched: dict[str, None] = {}
        for update in incoming.updates:
            # Of a merge only what differs from all parents: the rest is in one of them already.
            listed = await self._run(
                incoming,
                *("log", "-z", "--format=", "--name-only", "--no-renames", "-c", "--root"),
                *(update.new, *_NEW),
            )
            for path in listed.decode(errors="replace").replace("\n", "\0").split("\0"):
                if _is_workflow(path):
                    touched[path] = None
        return [plain(path) for path in touched]

    async def pointers(self, incoming: Incoming) -> dict[Pointer, str]:
        """List the large files that new commits point to, each with a path where it is."""
        found: dict[Pointer, str] = {}
        for update in incoming.updates:
            if not await is_used(self.git, self.gate, update.new, incoming.view):
                continue
            objects = await self._objects(incoming, update.new)
            sizes = await self._sizes(incoming, objects)
            small = {name: objects[name] for name, size in sizes.items() if size < POINTER_BYTES}
            async for name, kind, content in self._contents(incoming, small):
                pointer = parse_pointer(content) if kind == "blob" else None
                if pointer is not None:
                    found[pointer] = objects[name]
        return found

    async def _follows(self, incoming: Incoming, before: str, update: Update) -> bool:
        try:
            base = await self._run(incoming, "merge-base", before, update.new)
        except GitFailed:
            return False
        return base.decode().strip() == before

    async def _objects(self, incoming: Incoming, new: str) -> dict[str, str]:
        """List what is new, by name of the object, with a path where there is one."""
        listed = await self._run(incoming, "rev-list", "--objects", new, *_NEW)
        lines = (line.partition(" ") for line in listed.decode(errors="replace").splitlines())
        return {name: path for name, _, path in lines}

    async def _too_large(self, incoming: Incoming, objects: Mapping[str, str]) -> str:
        for name, size in (await self._sizes(incoming, objects)).items():
            if size > self.file_bytes:
                return (
                    f"{plain(objects.get(name) or name)} has {size // 1024**2} MiB; files of "
                    f"more than {self.file_bytes // 1024**2} MiB are not pushed. Take it out of "
                    "the commits, or keep it with Git LFS."
                )
        return ""

    async def _sizes(self, incoming: Incoming, objects: Mapping[str, str]) -> dict[str, int]:
        listed = await self._run(
            incoming,
            *("cat-file", "--batch-check=%(objectname) %(objectsize)", "--buffer"),
            given="".join(f"{name}\n" for name in objects).encode(),
        )
        lines = (line.partition(" ") for line in listed.decode().splitlines())
        return {name: int(size) for name, _, size in lines if size.isdigit()}

    async def _secret(self, incoming: Incoming, objects: Mapping[str, str]) -> str:
        paths = "\n".join(objects.values())
        if await asyncio.to_thread(self.vault.contains, paths):
            return _HOLDS_ONE.format(where="the name of a file")
        async with asyncio.timeout(_SCAN_SECONDS):
            async for name, kind, content in self._contents(incoming, objects):
                if kind != "tree" and await asyncio.to_thread(holds_secret, self.vault, content):
                    where = plain(objects.get(name, "")) or f"the message of {kind} {name[:12]}"
                    return _HOLDS_ONE.format(where=where)
        return ""

    async def _contents(
        self, incoming: Incoming, objects: Mapping[str, str]
    ) -> AsyncIterator[tuple[str, str, bytes]]:
        """Read objects one after another."""
        async with self.git.started(
            self.gate, "cat-file", "--batch", "--buffer", more=incoming.view
        ) as child:
            child.write("".join(f"{name}\n" for name in objects).encode())
            child.close_input()
            reading = _Reading(child)
            while line := await reading.line():
                words = line.decode().split()
                if len(words) != 3 or not words[2].isdigit():
                    raise GitFailed("git cat-file", line.decode(errors="replace"))
                content = await reading.exactly(int(words[2]) + 1)
                yield words[0], words[1], content[:-1]

    async def _run(self, incoming: Incoming, *arguments: str, given: bytes = b"") -> bytes:
        return await self.git.run(self.gate, *arguments, more=incoming.view, given=given)


class _Reading:
    """Reads lines and lengths from what a child writes."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._rest = bytearray()

    async def line(self) -> bytes:
        """Read to the end of a line; nothing at the end of everything."""
        while (end := self._rest.find(b"\n")) < 0:
            if not await self._more():
                return b""
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line

    async def exactly(self, count: int) -> bytes:
        """Read so many bytes.

        Raises:
            GitFailed: there are not that many.
        """
        while len(self._rest) < count:
            if not await self._more():
                raise GitFailed("git cat-file", "it ended in the middle of an object")
        taken = bytes(self._rest[:count])
        del self._rest[:count]
        return taken

    async def _more(self) -> bool:
        data = await self._child.stdout.read(1024**2)
        self._rest += data
        return bool(data)


_HOLDS_ONE: Final = (
    "{where} holds a secret that the bridge knows, so nothing was pushed. Take it out of every "
    "commit (`git commit --amend`, or a rebase), not only of the last one."
)


def holds_secret(vault: Vault, content: bytes) -> bool:
    """Tell whether bytes hold a secret that the bridge knows."""
    text = content.decode(errors="replace")
    # Wide characters have a zero between any two letters.
    return vault.contains(text) or ("\0" in text and vault.contains(text.replace("\0", "")))


def _is_workflow(path: str) -> bool:
    plain = path.lower()
    return plain in {".github", ".github/workflows"} or plain.startswith(".github/workflows/")


def plain(text: str) -> str:
    """Make a name from outside fit to be shown: one line, nothing a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]
