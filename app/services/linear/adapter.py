"""One agent's presence on Linear: an app user that is given issues, asked, answered and stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

from app.config import LinearCredentials
from app.core.inbound import Delivery, Heard
from app.core.keys import PlaceKey, SessionKey, adapter_name
from app.core.ports import Clock
from app.core.posts import PostContent, PostSend, PostSent
from app.core.tasks import Tasks
from app.core.types import Earlier, File, Speaker
from app.core.workspaces import Repository, Suggestion
from app.errors import PostDelayed, PostError, PostRejected, ServiceRefused, SpeakerUnknown
from app.services.linear import events, render, webhook
from app.services.linear.activities import Activities
from app.services.linear.api import LinearApi, LinearFailed, LinearRefused
from app.services.linear.auth import Register, Tokens
from app.services.linear.etiquette import Etiquette
from app.services.linear.files import Made, fetched
from app.services.linear.grants import Grants
from app.services.linear.members import Members
from app.services.linear.missed import Page, wanted_prompts
from app.services.linear.presence import Conversation, Presence, Work
from app.services.linear.render import Activity, Change, Shown, activity_id
from app.services.linear.standing import Standing

logger = logging.getLogger(__name__)

Take = Callable[[Delivery], Awaitable[None]]

LOOK_SECONDS: Final = 60.0
"""How often silence is looked for, and how often at most for what was missed."""
WHO_SECONDS: Final = 9.0
"""How long Linear may take to tell who somebody is: a little less than the core waits for it."""
STILL_AT_IT: Final = "Still working on this."


class LinearAdapter:
    """The adapter port for one Linear agent."""

    pace = 5.0
    """Linear counts calls per hour; people who look see the plan and the last action."""
    first_word_seconds = 10.0
    """After that Linear calls the agent unresponsive, and nothing is won by waiting longer."""

    def __init__(
        self,
        agent: str,
        credentials: LinearCredentials,
        *,
        api_url: str,
        clock: Clock,
        vault: Register,
        is_default: bool = False,
        bots: Collection[str] = (),
        home: Callable[[SessionKey], PlaceKey | None] = lambda _key: None,
        uploads: Path = Path("uploads"),
        grants: Grants | None = None,
        install_url: str = "",
    ) -> None:
        """Be one agent.

        `bots` are heard by id, `home` knows the place of a conversation, since an issue gets
        another name when it moves to another team, and `uploads` is where files are laid.
        `grants` keeps what an admin consents to at `install_url`.
        """
        self.agent = agent
        self.service_name = adapter_name(events.SERVICE, agent)
        self.paths: tuple[str, ...] = (f"/webhooks/{events.SERVICE}/{agent}",)
        if is_default:
            self.paths += (f"/webhooks/{events.SERVICE}",)
        self._bots = frozenset(bots)
        self._home = home
        self._uploads = uploads
        self._secret = credentials.webhook_secret
        self._clock = clock
        self._tokens = Tokens(
            self.service_name,
            credentials,
            api_url,
            clock,
            vault,
            grants=grants,
            install_url=install_url,
        )
        self._api = LinearApi(api_url, self._tokens, clock)
        self._activities = Activities(self.service_name, self._api)
        self._made = Made(self._api, uploads)
        self._etiquette = Etiquette(self.service_name, self._api)
        self._standing = Standing(self.service_name, self._api, self._tokens, clock, credentials)
        self._members = Members(self._api, clock)
        self._presence = Presence()
        self._missed = asyncio.Event()
        self._tasks = Tasks(f"linear of {agent}")

    @property
    def trouble(self) -> str:
        """Why Linear cannot be reached just now; empty if it can."""
        return self._standing.refused or self._api.trouble

    # What comes in.

    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Check that Linear sent this to this agent just now.

        Raises:
            DeliveryRefused: it did not.
        """
        try:
            return webhook.verify(
                self.service_name,
                self._secret.get_secret_value(),
                headers,
                body,
                now=now,
                identity=self._standing.identity,
            )
        except webhook.DeliveryStale:
            # Linear repeats what it could not deliver, as the same bytes: something was missed.
            self._missed.set()
            raise

    async def prepare(self) -> None:
        """Wait until it is known who the agent is: before, nobody can tell what is for it."""
        await self._standing.identified()

    def parse(self, delivery: Delivery) -> Heard | None:
        """Understand a delivery.

        Raises:
            DeliveryUnreadable: it makes no sense, or is for somebody else.
        """
        if self._standing.identity is not None:
            webhook.check_stored(delivery, self._standing.identity)
        heard = events.heard(delivery, self.agent)
        if isinstance(heard, events.Revoked):
            self._tasks.start(self._standing.look(), name="a look at the token")
            return None
        if heard is None:
            return None
        key = SessionKey(events.SERVICE, heard.external, self.agent)
        heard = replace(heard, place=self._home(key) or heard.place)
        if heard.speaker.id not in self._bots:
            return heard  # who else may not is told so: their session waits for a word
        return replace(heard, speaker=replace(heard.speaker, kind="bot"))

    async def listen(self, take: Take) -> None:
        """Look for what was missed, now and whenever something was, and show signs of life.

        Raises:
            ServiceRefused: Linear does not know the agent as it is set up.
        """
        await self._standing.known()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_for_missed(take))
            group.create_task(self._show_life())

    # How the application gets into a workspace.

    def consent_address(self, back: str, state: str) -> str | None:
        """Say where an admin consents to the installation; None if it needs none."""
        return self._tokens.consent_address(back, state)

    async def install(self, code: str, back: str) -> str:
        """Take what an admin brings back from there; returns who the agent is and where.

        Raises:
            ServiceRefused: Linear gives nothing for it.
            PostError: not now, or not with what it gives.
        """
        found = await self._standing.install(code, back)
        self._missed.set()
        return found

    async def _look_for_missed(self, take: Take) -> None:
        while True:
            self._missed.clear()
            try:
                await self._take_missed(take)
            except (PostError, ServiceRefused) as error:
                logger.warning("%s cannot look for what it missed: %s", self.service_name, error)
                if not isinstance(error, PostRejected):
                    self._missed.set()
            await self._clock.sleep(LOOK_SECONDS)
            await self._missed.wait()

    async def _take_missed(self, take: Take) -> None:
        identity = self._standing.identity
        assert identity is not None, "nobody looks before the agent is known"
        cursor: str | None = None
        prompts = wanted_prompts(self._clock.now())
        while True:
            data = await self._api.call("sessions", after=cursor, prompts=prompts)
            page = Page(data, self.service_name, identity, self._clock.now())
            for delivery in page.deliveries():
                await take(delivery)
            cursor = page.next
            if cursor is None:
                return

    async def _show_life(self) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            for session in self._presence.silent(self._clock.monotonic()):
                try:
                    await self._show_life_in(session)
                except (PostError, ServiceRefused) as error:
                    logger.info("%s could show no sign of life: %s", self.service_name, error)

    async def _show_life_in(self, session: str) -> None:
        if not self._presence.is_busy(session):
            return  # its turn ended while another session was shown life in
        async with self._presence.at(session, self._clock.monotonic()).line:
            # Whoever held the line may have said the last word.
            if session in self._presence.silent(self._clock.monotonic()):
                words = {"type": "thought", "body": STILL_AT_IT}
                await self._act(session, uuid4().hex, Activity("life", words, ephemeral=True))

    # Who may.

    def is_shared(self, _key: SessionKey) -> bool:
        """Tell that nobody else can: a Linear agent session is of one agent alone."""
        return False

    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:  # noqa: ARG002 - the port's
        """Let members of the organisation; guests, apps and strangers are none.

        Raises:
            SpeakerUnknown: Linear does not talk to the agent now, so it could answer nobody either.
        """
        try:
            async with asyncio.timeout(WHO_SECONDS):
                return await self._members.refusal(speaker.id)
        except (PostDelayed, ServiceRefused, TimeoutError) as error:
            raise SpeakerUnknown(str(error) or "Linear does not answer") from error

    async def earlier(self, key: SessionKey, before: str) -> Sequence[Earlier]:  # noqa: ARG002 - the port's
        """Tell what is attached to the issue: what was said before Linear sends along.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        if key.external.startswith(events.UNREAD):
            return ()
        found = events.attached(await self._api.call("attachments", id=key.external))
        return () if found is None else (found,)

    async def suggestions(
        self, key: SessionKey, repositories: Sequence[Repository]
    ) -> Sequence[Suggestion]:
        """Have Linear tell which repositories an issue may be about.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
            ServiceRefused: not with these credentials.
        """
        issue = (await self._api.call("duties", id=key.external))["agentSession"]["issue"]
        if issue is None:
            return ()
        candidates = [
            {"hostname": urlsplit(each.url).hostname or "", "repositoryFullName": each.name}
            for each in repositories
        ]
        found = await self._api.call(
            "suggestions", issue=issue["id"], session=key.external, candidates=candidates
        )
        return [
            Suggestion(each["repositoryFullName"], each["confidence"])
            for each in found["issueRepositorySuggestions"]["suggestions"]
        ]

    async def fetch(self, file: File) -> File:
        """Lay a file into the uploads, or a note in its place that says why it is not there."""
        return await fetched(self._api, self._uploads, file)

    # What goes out.

    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Say it in the session: Linear has no way to tell one person alone.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        content = PostContent(kind="notice", note=f"{speaker.name}: {words}")
        await self.send(PostSend("create", key, uuid4().hex, content))

    async def send(self, post: PostSend) -> PostSent:
        """Show a post: what is new in it since it was shown last.

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

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for the activity that a post begins with."""
        if target.external.startswith(events.UNREAD):
            return None
        name = activity_id(marker, render.FIRST)
        return PostSent(name) if await self._activities.exists(name) else None

    async def close(self) -> None:
        """Let go of the connection."""
        await self._tasks.close()
        await self._api.close()

    async def _send_turn(self, post: PostSend) -> None:
        session, now = post.target.external, self._clock.monotonic()
        ended = post.op == "finish" or post.content.state in {"done", "failed", "stopped"}
        work = self._work(post, now)
        if post.content.files:
            made = await self._made.shown(post.content.files)
            post = replace(post, content=replace(post.content, files=made))
        if post.op in {"replace", "append"}:
            if self._presence.at(session, now).asks:
                return  # anything that follows a question would take it away
            if now < work.due:
                raise PostDelayed("progress is shown less often", retry_after=work.due - now)
        for step in render.steps(post.content, work.shown):
            await self._take_step(post, step.call)
            work.shown = step.shown
        work.showed(now)
        if ended:
            self._presence.leave(session, post.marker)
            self._made.forget(post.content.files)
        elif post.op == "create":
            conversation = self._presence.at(session, now)
            self._tasks.start(self._begin_politely(post, conversation), name=str(post.target))
            await asyncio.sleep(0)  # so that it is the next on the line, before any further post

    async def _begin_politely(self, post: PostSend, conversation: Conversation) -> None:
        """Move the issue while the agent starts; after the last word nothing is moved."""
        async with conversation.line:
            if post.marker in conversation.turns:
                await self._etiquette.begins(post)

    async def _take_step(self, post: PostSend, call: Activity | Change) -> None:
        """Make one call; only the first and the last word of a turn are worth a failure."""
        session = post.target.external
        try:
            match call:
                case Activity():
                    await self._act(session, post.marker, call)
                case Change():
                    if fields := await self._etiquette.new_to(session, call.fields):
                        await self._api.call("update_session", id=session, input=fields)
                    await self._etiquette.shows(post, call)
        except (LinearFailed, LinearRefused) as error:
            gone = isinstance(error, LinearRefused) and error.missing
            if gone or (isinstance(call, Activity) and call.name in {render.FIRST, render.LAST}):
                raise
            logger.warning("%s left something out in %s: %s", self.service_name, post.target, error)

    def _work(self, post: PostSend, now: float) -> Work:
        """Give what is known of a turn; of one that an earlier run began, only its end is new."""
        conversation = self._presence.at(post.target.external, now)
        work = conversation.turns.get(post.marker)
        if work is None:
            shown = Shown()
            if post.op == "finish":
                shown = Shown(calls=frozenset(tool.call for tool in post.content.tools))
            work = conversation.turns[post.marker] = Work(now, shown)
        return work

    async def _send_other(self, post: PostSend) -> None:
        session, now = post.target.external, self._clock.monotonic()
        busy = self._presence.is_busy(session)
        for step in render.steps(post.content, Shown(), busy=busy):
            assert isinstance(step.call, Activity), "only turns change the session"
            await self._act(session, post.marker, step.call)
        if post.content.kind == "ask" and post.content.state == "open":
            self._presence.at(session, now).asks.add(post.marker)
        else:
            self._presence.leave(session, post.marker)

    async def _act(self, session: str, marker: str, activity: Activity) -> None:
        await self._activities.create(session, marker, activity)
        self._presence.spoke(session, self._clock.monotonic())
