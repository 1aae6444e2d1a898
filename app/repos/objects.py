"""Finds a secret in the objects of git repositories, and deletes those that nothing needs.

Objects are data: git reads them from a separate repository, which obeys nothing that is written
around them.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from app.children.process import Child
from app.descent import discard, remove
from app.errors import GitFailed
from app.repos.git import Git
from app.vault import Vault
from app.vault.octets import PIECE_BYTES, is_in

SEARCH_SECONDS: Final = 3600.0
"""How long a search of one repository may take: gigabytes of history."""
PACK_SECONDS: Final = 1800.0
"""How long packing what stays may take."""
_AT_ONCE: Final = 1000
"""Objects per process: their names fit into a pipe."""
_LOOSE: Final = "[0-9a-f][0-9a-f]"
UNUSED: Final = (
    ("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all"),
    ("repack", "-a", "-d", "-l", "-q"),
    ("prune", "--expire=now"),
)
"""Deletes what no ref of a repository needs, but nothing that it borrows."""
NEEDED: Final = (
    *("rev-list", "--objects", "--no-object-names", "--missing=allow-any"),
    *("--all", "--indexed-objects"),
)
"""Lists what the refs and the index of a repository need."""
_OF_REF: Final = (*NEEDED[:4], "--stdin")
"""Lists what some refs need, and others do not."""


class ObjectSearch:
    """Looks into objects with a git that knows no repository of theirs."""

    def __init__(self, git: Git, empty: Path) -> None:
        """Look from an empty repository; see `searching`."""
        self._git = git
        self._empty = empty

    async def names(self, objects: Path) -> set[str]:
        """List all objects that git finds in a folder of objects, borrowed ones too.

        Raises:
            GitFailed: it cannot be read.
        """
        listed = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "--unordered")
        found: set[str] = set()
        rest = b""
        async with self._start(objects, *listed) as child:
            child.close_input()
            while data := await child.stdout.read(PIECE_BYTES):
                *lines, rest = (rest + data).split(b"\n")
                found.update(line.decode() for line in lines)
            await _check(child, listed[0])
        return found

    async def find(self, objects: Path, names: Collection[str], vault: Vault) -> set[str]:
        """Return those objects that hold a secret.

        Raises:
            GitFailed: they cannot be read.
        """
        held: set[str] = set()
        for some in _batches(sorted(names)):
            async with self._start(objects, "cat-file", "--batch", "--buffer") as child:
                child.write("".join(f"{name}\n" for name in some).encode())
                child.close_input()
                async for name, content in _read_objects(child):
                    if is_in(vault, [content]):
                        held.add(name)
                await _check(child, "cat-file")
        return held

    @asynccontextmanager
    async def _start(self, objects: Path, *arguments: str) -> AsyncIterator[Child]:
        more = {"GIT_OBJECT_DIRECTORY": str(objects)}
        try:
            async with (
                asyncio.timeout(SEARCH_SECONDS),
                self._git.start(self._empty, *arguments, more=more) as child,
            ):
                yield child
        except TimeoutError:
            raise GitFailed(arguments[0], f"timed out after {SEARCH_SECONDS:g} s") from None


@asynccontextmanager
async def searching(git: Git) -> AsyncIterator[ObjectSearch]:
    """Open a search for as long as the block runs."""
    empty = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="agent-bridge-"))
    try:
        await git.run(empty, "init", "--bare", "--quiet", "--template=")
        yield ObjectSearch(git, empty)
    finally:
        await asyncio.to_thread(discard, empty)


async def delete_objects(git: Git, repository: Path, unwanted: Collection[str]) -> bool:
    """Delete objects from a bare repository that borrows none; False if one of its refs had them.

    Such a ref goes too: a fetch brings it back as the remote has it then. What no ref needs stays
    otherwise: clones may borrow it.

    Raises:
        GitFailed: what stays cannot be packed; nothing is deleted.
    """
    await git.run(repository, *UNUSED[0])
    needing = await _delete_refs(git, repository, unwanted)
    listed = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    names = (await git.run(repository, *listed)).split()
    kept = [name for name in names if name.decode() not in unwanted]
    objects = repository / "objects"
    pack = await git.run(
        repository,
        *("pack-objects", "-q", "--missing=allow-any", str(objects / "pack" / "pack")),
        given=b"".join(name + b"\n" for name in kept),
        seconds=PACK_SECONDS,
    )
    await asyncio.to_thread(_delete_but, objects, f"pack-{pack.decode().strip()}")
    return not needing


async def _delete_refs(git: Git, repository: Path, unwanted: Collection[str]) -> list[str]:
    """Delete the refs that need objects; returns them."""
    if names_in(await git.run(repository, *NEEDED)).isdisjoint(unwanted):
        return []
    listed = await git.run(repository, "for-each-ref", "--format=%(refname)")
    needing, others = list[str](), list[str]()
    for ref in listed.decode().split():
        # What other refs need was looked at with them.
        sought = "\n".join([ref, *(f"^{other}" for other in others)])
        found = await git.run(repository, *_OF_REF, given=f"{sought}\n".encode())
        (others if names_in(found).isdisjoint(unwanted) else needing).append(ref)
    for ref in needing:
        await git.run(repository, "update-ref", "-d", ref)
    return needing


def names_in(listed: bytes) -> set[str]:
    """Read a list of objects, one per line."""
    return set(listed.decode("ascii", "replace").split())


def _delete_but(objects: Path, pack: str) -> None:
    """Delete everything in a folder of objects but one pack."""
    packs = objects / "pack"
    if any(packs.glob("*.promisor")):
        (packs / f"{pack}.promisor").touch()
    for each in packs.iterdir():
        if each.stem != pack:
            each.unlink()
    for each in objects.glob(_LOOSE):
        remove(each)
    for each in (objects / "info").glob("commit-graph*"):
        remove(each)


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _AT_ONCE):
        yield names[start : start + _AT_ONCE]


async def _read_objects(child: Child) -> AsyncIterator[tuple[str, bytes]]:
    """Yield the name and the content of each object."""
    seen = bytearray()

    async def fill(size: int) -> bool:
        while len(seen) < size and (data := await child.stdout.read(PIECE_BYTES)):
            seen.extend(data)
        return len(seen) >= size

    while await fill(1):
        while (end := seen.find(b"\n")) < 0:
            if not await fill(len(seen) + 1):
                return
        name, _kind, *size = seen[:end].decode().split()
        length = int(size[0]) if size else -1  # without a size it is missing
        if not await fill(end + length + 2):
            return
        content = bytes(seen[end + 1 : end + 1 + length]) if size else b""
        del seen[: end + length + 2]
        yield name, content


async def _check(child: Child, name: str) -> None:
    if await child.wait() != 0:
        raise GitFailed(f"git {name}", child.last_words())
