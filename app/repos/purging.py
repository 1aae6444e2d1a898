"""Takes a secret out of mirrors, gates and clones, where no branch needs what holds it.

History is never rewritten: a commit that holds the secret is named, and deleted with its clone if
the operator wants that.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Set
from pathlib import Path

from app.errors import GitFailed, RepositoryError
from app.model.erasure import Cleared
from app.model.workspaces import Clone
from app.repos.checkouts import GitCheckouts
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.objects import NEEDED, UNUSED, ObjectSearch, names_in, searching
from app.vault import Vault

logger = logging.getLogger(__name__)


class RepositoryPurge:
    """All repositories on this disk, by the folders of their objects."""

    def __init__(self, git: Git, mirrors: Mirrors, checkouts: GitCheckouts) -> None:
        self._git = git
        self._mirrors = mirrors
        self._checkouts = checkouts

    async def clear(
        self, folders: Collection[Path], clones: Mapping[Path, Clone], vault: Vault
    ) -> Cleared:
        """Delete what holds a secret and is not needed from clones; mirrors are only searched.

        `clones` are by the folder that each works in.
        """
        mirrors = [each for each in folders if self.is_mirror(each)]
        left: list[Path] = []
        async with searching(self._git) as search:
            known, held = await self._search_mirrors(search, mirrors, vault, left)
            needed = set[str]()
            for each in folders:
                if each not in mirrors:
                    clone = clones.get(each.parent.parent)
                    try:
                        own = await self._clear(search, each, clone, known, held, vault)
                    except (GitFailed, RepositoryError) as error:
                        logger.warning("cannot look into %s: %s", each.parent, error)
                        left.append(each.parent)
                    else:
                        left += [each.parent] * bool(own)
                        needed |= own
        return Cleared(tuple(left), frozenset(needed), held)

    async def clear_mirrors(
        self, held: Mapping[Path, Collection[str]], needed: Collection[str]
    ) -> list[Path]:
        """Delete objects from mirrors, unless clones of any machine need them.

        Returns the mirrors that still have some, or have them from a remote.
        """
        left = []
        for mirror, objects in held.items():
            try:
                is_needed = not set(needed).isdisjoint(objects)
                if is_needed or not await self._mirrors.delete(mirror, objects):
                    left.append(mirror)
            except GitFailed as error:
                logger.warning("cannot clear %s: %s", mirror, error)
                left.append(mirror)
        return left

    def is_mirror(self, repository: Path) -> bool:
        """Tell whether a repository only copies what a remote has."""
        return repository.is_relative_to(self._mirrors.root)

    async def _search_mirrors(
        self, search: ObjectSearch, folders: Collection[Path], vault: Vault, left: list[Path]
    ) -> tuple[set[str], dict[Path, set[str]]]:
        """Return all objects of all mirrors, and those of each mirror that hold a secret."""
        known, held = set[str](), dict[Path, set[str]]()
        for each in folders:
            try:
                names = await search.names(each)
                if found := await search.find(each, names, vault):
                    held[each.parent] = found
                known |= names
            except GitFailed as error:
                logger.warning("cannot look into %s: %s", each.parent, error)
                left.append(each.parent)
        return known, held

    async def _clear(
        self,
        search: ObjectSearch,
        objects: Path,
        clone: Clone | None,
        known: Set[str],
        of_mirrors: Mapping[Path, Set[str]],
        vault: Vault,
    ) -> Set[str]:
        """Delete what a repository does not need; returns what it needs and holds a secret."""
        names = await search.names(objects)
        borrowed = set[str]().union(*of_mirrors.values())
        held = (names & borrowed) | await search.find(objects, names - known, vault)
        if clone is not None and (held or not (objects.parent / "index").exists()):
            await self._checkouts.forget_states(clone)
            return held & await self._checkouts.forget_unused(clone)
        if not held:
            return held
        if objects.parent.parent.parent != self._checkouts.gates:
            return held
        for words in UNUSED:
            await self._git.run(objects.parent, *words)
        return held & names_in(await self._git.run(objects.parent, *NEEDED))
