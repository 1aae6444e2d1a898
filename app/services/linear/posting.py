"""Posts what an agent says into its Linear sessions, and shows that it is alive.

Everything in one session goes out in order: no heartbeat may follow the agent's last message.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from app.clock import Clock
from app.errors import PostDelayed, PostError, PostRejected, ServiceRefused
from app.model.inbound import Begun
from app.model.keys import SessionKey
from app.model.posts import MadeFile, PostSend, PostSent
from app.services.linear import events, render, wording
from app.services.linear.api import LinearApi, LinearFailed, LinearRefused, UploadFailed
from app.services.linear.identity import Identification, find_profile
from app.services.linear.render import (
    FIRST,
    NewActivity,
    SessionChange,
    ShownTurn,
    activity_id,
    shorten,
)
from app.services.linear.sessions import IssueState, LinearConversation, LinearPresence, LinearTurn
from app.tasks import Tasks

logger = logging.getLogger(__name__)


class Activities:
    """The activities of one agent."""

    def __init__(self, name: str, api: LinearApi) -> None:
        self._name = name
        self._api = api

    async def create(self, session: str, marker: str, activity: NewActivity) -> None:
        """Create an activity of a post, shortened if Linear rejects it as it is.

        Raises:
            PostDelayed: not now.
            LinearRefused: never.
            ServiceRefused: not with these credentials.
        """
        try:
            await self._create(session, marker, activity)
        except LinearRefused as error:
            shorter = shorten(activity)
            if error.missing or error.forbidden or shorter is None:
                raise
            logger.warning("%s shortens its text in %s: %s", self._name, session, error)
            await self._create(session, marker, shorter)

    async def exists(self, name: str) -> bool:
        """Tell whether an activity with this id exists.

        Raises:
            PostDelayed: not now.
            LinearRefused: Linear does not say.
            ServiceRefused: not with these credentials.
        """
        try:
            await self._api.call("activity", id=name)
        except LinearRefused as error:
            if error.missing:
                return False
            raise
        return True

    async def _create(self, session: str, marker: str, activity: NewActivity) -> None:
        """Create an activity; one that already exists counts as created."""
        wanted: dict[str, Any] = {
            "id": activity_id(marker, activity.name),
            "agentSessionId": session,
            "content": dict(activity.content),
            "ephemeral": activity.ephemeral,
        }
        if activity.signal is not None:
            wanted["signal"], wanted["signalMetadata"] = activity.signal
        try:
            await self._api.call("create_activity", input=wanted)
        except LinearFailed:
            if not await self.exists(wanted["id"]):
                raise
        except LinearRefused as error:
            # An ephemeral one may have existed and be gone: it is not worth a failure.
            if error.missing or not (activity.ephemeral or await self.exists(wanted["id"])):
                raise


UPLOAD_SECONDS: Final = 25.0
"""Time limit for one file: an answer with two files still fits into the time that the outbox gives
a post."""
UPLOAD_TRIES: Final = 3
"""Maximum attempts to upload a file: the answer must not wait for it forever."""


class Uploader:
    """Uploads the files one agent made; each file once, even if its post is retried."""

    def __init__(self, api: LinearApi, uploads: Path) -> None:
        self._api = api
        self._uploads = uploads
        self._assets: dict[str, str] = {}
        """The address of each file that a post will name: at Linear, else on the page."""
        self._failures: dict[str, int] = {}

    async def upload(self, files: Sequence[MadeFile]) -> tuple[MadeFile, ...]:
        """Upload files to Linear; one that cannot be uploaded keeps its link to the page.

        Raises:
            PostDelayed: not now.
            ServiceRefused: not with these credentials.
        """
        return tuple([replace(file, link=await self._upload_once(file)) for file in files])

    def forget(self, files: Sequence[MadeFile]) -> None:
        """Forget files that a post has named."""
        for file in files:
            self._assets.pop(file.url, None)
            self._failures.pop(file.url, None)

    async def _upload_once(self, file: MadeFile) -> str:
        if file.url not in self._assets:
            try:
                content = await asyncio.to_thread((self._uploads / file.url).read_bytes)
                async with asyncio.timeout(UPLOAD_SECONDS):
                    made = await self._api.upload(file.name, file.media_type, content)
                self._assets[file.url] = made
            except (PostRejected, UploadFailed, OSError) as error:
                failures = self._failures[file.url] = self._failures.get(file.url, 0) + 1
                if isinstance(error, UploadFailed) and failures < UPLOAD_TRIES:
                    raise
                logger.warning("cannot upload %s to Linear: %s", file.name, error)
                self._assets[file.url] = file.link
        return self._assets[file.url]


# An issue as people write it: its name, alone or in its address.
_ISSUE: Final = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]{0,9}-[1-9][0-9]{0,6}(?![\w-])")


def find_issue(texts: Iterable[str]) -> str | None:
    """Find the one issue that texts name; None if they name none, or several."""
    found = {name for text in texts for name in _ISSUE.findall(text)}
    return found.pop() if len(found) == 1 else None


async def open_session(
    api: LinearApi, activities: Activities, identification: Identification, begun: Begun
) -> str | None:
    """Open a session on the issue that people named, and say there that the work began.

    Returns its id, or None if they named none that Linear knows.

    Raises:
        PostDelayed: not now.
        PostRejected: never.
        ServiceRefused: not with these credentials.
    """
    name = find_issue(begun.texts)
    if name is None:
        return None
    me = await identification.wait()
    try:
        found = (await api.call("issue_sessions", id=name))["issue"]
    except LinearRefused as error:
        if error.missing:
            return None
        raise
    session = next(
        (
            str(each["id"])
            for each in found["agentSessions"]["nodes"]
            if each["appUser"]["id"] == me.user
            and any(link["url"] == begun.link for link in each["externalLinks"])
        ),
        None,
    )
    if session is None:
        links = [{"label": wording.CONVERSATION, "url": begun.link}]
        wanted = {"issueId": found["identifier"], "externalUrls": links}
        made = await api.call("create_session", input=wanted)
        session = str(made["agentSessionCreateOnIssue"]["agentSession"]["id"])
    words = {"type": "thought", "body": wording.BEGAN.format(link=begun.link)}
    await activities.create(session, f"{session}:{begun.link}", NewActivity(FIRST, words))
    return session


LOOK_SECONDS: Final = 60.0
"""How often to check for silence."""


class Posting:
    """The posts of one agent."""

    def __init__(self, name: str, api: LinearApi, clock: Clock, uploads: Path) -> None:
        self._name = name
        self._api = api
        self._clock = clock
        self._activities = Activities(name, api)
        self._uploader = Uploader(api, uploads)
        self._issue_state = IssueState(name, api)
        self._presence = LinearPresence()
        self._tasks = Tasks(f"posts of {name}")

    async def send(self, post: PostSend) -> PostSent:
        """Show what is new in a post.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        session = post.target.external
        sent = PostSent(post.remote_id or activity_id(post.marker, render.FIRST), post.consumed)
        if session.startswith(events.UNREAD):
            return sent
        async with self._presence.at(session, self._clock.monotonic()).line:
            try:
                if post.content.kind == "turn":
                    await self._send_turn(post)
                else:
                    await self._send_other(post)
            except PostRejected:
                self._presence.leave(session, post.marker)
                raise
        final = post.op == "finish"
        return PostSent(sent.remote_id, len(post.content.text)) if final else sent

    async def accompany(self, identification: Identification, begun: Begun) -> str | None:
        """Open a session about work that begins elsewhere; raises what `open_session` does."""
        session = await open_session(self._api, self._activities, identification, begun)
        if session is not None:
            self._presence.accompany(session, self._clock.monotonic())
        return session

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for the activity that a post begins with."""
        if target.external.startswith(events.UNREAD):
            return None
        name = activity_id(marker, render.FIRST)
        return PostSent(name) if await self._activities.exists(name) else None

    async def show_life(self) -> None:
        """Send a heartbeat wherever an agent works silently."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            for session in self._presence.silent(self._clock.monotonic()):
                try:
                    await self._show_life_in(session)
                except (PostError, ServiceRefused) as error:
                    logger.info("%s cannot send a heartbeat: %s", self._name, error)

    async def _show_life_in(self, session: str) -> None:
        if not self._presence.is_watched(session):
            return  # its turn ended during the heartbeat of another session
        async with self._presence.at(session, self._clock.monotonic()).line:
            # Another post that held the line may have ended the turn.
            if session in self._presence.silent(self._clock.monotonic()):
                words = {"type": "thought", "body": wording.STILL_WORKING}
                await self._act(session, uuid4().hex, NewActivity("life", words, ephemeral=True))

    async def close(self) -> None:
        """Stop all tasks."""
        await self._tasks.close()

    async def _send_turn(self, post: PostSend) -> None:
        session, now = post.target.external, self._clock.monotonic()
        ended = post.op == "finish" or post.content.state in {"done", "failed", "stopped"}
        work = self._work(post, now)
        if post.content.files:
            made = await self._uploader.upload(post.content.files)
            post = replace(post, content=replace(post.content, files=made))
        if post.op in {"replace", "append"}:
            if self._presence.at(session, now).asks:
                return  # any activity after an ask would close it
            if now < work.due:
                raise PostDelayed("progress updates are throttled", retry_after=work.due - now)
        for step in render.steps(post.content, work.shown):
            await self._take_step(post, step.call)
            work.shown = step.shown
        work.note_shown(now)
        if ended:
            self._presence.leave(session, post.marker)
            self._uploader.forget(post.content.files)
        elif post.op == "create":
            conversation = self._presence.at(session, now)
            self._tasks.start(self._move_issue(post, conversation), name=str(post.target))
            await asyncio.sleep(0)  # so that it takes the line next, before any other post

    async def _move_issue(self, post: PostSend, conversation: LinearConversation) -> None:
        """Move the issue while the agent starts; not after the turn ended."""
        async with conversation.line:
            if post.marker in conversation.turns:
                await self._issue_state.begin(post)

    async def _take_step(self, post: PostSend, call: NewActivity | SessionChange) -> None:
        """Make one call; only the first and the last activity of a turn may fail the post."""
        session = post.target.external
        try:
            match call:
                case NewActivity():
                    await self._act(session, post.marker, call)
                case SessionChange():
                    if fields := await self._issue_state.drop_known_links(session, call.fields):
                        await self._api.call("update_session", id=session, input=fields)
                    await self._issue_state.take_over(post, call)
        except (LinearFailed, LinearRefused) as error:
            gone = isinstance(error, LinearRefused) and error.missing
            if gone or (isinstance(call, NewActivity) and call.name in {render.FIRST, render.LAST}):
                raise
            logger.warning("%s skipped an update in %s: %s", self._name, post.target, error)

    def _work(self, post: PostSend, now: float) -> LinearTurn:
        """Return what is known of a turn; if an earlier run began it, only its end is new."""
        conversation = self._presence.at(post.target.external, now)
        work = conversation.turns.get(post.marker)
        if work is None:
            shown = ShownTurn()
            if post.op == "finish":
                shown = ShownTurn(
                    calls=frozenset(tool.call for tool in post.content.tools),
                    steered=frozenset(post.content.steered),
                )
            work = conversation.turns[post.marker] = LinearTurn(now, shown)
        return work

    async def _send_other(self, post: PostSend) -> None:
        session, now = post.target.external, self._clock.monotonic()
        self._presence.part(session)
        busy = self._presence.is_busy(session)
        content = post.content
        if content.mentions and content.state == "open":
            profiles = [await find_profile(self._api, each) for each in content.mentions]
            content = replace(content, mentions=tuple(profiles))
        for step in render.steps(content, ShownTurn(), busy=busy):
            assert isinstance(step.call, NewActivity), "only turns change the session"
            await self._act(session, post.marker, step.call)
        if post.content.kind == "ask" and post.content.state == "open":
            self._presence.at(session, now).asks.add(post.marker)
        else:
            self._presence.leave(session, post.marker)

    async def _act(self, session: str, marker: str, activity: NewActivity) -> None:
        await self._activities.create(session, marker, activity)
        self._presence.spoke(session, self._clock.monotonic())
