"""Reads what was said on an issue or pull request with its files, and takes a text out of it.

The author of a text chooses its addresses too: only addresses that GitHub itself makes for
attachments count, and nothing is fetched from a host that is not GitHub's. GitHub serves
attachments of private repositories only at addresses that it signs for a few minutes and puts into
the rendered text, so that text is read again for each file. The App's token goes to GitHub's own
host only.

GitHub shows the history of edits to everyone, and that may hold what a comment no longer says. So
an own comment that holds a text to be purged, or was edited, is deleted and written again. What
cannot be deleted is changed and named, and so is what others wrote.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import httpx
from gidgethub import GitHubException

from app.clock import Clock
from app.core.files.attachments import PlatformFileRefused, download
from app.markdown.hidden import strip
from app.model.posts import Cleaned
from app.model.text import UNKNOWN, ending, media_type, safe_name
from app.model.types import Earlier, File
from app.services.github import render, wording
from app.services.github.api import GithubApi
from app.services.github.auth import TALKING
from app.services.github.names import Identities, Name, Spot
from app.services.github.payloads import Comment, GitHubAccount
from app.services.github.reviews import strip_hunk
from app.services.github.transport import retry_github
from app.vault import Vault

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
class FileOrigin:
    """Where a file comes from: the message it is attached to, and its address there."""

    spot: Spot
    name: Name
    address: str

    def __str__(self) -> str:
        return f"{self.spot} {self.name} {self.address}"

    @classmethod
    def parse(cls, text: str) -> FileOrigin:
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
        origin = str(FileOrigin(spot, Name(name.kind, name.id), match[0]))
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


REDIRECTS: Final = 3


class Files:
    """Fetches attachments as one agent's App."""

    def __init__(self, api: GithubApi, uploads: Path, hosts: Hosts) -> None:
        self._api = api
        self._uploads = uploads
        self._hosts = hosts

    async def fetch(self, file: File) -> File:
        """Store a file in the uploads, or a note with the reason why it could not be fetched."""
        chunks = self._read(FileOrigin.parse(file.origin))
        found = await download(file, chunks, self._uploads, service="GitHub")
        return await asyncio.to_thread(_add_extension, found, self._uploads / found.url)

    async def _read(self, origin: FileOrigin) -> AsyncGenerator[bytes, None]:
        try:
            rendered = await self._api.rendered(origin.spot, origin.name)
            address = shown(rendered, origin.address, self._hosts)
            if address is None:
                raise PlatformFileRefused(wording.FILE_GONE)
            for _ in range(REDIRECTS):
                async with self._request(origin, address) as answer:
                    if not answer.has_redirect_location:
                        async for chunk in answer.aiter_bytes():
                            yield chunk
                        return
                    address = str(httpx.URL(address).join(answer.headers["location"]))
        except (GitHubException, httpx.HTTPError) as error:
            raise PlatformFileRefused(str(error) or type(error).__name__) from error
        raise PlatformFileRefused(wording.TOO_MANY_REDIRECTS)

    @asynccontextmanager
    async def _request(self, origin: FileOrigin, address: str) -> AsyncIterator[httpx.Response]:
        """Request a file; the answer is the file or a redirect."""
        if not self._hosts.allows(address):
            raise PlatformFileRefused(wording.NOT_ON_GITHUB)
        headers = {}
        if self._hosts.is_home(address) and "?" not in address:
            token = await self._api.token(origin.spot.repository, TALKING)
            headers["Authorization"] = f"Bearer {token}"
        client = self._api.client
        async with client.stream("GET", address, headers=headers, follow_redirects=False) as answer:
            if answer.status_code == httpx.codes.NOT_FOUND and headers:
                raise PlatformFileRefused(wording.SIGNED_IN_ONLY)
            if not answer.is_success and not answer.has_redirect_location:
                raise PlatformFileRefused(wording.ANSWERED.format(status=answer.status_code))
            if answer.is_success and answer.headers.get("content-type", "").startswith("text/html"):
                raise PlatformFileRefused(wording.SIGNED_IN_ONLY)  # the page for signing in
            yield answer


def _add_extension(file: File, path: Path) -> File:
    """Set the media type, and link a file without an extension under a name that has one."""
    kind = file.media_type if file.media_type != UNKNOWN else media_type(path.name, b"")
    if kind == UNKNOWN or path.suffix:
        return replace(file, media_type=kind)
    named = path.with_name(f"{path.name}{ending(kind)}")
    with suppress(FileExistsError):  # another agent may have the same file
        os.link(path, named)
    url = f"{named.parent.name}/{named.name}"
    return replace(file, name=named.name, media_type=kind, url=url)


@dataclass(frozen=True, slots=True)
class _Said:
    at: str
    name: Name
    account: GitHubAccount | None
    text: str
    origin: Name | None = None
    """What holds the text, where that is only a part of what the name means."""

    @property
    def names(self) -> tuple[Name, ...]:
        return (self.name,) if self.origin is None else (self.name, self.origin)


async def read_earlier(
    api: GithubApi, spot: Spot, before: str, reader: str, us: Identities, *, hosts: Hosts
) -> Sequence[Earlier]:
    """Read what was said before a message, except by the reader.

    Raises:
        PostDelayed: not now.
        PostRejected: never.
    """
    issue = await api.issue(spot)
    text = "\n\n".join(filter(None, (issue.title, issue.body)))
    said = [_Said(issue.created_at, Name("issue", issue.number), issue.user, text)]
    said += [
        _Said(each.created_at, Name("comment", each.id), each.user, each.body or "")
        for each in await api.comments(spot)
    ]
    if issue.is_pull:
        said += [
            _Said(each.submitted_at or "", Name("review", each.id), each.user, each.body or "")
            for each in await api.reviews(spot)
            if (each.body or "").strip()
        ]
        said += map(_line_comment, await api.line_comments(spot))
    said.sort(key=lambda each: each.at)
    earlier = []
    for each in _until(said, before):
        if us.agent(each.account) != reader:
            who = us.speaker(each.account or GitHubAccount(id=0, login="ghost"))
            files = files_in(strip(each.text).text, spot, each.origin or each.name, hosts)
            earlier.append(Earlier(str(each.name), who, each.text, files))
    return earlier


def _until(said: Sequence[_Said], before: str) -> Iterator[_Said]:
    """Leave out a message and what came after it; everything is before a message not found.

    An edit is newer than everything, wherever the message is.
    """
    stop = Name.parse(before)
    for each in said:
        if stop is None or not any(name.is_same(stop) for name in each.names):
            yield each
        elif not stop.at:
            return


def _line_comment(comment: Comment) -> _Said:
    """Show a line comment with the last line that it is about."""
    number = comment.pull_request_review_id
    name = Name("review", number) if number is not None else Name("review-comment", comment.id)
    about = strip_hunk(comment.diff_hunk).rpartition("\n")[2]
    text = f"`{comment.path}`: `{about}`\n{comment.body or ''}"
    own = Name("review-comment", comment.id)
    return _Said(comment.created_at, name, comment.user, text, own)


async def purge(
    api: GithubApi,
    spot: Spot,
    vault: Vault,
    clock: Clock,
    is_ours: Callable[[GitHubAccount | None], bool],
) -> Cleaned:
    """Take what the vault knows out of a conversation.

    Raises:
        PostDelayed: not now.
        PostRejected: never.
    """
    changed, left = 0, list[str]()

    async def clean(name: Name, comment: Comment) -> None:
        body = vault.redact(comment.body or "")
        await retry_github(clock, lambda: api.delete(spot, name))
        # The answer is in another comment.
        if not render.is_progress(body):
            await retry_github(clock, lambda: api.say(spot, body, under=comment.in_reply_to_id))

    issue = await retry_github(clock, lambda: api.issue(spot))
    said = [
        (Name("comment", each.id), each)
        for each in await retry_github(clock, lambda: api.comments(spot))
    ]
    if issue.is_pull:
        lines = await retry_github(clock, lambda: api.line_comments(spot))
        said += [(Name("review-comment", each.id), each) for each in lines]
        reviews = await retry_github(clock, lambda: api.reviews(spot))
        left += [each.html_url for each in reviews if vault.contains(each.body or "")]
    for name, comment in said:
        is_held = vault.contains(comment.body or "")
        if is_ours(comment.user) and (is_held or comment.updated_at != comment.created_at):
            await clean(name, comment)
            changed += 1
        elif is_held:
            left.append(comment.html_url)
    if vault.contains(f"{issue.title}\n{issue.body or ''}"):
        if issue.is_pull and is_ours(issue.user):  # its history stays
            words = {"title": vault.redact(issue.title), "body": vault.redact(issue.body or "")}
            await api.change_pull(spot, words)
            changed += 1
        left.append(issue.html_url)
    return Cleaned(changed, tuple(left))
