"""What people drop into texts on the simulated GitHub, and who gets it: by signed addresses."""

from __future__ import annotations

import hashlib
import hmac
import html
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlsplit
from uuid import uuid4

from sim.github.git import Answer
from sim.github.state import Repository

SIGNED_SECONDS = 300
"""How long an address is good that GitHub put into a rendered text."""
SIGNED = "/private-user-images"

_URL = re.compile(r"https?://[^\s\"'<>()]+")
_MEDIA = {"png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "txt": "text/plain"}


@dataclass
class Asset:
    """One file, by the path that stands in texts."""

    path: str
    name: str
    content: bytes
    private: bool

    @property
    def media_type(self) -> str:
        """What it is given out as."""
        return _MEDIA.get(self.name.rpartition(".")[2], "application/octet-stream")


class Assets:
    """All files of one GitHub."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._key = secrets.token_bytes(32)
        self._all: dict[str, Asset] = {}
        self.url = ""
        """Where people find them."""
        self.asked: list[tuple[str, str, int]] = []
        """Every call: the path, who asked, and the status of the answer."""

    def drop(self, repository: Repository, name: str, content: bytes) -> str:
        """Drop a file into a text; returns its address, which tells an image by nothing."""
        picture = name.endswith((".png", ".jpg", ".gif"))
        below = f"assets/{uuid4()}" if picture else f"files/{len(self._all) + 1}/{quote(name)}"
        made = Asset(f"/user-attachments/{below}", name, content, repository.private)
        self._all[made.path] = made
        return f"{self.url}{made.path}"

    def render(self, body: str) -> str:
        """Show a text to somebody who may read it: pictures by addresses that are signed."""

        def link(match: re.Match[str]) -> str:
            asset = self._all.get(urlsplit(match[0]).path)
            if asset is None or "/assets/" not in asset.path:
                return f'<a href="{html.escape(match[0])}">{html.escape(match[0])}</a>'
            source = html.escape(self._signed(asset))
            return f'<a target="_blank" href="{source}"><img src="{source}" alt=""></a>'

        return f"<p>{_URL.sub(link, body)}</p>"

    def serve(self, method: str, target: str, headers: dict[str, str]) -> Answer | None:
        """Give out a file; None if the path is of none."""
        parts = urlsplit(target)
        if method != "GET" or not parts.path.startswith((SIGNED, "/user-attachments/")):
            return None
        answer = self._answer(parts.path, parse_qs(parts.query).get("jwt", [""])[0])
        self.asked.append((parts.path, headers.get("authorization", ""), answer.status))
        return answer

    def _answer(self, path: str, signature: str) -> Answer:
        if path.startswith(SIGNED):
            return self._open(path.rpartition("/")[2], signature)
        asset = self._all.get(path)
        # Whoever is not signed in at the page itself is told nothing, whatever token they have.
        if asset is None or asset.private:
            return Answer(404, {"Content-Type": "text/plain"}, b"Not Found")
        return Answer(302, {"Location": self._signed(asset)}, b"")

    def _open(self, name: str, signature: str) -> Answer:
        until, _, given = signature.partition(".")
        asset = next((each for each in self._all.values() if _last(each) == name), None)
        good = until.isdecimal() and hmac.compare_digest(given, self._sign(name, until))
        if asset is None or not good or float(until) < self._now():
            return Answer(401, {"Content-Type": "text/plain"}, b"")
        return Answer(200, {"Content-Type": asset.media_type}, asset.content)

    def _signed(self, asset: Asset) -> str:
        until = str(int(self._now()) + SIGNED_SECONDS)
        name = _last(asset)
        return f"{self.url}{SIGNED}/1/{name}?jwt={until}.{self._sign(name, until)}&x=1"

    def _sign(self, name: str, until: str) -> str:
        return hmac.new(self._key, f"{name} {until}".encode(), hashlib.sha256).hexdigest()


def _last(asset: Asset) -> str:
    """Name a file as the host does that gives it out."""
    last, ending = asset.path.rpartition("/")[2], asset.name.rpartition(".")[2]
    return f"7-{last}.{ending}" if "/assets/" in asset.path else last
