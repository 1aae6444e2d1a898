"""Runs git for the bridge itself, with its own environment, and with access to one remote.

The bridge runs git only in repositories that no agent can write, and even there it obeys nothing
that a repository says: hooks, file system monitors, helpers and every configuration but its own
are off, and only the transport of the current remote is allowed. Each process is bounded in memory
and time, and the kernel ends it before the bridge. A credential is passed in the
environment of one process, never in argv, in a URL or on disk.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from app.children.environment import MARKER
from app.children.limits import bound, default_memory_bytes
from app.children.proc_table import new_marker
from app.children.process import Child
from app.children.spawn import ChildCommand, spawn
from app.children.stop import StopSteps, stop
from app.errors import AgentNotStarted, GitFailed, RepositoryError, RepositoryGone
from app.model.workspaces import Repository

LOCAL_SECONDS: Final = 120.0
"""How long git may take on this disk; only a repack of a large mirror may take longer."""
REMOTE_SECONDS: Final = 1800.0
"""How long a fetch or a push may take: gigabytes over a slow line."""
OUTPUT_BYTES: Final = 64 * 1024 * 1024
"""The longest output that is kept: more than the list of a million paths."""
_CHUNK_BYTES: Final = 65536
_STEPS: Final = StopSteps(close=0.5, terminate=1.0, kill=2.0)
"""Git has nothing to save when it ends."""
COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

_MOST_BYTES: Final = 4 * 1024**3
"""The memory of one git process, at most: indexing some ten million objects takes less."""
_CPU_SECONDS: Final = 3600
"""The processor time of one git process: more than any command may take."""
_THREADS: Final = 4
"""Of one git process: each takes memory of its own."""
BIG_FILE: Final = "50m"
"""Larger files are never held in memory as a whole, unless they are stored as differences."""
_PASSED_ON: Final = frozenset(
    {
        *("PATH", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("GIT_SSL_CAINFO", "SSL_CERT_DIR"),
    }
)
_ALONE: Final = {
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
}
# Faults that are common in old, honest histories; everything else that fsck finds is refused.
_FORGIVEN: Final = (
    *("badDateOverflow", "badTimezone", "missingEmail", "missingNameBeforeEmail"),
    *("missingSpaceBeforeDate", "missingSpaceBeforeEmail", "zeroPaddedDate", "zeroPaddedFilemode"),
)
HARDENED: Final = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.askPass": "",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    # What a gate borrows and counts as known: never what was proposed from a fork.
    "core.alternateRefsPrefixes": "refs/heads refs/tags refs/agent-bridge",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "http.followRedirects": "false",
    "transfer.fsckObjects": "true",
    "core.bigFileThreshold": BIG_FILE,
    "pack.threads": str(_THREADS),
    "pack.windowMemory": "64m",
    **{f"fetch.fsck.{fault}": "ignore" for fault in _FORGIVEN},
    **{f"receive.fsck.{fault}": "ignore" for fault in _FORGIVEN},
}
"""Passed in the environment, so that it overrides a repository's own file."""


def as_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Write git settings as environment variables."""
    spelled = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        spelled |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return spelled


@dataclass(frozen=True, slots=True)
class RemoteAccess:
    """What one command needs in order to reach a remote."""

    protocol: str
    """The only transport it may use."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


NOWHERE: Final = RemoteAccess(protocol="none")


@dataclass(frozen=True, slots=True)
class Git:
    """Git in the bridge's own isolation."""

    surroundings: Mapping[str, str] = field(repr=False)
    bridge: str
    """The name of the bridge in markers, by which processes left by a crash are found and ended."""

    async def run(
        self,
        repository: Path,
        *arguments: str,
        access: RemoteAccess = NOWHERE,
        given: bytes = b"",
        more: Mapping[str, str] | None = None,
        seconds: float | None = None,
        limit: int = OUTPUT_BYTES,
        accept: Collection[int] = (0,),
    ) -> bytes:
        """Run one command in a bare repository of the bridge and return what it wrote.

        Raises:
            GitFailed: it ended with a status that is not accepted, wrote too much or took too long.
        """
        usual = LOCAL_SECONDS if access is NOWHERE else REMOTE_SECONDS
        name = f"git {arguments[0]}"
        async with (
            _limit_time(seconds or usual, name),
            self.start(repository, *arguments, access=access, more=more) as child,
        ):
            return await _answer(child, name, given, limit, accept)

    async def run_for_stderr(self, repository: Path, *arguments: str, access: RemoteAccess) -> str:
        """Run one command with a remote and return what it wrote to stderr, although it succeeded.

        Raises:
            GitFailed: it ended with an error, wrote too much or took too long.
        """
        name = f"git {arguments[0]}"
        async with (
            _limit_time(REMOTE_SECONDS, name),
            self.start(repository, *arguments, access=access) as child,
        ):
            await _answer(child, name, b"", OUTPUT_BYTES, (0,))
            return child.last_words()

    @asynccontextmanager
    async def start(
        self,
        repository: Path,
        *arguments: str,
        access: RemoteAccess = NOWHERE,
        more: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Child]:
        """Run one command for as long as the block runs.

        Raises:
            GitFailed: git is not installed.
        """
        command = ChildCommand(("git", f"--git-dir={repository}", *arguments))
        environment = self.environment(access, settings or {}) | dict(more or {})
        try:
            child = await spawn(command, name="git", env=environment, cwd=repository)
            bound(child.pid, memory_bytes=_memory_bytes(), cpu_seconds=_CPU_SECONDS)
        except AgentNotStarted as error:
            raise GitFailed(f"git {arguments[0]}", str(error)) from error
        try:
            yield child
        finally:
            await clean_up(child)

    def environment(self, access: RemoteAccess, settings: Mapping[str, str]) -> dict[str, str]:
        """Build the whole environment of the bridge's git."""
        given = self.surroundings
        passed = {name: value for name, value in given.items() if name.upper() in _PASSED_ON}
        own = dict(HARDENED) | dict(settings) | dict(access.settings)
        return {
            **passed,
            **_ALONE,
            **as_environment(own),
            "GIT_ALLOW_PROTOCOL": access.protocol,
            **access.environment,
            MARKER: new_marker(self.bridge),
        }


@cache
def _memory_bytes() -> int:
    """Return what one git process may take: never so much that the bridge has none left."""
    return min(default_memory_bytes(), _MOST_BYTES)


async def clean_up(child: Child) -> None:
    """Clean up after git, cheaply if it ended by itself: without hooks no child outlives it."""
    if child.status is None:
        await stop(child, steps=_STEPS)
    else:
        child.close()


@asynccontextmanager
async def _limit_time(seconds: float, name: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise GitFailed(name, f"timed out after {seconds:g} s") from None


async def _answer(
    child: Child, name: str, given: bytes, limit: int, accept: Collection[int]
) -> bytes:
    if given:
        child.write(given)
    child.close_input()
    written = bytearray()
    while data := await child.stdout.read(_CHUNK_BYTES):
        written += data
        if len(written) > limit:
            raise GitFailed(name, f"wrote more than {limit} bytes")
    if await child.wait() not in accept:
        raise GitFailed(name, child.last_words())
    return bytes(written)


# What git or ssh say, and what that means to a person; the first match counts.
_KEYS: Final = (
    (
        r"Host key verification failed",
        "its host is not known to the account that runs the bridge. Connect to it once with `ssh` "
        "as that account, and check the fingerprint",
    ),
    (
        r"Permission denied \(",
        "its host accepts no SSH key of the account that runs the bridge. Add the account's public "
        "key there",
    ),
)
_GONE: Final = (
    (r"error: 30\d|redirect", "the remote says that it has moved"),
    (
        r"not found|does not exist|does not appear to be a git repository",
        "it does not exist, or this agent has no access to it",
    ),
)
_CLOSED: Final = (
    (
        r"could not read Username|Authentication failed|error: 40[134]|access rights",
        "this agent has no access to it",
    ),
)
_DAMAGED: Final = re.compile(
    r"corrupt|bad object|not a git repository|unable to read|loose object|bad sha1|"
    r"missing (blob|tree|commit|object)|garbage at end|inflate|wrong index|bad signature|"
    r"invalid sha1|reference broken|unable to resolve|not a valid object|does not point to|"
    r"does not match index",
    re.IGNORECASE,
)

_SIGNED: Final = re.compile(r"must have verified signatures|must be signed", re.IGNORECASE)


class CredentialSource(Protocol):
    """Where a short-lived credential comes from; the core's `Forge` is one."""

    async def token(
        self, repository: Repository, agent: str, *, workflows: bool = False
    ) -> str | None:
        """Get a token that reaches this repository and no other, None if there is none."""
        ...

    async def workflow_refusal(self, repository: Repository, agent: str) -> str:
        """Say why an agent can never push workflow files, with the remedy; empty if it can."""
        ...


async def access_to(
    repository: Repository,
    agent: str | None,
    tokens: CredentialSource | None,
    person: Mapping[str, str],
    *,
    workflows: bool = False,
) -> RemoteAccess:
    """Return what git needs to reach a remote, and to change workflow files only if told to.

    Without an agent nothing of the bridge or its user is used: no token, no key, and no file of
    this machine.

    Raises:
        RepositoryError: the bridge does not support its address.
    """
    parts = urlsplit(repository.url)
    if agent is None and parts.scheme in {"ssh", "file"}:
        raise RepositoryError(
            f"the bridge fetches from {parts.scheme}:// only what the default branch names."
        )
    match parts.scheme:
        case "https" | "http":
            token = None
            if tokens is not None and agent is not None:
                token = await tokens.token(repository, agent, workflows=workflows)
            if token is None:
                return RemoteAccess(parts.scheme)
            basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
            address = f"http.{parts.scheme}://{parts.netloc}/.extraHeader"
            return RemoteAccess(parts.scheme, {address: f"Authorization: Basic {basic}"})
        case "ssh":
            own = {name: person[name] for name in ("HOME", "SSH_AUTH_SOCK") if name in person}
            return RemoteAccess(
                "ssh", environment={**own, "GIT_SSH_COMMAND": "ssh -oBatchMode=yes"}
            )
        case "file":
            return RemoteAccess("file")
        case _:
            raise RepositoryError(f"The bridge does not support the address of {repository.name}.")


def failure(repository: Repository, error: GitFailed) -> RepositoryError:
    """Translate a failed call to a remote into an error for people."""
    if cause := _meaning(_KEYS, error.words):
        return RepositoryError(f"The repository {repository.name} cannot be reached: {cause}.")
    if cause := _meaning(_GONE, error.words) or _meaning(_CLOSED, error.words):
        return RepositoryGone(repository.name, cause)
    line = next((one for one in error.words.splitlines() if one.startswith("fatal:")), error.words)
    return RepositoryError(f"{repository.name}: {line.removeprefix('fatal: ').strip()}")


def is_gone(words: str) -> bool:
    """Tell whether a remote says that a repository does not exist, or has moved."""
    return bool(_meaning(_GONE, words))


def rejection(branch: str, words: str) -> str:
    """Say why a remote rejected a push to a branch, with the remedy where that is known."""
    if _SIGNED.search(words):
        return (
            f"The remote takes only signed commits on {branch}, and the bridge cannot sign for the "
            "agent. Leave branches that begin with `agent/` out of that rule, or let the agent "
            "bypass it (on GitHub: add its App to the bypass list of the ruleset). GitHub signs "
            "the commit of a squash merge itself."
        )
    return f"The remote rejected the push: {_remote_words(words)}"


def _remote_words(words: str) -> str:
    """Extract what the remote itself said from a failed push."""
    said = [
        line.removeprefix("remote:").strip() for line in words.splitlines() if "remote:" in line
    ]
    rejected = [
        line.strip() for line in words.splitlines() if "rejected" in line or "fatal" in line
    ]
    return " ".join(said or rejected or [words.strip()])[:1000]


def _meaning(table: tuple[tuple[str, str], ...], words: str) -> str:
    found = (cause for pattern, cause in table if re.search(pattern, words, re.IGNORECASE))
    return next(found, "")


def is_damage(words: str) -> bool:
    """Tell whether git reports damage on this disk."""
    return bool(_DAMAGED.search(words))


def file_name(repository: Repository) -> str:
    """Name a mirror's folder so that people recognise it and no two repositories share it."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", repository.name).strip(".-")[-60:]
    return f"{plain}-{hashlib.sha256(repository.url.encode()).hexdigest()[:12]}.git"
