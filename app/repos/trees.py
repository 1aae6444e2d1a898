"""Reads what a commit holds before anything walks it: how many files, and which submodules.

A dozen objects can name ten billion files: folders that hold the same folder ten times, ten levels
deep. Git walks every one of them and takes all memory. Here each folder is read once, and its count
is used wherever it occurs.

`.gitmodules` is untrusted. Only https addresses, and those on the repository's own host, are
followed; the bridge fetches them into a mirror, and a token goes only to that host. An ssh address
on that host means the same repository as the https one. A relative address stays with the
repository's owner.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from app.errors import GitFailed
from app.model.workspaces import Repository
from app.repos.git import Git

MOST_PATHS: Final = 1_000_000
"""Files and folders of one commit: twice those of the largest public repositories."""
_DEEPEST: Final = 256
"""Folders within each other: no tool makes half as many."""
_AT_ONCE: Final = 10_000
"""Folders per process: their names fit into memory with what they hold."""

_FOLDER_MODE: Final = 0o40000

_Folder = tuple[int, tuple[str, ...]]
"""How many entries a folder has, and the folders among them, by the names of their objects."""


async def find_excess(
    git: Git,
    repository: Path,
    commits: Sequence[str],
    *,
    view: Mapping[str, str] | None = None,
    most: int = MOST_PATHS,
) -> str:
    """Say which of some commits has too many files; empty if none has.

    Raises:
        GitFailed: they cannot be read.
    """
    roots = [f"{commit}^{{tree}}" for commit in commits]
    read = await _read(git, repository, roots, view)
    tops = [name for name, _ in read]
    folders = dict(read)
    for _ in range(_DEEPEST):
        deeper = dict.fromkeys(name for _, (_, below) in read for name in below)
        unread = [name for name in deeper if name not in folders]
        if not unread:
            break
        if len(folders) + len(unread) > most:
            return f"This has more than {most:,} different folders. {_REMEDY}"
        read = await _read(git, repository, unread, view)
        folders |= read
    else:
        return f"This has more than {_DEEPEST:,} folders within each other. {_REMEDY}"
    counts: dict[str, int] = {}
    for commit, top in zip(commits, tops, strict=True):
        if _count(folders, top, counts) > most:
            return f"Commit {commit[:12]} has more than {most:,} files and folders. {_REMEDY}"
    return ""


_REMEDY: Final = "The bridge does not work with so many: remove folders from the commit."


async def _read(
    git: Git, repository: Path, names: Sequence[str], view: Mapping[str, str] | None
) -> list[tuple[str, _Folder]]:
    """Read folders, in the order in which they are named."""
    read: list[tuple[str, _Folder]] = []
    for start in range(0, len(names), _AT_ONCE):
        written = await git.run(
            repository,
            *("cat-file", "--batch", "--buffer"),
            given="".join(f"{name}\n" for name in names[start : start + _AT_ONCE]).encode(),
            more=view,
        )
        read += await asyncio.to_thread(_parse, written)
    return read


def _parse(written: bytes) -> list[tuple[str, _Folder]]:
    """Read the folders that git wrote, each after a line with its name, kind and size."""
    read: list[tuple[str, _Folder]] = []
    start = 0
    while start < len(written):
        line = written.index(b"\n", start)
        name, kind, *size = written[start:line].split(b" ")
        if kind != b"tree":
            raise GitFailed("git cat-file", written[start:line].decode(errors="replace"))
        end = line + 1 + int(size[0])
        entry = rb"(\d+) [^\0]+\0(.{%d})" % (len(name) // 2)
        entries = re.findall(entry, written[line + 1 : end], re.DOTALL)
        below = tuple(each.hex() for mode, each in entries if int(mode, 8) == _FOLDER_MODE)
        read.append((name.decode(), (len(entries), below)))
        start = end + 1
    return read


def _count(folders: Mapping[str, _Folder], top: str, counts: dict[str, int]) -> int:
    """Count what is in a folder and in those below it; `counts` keeps what is known."""
    waiting = [top]
    while waiting:
        entries, below = folders[waiting[-1]]
        unknown = [name for name in below if name not in counts]
        if unknown:
            waiting += unknown
        else:
            counts[waiting.pop()] = entries + sum(counts[name] for name in below)
    return counts[top]


_PLAIN = re.compile(r"(?![-./])[\w./ +@-]{1,200}")
_SCP = re.compile(r"(?:ssh://)?(?:[\w.-]+@)?([\w.-]+)(?::(?!//)(?:\d+/)?|/)([^:\s]+)")
"""An ssh address: `git@host:path`, or with `ssh://`."""
MOST_SUBMODULES = 50
"""Submodules of one clone: more than usual, few enough to fetch."""
SUBMODULE_DEPTH = 5
"""How deep submodules may be nested: deeper is a mistake, or a trap."""


@dataclass(frozen=True, slots=True)
class Submodule:
    """One submodule as `.gitmodules` describes it."""

    name: str
    path: str
    url: str


def parse_submodules(listed: bytes) -> list[Submodule]:
    """Read what `git config -z --list` says about a `.gitmodules`; odd entries are left out."""
    found: dict[str, dict[str, str]] = {}
    for entry in listed.decode(errors="replace").split("\0"):
        key, _, value = entry.partition("\n")
        section, _, rest = key.partition(".")
        name, _, what = rest.rpartition(".")
        if section == "submodule" and what in {"path", "url"}:
            found.setdefault(name, {})[what] = value
    return [
        Submodule(name, said["path"], said["url"])
        for name, said in found.items()
        if said.keys() >= {"path", "url"} and _is_plain(name) and _is_plain(said["path"])
    ][:MOST_SUBMODULES]


def find_source(parent: Repository, submodule: Submodule) -> Repository | None:
    """Return the repository of a submodule; None if the bridge does not fetch from its address."""
    own = urlsplit(parent.url)
    url = _resolve(parent, submodule.url) or submodule.url
    try:
        parts = urlsplit(url)
        same_host = (parts.scheme, parts.netloc) == (own.scheme, own.netloc)
    except ValueError:
        return None
    if parts.scheme != "https" and not (same_host and _may_name(own.scheme, url, submodule)):
        return None
    if "@" in parts.netloc and not same_host:
        return None
    if parts.query or parts.fragment or not parts.path.strip("/"):
        return None
    return Repository(parts.path.strip("/").removesuffix(".git"), url)


def _resolve(parent: Repository, url: str) -> str:
    """Turn a relative address, or one for ssh on the same host, into one like the parent's."""
    own = urlsplit(parent.url)
    if url.startswith(("./", "../")):
        path = posixpath.normpath(posixpath.join(own.path, url))
        return own._replace(path=path).geturl() if _is_of_owner(own, path) else ""
    found = _SCP.fullmatch(url)
    if found is not None and own.scheme in {"https", "http", "ssh"} and found[1] == own.hostname:
        return own._replace(path=f"/{found[2].lstrip('/')}").geturl()
    return ""


def _is_of_owner(own: SplitResult, path: str) -> bool:
    """Tell whether a path is in the folder that holds a repository; git would decode a `%`."""
    folder = posixpath.dirname(own.path).rstrip("/")
    return path.startswith(f"{folder}/") and "%" not in path


def _may_name(scheme: str, url: str, submodule: Submodule) -> bool:
    """Tell whether an address that is not https is allowed: a local path never is."""
    return scheme == "http" or url != submodule.url


def is_at_home(parent: Repository, child: Repository) -> bool:
    """Tell whether two repositories are on the same host, so that a token may be used for both."""
    return urlsplit(parent.url)[:2] == urlsplit(child.url)[:2]


def _is_plain(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and ".." not in text.split("/") and ".git" not in text
