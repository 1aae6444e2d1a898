"""Writes an agent's comments and reviews: a reaction, then progress and answer in one comment each.

GitHub notifies people of new comments, never of edits. So a turn says nothing until its answer or
for some seconds, and the answer is always a new comment, after which the comment that showed the
progress is hidden. Each has a marker of its own, so that a crash repeats none of them.

Nothing that a reviewer wrote is lost: what GitHub takes no comment for goes into the review's text,
and so does a verdict on the App's own pull request, which GitHub refuses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Literal

import httpx
from gidgethub import GitHubException

from app.clock import Clock
from app.errors import PostError, PostRejected
from app.model.keys import SessionKey
from app.model.posts import NoteCode, PostContent, PostSend, PostSent
from app.model.proposals import Submission, Verdict
from app.services.github import render, wording
from app.services.github.api import GithubApi
from app.services.github.auth import GitHubApps
from app.services.github.checks import Board
from app.services.github.events import Rerun
from app.services.github.names import Identities, Name, Spot
from app.services.github.payloads import GitHubAccount, GitHubReview
from app.services.github.reviews import LineRemark, read_remarks, sort_remarks
from app.services.github.transport import Gone, retry_github

logger = logging.getLogger(__name__)


QUIET_SECONDS = 15.0
"""How long a turn is shown by a reaction only: a comment about it would outlive most answers."""
REACTIONS = {"done": "+1", "failed": "confused"}
"""How a turn ended, on the message that it answers."""
RESOLVED = 20
"""Threads that one turn resolves at most."""


class CommentPoster:
    """The comments of one agent."""

    def __init__(
        self,
        agent: str,
        api: GithubApi,
        directory: GitHubApps,
        clock: Clock,
        link_of: Callable[[SessionKey], str],
    ) -> None:
        """Write as an agent; `link_of` returns the pull request of a session."""
        self._agent = agent
        self._api = api
        self._directory = directory
        self._clock = clock
        self._link_of = link_of
        self._board = Board(api, clock)
        self._unwritten: dict[str, float] = {}
        """When turns began for which no comment was tried yet, by marker."""
        self._askers: dict[SessionKey, str] = {}
        """Whom the turns answer that are at work."""
        self._steered: dict[str, set[str]] = {}
        """The messages that went into each running turn and were reacted to."""
        self._heads: dict[str, str] = {}
        """The heads of pull requests when turns about their lines began, by marker."""

    async def send(self, post: PostSend) -> PostSent:
        """Write or change a comment, and show it in the check of a pull request."""
        disarm, content = self._api.outgoing.disarm, post.content
        # An answer is disarmed as a whole: it grows by that, and is cut afterwards. In a thread: a
        # long one takes a while.
        text = await asyncio.to_thread(disarm, content.text)
        narrated = len(disarm(content.text[: content.narrated]))
        content = replace(content, text=text, narrated=narrated)
        post, spot = replace(post, content=content), Spot.parse(post.target.external)
        known = _parse_name(post.remote_id) if post.remote_id is not None else None
        consumed = 0
        if content.kind != "turn":
            if content.kind == "ask":  # it is put to the person whose turn it belongs to
                asker = self._askers.get(post.target, "")
                content = replace(content, asker=asker)
            name = await self._write(spot, replace(post, content=content), known)
        elif content.state in render.UNFINISHED:
            if content.state != "queued":
                await self._begin(spot, post)
            name = await self._show_progress(spot, post, known)
        elif content.reason is not None and content.reason.code is NoteCode.CONTINUED:
            name = await self._hand_on(spot, post, known)
        else:
            name, consumed = await self._answer(spot, post, known)
            await self._tidy(spot, post)
            self._askers.pop(post.target, None)
        pull = Spot.linked(self._link_of(post.target)) or spot
        name = await self._board.show(pull, post, name, self._slug)
        again = QUIET_SECONDS if known is None and name.kind == "seen" else 0.0
        return PostSent(str(name), consumed, again_after=again)

    async def _pages(self, content: PostContent, marker: str) -> list[str]:
        """Write a post as comments, in a thread: a long one takes a while."""
        return await asyncio.to_thread(render.pages, content, marker, self._slug)

    async def rerun(self, asked: Rerun) -> None:
        """Answer people who want the agent's checks of a commit to run again.

        Raises:
            PostError: GitHub refuses it, or did not answer for too long.
        """
        await retry_github(self._clock, lambda: self._board.rerun(asked, self._slug))

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for a comment that may have been written although GitHub did not answer."""
        spot = Spot.parse(target.external)
        (found,) = await self._find(spot, marker)
        return PostSent(str(found)) if found is not None else None

    async def _write(self, spot: Spot, post: PostSend, known: Name | None) -> Name:
        """Write or change what is not about a turn."""
        (body,) = await self._pages(post.content, post.marker)
        if known is not None:
            try:
                await self._api.edit(spot, known, body, progress=post.op != "finish")
            except Gone:
                if post.op != "finish":
                    raise
            else:
                return known
        return await self._api.say(spot, body)

    async def _begin(self, spot: Spot, post: PostSend) -> None:
        """Remember what the end of a turn at work depends on; after a restart it may be unknown."""
        self._askers[post.target] = post.content.asker
        if not post.content.message_id.startswith("review") or post.marker in self._heads:
            return
        try:
            self._heads[post.marker] = (await self._api.pull(spot)).head.sha
        except (PostError, GitHubException, httpx.HTTPError) as error:
            logger.info("cannot read the head of %s: %s", spot, error)

    async def _show_progress(self, spot: Spot, post: PostSend, known: Name | None) -> Name:
        """React at once; after a while, show the progress of a turn in one comment."""
        content = post.content
        if known is None:
            said, _ = await self._in_thread(spot, content)
            await self._react(spot, said, "eyes")
            self._unwritten[post.marker] = self._clock.monotonic()
            return Name("seen", spot.number)
        seen = self._steered.setdefault(post.marker, set())
        for each in [each for each in content.steered if each not in seen]:
            seen.add(each)
            await self._react(spot, Name.parse(each), "eyes")
        (body,) = await self._pages(content, post.marker)
        if known.kind != "seen":
            await self._api.edit(spot, known, body, progress=True)
            return known
        begun = self._unwritten.get(post.marker)
        is_early = begun is not None and self._clock.monotonic() - begun < QUIET_SECONDS
        # An ask is a comment already.
        if is_early or content.state == "waiting":
            return known
        name = None
        if self._unwritten.pop(post.marker, None) is None:
            (name,) = await self._find(spot, render.progress_marker(post.marker))
        if name is None:
            name = await self._say(spot, content, body)
        return replace(name, at=known.at)

    async def _answer(self, spot: Spot, post: PostSend, known: Name | None) -> tuple[Name, int]:
        """Write the answer of a turn as a new comment, or as a review; returns what it consumed."""
        content, marker = post.content, post.marker
        is_first = self._unwritten.pop(marker, None) is not None or known is None
        answer, progress = None, None
        if not is_first:
            answer, progress = await self._find(spot, marker, render.progress_marker(marker))
        bodies = await self._pages(content, marker)
        if answer is None:
            answer = await self._review(spot, post)
            answer = answer or await self._say(spot, content, bodies[0])
        elif answer.kind != "review":
            await self._api.edit(spot, answer, bodies[0])
        if answer.kind != "review":
            for number, body in enumerate(bodies[1:], 2):
                (written,) = await self._find(spot, render.part(marker, number))
                if written is None:
                    await self._api.say(spot, body)
        if known is not None and known.kind != "seen":
            progress = known
        if progress is not None and not progress.is_same(answer):
            await self._retire(spot, progress, post)
        consumed = len(content.text) if len(bodies) > 1 else 0
        return replace(answer, at=known.at if known is not None else ""), consumed

    async def _hand_on(self, spot: Spot, post: PostSend, known: Name | None) -> Name:
        """End a turn that another one continues, which will answer."""
        self._unwritten.pop(post.marker, None)
        self._heads.pop(post.marker, None)
        if known is not None and known.kind != "seen":
            await self._retire(spot, known, post)
        return known or Name("seen", spot.number)

    async def _retire(self, spot: Spot, progress: Name, post: PostSend) -> None:
        """Hide the comment that showed the progress; nothing depends on it."""
        body = render.retired(post.content, post.marker)

        async def hide() -> None:
            await self._api.edit(spot, progress, body, progress=True)
            await self._api.minimize(spot, await self._api.comment(spot, progress))

        try:
            await retry_github(self._clock, hide, brief=True)
        except PostError as error:
            logger.info("cannot hide %s on %s: %s", progress, spot, error)

    async def _tidy(self, spot: Spot, post: PostSend) -> None:
        """Say on the message how its turn ended, and resolve the threads that a fix answers."""
        content, head = post.content, self._heads.pop(post.marker, "")
        self._steered.pop(post.marker, None)
        try:
            said, under = await self._in_thread(spot, content)
            if (reaction := REACTIONS.get(content.state)) is not None:
                for each in (said, *map(Name.parse, content.steered)):
                    await self._react(spot, each, reaction)
            if content.state == "done" and head:
                await self._resolve(spot, content.message_id, head, alone=under is not None)
        except (PostError, GitHubException, httpx.HTTPError) as error:
            logger.info("cannot resolve threads of %s: %s", spot, error)

    async def _resolve(self, spot: Spot, message_id: str, before: str, *, alone: bool) -> None:
        """Resolve the threads of a message on the agent's own pull request, if its head moved.

        Of a review with several comments only those count whose lines have changed.
        """
        said, pull = _parse_name(message_id), await self._api.pull(spot)
        if pull.head.sha == before or not self._is_ours(pull.user):
            return
        threads = [
            each
            for each in await self._api.threads(spot)
            if any(said.id in (comment.id, comment.review) for comment in each.comments)
            and not each.is_resolved
        ]
        for thread in threads[:RESOLVED]:
            if alone or thread.is_outdated:
                await self._api.resolve(spot, thread)

    async def _say(self, spot: Spot, content: PostContent, body: str) -> Name:
        """Comment where the message was said: under a line, else in the conversation."""
        _, under = await self._in_thread(spot, content)
        if under is not None:
            with suppress(Gone):
                return await self._api.say(spot, body, under=under)
        return await self._api.say(spot, body)

    async def _in_thread(self, spot: Spot, content: PostContent) -> tuple[Name | None, int | None]:
        """Return what to react to, and the line comment to answer under, if there is one."""
        said = Name.parse(content.message_id)
        if said is None or said.kind not in {"review", "review-comment"}:
            return said, None
        try:
            if said.kind == "review-comment":
                comments = await self._api.line_comments(spot)
                found = next((each for each in comments if each.id == said.id), None)
            else:
                review, comments = await self._api.review(spot, said.id)
                alone = len(comments) == 1 and not (review.body or "").strip()
                found = comments[0] if alone else None
        except PostError as error:
            logger.info("cannot find the thread of %s: %s", said, error)
            return said, None
        if found is None:
            return said, None
        return Name("review-comment", found.id), found.in_reply_to_id or found.id

    async def _react(self, spot: Spot, said: Name | None, content: str) -> None:
        """React to a message; nothing depends on it."""
        try:
            if said is not None:
                await self._api.react(spot, said, content)
        except (PostError, GitHubException, httpx.HTTPError) as error:
            logger.info("cannot react to %s: %s", said, error)

    async def _review(self, spot: Spot, post: PostSend) -> Name | None:
        """Write an answer that comments on lines as a review; None if it is none."""
        content = post.content
        if content.state != "done" or len(content.text) > render.PAGE_CHARACTERS:
            return None
        text, found = read_remarks(content.text)
        if not found or not (await self._api.issue(spot)).is_pull:
            return None
        try:
            # First: a commit that comes meanwhile makes the comments outdated, not wrong.
            commit = (await self._api.pull(spot)).head.sha
            fitting, others = sort_remarks(found, await self._api.patches(spot))
            body, fitting = render.review(content, post.marker, self._slug, text, fitting, others)
            made = await self._api.add_review(spot, body, fitting, commit)
        except PostRejected as error:
            # The answer is still owed, and can be read in a comment too.
            logger.warning("cannot create a review on %s: %s", spot, error)
            return None
        return Name("review", made.id)

    async def _find(self, spot: Spot, *markers: str) -> list[Name | None]:
        """Look for our comments and reviews by their markers, the latest of each."""
        await self._directory.wait(self._agent)  # at the start the bridge does not know who it is
        found: dict[str, Name] = {}

        def look(user: GitHubAccount | None, body: str | None, name: Name) -> None:
            for marker in markers:
                if self._is_ours(user) and render.signature(marker) in (body or ""):
                    found.setdefault(marker, name)

        for comment in reversed(await self._api.comments(spot)):
            look(comment.user, comment.body, Name("comment", comment.id))
        if len(found) < len(markers) and (await self._api.issue(spot)).is_pull:
            for comment in await self._api.line_comments(spot):
                look(comment.user, comment.body, Name("review-comment", comment.id))
            for review in reversed(await self._api.reviews(spot)):
                look(review.user, review.body, Name("review", review.id))
        return [found.get(marker) for marker in markers]

    @property
    def _slug(self) -> str:
        known = self._directory.known.get(self._agent)
        return known.slug if known is not None else self._agent

    def _is_ours(self, account: GitHubAccount | None) -> bool:
        return self._directory.us.agent(account) == self._agent


def _parse_name(remote_id: str) -> Name:
    name = Name.parse(remote_id)
    if name is None:
        raise PostRejected(f"{remote_id!r} is not a GitHub comment")
    return name


Event = Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
EVENTS: Final[dict[Verdict, Event]] = {
    "approve": "APPROVE",
    "request_changes": "REQUEST_CHANGES",
    "comment": "COMMENT",
}


async def submit(api: GithubApi, submission: Submission, us: Identities) -> str | None:
    """Submit a review of the open pull request of a branch; returns its link, None without one."""
    name = submission.repository.name
    pull = await api.find_pull(name, submission.branch)
    if pull is None:
        return None
    spot = Spot(name, pull.number)
    for each in reversed(await api.reviews(spot)):
        ours = us.agent(each.user) == submission.agent
        if ours and render.signature(submission.mark) in (each.body or ""):
            return each.html_url
    is_own = us.agent(pull.user) == submission.agent
    return (await _write(api, spot, submission, is_own=is_own)).html_url


async def _write(
    api: GithubApi, spot: Spot, submission: Submission, *, is_own: bool
) -> GitHubReview:
    event: Event = "COMMENT" if is_own else EVENTS[submission.verdict]
    verdict = wording.OWN_VERDICTS[submission.verdict] if is_own else ""
    found = [LineRemark(each.path, each.line, each.line, each.body) for each in submission.findings]
    fitting, others = sort_remarks(found, await api.patches(spot))
    remarks = [render.quieted(each) for each in fitting]
    try:
        body = _body(verdict, submission, others)
        return await api.add_review(spot, body, remarks, submission.commit, event)
    except PostRejected as error:
        # The branch may have been rewritten since: its review is still owed.
        logger.info("GitHub takes no comments on lines of %s: %s", spot, error)
    return await api.add_review(spot, _body(verdict, submission, found), (), "", event)


def _body(verdict: str, submission: Submission, remarks: Sequence[LineRemark]) -> str:
    text = render.join(verdict, submission.body, "\n".join(map(str, remarks)))
    return render.add_marker(render.quiet(text or wording.NO_WORDS), submission.mark)
