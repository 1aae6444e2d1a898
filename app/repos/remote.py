"""Gives access to the remote of a repository: protocol, credential, and the meaning of errors."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Final, Protocol
from urllib.parse import urlsplit

from app.errors import GitFailed, RepositoryError, RepositoryGone
from app.model.workspaces import Repository
from app.repos.git import RemoteAccess

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
