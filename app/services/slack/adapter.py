"""The adapter of one agent on Slack: its own app, listening on a socket, answering in threads."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
from typing_extensions import override

from app.clock import Clock
from app.core.adapters import Adapter, Source
from app.core.files.attachments import download
from app.errors import PostError, PostRejected, ServiceRefused
from app.model.inbound import Changed, Delivery, Gap, Heard, Inbound
from app.model.keys import PlaceKey, SessionKey
from app.model.outcomes import Sighting
from app.model.posts import Cleaned, PostSend, PostSent
from app.model.types import Earlier, File, Speaker
from app.retry import Retries
from app.services.common.people import PastAgents
from app.services.common.webhooks import Take
from app.services.service import BuildContext, Presence
from app.services.slack import events, text, wording
from app.services.slack.api import TRANSIENT, SlackApi, SlackRefused
from app.services.slack.cards import FINAL
from app.services.slack.missed import Conversations, Threads
from app.services.slack.people import (
    NOT_THERE,
    RETRY_PAUSES,
    Colleagues,
    Completion,
    People,
    Seal,
    Shortcuts,
    SlackIdentity,
    identify,
)
from app.services.slack.posting import PACE_SECONDS, Poster
from app.services.slack.settings import NAME, SlackCredentials, SlackSettings
from app.services.slack.sightings import look_up
from app.services.slack.socket import PING_SECONDS, Socket
from app.services.slack.status import Reactions, ThreadStatuses
from app.services.slack.text import escape
from app.services.slack.writing import Sharer, purge
from app.tasks import Tasks
from app.vault import Vault

logger = logging.getLogger(__name__)
T = TypeVar("T")
Said = TypeVar("Said", Heard, Changed)

RECENT_MESSAGES: Final = 256
"""Messages to remember, so that their mentions need no look-up."""
ABSENCE_SECONDS: Final = 2.0
"""Time limit to check whether the agent is in the channel of a mention."""
STATUS_SECONDS: Final = 3600.0
"""How long Slack shows a status that is not ended."""


@dataclass(frozen=True, slots=True)
class SlackApp:
    """One agent's Slack app: tokens, address and allowed bots."""

    agent: str
    bot_token: str
    app_token: str
    suffix: str = ""
    """The suffix of its settings' names."""
    base_url: str = "https://slack.com/api/"
    bots: Collection[str] = ()
    """The bots that may speak to it, by id."""
    vault: Vault = field(default_factory=Vault, repr=False)
    """Secrets to redact from calls."""
    remember: Callable[[str], Awaitable[None]] | None = None
    """Notes its user id."""


class SlackAdapter(Adapter):
    """The adapter port for Slack."""

    def __init__(
        self,
        app: SlackApp,
        *,
        colleagues: Colleagues,
        seal: Seal,
        threads: Threads,
        uploads: Path,
        clock: Clock,
        title: Callable[[SessionKey], str] = lambda _key: "",
        pace: float = PACE_SECONDS,
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        """Create the adapter of an agent.

        `title` names the session of a thread.
        """
        super().__init__(events.SERVICE, app.agent, pace=pace, shares_files=True)
        self._trouble = wording.NOT_CONNECTED
        self._app = app
        self.colleagues = colleagues
        """The agents of this bridge on Slack."""
        self._threads = threads
        self._uploads = uploads
        self._clock = clock
        self._api = SlackApi(app.base_url, app.bot_token, app.vault, clock)
        self._socket = Socket(app.agent, app.suffix, app.app_token, ping_seconds)
        self._reader = events.FrameReader(app.agent, frozenset(app.bots), seal.open)
        self._people = people = People(self._api, clock)
        self._completion = Completion(people, self._reader, colleagues, self._me)
        self._poster = Poster(self._api, seal, clock, pace, app.agent)
        self._sharer = Sharer(self._api, uploads)
        self._status = ThreadStatuses(self._api, clock, app.agent, title)
        self._reactions = Reactions(self._api, clock, app.agent)
        self._shortcuts = Shortcuts(self._api)
        self._tasks = Tasks(f"slack of {app.agent}")
        self._identity: SlackIdentity | None = None
        self._asking = asyncio.Lock()
        self._messages: deque[tuple[str, str]] = deque(maxlen=RECENT_MESSAGES)
        self._heard: dict[str, float] = {}
        """When something was last said in a channel."""

    @override
    def parse(self, delivery: Delivery) -> Inbound | None:
        """Parse a Slack frame; None if it is irrelevant."""
        return self._reader.read(delivery)

    @override
    def is_group(self, account: str) -> bool:
        """Tell whether an id is that of a user group."""
        return account.startswith(text.USER_GROUP)

    @override
    async def reach(self, person: str) -> SessionKey | None:
        """Open the direct message with a person; None for a group, or if the app may not."""
        if self.is_group(person):
            return None
        try:
            opened = await self._api.call("conversations.open", users=person)
        except SlackRefused as error:
            logger.info("%s: no direct message with %s: %s", self.service_name, person, error)
            return None
        external = events.external(opened["channel"]["id"], "")
        return SessionKey(events.SERVICE, external, self.agent)

    @override
    def is_shared(self, key: SessionKey) -> bool:
        """Tell whether other agents can answer as well: not in a direct message."""
        return not events.is_direct(events.channel_and_thread(key.external)[0])

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        """Allow full members of the workspace."""
        if (absent := self._shortcuts.refusal(place)) is not None:
            return absent

        async def look_up() -> str | None:
            me = await self._me()
            return (await self._people.person(speaker.id, me.team)).refusal

        return await self._retry(look_up)

    @override
    async def gather(self, heard: Heard) -> Heard:
        """Add the names and files that were not known when a message was stored."""
        if isinstance(heard.metadata, events.Origin):
            await self._shortcuts.check(heard.metadata.frame)
        return await self._complete(heard)

    @override
    async def reread(self, changed: Changed) -> Changed:
        """Add the names that were not known when a change was stored."""
        return await self._complete(changed)

    async def _complete(self, said: Said) -> Said:
        if not isinstance(said.metadata, events.Origin):
            return said
        found = await self._completion.complete(said.metadata)
        return found if isinstance(found, type(said)) else said

    @override
    async def name_speaker(self, speaker: Speaker) -> Speaker:
        """Look up the name of a person."""
        names = await self._completion.names([speaker.id])
        return replace(speaker, name=names.get(speaker.id, speaker.name))

    @override
    async def absence(self, heard: Heard) -> str | None:
        """Say that the app is not in a channel, or not part of a direct message."""
        channel, thread = events.channel_and_thread(heard.place.name)
        if events.is_direct(channel):
            return wording.DIRECT_WITH_ANOTHER
        if (channel, heard.message_id) in self._messages:
            return None  # it got the same message
        try:
            async with asyncio.timeout(ABSENCE_SECONDS):
                await self._api.read("conversations.replies", channel=channel, ts=thread, limit=1)
        except (PostError, TimeoutError) as error:
            if isinstance(error, SlackRefused) and error.error in NOT_THERE:
                return wording.NOT_IN_CHANNEL
            logger.info("%s", error)  # if it is absent, its answer fails
        return None

    @override
    async def look_up(self, link: str) -> Sighting | None:
        """Ask Slack about the message of a permalink."""
        await self.colleagues.wait_for_all()  # a mention is known by our agents
        return await look_up(self._api, link, self.colleagues.agents)

    @override
    async def earlier(self, key: SessionKey, before: str) -> Sequence[Earlier]:
        """Read what people said in a thread before a message; agents' messages are known."""
        channel, thread = events.channel_and_thread(key.external)
        me = await self._me()
        until = before or f"{self._clock.now():.6f}"
        found = [
            message
            for message in await self._api.replies(channel, thread, latest=until)
            if message["ts"] < until and message.get("user") not in self.colleagues.agents
        ]
        frames = [{"payload": {"event": message}} for message in found]
        users = dict.fromkeys(user for frame in frames for user in events.users_in(frame))
        names = await self._people.names(users, me.team)
        known = text.FrameContext(self.colleagues.agents, names, me.home)
        return [text.said_earlier(message, known) for message in found]

    @override
    async def purge(self, key: SessionKey, vault: Vault) -> Cleaned:
        """Take a text out of the app's messages and files in a thread."""
        cleaned = await purge(self._api, key, vault, await self._me(), self._retry)
        # The title came from the first words; the store has them without the text by now.
        await self._retry(lambda: self._status.rename(key))
        return cleaned

    @override
    async def fetch(self, file: File) -> File:
        """Download a Slack file to the uploads; if that fails, a note takes its place."""
        chunks = self._api.download(text.file_id(file))
        return await download(file, chunks, self._uploads, service="Slack")

    @override
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Tell one person something that no one else in the thread sees."""
        channel, thread = events.channel_and_thread(key.external)
        shown: dict[str, Any] = {"channel": channel, "thread_ts": thread, "user": speaker.id}
        await self._api.call("chat.postEphemeral", **shown, text=escape(words))

    @override
    async def send(self, post: PostSend) -> PostSent:
        """Show a post in its thread."""
        content, target = post.content, post.target
        if content.kind == "files":
            return await self._sharer.send(post)
        is_turn, is_over = content.kind == "turn", content.state in FINAL
        if is_turn and not is_over and content.state != "queued":
            self._status.begin(target, content.asker, waits=content.state == "waiting")
        if content.kind == "ask":
            self._status.ask(target, post.marker, is_open=bool(content.offered))
        try:
            sent = await self._poster.send(post, await self._me())
        except PostRejected:
            self._status.end(target)
            raise
        if is_turn:
            self._reactions.mark(post)
        if is_turn and is_over:
            self._status.end(target)
        return sent

    @override
    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for a post in its thread by its marker."""
        return await self._poster.find(target, marker)

    @property
    @override
    def trouble(self) -> str:
        """Why Slack's events do not arrive now; empty if they do."""
        return self._trouble

    @override
    async def listen(self, take: Take) -> None:
        """Take the app's events."""
        try:
            me = await self._me()
            used = await self._threads.active(self._clock.now() - STATUS_SECONDS)
            await self.colleagues.wait_for_all()

            async def keep(frame: dict[str, Any], raw: bytes) -> None:
                # Every edit of an answer comes back as an event; those need not be stored.
                if events.speaker_of(frame) not in self.colleagues.agents:
                    await take(self._delivery(me, frame, raw))

            def opened(heard: float | None) -> None:
                self._trouble = ""
                if heard is None:
                    self._status.tidy(place.key for place in used)
                else:
                    self.gaps.append(Gap(heard, self._clock.now(), "socket"))

            await self._socket.run(self._api.client, keep, opened)
        finally:
            self._trouble = wording.RECONNECTING

    @override
    async def sources(self) -> Sequence[Source]:
        """List the channels that the app is in, and the threads that its agent works in."""
        me = await self._me()
        await self.colleagues.wait_for_all()

        def make(event: text.Event, name: str, sent_at: float) -> Delivery:
            payload = {"event": event, "event_id": f"{events.MISSED}{name}"}
            frame = {"type": "events_api", "payload": payload}
            return replace(self._delivery(me, frame, orjson.dumps(frame)), sent_at=sent_at)

        conversations = Conversations(self._api, self._clock, self._threads, me, make)
        return await conversations.sources(self._heard)

    @override
    def adopt(self, twin: Adapter) -> bool:
        """Keep the socket, and what was heard on it."""
        assert isinstance(twin, SlackAdapter)
        self.colleagues = self._completion.colleagues = twin.colleagues
        if self._identity is not None:
            self.colleagues.add(self.agent, self._identity)
        return True

    @override
    async def close(self) -> None:
        """Stop all tasks and close the connection."""
        for each in (self._tasks, self._poster, self._status, self._reactions, self._api):
            await each.close()

    async def _me(self) -> SlackIdentity:
        async with self._asking:
            if self._identity is None:
                try:
                    self._identity = await identify(self._api, self.agent, self._app.suffix)
                except ServiceRefused:
                    self.colleagues.refuse(self.agent)
                    raise
                self.colleagues.add(self.agent, self._identity)
                if self._app.remember is not None:
                    await self._app.remember(self._identity.user)
            return self._identity

    def _delivery(self, me: SlackIdentity, frame: text.Event, raw: bytes) -> Delivery:
        """Convert a frame to the form in which it is stored, without a call to Slack."""
        payload = frame.get("payload") or {}
        event = payload.get("event") or {}
        if event.get("type") == "message":
            self._messages.append((str(event.get("channel")), str(event.get("ts"))))
            self._heard[str(event.get("channel"))] = self._clock.now()
        return Delivery(
            adapter=self.service_name,
            delivery_id=payload.get("event_id") or frame["envelope_id"],
            signature=None,
            headers=text.FrameContext(self.colleagues.agents, home=me.home).headers(),
            body=raw,
            received_at=self._clock.now(),
        )

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call Slack, and retry a few times while it does not answer."""
        retries = Retries(self._clock, RETRY_PAUSES)
        while True:
            try:
                return await call()
            except TRANSIENT as error:
                await retries.wait(error)


def build(context: BuildContext) -> Presence:
    """Build one adapter per app; the apps of one bridge know each other."""
    configuration, sessions = context.configuration, context.stores.sessions
    owners = configuration.credentials_of(SlackCredentials)
    remembered = PastAgents(NAME, context.stores.sealed, context.clock)
    colleagues = Colleagues(owners, remembered.all(context.absent(owners)))
    seal = Seal(context.secret_key.get_secret_value())
    bots = frozenset(who.id for who in configuration.settings.allowed_bots if who.service == NAME)

    def title(key: SessionKey) -> str:
        found = sessions.find(key)
        return found.title if found is not None else ""

    def adapter(name: str, credentials: SlackCredentials) -> SlackAdapter:
        return SlackAdapter(
            SlackApp(
                agent=name,
                bot_token=credentials.bot_token.get_secret_value(),
                app_token=credentials.app_token.get_secret_value(),
                suffix=configuration.agents[name].setting(""),
                base_url=configuration.settings_of(SlackSettings).api_url,
                bots=bots,
                vault=context.vault,
                remember=partial(remembered.note, name),
            ),
            colleagues=colleagues,
            seal=seal,
            threads=Threads(
                active=lambda since: sessions.active(NAME, name, since=since),
                waiting=lambda: sessions.waiting_messages(NAME, name),
            ),
            title=title,
            uploads=context.uploads,
            clock=context.clock,
        )

    return Presence([adapter(name, credentials) for name, credentials in owners.items()])
