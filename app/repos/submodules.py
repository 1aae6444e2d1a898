"""Submodules: which ones a commit names, and where the bridge is willing to get them from.

What stands in `.gitmodules` was written by anybody. Only https, and what lies beside the repository
itself, is followed; the bridge fetches it into a mirror, and a token goes only to the host of the
repository that it was made for.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.core.workspaces import Repository

_PLAIN = re.compile(r"(?![-./])[\w./ +@-]{1,200}")
MOST = 50
"""Submodules of one repository: more than anybody has, few enough to fetch."""


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
    """Tell which repository a submodule is; None if it is nowhere that the bridge goes."""
    own = urlsplit(parent.url)
    if submodule.url.startswith(("./", "../")):
        path = posixpath.normpath(posixpath.join(own.path, submodule.url))
        url = own._replace(path=path).geturl()
    else:
        url = submodule.url
    parts = urlsplit(url)
    beside = (parts.scheme, parts.netloc) == (own.scheme, own.netloc) and url != submodule.url
    if not beside and parts.scheme != "https":
        return None
    if "@" in parts.netloc or parts.query or parts.fragment or not parts.path.strip("/"):
        return None
    return Repository(parts.path.strip("/").removesuffix(".git"), url)


def is_at_home(parent: Repository, child: Repository) -> bool:
    """Tell whether a token for the host of one repository may be shown to that of another."""
    return urlsplit(parent.url)[:2] == urlsplit(child.url)[:2]


def _is_plain(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and ".." not in text.split("/") and ".git" not in text
