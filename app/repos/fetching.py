"""Fills mirrors: fetches branches and single objects, and repairs what a crash or a disk damaged.

A partial mirror has all commits and trees; the content of files is fetched on demand. It does not
say where the rest is: only the bridge's own fetch is told, while it runs. So no other git of any
version fetches missing objects by itself, and what an agent needs is fetched only by the bridge,
with the bridge's own token. A mirror that was partial once never counts as whole again, even when
all of its branches are: a clone may still be based on commits that were fetched in part and are on
no branch any more.

Every step of a repair may be interrupted at any moment and be repeated.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import zlib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from app.descent import discard, walk
from app.errors import GitFailed
from app.model.workspaces import Repository, Target
from app.repos.git import COMMIT, CredentialSource, Git, RemoteAccess, access_to

logger = logging.getLogger(__name__)

_LATEST: Final = "--depth=50"
"""What a shallow mirror begins with: enough to see what happened lately, little to fetch."""
_EVERYTHING: Final = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches what mirrors lack."""

    git: Git
    tokens: CredentialSource | None
    person: Mapping[str, str]
    shallow: Collection[Target] = ()
    partial: Collection[Target] = ()

    async def fetch(
        self,
        repository: Repository,
        agent: str | None,
        mirror: Path,
        *also: str,
        is_new: bool = False,
        whole: bool = False,
    ) -> None:
        """Fetch all branches, and further refs or commits if named; all files with `whole`.

        Raises:
            GitFailed: git cannot do it.
        """
        access = await self.access(repository, agent)
        was_filtered = is_filtered(mirror)
        filtered = not whole and repository in self.partial and (is_new or was_filtered)
        # Every tag would bring the files of another release.
        wanted = _EVERYTHING[:1] if repository in self.shallow else _EVERYTHING
        refs = [f"+{ref}:{ref if ref.startswith('refs/') else f'refs/kept/{ref}'}" for ref in also]
        words = await self.git.run_for_stderr(
            mirror,
            *("fetch", "--quiet", "--prune", "--force", "--no-write-fetch-head", "--no-tags"),
            *(f"--filter={FILTER}",) * filtered,
            *("--refetch",) * (was_filtered and not filtered),
            *(*self._depth(repository, mirror, is_new=is_new), "--", repository.url),
            *(*wanted, *refs),
            access=with_promise(access, repository) if filtered else access,
        )
        if filtered and is_new and not was_heeded(words):
            logger.warning("the server of %s does not support partial clones", repository.name)
            filtered = False
        elif filtered != was_filtered:
            note(mirror, filtered=filtered)
        listed = await self.git.run(
            mirror, "ls-remote", "--symref", "--", repository.url, "HEAD", access=access
        )
        head = re.match(rb"ref: (refs/heads/\S+)\tHEAD\n", listed)
        if head is not None:
            await self.git.run(mirror, "symbolic-ref", "HEAD", head[1].decode())
        if filtered:
            await self._fetch_needed(repository, agent, mirror, is_new=is_new)

    async def access(self, repository: Repository, agent: str | None) -> RemoteAccess:
        """Get access to a remote, anonymous without an agent."""
        return await access_to(repository, agent, self.tokens, self.person)

    async def _fetch_needed(
        self, repository: Repository, agent: str | None, mirror: Path, *, is_new: bool
    ) -> None:
        """Fetch what is always needed; everything, if the server does not serve single files."""
        names = await needed(self.git, mirror, is_new=is_new)
        try:
            await self.fetch_objects(repository, agent, mirror, names)
        except GitFailed as error:
            # Later the cause may only be that one machine of the server is behind the others.
            if not is_new or not is_refusal(error.words):
                raise
            logger.warning("the server of %s does not serve single objects", repository.name)
            await self.fetch(repository, agent, mirror, whole=True)

    async def fetch_objects(
        self, repository: Repository, agent: str | None, mirror: Path, names: Iterable[str]
    ) -> None:
        """Fetch those objects that are missing, in one request."""
        lacking = await missing(self.git, mirror, names)
        if lacking:
            access = with_promise(await self.access(repository, agent), repository)
            # What is already here does not help the server to find what is missing.
            settings = {**access.settings, "fetch.negotiationAlgorithm": "noop"}
            await self.git.run(
                mirror,
                *("fetch", "--quiet", "--no-write-fetch-head", "--no-tags"),
                *(f"--filter={FILTER}", "--stdin", "--", repository.url),
                access=replace(access, settings=settings),
                given="".join(f"{name}\n" for name in lacking).encode(),
            )

    def _depth(self, repository: Repository, mirror: Path, *, is_new: bool) -> tuple[str, ...]:
        """Tell how far back a fetch goes.

        A shallow mirror begins with the latest commits and then grows as the branches do: cutting
        it again would remove what clones and the remote have in common.
        """
        if repository in self.shallow:
            return (_LATEST,) if is_new else ()
        return ("--unshallow",) if (mirror / "shallow").exists() else ()


def with_promise(access: RemoteAccess, repository: Repository) -> RemoteAccess:
    """Let one command know that what is missing can be fetched from the remote."""
    return replace(access, settings={**access.settings, **promise(repository.url)})


FILTER: Final = "blob:none"
"""What is left out at first: the content of all files."""
_NOTE: Final = "partial"
_ALL: Final = "all"
_OWN_FILES: Final = (".gitmodules", ".lfsconfig", ".agent-bridge/setup")
"""What the bridge itself reads of a default branch."""
_UNFILTERED: Final = "filtering not recognized by server"
_REFUSED: Final = re.compile(r"not our ref|unadvertised object|want [0-9a-f]+ not valid")


def may_lack(mirror: Path) -> bool:
    """Tell whether a mirror is or was partial: clones of it must be able to ask for more."""
    return (mirror / _NOTE).exists()


def is_filtered(mirror: Path) -> bool:
    """Tell whether a mirror is fetched without the content of files."""
    return may_lack(mirror) and (mirror / _NOTE).read_text() == FILTER


def is_whole(mirror: Path) -> bool:
    """Tell whether a mirror is there and never was partial."""
    return mirror.exists() and not may_lack(mirror)


def note(mirror: Path, *, filtered: bool) -> None:
    """Record how a mirror that is or was partial is fetched."""
    new = mirror / f"{_NOTE}.new"
    new.write_text(FILTER if filtered else _ALL)
    new.replace(mirror / _NOTE)


def was_heeded(words: str) -> bool:
    """Tell from the output of a fetch whether the server applied the filter."""
    return _UNFILTERED not in words


def is_refusal(words: str) -> bool:
    """Tell whether a server refuses to serve single objects."""
    return bool(_REFUSED.search(words))


def promise(url: str) -> dict[str, str]:
    """Return the settings that tell git that a remote has what is missing."""
    return {f"remote.{url}.promisor": "true", f"remote.{url}.partialclonefilter": FILTER}


async def missing_files(git: Git, repository: Path, commits: Iterable[str]) -> list[str]:
    """List the files of some commits whose content is not there."""
    listed = await git.run(
        repository,
        *("rev-list", "--objects", "--no-object-names", "--no-walk", "--missing=print"),
        *(*commits, "--"),
    )
    return [line[1:] for line in listed.decode().splitlines() if line.startswith("?")]


async def missing(git: Git, repository: Path, names: Iterable[str]) -> list[str]:
    """List those of some objects that are missing; invalid names are left out."""
    asked = dict.fromkeys(name for name in names if COMMIT.fullmatch(name))
    if not asked:
        return []
    listed = await git.run(
        repository,
        *("cat-file", "--batch-check=%(objectname)", "--buffer"),
        given="".join(f"{name}\n" for name in asked).encode(),
    )
    lines = (line.partition(" ") for line in listed.decode().splitlines())
    return [name for name, _, word in lines if word == "missing"]


async def needed(git: Git, mirror: Path, *, is_new: bool) -> list[str]:
    """List the objects of the default branch that are always needed.

    For a new mirror that is every file: sessions begin there. Later, what the bridge itself reads.
    """
    with suppress(GitFailed):  # there is no commit yet
        if is_new:
            return await missing_files(git, mirror, ["HEAD"])
        listed = await git.run(mirror, "ls-tree", "--full-tree", "HEAD", "--", *_OWN_FILES)
        lines = (line.split() for line in listed.decode(errors="replace").splitlines())
        return [name for _, kind, name, *_ in lines if kind == "blob"]
    return []


COMPLETE: Final = "complete"
"""The file that marks a new mirror as complete."""
_CHUNK_BYTES: Final = 1024**2
_LOOSE: Final = re.compile(r"[0-9a-f]{2}/[0-9a-f]{38}")
_LOOSE_BYTES: Final = 256 * 1024**2
"""A loose object that is larger is not worth the memory it takes to check it."""


def swap(new: Path, mirror: Path) -> None:
    """Put a new mirror in the place of a damaged one."""
    damaged = mirror.with_suffix(".damaged")
    discard(damaged)
    if mirror.exists():
        mirror.rename(damaged)
    new.rename(mirror)
    discard(damaged)


def tidy(mirror: Path) -> None:
    """Finish or undo what a crash left half done, and remove stale locks."""
    new = mirror.with_suffix(".new")
    damaged = mirror.with_suffix(".damaged")
    if not mirror.exists() and (new / COMPLETE).exists():
        new.rename(mirror)
    elif not mirror.exists() and damaged.exists():
        damaged.rename(mirror)
    for rest in (new, damaged):
        discard(rest)
    remove_locks(mirror)


def remove_locks(repository: Path) -> None:
    """Remove what a git that was killed left behind in a bare repository of the bridge."""
    for lock in repository.glob("*.lock"):
        lock.unlink(missing_ok=True)
    for found in walk(repository / "refs"):
        if found.name.endswith(".lock") and not found.is_folder:
            os.unlink(found.name, dir_fd=found.folder)
    for rest in (*repository.glob("objects/pack/tmp_*"), *repository.glob("objects/??/tmp_obj_*")):
        rest.unlink(missing_ok=True)
    for quarantine in repository.glob("objects/tmp_objdir-*"):
        discard(quarantine)


async def salvage(git: Git, old: Path, new: Path) -> None:
    """Copy what can still be read of a damaged mirror and is not on the remote."""
    for pack in sorted((old / "objects" / "pack").glob("*.pack")):
        await _unpack(git, pack, new)
    copied = await asyncio.to_thread(_copy_loose, old / "objects", new / "objects")
    if copied:
        logger.info("kept %d loose objects of the damaged mirror", copied)


async def keep_boundaries(git: Git, old: Path, new: Path) -> None:
    """Record where the history of a shallow mirror ended: what was kept still ends there."""
    if not (old / "shallow").exists():
        return
    ends = set(_lines(old / "shallow")) | set(_lines(new / "shallow"))
    found = await git.run(
        new,
        *("cat-file", "--batch-check=%(objectname)"),
        given="".join(f"{end}\n" for end in sorted(ends)).encode(),
    )
    there = [line for line in found.decode().splitlines() if COMMIT.fullmatch(line)]
    (new / "shallow").write_text("".join(f"{end}\n" for end in there))


async def _unpack(git: Git, pack: Path, new: Path) -> None:
    async with git.start(new, "unpack-objects", "-r", "-q") as child:
        try:
            with pack.open("rb") as file:
                while data := await asyncio.to_thread(file.read, _CHUNK_BYTES):
                    child.write(data)
                    await child.drain()
        except (BrokenPipeError, OSError):
            pass  # it gave up on a broken pack; what it had read by then is there
        child.close_input()
        await child.wait()


def _copy_loose(old: Path, new: Path) -> int:
    names = (f"{file.parent.name}/{file.name}" for file in old.glob("??/*"))
    return sum(_copy_object(old, new, name) for name in names if _LOOSE.fullmatch(name))


def _copy_object(old: Path, new: Path, name: str) -> bool:
    target = new / name
    try:
        if target.exists() or (old / name).stat().st_size > _LOOSE_BYTES:
            return False
        data = (old / name).read_bytes()
        # The name of an object is the hash of what is in it: what does not fit is damaged.
        content = zlib.decompress(data)
    except (OSError, zlib.error):
        return False
    if hashlib.sha1(content, usedforsecurity=False).hexdigest() != name.replace("/", ""):
        return False
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(data)
    return True


def _lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []
