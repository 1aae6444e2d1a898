"""Fetches what people dropped into issues and comments, when an agent needs it.

GitHub gives out what is in a private repository only by addresses that it signs for a few minutes
and puts into the rendered text; so that is read anew for each file. The App's token is shown to
GitHub's own pages alone, and no redirect leads to a host that is not GitHub's.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

import httpx
from gidgethub import GitHubException

from app.core.files.names import HEAD_BYTES, UNKNOWN, ending, media_type
from app.core.types import File
from app.errors import PostError
from app.services.github.api import GithubApi
from app.services.github.attached import Hosts, Origin, shown
from app.services.github.auth import TALKING

logger = logging.getLogger(__name__)

FILE_BYTES: Final = 20 * 1024 * 1024
"""What one file may hold: as much as on the page."""
FETCH_SECONDS: Final = 30.0
"""What one file may take: people wait for the answer."""
REDIRECTS: Final = 3
PRIVATE: Final = "GitHub gives files of private repositories to people who are signed in only"


class FileRefused(PostError):
    """A file cannot be had."""


class Files:
    """What one agent's App can fetch."""

    def __init__(self, api: GithubApi, uploads: Path, hosts: Hosts) -> None:
        self._api = api
        self._uploads = uploads
        self._hosts = hosts

    async def fetched(self, file: File) -> File:
        """Lay a file into the uploads, or a note in its place that says why it is not there."""
        path = self._uploads / file.url
        try:
            if not await asyncio.to_thread(path.is_file):
                async with asyncio.timeout(FETCH_SECONDS):
                    found = await self._fetch(Origin.parse(file.origin))
                await asyncio.to_thread(_keep, path, found)
        except (PostError, GitHubException, httpx.HTTPError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            logger.warning("%s could not be fetched from GitHub: %s", file.name, why)
            note = path.with_name(f"{path.name}.missing.txt")
            words = f"{file.name} was attached, but could not be fetched from GitHub: {why}\n"
            await asyncio.to_thread(_keep, note, words.encode())
            url = f"{note.parent.name}/{note.name}"
            return replace(file, name=note.name, media_type="text/plain", url=url)
        return await asyncio.to_thread(_named, file, path)

    async def _fetch(self, origin: Origin) -> bytes:
        rendered = await self._api.rendered(origin.spot, origin.name)
        address = shown(rendered, origin.address, self._hosts)
        if address is None:
            raise FileRefused("the message does not show it any more")
        for _ in range(REDIRECTS):
            answer = await self._get(origin, address)
            if isinstance(answer, bytes):
                return answer
            address = answer
        raise FileRefused("GitHub sends whoever asks for it elsewhere all the time")

    async def _get(self, origin: Origin, address: str) -> bytes | str:
        """Ask for a file; returns where else to ask, if it is not there."""
        if not self._hosts.allows(address):
            raise FileRefused("it is not on a host of GitHub")
        headers = {}
        if self._hosts.is_home(address) and "?" not in address:
            token = await self._api.token(origin.spot.repository, TALKING)
            headers["Authorization"] = f"Bearer {token}"
        client = self._api.client
        async with client.stream("GET", address, headers=headers, follow_redirects=False) as answer:
            if answer.is_redirect:
                return str(httpx.URL(address).join(answer.headers["location"]))
            if answer.status_code == httpx.codes.NOT_FOUND and headers:
                raise FileRefused(PRIVATE)
            if not answer.is_success:
                raise FileRefused(f"GitHub answered {answer.status_code}")
            if answer.headers.get("content-type", "").startswith("text/html"):
                raise FileRefused(PRIVATE)  # the page for signing in
            return await _body(answer)


async def _body(answer: httpx.Response) -> bytes:
    content = bytearray()
    async for piece in answer.aiter_bytes():
        content += piece
        if len(content) > FILE_BYTES:
            raise FileRefused(f"it is larger than {FILE_BYTES // 1024 // 1024} MB")
    return bytes(content)


def _keep(path: Path, content: bytes) -> None:
    """Write a file under another name first: half of it must never be taken for the whole."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def _named(file: File, path: Path) -> File:
    """Say what a file is, and give one whose address tells nothing a name that does."""
    with path.open("rb") as kept:
        kind = media_type(path.name, kept.read(HEAD_BYTES))
    if kind == UNKNOWN or path.suffix:
        return replace(file, media_type=kind)
    telling = path.with_name(f"{path.name}{ending(kind)}")
    if not telling.exists():
        os.link(path, telling)
    url = f"{telling.parent.name}/{telling.name}"
    return replace(file, name=telling.name, media_type=kind, url=url)
