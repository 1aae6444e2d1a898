"""Finds a text in the objects of git repositories, and deletes mirrors that hold one.

Objects are data: git reads them through another repository, which obeys nothing that is written
around them.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Final

from app.descent import discard
from app.errors import GitFailed
from app.model.workspaces import Repository
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.vault import PIECE_BYTES, SEAM_BYTES, Known, is_in

SEARCH_SECONDS: Final = 3600.0
"""How long a search of one repository may take: gigabytes of history."""
_OWN: Final = re.compile(r"[0-9a-f]{2}|pack")
"""The folders of a repository's own objects; what it borrows is named in another one."""
_READ: Final = ("cat-file", "--batch-all-objects", "--batch", "--unordered", "--buffer")


class RepositorySearch:
    """All repositories on this disk."""

    def __init__(self, git: Git, mirrors: Mirrors) -> None:
        self._git = git
        self._mirrors = mirrors

    async def holds(self, repository: Path, known: Known) -> bool:
        """Tell whether an object of a repository holds a text; those that it borrows do not count.

        Raises:
            GitFailed: they cannot be read.
            OSError: they cannot be found.
        """
        spare = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="agent-bridge-"))
        try:
            await self._git.run(spare, "init", "--bare", "--quiet", "--template=")
            await asyncio.to_thread(_link_objects, repository / "objects", spare / "own")
            async with asyncio.timeout(SEARCH_SECONDS):
                return await self._search(spare, known)
        except TimeoutError:
            raise GitFailed(_READ[0], f"timed out after {SEARCH_SECONDS:g} s") from None
        finally:
            await asyncio.to_thread(discard, spare)

    async def _search(self, spare: Path, known: Known) -> bool:
        more = {"GIT_OBJECT_DIRECTORY": str(spare / "own")}
        async with self._git.start(spare, *_READ, more=more) as child:
            child.close_input()
            seen, is_over = b"", False
            while not is_over:
                before = len(seen)
                while len(seen) - before < PIECE_BYTES and not is_over:
                    data = await child.stdout.read(PIECE_BYTES)
                    seen, is_over = seen + data, not data
                if await asyncio.to_thread(is_in, known, [seen]):
                    return True
                seen = seen[-SEAM_BYTES:]
            # It only complains about objects that are damaged.
            if await child.wait() != 0 or child.last_words():
                raise GitFailed(f"git {_READ[0]}", child.last_words())
        return False

    def mirror_of(self, repository: Repository) -> Path:
        """Return where the mirror of a repository is, or would be."""
        return self._mirrors.path(repository)

    async def delete_mirror(self, mirror: Path) -> None:
        """Delete a mirror: the next clone that is opened fetches it again.

        Raises:
            RepositoryError: another machine works on it.
            OSError: it cannot be deleted.
        """
        await self._mirrors.delete(mirror)


def _link_objects(objects: Path, own: Path) -> None:
    own.mkdir()
    for each in objects.iterdir():
        if _OWN.fullmatch(each.name):
            (own / each.name).symlink_to(each)
