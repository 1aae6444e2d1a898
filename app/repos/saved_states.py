"""Saves the states of clones where every machine finds them, and gives them back.

A state goes from its agent's isolation to the shelf and back into the same isolation: the bridge
measures it and never reads what is in it. Agents see mirrors and never the shelf.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from app.descent import walk
from app.errors import GitFailed, RepositoryError
from app.model.ports import Shelf
from app.model.workspaces import Clone, Rebuilt
from app.repos.agent_remote import AgentRemote
from app.repos.clone import CHECKOUT_SECONDS
from app.repos.git import COMMIT
from app.repos.inspection import plain
from app.repos.sandboxed_git import Inside

logger = logging.getLogger(__name__)

SAVE_SECONDS: Final = 120.0
"""How long it may take to save a state; that of a small change takes a tenth of a second."""
STATE_BYTES: Final = 512 * 1024**2
"""The largest state: more than what its files may have together."""
_SAID_BYTES: Final = 65536
"""The longest line in which the keeper says what it did."""
_MOST_NAMED: Final = 20
_MOST_SEEN: Final = 5_000
"""To look at more files and folders takes longer than git would."""
_BUNDLE: Final = "state.bundle"


@dataclass(frozen=True, slots=True)
class SavedStates:
    """The saved states of all clones: one file for each, named after its content."""

    shelf: Shelf
    _seen: dict[Path, tuple[str, int]] = field(default_factory=dict, init=False)
    """For each clone its last state, and what its files looked like before that was saved."""

    async def save(
        self, inside: Inside, door: AgentRemote, clone: Clone, known: str, bases: Sequence[str]
    ) -> str:
        """Save the state of a clone, unless it is the known one; returns its name.

        `bases` are commits that the remote has.

        Raises:
            RepositoryError: it cannot be saved.
        """
        folder = door.folder.parent
        if known and _place(clone, known) not in await self._list(clone):
            known = ""  # it was removed meanwhile
        looks = await asyncio.to_thread(look_at, clone.folder)
        if looks is not None and self._seen.get(clone.folder) == (known, looks):
            return known
        raw, bundle = folder / "state.raw", folder / _BUNDLE
        try:
            name = await self._write(inside, door, raw, known or "-", [*filter(None, bases)])
            if name != known:
                await asyncio.to_thread(_cut_first_line, raw, bundle)
                await self.shelf.put(_place(clone, name), bundle)
        except OSError as error:
            raise RepositoryError(f"The state cannot be saved: {error}") from error
        finally:
            for file in (raw, bundle):
                await asyncio.to_thread(file.unlink, missing_ok=True)
        if looks is not None:
            self._seen[clone.folder] = (name, looks)
        return name

    async def _list(self, clone: Clone) -> Sequence[str]:
        try:
            return await self.shelf.names(clone.folder.name)
        except OSError as error:
            raise RepositoryError(f"The saved states cannot be listed: {error}") from error

    async def fetch(self, door: AgentRemote, clone: Clone, name: str) -> bool:
        """Place a saved state where its agent's isolation can read it; False if it is gone.

        Raises:
            RepositoryError: it cannot be fetched.
        """
        target = door.folder / _BUNDLE
        try:
            found = await self.shelf.get(_place(clone, name), target)
        except OSError as error:
            raise RepositoryError(f"The saved state cannot be read: {error}") from error
        if found:
            await asyncio.to_thread(door.give, target)
        return found

    async def restore(self, inside: Inside, door: AgentRemote) -> Rebuilt:
        """Bring a new clone to the state that was fetched.

        Raises:
            GitFailed: it cannot be restored.
        """
        bundle = door.folder / _BUNDLE
        try:
            status, written, words = await inside.run(
                *(*door.keeper, "restore", str(bundle)),
                seconds=CHECKOUT_SECONDS,
                limit=_SAID_BYTES,
            )
        finally:
            await asyncio.to_thread(bundle.unlink, missing_ok=True)
        if status != 0:
            raise GitFailed("git restore", words)
        said = _parse(written)
        return Rebuilt(_names(said.get("left_out")), unfinished=said.get("unfinished") is True)

    async def forget_others(self, clone: Clone, name: str) -> None:
        """Remove the saved states of a clone but for one; all, if none is named."""
        for each in await self.shelf.names(clone.folder.name):
            if each != _place(clone, name):
                await self.shelf.remove(each)

    async def _write(
        self, inside: Inside, door: AgentRemote, raw: Path, known: str, bases: list[str]
    ) -> str:
        with raw.open("wb") as file:
            status, words = await inside.pour(
                *(*door.keeper, "save", known, *bases),
                into=file,
                seconds=SAVE_SECONDS,
                limit=STATE_BYTES,
                name="git save",
            )
        if status != 0:
            raise GitFailed("git save", words)
        with raw.open("rb") as file:
            said = _parse(file.readline(_SAID_BYTES))
        if left_out := _names(said.get("left_out")):
            logger.warning("%s: not saved, too large: %s", raw.parent.name, ", ".join(left_out))
        name = str(said.get("state"))
        if not COMMIT.fullmatch(name):
            raise RepositoryError("The state of the clone has no name.")
        return name


def _place(clone: Clone, name: str) -> str:
    return f"{clone.folder.name}/{name}.bundle"


def look_at(folder: Path) -> int | None:
    """Return a number that is another one once a file in a folder was changed, moved or removed.

    That is much cheaper than to start git. None if there are too many files for that, or some
    cannot be seen.
    """
    looks, unread = 0, list[PurePosixPath]()
    try:
        for count, found in enumerate(walk(folder, unread=unread.append)):
            if count >= _MOST_SEEN or unread:
                return None
            status = found.stat()
            changed = 0 if found.is_folder else status.st_ctime_ns
            looks = hash((looks, found.depth, found.name, status.st_ino, changed))
    except OSError:
        return None
    return None if unread else looks


def _cut_first_line(raw: Path, bundle: Path) -> None:
    with raw.open("rb") as source, bundle.open("wb") as target:
        source.readline(_SAID_BYTES)
        shutil.copyfileobj(source, target, 1024**2)


def _parse(line: bytes) -> dict[str, Any]:
    """Read what the keeper says: it comes from inside, and may be anything."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    return said if isinstance(said, dict) else {}


def _names(found: object) -> tuple[str, ...]:
    if not isinstance(found, list):
        return ()
    return tuple(plain(str(each)) for each in found[:_MOST_NAMED])
