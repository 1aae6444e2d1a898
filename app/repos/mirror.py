"""Keeps one bare mirror per repository, from which clones and gates borrow their objects.

An object that was in a mirror stays in it: clones borrow without asking, so nothing is deleted but
a whole mirror that holds what the operator purges, and a damaged one is rebuilt with everything
that can still be read of the old one.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from app.children.file_lock import hold
from app.children.limits import DiskSpace
from app.descent import discard, remove
from app.errors import GitFailed, RepositoryError
from app.model.workspaces import Repository, Target
from app.repos import fetching
from app.repos.fetching import COMPLETE, Fetcher, keep_boundaries, salvage, swap, tidy, with_promise
from app.repos.git import COMMIT, NOWHERE, CredentialSource, Git, failure, file_name, is_damage
from app.repos.trees import Submodule, find_excess, parse_submodules

logger = logging.getLogger(__name__)

_PACKS: Final = 50
"""With more packs every lookup gets slow; git itself repacks at this number."""
_REPACK_SECONDS: Final = 600.0
"""How long a repack may take, while others wait for the mirror."""
_OTHERS_SECONDS: Final = 3600.0
"""How long another machine may work on a mirror: more than a fetch and a repack take."""
_ELSEWHERE: Final = ".elsewhere"


class Mirrors:
    """All mirrors of a bridge."""

    def __init__(
        self,
        root: Path,
        git: Git,
        tokens: CredentialSource | None,
        person: Mapping[str, str],
        *,
        disk: DiskSpace,
        shallow: Collection[Target] = (),
        partial: Collection[Target] = (),
    ) -> None:
        self.root = root
        """The folder of all mirrors."""
        self._git = git
        self._fetcher = Fetcher(git, tokens, person, shallow, partial)
        self._disk = disk
        self._partial = partial
        self._locks: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tidied: set[Path] = set()
        self._packs_left: defaultdict[Path, int] = defaultdict(int)
        self._places: dict[str, str] = {}

    def path(self, repository: Repository) -> Path:
        """Return where the mirror of a repository is, or would be."""
        name = file_name(repository)
        if name not in self._places:
            note = self.root / f"{name}{_ELSEWHERE}"
            self._places[name] = note.read_text() if note.exists() else name
        return self.root / self._places[name]

    async def rename(self, old: Repository, new: Repository) -> None:
        """Keep the mirror of a renamed repository where it is: clones borrow from it.

        A repository that takes the old name gets a new mirror.
        """
        async with self._hold(mirror := self.path(old)):
            noted = self.root / f"{file_name(new)}{_ELSEWHERE}"
            # A crash may have interrupted this after the first half.
            is_done = noted.exists() and self.path(new).exists()
            if mirror.exists() and not is_done:
                await asyncio.to_thread(self._note, new, mirror.name)
                await asyncio.to_thread(self._note, old, f"{uuid4().hex[:12]}-{file_name(old)}")

    def _note(self, repository: Repository, folder: str) -> None:
        """Note where the mirror of a repository is, if not where its name says."""
        name = file_name(repository)
        new = self.root / f"{name}.note"
        new.write_text(folder)
        new.rename(self.root / f"{name}{_ELSEWHERE}")
        self._places[name] = folder

    async def refresh(
        self, repository: Repository, agent: str | None, *also: str, whole: bool = False
    ) -> Path:
        """Update a mirror, with further refs or commits if named; create it if necessary.

        Without an agent it is fetched anonymously, with no token and no key. With `whole` it lacks
        nothing from then on, regardless of the settings.

        Raises:
            RepositoryError: the remote cannot be reached, or the disk is nearly full.
        """
        mirror = self.path(repository)
        async with self._hold(mirror):
            if is_new := not mirror.exists():
                await self.check_room()
                await self._build(repository, agent, mirror, whole=whole)
            if (also or not is_new) and not await self._try_fetch(
                repository, agent, mirror, *also, whole=whole
            ):
                logger.warning("rebuilding the damaged mirror of %s", repository.name)
                await self._build(repository, agent, mirror, whole=whole)
                await self._try_fetch(repository, agent, mirror, *also, whole=whole)
            await self._repack(repository, mirror)
        return mirror

    async def reach(self, repository: Repository, agent: str) -> None:
        """Ask a remote whether it has a repository that an agent may read.

        Raises:
            RepositoryError: it has none, or does not answer.
        """
        await asyncio.to_thread(self.root.mkdir, parents=True, exist_ok=True)
        access = await self._fetcher.access(repository, agent)
        with _translate_errors(repository):
            await self._git.run(self.root, "ls-remote", "--", repository.url, "HEAD", access=access)

    async def rebuild(self, repository: Repository, agent: str) -> Path:
        """Rebuild a damaged mirror, without losing what clones borrow."""
        mirror = self.path(repository)
        async with self._hold(mirror):
            await self._build(repository, agent, mirror)
        return mirror

    def is_partial(self, repository: Repository) -> bool:
        """Tell whether a mirror may lack the content of files that are needed later."""
        return fetching.may_lack(self.path(repository))

    def is_larger_than_set(self, repository: Repository) -> bool:
        """Tell whether all files are fetched although the settings say partial."""
        return repository in self._partial and not fetching.is_filtered(self.path(repository))

    async def complete(
        self,
        repository: Repository,
        agent: str,
        *commits: str,
        seen_from: Path | None = None,
    ) -> None:
        """Fetch every file of some commits that a partial mirror lacks, in one request.

        Commits that are not in the mirror are read from a repository that borrows from it.

        Raises:
            RepositoryError: it cannot be fetched.
        """
        if not self.is_partial(repository):
            return
        await self.check_room()
        async with self._hold(mirror := self.path(repository)):
            names = await fetching.missing_files(self._git, seen_from or mirror, commits)
            with _translate_errors(repository):
                await self._fetcher.fetch_objects(repository, agent, mirror, names)

    async def complete_merge(
        self, repository: Repository, agent: str, onto: str, commit: str, *, seen_from: Path
    ) -> None:
        """Fetch what a merge of two commits may read.

        Raises:
            RepositoryError: it cannot be fetched, or has too many files.
        """
        await self.check_size(repository, onto, commit, seen_from=seen_from)
        if not self.is_partial(repository):
            return
        try:
            bases = await self._git.run(seen_from, "merge-base", "--all", onto, commit)
        except GitFailed:
            return  # they have nothing in common, and cannot be merged
        sides = (onto, commit, *bases.decode().split())
        await self.complete(repository, agent, *sides, seen_from=seen_from)

    async def bring(self, repository: Repository, agent: str, names: Iterable[str]) -> None:
        """Fetch those of some objects that a partial mirror lacks, in one request.

        Raises:
            RepositoryError: they cannot be fetched.
        """
        if not self.is_partial(repository):
            return
        await self.check_room()
        async with self._hold(mirror := self.path(repository)):
            with _translate_errors(repository):
                await self._fetcher.fetch_objects(repository, agent, mirror, names)

    async def delete(self, mirror: Path) -> None:
        """Delete a mirror; the next refresh makes it again.

        Raises:
            RepositoryError: another machine works on it.
            OSError: it cannot be deleted.
        """
        async with self._hold(mirror):
            await asyncio.to_thread(remove, mirror)

    async def default_branch(self, repository: Repository) -> str:
        """Return the default branch.

        Raises:
            RepositoryError: the repository is empty.
        """
        mirror = self.path(repository)
        try:
            name = await self._git.run(mirror, "symbolic-ref", "HEAD")
            await self._git.run(mirror, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except GitFailed as error:
            if is_damage(error.words):
                raise
            raise RepositoryError(
                f"{repository.name} has no commit on its default branch yet. Push one first."
            ) from error
        return name.decode().strip().removeprefix("refs/heads/")

    async def commit(self, repository: Repository, name: str) -> str | None:
        """Return the commit of a full ref name or a commit hash; None if there is none.

        Options and expressions of git are not accepted as names.
        """
        if not (name.startswith("refs/") or COMMIT.fullmatch(name)):
            return None
        try:
            found = await self._git.run(
                self.path(repository),
                *("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"),
            )
        except GitFailed:
            return None
        commit = found.decode().strip()
        return commit if COMMIT.fullmatch(commit) else None

    async def check_size(
        self, repository: Repository, *commits: str, seen_from: Path | None = None
    ) -> None:
        """Check that some commits can be walked and checked out.

        Raises:
            RepositoryError: one has too many files.
        """
        if excess := await find_excess(self._git, seen_from or self.path(repository), commits):
            raise RepositoryError(f"{repository.name} cannot be used here. {excess}")

    async def submodules(self, repository: Repository, commit: str) -> list[Submodule]:
        """List the submodules of a commit."""
        try:
            listed = await self._git.run(
                self.path(repository), "config", "-z", "--list", f"--blob={commit}:.gitmodules"
            )
        except GitFailed:
            return []
        return parse_submodules(listed)

    async def link(self, repository: Repository, commit: str, path: str) -> str | None:
        """Return the submodule commit that a commit names at a path; None if there is none."""
        listed = await self._git.run(
            self.path(repository), "ls-tree", "--full-tree", "-z", commit, "--", path
        )
        found = re.match(rb"160000 commit ([0-9a-f]+)\t", listed)
        return None if found is None else found[1].decode()

    async def read(self, repository: Repository, path: str, *, limit: int) -> bytes | None:
        """Read a file of the default branch; None if there is none or if it is too large."""
        try:
            return await self._git.run(
                self.path(repository), "cat-file", "blob", f"HEAD:{path}", limit=limit
            )
        except GitFailed:
            return None

    async def check_room(self, more: int = 0) -> None:
        """Check that there is room for this many more bytes.

        Raises:
            DiskNearlyFull: there is not.
        """
        await self._disk.check_room(more)

    @asynccontextmanager
    async def _hold(self, mirror: Path) -> AsyncIterator[None]:
        async with self._locks[mirror], _lock_out_others(mirror):
            if mirror not in self._tidied:
                # The processes that held these locks have ended: no other bridge is at work here.
                await asyncio.to_thread(tidy, mirror)
                await self._make_readable(mirror)
                self._tidied.add(mirror)
            yield

    async def _make_readable(self, mirror: Path) -> None:
        """Let agents with their own users read a mirror; the folder around it is closed."""
        if (mirror / "HEAD").exists():
            await self._git.run(mirror, "config", "core.sharedRepository", "0644")
            await asyncio.to_thread(mirror.chmod, 0o755)

    async def _try_fetch(
        self, repository: Repository, agent: str | None, mirror: Path, *also: str, whole: bool
    ) -> bool:
        """Fetch; False if the mirror is damaged."""
        try:
            with _translate_errors(repository):
                await self._fetcher.fetch(repository, agent, mirror, *also, whole=whole)
        except GitFailed:
            return False
        return True

    async def _build(
        self, repository: Repository, agent: str | None, mirror: Path, *, whole: bool = False
    ) -> None:
        """Build a mirror in a temporary folder and move it into place when it is ready."""
        # Clones of a complete mirror cannot fetch missing files later.
        whole = whole or fetching.is_whole(mirror)
        new = mirror.with_suffix(".new")
        await asyncio.to_thread(discard, new)
        new.mkdir(parents=True)
        await self._git.run(new, "init", "--bare", "--quiet", "--template=")
        await self._make_readable(new)
        try:
            await self._fetcher.fetch(repository, agent, new, is_new=True, whole=whole)
        except GitFailed as error:
            await asyncio.to_thread(discard, new)
            raise failure(repository, error) from error
        if fetching.may_lack(mirror) and not fetching.may_lack(new):
            fetching.note(new, filtered=False)
        await salvage(self._git, mirror, new)
        await keep_boundaries(self._git, mirror, new)
        (new / COMPLETE).touch()
        await asyncio.to_thread(swap, new, mirror)

    async def _repack(self, repository: Repository, mirror: Path) -> None:
        """Make one pack of many; if that fails, the mirror is slower but still used."""
        packs = sum(1 for _ in (mirror / "objects" / "pack").glob("*.pack"))
        if packs <= self._packs_left[mirror] + _PACKS:
            return
        access = with_promise(NOWHERE, repository) if fetching.may_lack(mirror) else NOWHERE
        words = ("repack", "-a", "-d", "--keep-unreachable", "-q")
        try:
            await self._git.run(mirror, *words, access=access, seconds=_REPACK_SECONDS)
        except GitFailed as error:
            logger.warning("cannot repack the mirror of %s: %s", repository.name, error)
            self._packs_left[mirror] = packs
        else:
            self._packs_left[mirror] = 0


@asynccontextmanager
async def _lock_out_others(mirror: Path) -> AsyncIterator[None]:
    """Keep the bridges of other machines out of a mirror."""
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(hold(mirror.with_suffix(".lock"), _OTHERS_SECONDS))
        except TimeoutError:
            raise RepositoryError(
                f"Another machine has worked on the mirror {mirror.name} for more than an hour."
            ) from None
        except OSError as error:
            raise RepositoryError(f"The mirror {mirror.name} cannot be locked: {error}") from error
        yield


@contextmanager
def _translate_errors(repository: Repository) -> Iterator[None]:
    """Translate a failed call to a remote; damage on this disk is raised as git's own error."""
    try:
        yield
    except GitFailed as error:
        if is_damage(error.words):
            raise
        raise failure(repository, error) from error
