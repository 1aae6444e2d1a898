"""Supports partial mirrors: all commits and trees, with file content fetched on demand.

A mirror does not say where the rest is: only the bridge's own fetch is told, while it runs. So no
other git of any version fetches missing objects by itself, and what an agent needs is fetched only
by the bridge, with the bridge's own token.

A mirror that was partial once never counts as whole again, even when all of its branches are:
a clone may still be based on commits that were fetched in part and are on no branch any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from app.errors import GitFailed
from app.repos.git import COMMIT, Git

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
