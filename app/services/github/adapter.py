"""One agent's presence on GitHub: hears its App's webhooks, asks who may, comments and reacts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

import httpx
from gidgethub import GitHubException

from app.core.inbound import Changed, Delivery, Heard, Inbound, Naming, News
from app.core.keys import PlaceKey, SessionKey, adapter_name
from app.core.ports import Clock
from app.core.posts import PostContent, PostSend, PostSent
from app.core.types import Earlier, File, Speaker
from app.core.workspaces import Checked
from app.errors import PostDelayed, PostError, PostRejected
from app.markdown.hidden import strip
from app.services.github import buttons, changes, events, naming, news, render, review
from app.services.github.api import GithubApi, Gone
from app.services.github.attached import Hosts, files_in
from app.services.github.board import Board
from app.services.github.checks import read_checks
from app.services.github.conversation import read_earlier
from app.services.github.directory import Directory
from app.services.github.files import Files
from app.services.github.names import SERVICE, Name, Spot
from app.services.github.patience import BRIEF_PAUSES, BRIEF_SECONDS, patiently
from app.services.github.payloads import Account, Comment, Repository, Review
from app.services.github.sweep import Sweep
from app.services.github.webhook import EVENT, Hook

logger = logging.getLogger(__name__)

T = TypeVar("T")

ALLOWED = {"admin", "maintain", "write"}
"""Who may make an agent act: whoever could push the change themselves."""
UNREAD = "[The review's comments on lines could not be read from GitHub just now.]"


@dataclass(frozen=True, slots=True)
class App:
    """What an adapter is built from, beside its agent."""

    hook: Hook
    paths: tuple[str, ...]
    api: GithubApi
    installation: str | None = None
    """The only installation to listen to, if one is set."""
    host: str = ""
    """Whose numbers and names of repositories these are."""
    name_now: Callable[[int], str | None] = lambda _number: None
    """Tells what the repository with a number is called by now, if that is known."""
    link_of: Callable[[SessionKey], str] = lambda _key: ""
    """Tells where the open pull request of a session is, if it has one."""
    uploads: Path = Path("uploads")
    """Where files are laid."""
    web_url: str = "https://github.com"


class GithubAdapter:
    """The adapter port, with webhooks, for one GitHub App."""

    pace = 5.0
    """Twelve edits a minute at most: people watch, and several turns fit under GitHub's limits."""

    def __init__(self, agent: str, app: App, directory: Directory, clock: Clock) -> None:
        self.agent = agent
        self.service_name = adapter_name(SERVICE, agent)
        self.paths = app.paths
        self._app = app
        self._api = app.api
        self._directory = directory
        self._clock = clock
        self._board = Board(app.api, clock)
        self._hosts = Hosts(app.web_url)
        self._files = Files(app.api, app.uploads, self._hosts)
        self._sweep = Sweep(agent, app.hook, app.api, directory, clock)

    # Hearing.

    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Check that GitHub sent this, to this App."""
        return self._app.hook.verify(headers, body, now)

    @property
    def trouble(self) -> str:
        """Why GitHub's events do not arrive just now."""
        return self._sweep.trouble

    async def listen(self, take: Callable[[Delivery], Awaitable[None]]) -> None:
        """Find out who we are, then look now and again for events that never arrived."""
        await self._sweep.run(take)

    async def prepare(self) -> None:
        """Wait until it is known who our agents are here: before, nobody can be mentioned."""
        await self._directory.complete(self.agent)

    def parse(self, delivery: Delivery) -> Inbound | None:
        """Understand an event."""
        event, only = delivery.headers.get(EVENT, ""), self._app.installation
        us = self._directory.us
        heard = events.read(event, delivery.body, us, only, self._name_of)
        if heard is not None:
            return self._with_files(heard)
        return (
            changes.read(event, delivery.body, self.agent, us, only, self._name_of)
            or buttons.read(event, delivery.body, self.agent, us, only, self._name_of)
            or news.read(event, delivery.body, self.agent, us, only, self._name_of)
        )

    def _with_files(self, heard: Heard) -> Heard:
        """Name the files that stand in a message."""
        name = Name.parse(heard.message_id)
        if name is None:
            return heard
        files = files_in(heard.text, Spot.parse(heard.external), name, self._hosts)
        return replace(heard, files=files)

    def naming(self, delivery: Delivery) -> Naming | None:
        """Tell which repository an event is about, and what that is called."""
        return naming.read(delivery.headers.get(EVENT, ""), delivery.body, self._app.host)

    def renamed(self, old: str) -> None:
        """Forget the tokens for a name that may be another repository's from now on."""
        self._api.forget(old)

    def _name_of(self, repository: Repository) -> str:
        """Call a repository what it is called by now: an event may be from before."""
        return self._app.name_now(repository.id) or repository.full_name

    async def gather(self, heard: Heard) -> Heard:
        """Bring a review together: its own words and its comments on lines are one message."""
        if not isinstance(heard.metadata, events.InReview):
            return heard
        spot = Spot.parse(heard.external)
        try:
            number = heard.metadata.review
            review, comments = await self._briefly(lambda: self._api.review(spot, number))
        except PostError as error:
            logger.warning("a review could not be read: %s", error)
            return replace(heard, context=f"{heard.context}\n\n{UNREAD}".strip())
        whole = events.whole_review(heard, review, comments, self._directory.us)
        parts = [(Name("review", review.id), review.body)]
        parts += [(Name("review-comment", each.id), each.body) for each in comments]
        files = (files_in(strip(body or "").text, spot, name, self._hosts) for name, body in parts)
        return replace(whole, files=tuple(chain.from_iterable(files)))

    async def reread(self, changed: Changed) -> Changed | None:
        """Bring a review together of which a piece changed."""
        piece = changed.metadata
        if not isinstance(piece, changes.Piece):
            return changed
        read: tuple[Review | None, list[Comment]] = (None, [])
        try:
            spot = Spot.parse(changed.external)
            read = await self._briefly(lambda: self._api.review(spot, piece.review))
        except Gone:
            logger.info("of review %d nothing is left", piece.review)
        return changes.whole(changed, piece, *read, self.agent, self._directory.us)

    async def _briefly(self, call: Callable[[], Awaitable[T]]) -> T:
        """Read what a message depends on, although GitHub may hesitate."""
        return await patiently(self._clock, call, pauses=BRIEF_PAUSES, longest=BRIEF_SECONDS)

    async def checked(self, heard: News) -> Checked | None:
        """Look how the checks of the agent's own pull request ended."""
        try:
            return await read_checks(self._api, heard, self._directory.us)
        except (GitHubException, httpx.HTTPError) as error:
            raise PostDelayed(f"the checks of {heard.branch} cannot be read: {error}") from error

    def is_shared(self, _key: SessionKey) -> bool:
        """Tell that other agents can answer as well."""
        return True

    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        """Ask GitHub whether somebody may write to the repository."""
        repository = Spot.parse(place.name).repository
        permission = await self._briefly(lambda: self._api.permission(repository, speaker.id))
        if permission in ALLOWED:
            return None
        return f"that takes write access to {repository}"

    async def earlier(self, key: SessionKey, before: str) -> Sequence[Earlier]:
        """Read what was said on an issue or pull request before a message, oldest first."""
        spot = Spot.parse(key.external)
        us, hosts = self._directory.us, self._hosts
        return await read_earlier(self._api, spot, before, self.agent, us, hosts=hosts)

    async def fetch(self, file: File) -> File:
        """Lay a file into the uploads, or a note in its place that says why it is not there."""
        return await self._files.fetched(file)

    # Answering.

    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Tell one person something, where everybody reads it: GitHub knows no other way."""
        await self._api.say(Spot.parse(key.external), render.whisper(speaker.name, words))

    async def send(self, post: PostSend) -> PostSent:
        """Write or change a comment; a long answer goes on in further ones."""
        spot = Spot.parse(post.target.external)
        content = await self._reviewed(spot, post)
        bodies = render.pages(content, post.marker, self._slug)
        if post.op == "create" or post.remote_id is None:
            name = await self._create(spot, post, bodies[0])
        else:
            name = _known(post.remote_id)
            progress = post.op != "finish"
            try:
                await self._api.edit(spot, name, bodies[0], progress=progress)
            except Gone:
                if progress:
                    raise
                # Somebody deleted the comment; the answer is still owed, and its check goes on.
                name = replace(await self._create(spot, post, bodies[0]), at=name.at)
        await self._go_on(spot, post.marker, bodies[1:])
        name = await self._board.show(self._pull_of(post.target), post, name, self._slug)
        return PostSent(str(name), len(content.text) if len(bodies) > 1 else 0)

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for a comment that may have been written although no answer came."""
        found = await self._find(Spot.parse(target.external), marker)
        return PostSent(str(found)) if found is not None else None

    async def close(self) -> None:
        """Let go of the connections."""
        await self._api.close()

    @property
    def _slug(self) -> str:
        known = self._directory.of(self.agent)
        return known.slug if known is not None else self.agent

    def _pull_of(self, target: SessionKey) -> Spot:
        """Tell which pull request a conversation is about: its session's own, else itself."""
        return Spot.linked(self._app.link_of(target)) or Spot.parse(target.external)

    async def _create(self, spot: Spot, post: PostSend, body: str) -> Name:
        said = Name.parse(post.content.message_id)
        under: int | None = None
        if said is not None and post.content.kind == "turn":
            said, under = await self._in_thread(spot, said)
            await self._acknowledge(spot, said)
        try:
            return await self._api.say(spot, body, under=under)
        except Gone:
            if under is None:
                raise
            return await self._api.say(spot, body)

    async def _in_thread(self, spot: Spot, said: Name) -> tuple[Name, int | None]:
        """Tell what to react to, and under which comment on a line to answer, if under one."""
        if said.kind not in {"review", "review-comment"}:
            return said, None
        try:
            found = await self._comment_on_line(spot, said)
        except PostError as error:
            logger.info("the thread of %s is not known: %s", said, error)
            return said, None
        if found is None:
            return said, None
        return Name("review-comment", found.id), found.in_reply_to_id or found.id

    async def _comment_on_line(self, spot: Spot, said: Name) -> Comment | None:
        if said.kind == "review-comment":
            comments = await self._api.line_comments(spot)
            return next((each for each in comments if each.id == said.id), None)
        review, comments = await self._api.review(spot, said.id)
        alone = len(comments) == 1 and not (review.body or "").strip()
        return comments[0] if alone else None

    async def _acknowledge(self, spot: Spot, said: Name) -> None:
        """Show at once that a message was seen; nothing depends on it."""
        try:
            await self._api.react(spot, said, "eyes")
        except PostError as error:
            logger.info("no reaction on %s: %s", said, error)

    async def _go_on(self, spot: Spot, marker: str, bodies: Sequence[str]) -> None:
        """Write the further comments of a long answer, each once."""
        for number, body in enumerate(bodies, 2):
            known = await self._find(spot, render.part(marker, number))
            if known is None:
                await self._api.say(spot, body)

    async def _reviewed(self, spot: Spot, post: PostSend) -> PostContent:
        """Make a review of an answer that comments on lines; its comment then leads there."""
        content = post.content
        is_answer = content.kind == "turn" and content.state == "done"
        if not is_answer or len(content.text) > render.PAGE_CHARACTERS:
            return content
        text, remarks = review.read(content.text)
        if not remarks or (await self._api.issue(spot)).pull_request is None:
            return content
        try:
            made = await self._find_review(spot, post.marker)
            if made is None:
                # First: a commit that comes meanwhile makes the comments outdated, not wrong.
                commit = (await self._api.pull(spot)).head.sha
                fitting, others = review.sort(remarks, await self._api.patches(spot))
                body, fitting = render.review(text, fitting, others, content.asker)
                body = render.marked(body, post.marker)
                made = await self._api.add_review(spot, body, fitting, commit)
        except PostRejected as error:
            # The answer is still owed, and as it is it can be read in a comment too.
            logger.warning("no review can be made on %s: %s", spot, error)
            return content
        return replace(content, text=render.REVIEWED.format(made.html_url))

    async def _find_review(self, spot: Spot, marker: str) -> Review | None:
        """Look for a review that was made although no answer came."""
        signature = render.signature(marker)
        for made in reversed(await self._api.reviews(spot)):
            if signature in (made.body or "") and self._is_ours(made.user):
                return made
        return None

    async def _find(self, spot: Spot, marker: str) -> Name | None:
        signature = render.signature(marker)
        for comment in reversed(await self._api.comments(spot)):
            if signature in (comment.body or "") and self._is_ours(comment.user):
                return Name("comment", comment.id)
        if (await self._api.issue(spot)).pull_request is None:
            return None
        for comment in await self._api.line_comments(spot):
            if signature in (comment.body or "") and self._is_ours(comment.user):
                return Name("review-comment", comment.id)
        return None

    def _is_ours(self, account: Account | None) -> bool:
        if account is None:
            return False
        us = self._directory.us
        agent = us.agent(bot_id=account.id, login=account.login, is_bot=account.is_bot)
        return agent == self.agent


def _known(remote_id: str) -> Name:
    name = Name.parse(remote_id)
    if name is None:
        raise PostRejected(f"{remote_id!r} is no comment of GitHub")
    return name
