"""Opening a session's clone of a large repository, against cloning it whole."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.children.environment import agent_environment
from app.children.homes import Home
from app.children.layout import Confinement
from app.children.limits import DiskSpace
from app.children.sandbox import Bubblewrap, Plain, find_bubblewrap
from app.model.keys import SessionKey
from app.model.workspaces import Author, Clone, Repository
from app.repos.checkouts import GitCheckouts
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.sandboxed_git import SandboxedGit
from app.vault import Vault
from bench.figures import Goal, Row, Scale, milliseconds
from bench.proof import prove, prove_equal

LINES = 20
"""Of each file: some 700 bytes, which is small for source and so in favour of the whole clone."""
VERSIONS = 100
"""How often every fiftieth file was changed: a history, though a short one for so many files."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session's clone that is open."""

    checkouts: GitCheckouts
    clone: Clone
    seconds: float
    """How long opening it took."""


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure both in turns."""
    remote = folder / "remote.git"
    fill(remote, scale.files)
    tree = _git(remote, "rev-parse", "main^{tree}")
    whole: list[float] = []
    ours: list[float] = []
    for number in range(scale.rounds):
        whole.append(_whole(remote, folder / "whole", tree))
        ours.append(asyncio.run(_open(remote, folder / "bridge", number, tree)))
    yield Row(
        f"opening a session's clone, {scale.files:,} files",
        "git clone of the same repository",
        min(ours) / min(whole),
        " x",
        Goal("at most", 0.5),
        f"{milliseconds(min(ours))} against {milliseconds(min(whole))}, most of it to write files",
    )


def fill(remote: Path, files: int) -> None:
    """Write a repository with many files in many folders and some history."""
    _git(remote.parent, "init", "-q", "--bare", "-b", "main", str(remote))
    parts: list[bytes] = []
    for version in range(VERSIONS):
        changed = range(files) if version == 0 else range(version % 50, files, 50)
        said = f"Version {version}".encode()
        parts.append(b"commit refs/heads/main\ncommitter A <a@b> %d +0000\n" % version)
        parts.append(b"data %d\n%s\n" % (len(said), said))
        for number in changed:
            lines = (f"line {line} of {number} in {version * line}" for line in range(LINES))
            text = "\n".join(lines).encode()
            path = f"folder{number % 500}/file{number}.txt".encode()
            parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path, len(text), text))
    _git(remote, "fast-import", "--quiet", given=b"".join(parts))


def _whole(remote: Path, target: Path, tree: str) -> float:
    shutil.rmtree(target, ignore_errors=True)
    began = time.monotonic()
    _git(remote.parent, "clone", "-q", remote.as_uri(), str(target))
    took = time.monotonic() - began
    prove_whole(target, tree)
    return took


def prove_whole(clone: Path, tree: str) -> None:
    """Make sure that a clone is of this tree, and that all its files are there as they should be.

    Raises:
        Unproven: it is not.
    """
    prove_equal(_git(clone, "rev-parse", "HEAD^{tree}"), tree, "tree of the clone")
    changed = _git(clone, "status", "--porcelain").splitlines()
    prove(not changed, f"{len(changed)} files of the clone are missing or different")


@asynccontextmanager
async def opened(
    remote: Path, folder: Path, number: int, *, isolated: bool = True
) -> AsyncIterator[Opened]:
    """Open the clone of a session as a bridge does, in its agent's isolation where that works."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    surroundings = {"PATH": os.environ["PATH"]}
    found = find_bubblewrap(os.environ["PATH"])
    isolation = SandboxedGit(
        found if isolated and isinstance(found, Bubblewrap) else Plain(),
        Confinement(home=home, workspace=home, masked=(folder,)),
        lambda marker: agent_environment(surroundings, home=home, own={}, marker=marker),
        lambda _session: Home(home),
    )
    git = Git(surroundings, "bench")
    disk = DiskSpace(folder, watermark=0)
    mirrors = Mirrors(folder / "mirrors", git, None, surroundings, disk=disk)
    checkouts = GitCheckouts(
        folder / "gates",
        {"bench": isolation}.get,
        git,
        mirrors,
        tokens=None,
        vault=Vault(),
        person=surroundings,
    )
    clone = Clone(
        folder / "workspaces" / str(number),
        f"{number}-bench",
        SessionKey("web", f"t{number}", "bench"),
        Repository("bench", remote.as_uri()),
        "branch",
        Author("bench", "bench@example.com"),
        branch=f"agent/bench/{number}",
    )
    # The first session of a repository pays for the mirror; this is about all others.
    await mirrors.refresh(clone.repository, "bench")
    began = time.monotonic()
    await checkouts.open(clone, fresh=True, on_sent=_heard, ask=_asked)
    yield Opened(checkouts, clone, time.monotonic() - began)
    await checkouts.close_all()
    await checkouts.remove(clone.folder)


async def _open(remote: Path, folder: Path, number: int, tree: str) -> float:
    async with opened(remote, folder, number) as found:
        prove_whole(found.clone.folder, tree)
        return found.seconds


async def _heard(_commit: str) -> None:
    """Nothing is sent."""


async def _asked(_question: str, _files: Sequence[str]) -> bool:
    return False


def _git(folder: Path, *arguments: str, given: bytes = b"") -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, input=given, check=True, capture_output=True
    )
    return done.stdout.decode().strip()
