"""Fetches and sends large files with git-lfs, which the bridge runs in the mirror of a repository.

git-lfs gets the token from a credential helper that answers for the host of the repository alone:
it is in no argument, no setting and no file. Each run works in a folder that no agent sees, since
git-lfs writes logs and parts of files there; only what has the hash of its name gets into a mirror.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from app.errors import GitFailed, RepositoryError
from app.model.workspaces import Repository
from app.repos.git import CredentialSource, Git, RemoteAccess
from app.repos.mirror import Mirrors

OBJECT_BYTES: Final = 2 * 1024**3
"""The largest Git LFS file: GitHub's limit on most plans."""
POINTER_BYTES: Final = 1024
"""A pointer is shorter; what is longer is content."""
OID: Final = re.compile(r"[0-9a-f]{64}")
_VERSION: Final = "https://git-lfs.github.com/spec/v1"
_POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*"
    rb"oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,15})\n"
)
_BATCH: Final = 500
"""How many hashes one command names: far below the longest command line."""
_BLOCK_BYTES: Final = 512
"""What `ulimit -f` counts in."""
_MARGIN_BLOCKS: Final = 2048
"""A mebibyte beyond the size of a file, for what git-lfs logs."""
_WORDS: Final = 300
_NOISE: Final = re.compile(
    r"(?m)^(?:Downloading|Uploading|Errors logged|Use `git lfs).*$"
    r"|^.*Error downloading \S+ file.*?: |\[[0-9a-f]{64}\] ?|\S*/\S+"
)
"""What does not say why git-lfs failed: progress, logs, its own prefixes, addresses and paths."""
_ATTRIBUTES: Final = (".gitattributes", "**/.gitattributes")
_TOKEN: Final = "AGENT_BRIDGE_LFS_TOKEN"  # noqa: S105 - the name of a variable
# git-lfs logs all variables whose name has GIT_ in it, and settings are such variables.
_HELPER: Final = (
    '!f() { test "$1" = get && '
    f'printf "username=x-access-token\\npassword=%s\\n" "${_TOKEN}"; }}; f'
)
_SETTINGS: Final = {
    "lfs.basictransfersonly": "true",
    "lfs.locksverify": "false",
    "lfs.repositoryformatversion": "0",
    "lfs.transfer.maxretries": "1",
    # These a repository could set in its `.lfsconfig`.
    "lfs.fetchexclude": "",
    "lfs.fetchinclude": "",
    "lfs.skipdownloaderrors": "false",
}


@dataclass(frozen=True, slots=True)
class Pointer:
    """What a repository holds in place of a large file."""

    oid: str
    size: int

    def __bytes__(self) -> bytes:
        return f"version {_VERSION}\noid sha256:{self.oid}\nsize {self.size}\n".encode()


def parse_pointer(content: bytes) -> Pointer | None:
    """Parse a pointer; None if it is something else."""
    found = _POINTER.fullmatch(content) if len(content) < POINTER_BYTES else None
    return None if found is None else Pointer(found[1].decode(), int(found[2]))


async def is_used(
    git: Git, repository: Path, commit: str, view: Mapping[str, str] | None = None
) -> bool:
    """Tell whether a commit says that some of its files are stored with Git LFS."""
    try:
        await git.run(
            repository,
            *("grep", "--quiet", "--fixed-strings", "filter=lfs", commit, "--", *_ATTRIBUTES),
            more=view,
        )
    except GitFailed as error:
        # It prints an error only if it could not search everywhere: then some may be.
        return bool(error.words)
    return True


def object_path(storage: Path, oid: str) -> Path:
    """Return where git-lfs keeps a large file in its storage."""
    return storage / "objects" / oid[:2] / oid[2:4] / oid


class LargeFiles:
    """Fetches, sends and keeps the large files of all repositories."""

    def __init__(self, git: Git, mirrors: Mirrors, tokens: CredentialSource | None) -> None:
        self._git = git
        self._mirrors = mirrors
        self._tokens = tokens

    def kept(self, repository: Repository, oid: str) -> Path:
        """Return where a large file is, or would be: in the mirror, where git-lfs looks too."""
        return object_path(self._mirrors.path(repository) / "lfs", oid)

    async def fetch(self, repository: Repository, agent: str, pointer: Pointer) -> Path:
        """Fetch a large file, if it is not here yet.

        Raises:
            RepositoryError: it cannot be fetched.
        """
        target = self.kept(repository, pointer.oid)
        if target.exists():
            return target
        await self._mirrors.check_room(pointer.size)
        # A server may send more than it announced, and git-lfs would write all of it.
        blocks = pointer.size // _BLOCK_BYTES + _MARGIN_BLOCKS
        command = f"!ulimit -f {blocks} && git-lfs smudge >/dev/null"
        access = await self._access(repository, agent)
        access = replace(access, settings={**access.settings, "alias.fetch-large": command})
        with tempfile.TemporaryDirectory(
            prefix="lfs-", dir=self._mirrors.path(repository).parent
        ) as folder:
            storage = Path(folder)
            await self._run(repository, access, storage, "fetch-large", given=bytes(pointer))
            fetched = object_path(storage, pointer.oid)
            if not fetched.exists():
                raise RepositoryError(f"{repository.name} has no LFS object {pointer.oid[:12]}.")
            await asyncio.to_thread(keep, fetched, target)
        return target

    async def send(
        self, repository: Repository, agent: str, storage: Path, oids: Sequence[str]
    ) -> None:
        """Send large files of a storage to the server, except those that it already has.

        Raises:
            RepositoryError: the server refuses one.
        """
        access = await self._access(repository, agent)
        for start in range(0, len(oids), _BATCH):
            part = oids[start : start + _BATCH]
            await self._run(
                repository, access, storage, "lfs", "push", "--object-id", "origin", *part
            )

    async def _run(
        self,
        repository: Repository,
        access: RemoteAccess,
        storage: Path,
        *arguments: str,
        given: bytes = b"",
    ) -> None:
        access = replace(access, settings={**access.settings, "lfs.storage": str(storage)})
        mirror = self._mirrors.path(repository)
        try:
            await self._git.run(mirror, *arguments, access=access, given=given)
        except GitFailed as error:
            words = " ".join(_NOISE.sub("", error.words).split())
            raise RepositoryError(f"git-lfs says: {words[:_WORDS]}") from error

    async def _access(self, repository: Repository, agent: str) -> RemoteAccess:
        """Return what git-lfs needs to reach a repository's server; no other gets the token.

        Raises:
            RepositoryError: the bridge does not use this server.
        """
        endpoint = await self._endpoint(repository)
        parts = urlsplit(repository.url)
        settings = {
            **_SETTINGS,
            "remote.origin.url": repository.url,
            "lfs.url": endpoint,
            "lfs.pushurl": endpoint,
        }
        token = None
        if self._tokens is not None:
            token = await self._tokens.token(repository, agent)
        if token is None:
            return RemoteAccess(parts.scheme, settings)
        settings |= {
            f"lfs.{endpoint}.access": "basic",
            f"credential.{parts.scheme}://{parts.netloc}.helper": _HELPER,
        }
        return RemoteAccess(parts.scheme, settings, {_TOKEN: token})

    async def _endpoint(self, repository: Repository) -> str:
        """Return the address of a repository's LFS server, which its default branch may set."""
        scheme = urlsplit(repository.url).scheme
        if scheme not in {"https", "http"}:
            raise RepositoryError(
                f"Git LFS works over https only, but {repository.name} uses {scheme}."
            )
        said = b""
        with suppress(GitFailed):  # there is no such file, or it does not say
            said = await self._git.run(
                self._mirrors.path(repository),
                *("config", "--blob=HEAD:.lfsconfig", "--get", "lfs.url"),
            )
        url = said.decode(errors="replace").strip().rstrip("/")
        if not url:
            return f"{repository.url.rstrip('/').removesuffix('.git')}.git/info/lfs"
        if _origin(url) != _origin(repository.url) or "@" in urlsplit(url).netloc:
            raise RepositoryError(
                f"`.lfsconfig` of {repository.name} names another host. The bridge transfers Git "
                "LFS files only with the host of the repository."
            )
        return url


@contextmanager
def temporary_file(target: Path) -> Iterator[Path]:
    """Yield a temporary file in the folder of its target; it is removed if it was not moved."""
    handle, name = tempfile.mkstemp(prefix="new-", dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def keep(new: Path, target: Path) -> None:
    """Move a complete file to its place; it is never written again."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new.chmod(0o444)
    new.replace(target)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
