"""Finds attachments in a text, and the GitHub addresses that serve them; pure.

The author of a text chooses its addresses too: only addresses that GitHub itself makes for
attachments count, and nothing is fetched from a host that is not GitHub's.
"""

from __future__ import annotations

import hashlib
import html
import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from app.core.files.names import UNKNOWN, safe_name
from app.core.types import File
from app.services.github.names import Name, Spot

FILES: Final = 10
"""How many files of one message an agent gets: more are seldom meant to be read."""
FOLDER: Final = "github"
"""Begins the name of the folder that a GitHub file is kept in."""
GITHUB: Final = "github.com"
CONTENT: Final = ".githubusercontent.com"
"""Ends the names of the hosts that serve the content of github.com."""
BUCKETS: Final = frozenset(
    {
        "github-production-user-asset-6210df.s3.amazonaws.com",
        "github-production-repository-file-5c1aeb.s3.amazonaws.com",
    }
)
"""Where github.com redirects requests for a file of a public repository."""

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DROPPED = (
    rf"(?:user-attachments|[\w.-]+/[\w.-]+)/"
    rf"(?:assets/(?:[0-9]+/)?(?P<asset>{_UUID})|files/(?P<number>[0-9]+)/(?P<name>[^\s\"'<>()\[\]\\]+))"
)
_ADDRESS = re.compile(r"(?P<scheme>https?)://(?P<place>[^/?#@\s]+)(?:[/?#]|$)")
_SHOWN = re.compile(r"""\b(?:src|href)="(?P<address>[^"]*)\"""")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a file comes from: the message it is attached to, and its address there."""

    spot: Spot
    name: Name
    address: str

    def __str__(self) -> str:
        return f"{self.spot} {self.name} {self.address}"

    @classmethod
    def parse(cls, text: str) -> Origin:
        """Parse what `str` wrote."""
        spot, name, address = text.split(" ", 2)
        said = Name.parse(name)
        assert said is not None, "it was named here"
        return cls(Spot.parse(spot), said, address)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts that files are fetched from."""

    web: str
    """The address of GitHub's pages, without a slash at the end."""

    def is_home(self, address: str) -> bool:
        """Tell whether an address is on the host of GitHub's pages, which may get the token."""
        return _place(address) == _place(self.web) != ("", "")

    def allows(self, address: str) -> bool:
        """Tell whether an address is on a GitHub host."""
        scheme, host = _place(address)
        own_scheme, own = _place(self.web)
        if self.is_home(address):
            return True
        if scheme != own_scheme or not re.fullmatch(r"[a-z0-9.-]+", host):
            return False
        if own == GITHUB:
            return host.endswith(CONTENT) or host in BUCKETS
        return host.endswith(f".{own}")


def files_in(text: str, spot: Spot, name: Name, hosts: Hosts) -> tuple[File, ...]:
    """Find the attachments of a text, each once."""
    found: dict[str, File] = {}
    for match in _dropped(hosts.web).finditer(text):
        key = match["asset"] or match["number"]
        called = safe_name(match["name"]) if match["name"] else f"attached-{match['asset'][:8]}"
        origin = str(Origin(spot, Name(name.kind, name.id), match[0]))
        folder = FOLDER + hashlib.sha256(origin.encode()).hexdigest()[:32]
        found.setdefault(key, File(called, UNKNOWN, f"{folder}/{called}", origin))
    return tuple(found.values())[:FILES]


def shown(rendered: str, address: str, hosts: Hosts) -> str | None:
    """Find the address of a file in a rendered text; None if it is not there."""
    match = _dropped(hosts.web).fullmatch(address)
    if match is None:
        return None
    key = match["asset"] or f"/files/{match['number']}/"
    found = (html.unescape(each["address"]) for each in _SHOWN.finditer(rendered))
    fitting = [each for each in found if key in each.partition("?")[0] and hosts.allows(each)]
    # Signed addresses first: they need no token.
    return min(fitting, key=lambda each: "?" not in each, default=None)


@cache
def _dropped(web: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(web)}/{_DROPPED}")


def _place(address: str) -> tuple[str, str]:
    """Return scheme and host of an address, with its port if it names one; empty if it has none."""
    found = _ADDRESS.match(address)
    return (found["scheme"], found["place"].lower()) if found is not None else ("", "")
