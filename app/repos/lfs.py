"""Large files: what Git LFS keeps beside a repository, fetched and sent by the bridge itself.

The bridge speaks the batch API with its own token; what it fetched lies in the mirror, named by
its hash. An answer of the server may lead anywhere, so the token goes only where it was made for,
no redirect is followed, and nothing is kept whose hash is not its name.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from app.core.workspaces import Repository
from app.errors import GitFailed, RepositoryError
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.remote import Tokens

if TYPE_CHECKING:
    import httpx

OBJECT_BYTES: Final = 2 * 1024**3
"""What one large file may have: as much as GitHub takes of most people."""
POINTER_BYTES: Final = 1024
"""A pointer is shorter; what is longer is content."""
OID: Final = re.compile(r"[0-9a-f]{64}")
_POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*"
    rb"oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,15})\n"
)
_MEDIA: Final = "application/vnd.git-lfs+json"
_BATCH: Final = 100
"""How many objects one question names: as many as servers answer to."""
_ANSWER_BYTES: Final = 4 * 1024**2
"""What is read of an answer about a hundred objects."""
_CHUNK_BYTES: Final = 1024**2
_QUIET_SECONDS: Final = 60.0
"""How long a server may say nothing."""
_TRANSFER_SECONDS: Final = 1800.0
"""What one large file may take: two gigabytes over a slow line."""
_ATTRIBUTES: Final = (".gitattributes", "**/.gitattributes")

Operation = Literal["download", "upload"]


@dataclass(frozen=True, slots=True)
class Pointer:
    """What stands in a repository in place of a large file."""

    oid: str
    size: int


def parse_pointer(content: bytes) -> Pointer | None:
    """Read a pointer; None if it is something else."""
    found = _POINTER.fullmatch(content) if len(content) < POINTER_BYTES else None
    return None if found is None else Pointer(found[1].decode(), int(found[2]))


async def is_used(
    git: Git, repository: Path, commit: str, view: Mapping[str, str] | None = None
) -> bool:
    """Tell whether a commit says that some of its files are kept with Git LFS."""
    try:
        await git.run(
            repository,
            *("grep", "--quiet", "--fixed-strings", "filter=lfs", commit, "--", *_ATTRIBUTES),
            more=view,
        )
    except GitFailed as error:
        # It ends with a word only if it could not look everywhere: then some may be.
        return bool(error.words)
    return True


class LargeFiles:
    """The large files of all repositories, as the bridge reaches and keeps them."""

    def __init__(self, git: Git, mirrors: Mirrors, tokens: Tokens | None) -> None:
        self._git = git
        self._mirrors = mirrors
        self._tokens = tokens
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """Let go of the connections."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    def kept(self, repository: Repository, oid: str) -> Path:
        """Tell where a large file lies, or would: beside the objects, where git-lfs looks too."""
        return self._mirrors.path(repository) / "lfs" / "objects" / oid[:2] / oid[2:4] / oid

    async def fetch(self, repository: Repository, agent: str, pointer: Pointer) -> Path:
        """Have a large file here.

        Raises:
            RepositoryError: it cannot be had.
        """
        target = self.kept(repository, pointer.oid)
        if target.exists():
            return target
        await self._mirrors.check_room(pointer.size)
        (answer,) = await self._ask(repository, agent, "download", [pointer])
        action = _action(repository, answer, "download")
        if action is None:
            raise RepositoryError(f"{repository.name} has no large file {pointer.oid[:12]}.")
        headers = await self._headers(repository, agent, answer, action)
        await asyncio.to_thread(target.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
        with beside(target) as new:
            async with self._answered("GET", action["href"], headers=headers) as response:
                await _write(response, new, pointer)
            keep(new, target)
        return target

    async def send(
        self, repository: Repository, agent: str, files: Mapping[Pointer, Path]
    ) -> list[Pointer]:
        """Send large files that the server has not; returns those that are missing here and there.

        Raises:
            RepositoryError: the server does not take one.
        """
        missing: list[Pointer] = []
        pointers = list(files)
        for start in range(0, len(pointers), _BATCH):
            part = pointers[start : start + _BATCH]
            for answer in await self._ask(repository, agent, "upload", part):
                pointer = _pointer_of(answer, part)
                if _action(repository, answer, "upload") is None:
                    continue
                if not files[pointer].exists():
                    missing.append(pointer)
                    continue
                await self._upload(repository, agent, answer, pointer, files[pointer])
        return missing

    async def _upload(
        self, repository: Repository, agent: str, answer: Any, pointer: Pointer, file: Path
    ) -> None:
        action = _action(repository, answer, "upload") or {}
        headers = await self._headers(repository, agent, answer, action)
        headers = {"Content-Type": "application/octet-stream", **headers}
        headers["Content-Length"] = str(pointer.size)
        async with self._answered("PUT", action["href"], headers=headers, content=_read(file)):
            pass
        if (verify := _action(repository, answer, "verify")) is not None:
            headers = await self._headers(repository, agent, answer, verify)
            body = json.dumps({"oid": pointer.oid, "size": pointer.size}).encode()
            headers = {**headers, "Content-Type": _MEDIA, "Accept": _MEDIA}
            async with self._answered("POST", verify["href"], headers=headers, content=body):
                pass

    async def _ask(
        self,
        repository: Repository,
        agent: str,
        operation: Operation,
        pointers: Sequence[Pointer],
    ) -> list[dict[str, Any]]:
        """Ask the server what to do with some objects."""
        endpoint = await self._endpoint(repository)
        question = {
            "operation": operation,
            "transfers": ["basic"],
            "hash_algo": "sha256",
            "objects": [{"oid": each.oid, "size": each.size} for each in pointers],
        }
        headers = {"Content-Type": _MEDIA, "Accept": _MEDIA, **await self._own(repository, agent)}
        async with self._answered(
            "POST",
            f"{endpoint}/objects/batch",
            headers=headers,
            content=json.dumps(question).encode(),
        ) as response:
            read = b""
            async for data in response.aiter_bytes():
                read += data
                if len(read) > _ANSWER_BYTES:
                    raise RepositoryError("The LFS server says more than anybody reads.")
        return _answers(read, pointers)

    async def _endpoint(self, repository: Repository) -> str:
        """Tell where the LFS server of a repository is, as its default branch may say."""
        parts = urlsplit(repository.url)
        if parts.scheme not in {"https", "http"}:
            raise RepositoryError(
                f"Large files of {repository.name} are carried over https only, not {parts.scheme}."
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
                f"`.lfsconfig` of {repository.name} names another host, where the bridge does not "
                "go for large files."
            )
        return url

    async def _headers(
        self,
        repository: Repository,
        agent: str,
        answer: Mapping[str, Any],
        action: Mapping[str, Any],
    ) -> dict[str, str]:
        """Have the headers that an action wants, with our own only where the server wants them."""
        given = action.get("header")
        headers = {str(k): str(v) for k, v in given.items()} if isinstance(given, dict) else {}
        told = answer.get("authenticated") or "authorization" in {key.lower() for key in headers}
        if told or _origin(action["href"]) != _origin(repository.url):
            return headers
        return {**await self._own(repository, agent), **headers}

    async def _own(self, repository: Repository, agent: str) -> dict[str, str]:
        token = None
        if self._tokens is not None:
            token = await self._tokens.token(repository, agent)
        if token is None:
            return {}
        basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        return {"Authorization": f"Basic {basic}"}

    @asynccontextmanager
    async def _answered(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes | AsyncIterator[bytes] = b"",
    ) -> AsyncIterator[httpx.Response]:
        """Send one request; what is no success is an error in words without the address."""
        # Here: loading it takes 0.1 s, which a start without large files need not pay.
        import httpx  # noqa: PLC0415

        client = await self._opened(urlsplit(url).scheme)
        try:
            async with (
                asyncio.timeout(_TRANSFER_SECONDS),
                client.stream(method, url, headers=dict(headers), content=content) as response,
            ):
                if not response.is_success:
                    raise RepositoryError(
                        f"The LFS server answers with status {response.status_code}."
                    )
                yield response
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise RepositoryError(
                f"The LFS server cannot be reached ({type(error).__name__})."
            ) from error

    async def _opened(self, scheme: str) -> httpx.AsyncClient:
        import httpx  # noqa: PLC0415 - see `_answered`

        async with self._opening:
            if scheme not in self._clients:
                # In a thread, since loading certificates takes 0.1 s.
                self._clients[scheme] = await asyncio.to_thread(
                    httpx.AsyncClient,
                    timeout=_QUIET_SECONDS,
                    follow_redirects=False,
                    verify=scheme == "https",
                    trust_env=scheme == "https",
                )
            return self._clients[scheme]


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Have a file to write beside the one that it becomes; what is left of it goes."""
    handle, name = tempfile.mkstemp(prefix="new-", dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def keep(new: Path, target: Path) -> None:
    """Put a whole file in its place; nobody writes it again."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new.chmod(0o444)
    new.replace(target)


async def _write(response: httpx.Response, file: Path, pointer: Pointer) -> None:
    """Write what a server sends, if it is what its name says."""
    taken, size = hashlib.sha256(), 0
    with file.open("wb") as output:
        async for data in response.aiter_bytes(_CHUNK_BYTES):
            size += len(data)
            if size > pointer.size:
                break
            taken.update(data)
            await asyncio.to_thread(output.write, data)
    if size != pointer.size or taken.hexdigest() != pointer.oid:
        raise RepositoryError(
            f"What the LFS server sent as {pointer.oid[:12]} is something else; nothing was kept."
        )


async def _read(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as source:
        while data := await asyncio.to_thread(source.read, _CHUNK_BYTES):
            yield data


def _answers(read: bytes, pointers: Sequence[Pointer]) -> list[dict[str, Any]]:
    """Read what the server says about the objects that were asked for, and about no others."""
    try:
        said = json.loads(read)["objects"]
        answers = [dict(each) for each in said]
        asked = {(each.oid, each.size) for each in pointers}
        fits = {(each["oid"], each["size"]) for each in answers} == asked
    except (ValueError, KeyError, TypeError):
        fits = False
    if not fits or len(answers) != len(asked):
        raise RepositoryError("The LFS server does not answer as one does.")
    for each in answers:
        if isinstance(error := each.get("error"), dict):
            words = re.sub(r"[^\x20-\x7e]", "?", str(error.get("message", "")))[:200]
            raise RepositoryError(f"The LFS server says of {each['oid'][:12]}: {words}")
    return answers


def _pointer_of(answer: Mapping[str, Any], pointers: Sequence[Pointer]) -> Pointer:
    return next(each for each in pointers if each.oid == answer["oid"])


def _action(
    repository: Repository, answer: Mapping[str, Any], name: str
) -> Mapping[str, Any] | None:
    """Pick an action out of an answer, if it leads somewhere that the bridge goes."""
    actions = answer.get("actions")
    found = actions.get(name) if isinstance(actions, dict) else None
    if not isinstance(found, dict):
        return None
    scheme = urlsplit(str(found.get("href"))).scheme
    if scheme != "https" and scheme != urlsplit(repository.url).scheme:
        raise RepositoryError("The LFS server names an address that the bridge does not use.")
    return {**found, "href": str(found["href"])}


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
