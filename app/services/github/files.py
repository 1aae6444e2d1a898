"""Fetches attachments of issues and comments.

GitHub serves attachments of private repositories only at addresses that it signs for a few minutes
and puts into the rendered text, so that text is read again for each file. The App's token goes to
GitHub's own host only, and no redirect to a host outside GitHub is followed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import httpx
from gidgethub import GitHubException

from app.core.files.download import FileRefused, download
from app.core.files.names import UNKNOWN, ending, media_type
from app.core.types import File
from app.services.github.api import GithubApi
from app.services.github.attachment_links import Hosts, Origin, shown
from app.services.github.auth import TALKING

REDIRECTS: Final = 3
PRIVATE: Final = "GitHub serves this file of a private repository only to signed-in users"


class Files:
    """Fetches attachments as one agent's App."""

    def __init__(self, api: GithubApi, uploads: Path, hosts: Hosts) -> None:
        self._api = api
        self._uploads = uploads
        self._hosts = hosts

    async def fetch(self, file: File) -> File:
        """Store a file in the uploads, or a note with the reason why it could not be fetched."""
        chunks = self._read(Origin.parse(file.origin))
        found = await download(file, chunks, self._uploads, service="GitHub")
        return await asyncio.to_thread(_add_extension, found, self._uploads / found.url)

    async def _read(self, origin: Origin) -> AsyncGenerator[bytes, None]:
        try:
            rendered = await self._api.rendered(origin.spot, origin.name)
            address = shown(rendered, origin.address, self._hosts)
            if address is None:
                raise FileRefused("the message no longer contains it")
            for _ in range(REDIRECTS):
                async with self._request(origin, address) as answer:
                    if not answer.has_redirect_location:
                        async for chunk in answer.aiter_bytes():
                            yield chunk
                        return
                    address = str(httpx.URL(address).join(answer.headers["location"]))
        except (GitHubException, httpx.HTTPError) as error:
            raise FileRefused(str(error) or type(error).__name__) from error
        raise FileRefused("too many redirects")

    @asynccontextmanager
    async def _request(self, origin: Origin, address: str) -> AsyncIterator[httpx.Response]:
        """Request a file; the answer is the file or a redirect."""
        if not self._hosts.allows(address):
            raise FileRefused("it is not on a GitHub host")
        headers = {}
        if self._hosts.is_home(address) and "?" not in address:
            token = await self._api.token(origin.spot.repository, TALKING)
            headers["Authorization"] = f"Bearer {token}"
        client = self._api.client
        async with client.stream("GET", address, headers=headers, follow_redirects=False) as answer:
            if answer.status_code == httpx.codes.NOT_FOUND and headers:
                raise FileRefused(PRIVATE)
            if not answer.is_success and not answer.has_redirect_location:
                raise FileRefused(f"GitHub answered {answer.status_code}")
            if answer.is_success and answer.headers.get("content-type", "").startswith("text/html"):
                raise FileRefused(PRIVATE)  # the page for signing in
            yield answer


def _add_extension(file: File, path: Path) -> File:
    """Set the media type, and link a file without an extension under a name that has one."""
    kind = file.media_type if file.media_type != UNKNOWN else media_type(path.name, b"")
    if kind == UNKNOWN or path.suffix:
        return replace(file, media_type=kind)
    named = path.with_name(f"{path.name}{ending(kind)}")
    with suppress(FileExistsError):  # another agent may have the same file
        try:
            os.link(path, named)
        except FileNotFoundError:
            os.link(path, named)  # another agent put an equal file in its place meanwhile
    url = f"{named.parent.name}/{named.name}"
    return replace(file, name=named.name, media_type=kind, url=url)
