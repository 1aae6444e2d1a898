"""Finds the submodules of a commit, and the addresses that the bridge may fetch them from.

`.gitmodules` is untrusted. Only https addresses, and those on the repository's own host, are
followed; the bridge fetches them into a mirror, and a token goes only to that host. An ssh address
on that host means the same repository as the https one. A relative address stays with the
repository's owner.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from app.model.workspaces import Repository

_PLAIN = re.compile(r"(?![-./])[\w./ +@-]{1,200}")
_SCP = re.compile(r"(?:ssh://)?(?:[\w.-]+@)?([\w.-]+)(?::(?!//)(?:\d+/)?|/)([^:\s]+)")
"""An ssh address: `git@host:path`, or with `ssh://`."""
MOST = 50
"""Submodules of one clone: more than usual, few enough to fetch."""
DEPTH = 5
"""How deep submodules may be nested: deeper is a mistake, or a trap."""


@dataclass(frozen=True, slots=True)
class Submodule:
    """One submodule as `.gitmodules` describes it."""

    name: str
    path: str
    url: str


def parse(listed: bytes) -> list[Submodule]:
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
    ][:MOST]


def source(parent: Repository, submodule: Submodule) -> Repository | None:
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
