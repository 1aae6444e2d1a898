"""Sends posts: in order per conversation, paced, retried, each one once.

Committed posts are always sent in the end. Progress is only in memory, and the last one wins.
Only the leader sends; the others tell it what there is to send.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from app.core.adapters import Adapter
from app.core.base import Base
from app.core.progress_relay import Progress, ProgressRelay
from app.errors import PostDelayed, PostRejected
from app.model.keys import SessionKey
from app.model.posts import Post, PostContent, PostSend, PostSent, redact_content, texts_of
from app.retry import backoff, persist
from app.signals import Facts, Topic
from app.tasks import Tasks

logger = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 1.0
DRAIN_SECONDS = 0.05
"""How often posts are looked at while an adapter waits for them before it goes."""
SEND_SECONDS = 60.0
"""How long one post may take: after that it is looked for and sent again."""
ASIDE_CHARACTERS = 20_000
"""The length from which a text is redacted in a thread: a shorter one takes some milliseconds."""
LONGEST_RETRY_SECONDS = 60.0
"""A platform that is down is tried once a minute: often enough for people, rarely enough for it."""


@dataclass(slots=True)
class _Open:
    """A post that the platform has and that may still change."""

    post: Post
    shown: PostContent
    sent_at: float


@dataclass(slots=True)
class _Lane:
    """Everything that goes to one conversation, in order."""

    committed: deque[int] = field(default_factory=deque)
    progress: dict[int, Progress] = field(default_factory=dict)
    open: dict[int, _Open] = field(default_factory=dict)
    doubtful: set[int] = field(default_factory=set)
    """Posts that may have been created although no answer was recorded."""
    busy: bool = False
    resting: bool = False
    """Whether a timer wakes the lane when its next progress is due."""


class Outbox:
    """Sends the posts of all adapters."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._posts = base.stores.posts
        self._lanes: dict[SessionKey, _Lane] = {}
        self._awaited: dict[int, asyncio.Event] = {}
        self._tasks = Tasks("outbox")
        self._timers = Tasks("outbox pace")
        self._held = False
        self._relay = ProgressRelay(base, self._clean_aside)
        signals = base.signals
        signals.on(Topic.POSTS, self._take_posts)
        signals.on(Topic.PROGRESS, self._take_progress)
        signals.on(Topic.SENT, lambda facts: self._note_arrival(facts["post"]))
        signals.on_sweep(self._look_again)

    def hold(self) -> None:
        """Send nothing until `start`."""
        self._held = True

    async def start(self) -> None:
        """Queue what the last run did not send; nothing is sent meanwhile."""
        self.hold()
        left = await self._posts.unsent()
        for post in left:
            self._lanes.setdefault(post.target, _Lane()).doubtful.add(post.id)
        # Only now: before, a turn that goes on meanwhile could send one that has arrived.
        self._held = False
        for post in left:
            self._send(post)

    async def close(self, *, grace: float) -> None:
        """Send what can be sent within the grace time; the rest stays for the next start."""
        await self._relay.close()
        await self._timers.close()
        await self._tasks.close(grace=grace)

    def send(self, *posts: int) -> None:
        """Send posts that were committed: created, or given their last content."""
        if not self._base.signals.is_leader:
            if posts:
                self._base.signals.send(Topic.POSTS, posts=posts)
            return
        for post_id in posts:
            post = self._posts.post(post_id)
            if post is not None:
                self._send(post)

    async def announced(self, post_id: int, target: SessionKey) -> None:
        """Wait until the platform has a post, as long as its adapter asks for."""
        adapter = self._base.adapters.get(target.adapter)
        if adapter is None or adapter.first_word_seconds is None:
            return
        post = self._posts.post(post_id)
        if post is None or post.state != "new":
            return
        arrived = self._awaited[post_id] = asyncio.Event()

        async def time_out(seconds: float) -> None:
            await self._base.clock.sleep(seconds)
            logger.warning("post %d not delivered after %g s; its turn starts", post_id, seconds)
            arrived.set()

        deadline = self._timers.start(time_out(adapter.first_word_seconds), name=f"post {post_id}")
        try:
            await arrived.wait()
        finally:
            deadline.cancel()
            del self._awaited[post_id]

    def wake(self, adapters: Collection[str]) -> None:
        """Send what waits for adapters that were not there."""
        for target, lane in list(self._lanes.items()):
            if target.adapter in adapters:
                self._wake(target, lane)

    async def drained(self, adapter: str) -> None:
        """Wait until everything committed for an adapter was sent."""
        if not self._base.signals.is_leader:
            while any(post.target.adapter == adapter for post in await self._posts.unsent()):
                await self._base.clock.sleep(DRAIN_SECONDS)
            return
        while any(
            lane.committed or lane.busy
            for target, lane in self._lanes.items()
            if target.adapter == adapter
        ):
            await self._base.clock.sleep(DRAIN_SECONDS)

    def progress(self, post_id: int, target: SessionKey, content: Progress) -> None:
        """Show the progress of a turn; its content is read only when it is sent."""
        if not self._base.signals.is_leader:
            self._relay.show(post_id, target, content)
            return
        lane = self._lanes.setdefault(target, _Lane())
        lane.progress[post_id] = content
        self._wake(target, lane)

    def _take_posts(self, facts: Facts) -> None:
        """Send what another member committed, as the leader."""
        if self._base.signals.is_leader:
            self.send(*facts["posts"])

    def _take_progress(self, facts: Facts) -> None:
        """Show the progress of a turn that another member runs, as the leader."""
        post = self._posts.post(facts["post"]) if self._base.signals.is_leader else None
        if post is not None:
            self.progress(post.id, post.target, lambda: self._posts.shown(post.id) or post.content)

    def _note_arrival(self, post_id: int) -> None:
        if (arrived := self._awaited.get(post_id)) is not None:
            arrived.set()

    def _look_again(self) -> None:
        """Find what members told while signals were lost."""
        for post_id in list(self._awaited):
            post = self._posts.post(post_id)
            if post is None or post.state != "new":
                self._note_arrival(post_id)
        if self._base.signals.is_leader:
            self._tasks.start(self._send_unsent(), name="unsent posts")

    async def _send_unsent(self) -> None:
        for post in await self._posts.unsent():
            self._send(post)

    def _send(self, post: Post) -> None:
        lane = self._lanes.setdefault(post.target, _Lane())
        if post.id not in lane.committed:
            lane.committed.append(post.id)
        self._wake(post.target, lane)

    def _wake(self, target: SessionKey, lane: _Lane) -> None:
        if lane.busy or self._held:
            return
        lane.busy = True
        self._tasks.start(self._run(target, lane), name=str(target))

    async def _run(self, target: SessionKey, lane: _Lane) -> None:
        try:
            # Looked up each time: credentials may change while posts wait.
            while (adapter := self._base.adapters.get(target.adapter)) is not None and (
                lane.committed or lane.progress
            ):
                if lane.committed:
                    # Removed first: what is committed meanwhile adds it again.
                    post_id = lane.committed.popleft()
                    await self._send_committed(target, lane, post_id)
                    self._note_arrival(post_id)
                    if adapter.first_word_seconds is not None:
                        self._base.signals.send(Topic.SENT, post=post_id)
                elif (wait := self._pause(adapter, lane)) > 0:
                    self._rest(target, lane, wait)
                    break
                else:
                    await self._send_progress(adapter, lane)
        finally:
            lane.busy = False
            # A timer may wake a lane that was dropped long ago: another one may have replaced it.
            is_idle = not (lane.committed or lane.open or lane.progress)
            if is_idle and self._lanes.get(target) is lane:
                del self._lanes[target]
        if adapter is None:
            logger.warning("cannot post as %s: it is not set up", target.adapter)

    async def _send_committed(self, target: SessionKey, lane: _Lane, post_id: int) -> None:
        """Send a post as the store has it now, until it arrived or never can."""
        pauses = backoff(FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
        began = self._base.clock.now()
        while True:
            post = self._posts.post(post_id)
            if post is None or post.state not in {"new", "closing"}:
                return
            adapter = self._base.adapters.get(target.adapter)
            if adapter is None:
                lane.committed.appendleft(post_id)
                return
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    sent = await self._deliver(adapter, lane, post)
            except PostRejected as error:
                if self._base.adapters.get(target.adapter) is not adapter:
                    continue  # its credentials were replaced meanwhile
                logger.warning("post %d cannot be sent: %s", post_id, error)
                self._base.metrics.count("posts", adapter=adapter.service_name, outcome="failed")
                self._blame(adapter, "refused")
                await persist(self._base.clock, self._posts.failed, post_id, str(error))
                lane.open.pop(post_id, None)
                return
            except Exception as error:  # noqa: BLE001 - on any platform failure the post stays
                pause = next(pauses)
                wait = (error.retry_after if isinstance(error, PostDelayed) else None) or pause
                self._blame(adapter, "limited" if isinstance(error, PostDelayed) else "unclear")
                if not isinstance(error, PostDelayed):
                    lane.doubtful.add(post_id)
                logger.info("post %d: retry in %.1f s: %s", post_id, wait, error)
                await self._base.clock.sleep(wait)
                continue
            await self._note(lane, post, sent)
            if not sent.unfinished:
                self._base.metrics.count("posts", adapter=adapter.service_name, outcome="sent")
                if post.turn is not None:
                    now, by = self._base.clock.now(), adapter.service_name
                    self._base.metrics.trace("post", post.turn, began, now, adapter=by)
                return

    def _blame(self, adapter: Adapter, kind: str) -> None:
        self._base.metrics.count("platform_errors", adapter=adapter.service_name, kind=kind)

    async def _deliver(self, adapter: Adapter, lane: _Lane, post: Post) -> PostSent:
        remote, consumed = post.remote_id, post.consumed
        if remote is None and post.id in lane.doubtful:
            found = await adapter.find(post.target, post.marker)
            if found is not None:
                logger.info("post %d had arrived without an answer", post.id)
                if post.state == "new":
                    return found
                remote, consumed = found.remote_id, found.consumed
        self._base.ensure()
        return await adapter.send(
            PostSend(
                op="create" if remote is None else "finish",
                target=post.target,
                marker=post.marker,
                content=await self._clean_aside(post.content),
                remote_id=remote,
                consumed=consumed,
            )
        )

    async def _note(self, lane: _Lane, post: Post, sent: PostSent) -> None:
        whole = post.state == "closing" or post.content.kind == "notice"
        final = whole and not sent.unfinished
        await persist(self._base.clock, self._posts.sent, post.id, sent, final=final)
        lane.doubtful.discard(post.id)
        if final:
            lane.open.pop(post.id, None)
            lane.progress.pop(post.id, None)
        else:
            known = replace(post, remote_id=sent.remote_id, consumed=sent.consumed, state="open")
            lane.open[post.id] = _Open(known, post.content, self._base.clock.monotonic())
            if sent.again_after:
                self._send_again(lane, post, sent.again_after)

    def _send_again(self, lane: _Lane, post: Post, seconds: float) -> None:
        """Send what an open post shows once more, after a while."""

        async def wait() -> None:
            await self._base.clock.sleep(seconds)
            known = lane.open.get(post.id)
            if known is not None:
                lane.progress.setdefault(post.id, lambda: known.shown)
                self._wake(post.target, lane)

        self._timers.start(wait(), name=f"{post.target} again")

    def _pause(self, adapter: Adapter, lane: _Lane) -> float:
        """Return how long the next progress must wait."""
        known = lane.open.get(next(iter(lane.progress)))
        return (
            known.sent_at + adapter.pace - self._base.clock.monotonic()
            if known is not None
            else 0.0
        )

    def _rest(self, target: SessionKey, lane: _Lane, seconds: float) -> None:
        """Come back when progress is due; what is committed meanwhile does not wait for that."""
        if lane.resting:
            return
        lane.resting = True

        async def wake() -> None:
            await self._base.clock.sleep(seconds)
            lane.resting = False
            self._wake(target, lane)

        self._timers.start(wake(), name=str(target))

    async def _send_progress(self, adapter: Adapter, lane: _Lane) -> None:
        """Send the latest progress of one post."""
        post_id = next(iter(lane.progress))
        known = lane.open.get(post_id) or self._reopen(lane, post_id)
        latest = lane.progress.pop(post_id)
        if known is None:
            return
        content = latest()
        grown = replace(known.shown, text=content.text) == content
        post = PostSend(
            op="append" if grown else "replace",
            target=known.post.target,
            marker=known.post.marker,
            content=await self._clean_aside(content),
            remote_id=known.post.remote_id,
            consumed=known.post.consumed,
        )
        wait = 0.0
        try:
            async with asyncio.timeout(SEND_SECONDS):
                self._base.ensure()
                sent = await adapter.send(post)
        except PostDelayed as error:
            wait = error.retry_after or FIRST_RETRY_SECONDS
            lane.progress.setdefault(post_id, latest)
        except Exception as error:  # noqa: BLE001 - progress may be dropped, results may not
            logger.info("dropped progress of post %d: %s", post_id, error)
        else:
            known.shown = content
            if sent != PostSent(known.post.remote_id or "", known.post.consumed):
                await persist(self._base.clock, self._posts.sent, post_id, sent, final=False)
            known.post = replace(known.post, remote_id=sent.remote_id, consumed=sent.consumed)
        finally:
            # Counted from the answer: a slow platform must not get two at once.
            known.sent_at = self._base.clock.monotonic() + wait

    def _reopen(self, lane: _Lane, post_id: int) -> _Open | None:
        """Find a post of an earlier run that the platform already has."""
        post = self._posts.post(post_id)
        if post is None or post.state != "open":
            return None
        lane.open[post_id] = _Open(post, post.content, 0.0)
        return lane.open[post_id]

    def redact(self, words: str) -> str:
        """Redact every secret the bridge knows from words that are about to be stored or sent."""
        return self._base.vault.redact(words)

    def clean(self, content: PostContent) -> PostContent:
        """Redact every secret the bridge knows from content that is about to be stored or sent."""
        if self._base.vault.contains(*texts_of(content)):
            return redact_content(content, self._base.vault.redact)
        return content

    async def _clean_aside(self, content: PostContent) -> PostContent:
        """Redact in a thread what is long: all others wait for the event loop."""
        if len(content.text) <= ASIDE_CHARACTERS:
            return self.clean(content)
        return await asyncio.to_thread(self.clean, content)
