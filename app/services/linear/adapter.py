"""The adapter of one agent on Linear: an app user that people delegate issues to and mention."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

from typing_extensions import override

from app.clock import Clock
from app.config.network import HostPattern
from app.config.process import Sealer
from app.core.adapters import Adapter, Source
from app.core.files.attachments import download
from app.errors import PostDelayed, ServiceRefused, SpeakerUnknown
from app.model.inbound import Begun, Chore, Delivery, Gap, Heard
from app.model.keys import PlaceKey, SessionKey, adapter_name
from app.model.outcomes import Sighting
from app.model.posts import PostContent, PostSend, PostSent
from app.model.types import Earlier, File, Speaker
from app.model.workspaces import Repository, Suggestion
from app.services.common.people import Members
from app.services.common.webhooks import DeliveryStale, Take
from app.services.linear import events, webhook, wording
from app.services.linear.api import LinearApi, LinearRefused
from app.services.linear.auth import Grants, LinearTokens
from app.services.linear.events import add_subject, read_subject
from app.services.linear.identity import (
    CACHE_SECONDS,
    OUTAGE_SECONDS,
    Identification,
    look_up_member,
)
from app.services.linear.manifest import install_address
from app.services.linear.posting import Posting
from app.services.linear.settings import NAME, LinearCredentials, LinearSettings
from app.services.linear.sightings import look_up
from app.services.service import BuildContext, Presence
from app.vault import Vault

logger = logging.getLogger(__name__)

WHO_SECONDS: Final = 9.0
"""Time limit to look up a person: a little less than the core waits for it."""
PACE_SECONDS: Final = 5.0
"""Linear counts calls per hour; people who look see the plan and the last action."""
FIRST_WORD_SECONDS: Final = 10.0
"""After this Linear calls the agent unresponsive, so waiting longer gains nothing."""
LONGEST_RETRY_SECONDS: Final = 8 * 3600.0
"""How old a repeated webhook can be: Linear's last try is after six hours."""
SESSIONS: Final = "sessions"


class LinearAdapter(Adapter):
    """The adapter port for one Linear agent."""

    def __init__(
        self,
        agent: str,
        credentials: LinearCredentials,
        *,
        api_url: str,
        clock: Clock,
        vault: Vault,
        pictures: Sequence[HostPattern] = (),
        paths: tuple[str, ...] = (),
        bots: Collection[str] = (),
        home: Callable[[SessionKey], PlaceKey | None] = lambda _key: None,
        uploads: Path = Path("uploads"),
        grants: Grants | None = None,
        install_url: str = "",
        proactive: bool = False,
    ) -> None:
        """Create the adapter of one agent.

        `bots` are the ids of allowed bots, `home` returns the place of a conversation, since an
        issue is renamed when it moves to another team, and `uploads` is the folder for files.
        `grants` stores what an admin consents to at `install_url`. A `proactive` agent opens a
        session on an issue that people name elsewhere.
        """
        super().__init__(
            events.SERVICE,
            agent,
            pace=PACE_SECONDS,
            paths=paths,
            signature_header="Linear-Signature",
            first_word_seconds=FIRST_WORD_SECONDS,
        )
        self._bots = frozenset(bots)
        self._proactive = proactive
        self._home = home
        self._uploads = uploads
        self._secret = credentials.webhook_secret
        self._clock = clock
        self._tokens = LinearTokens(
            self.service_name,
            credentials,
            api_url,
            clock,
            vault,
            grants=grants,
            install_url=install_url,
        )
        self._api = LinearApi(api_url, self._tokens, clock, vault, pictures)
        self._posting = Posting(self.service_name, self._api, clock, uploads)
        self._identification = Identification(
            self.service_name, self._api, self._tokens, clock, credentials
        )
        look_up = partial(look_up_member, self._api)
        self._members = Members(
            look_up, clock, seconds=CACHE_SECONDS, outage_seconds=OUTAGE_SECONDS
        )

    @property
    @override
    def trouble(self) -> str:
        """Why Linear cannot be reached now; empty if it can."""
        return self._identification.refused or self._api.trouble

    # Inbound.

    @override
    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Check that Linear sent this to this agent just now.

        Raises:
            DeliveryRefused: it did not; what Linear sent late starts a catch-up.
        """
        try:
            return webhook.verify(
                self.service_name,
                self._secret.get_secret_value(),
                headers,
                body,
                now=now,
                identity=self._identification.identity,
            )
        except DeliveryStale as stale:
            # Linear resends what it could not deliver as the same bytes: something was missed.
            self.gaps.append(Gap(stale.sent_at or now - LONGEST_RETRY_SECONDS, now, "hook"))
            raise

    @override
    async def prepare(self) -> None:
        """Wait for the agent's identity: without it no delivery can be matched to the agent."""
        await self._identification.wait()

    @override
    def parse(self, delivery: Delivery) -> Heard | Chore | None:
        """Parse a delivery.

        Raises:
            DeliveryUnreadable: it is not a Linear event, or is for another agent.
        """
        if self._identification.identity is not None:
            webhook.check_stored(delivery, self._identification.identity)
        heard = events.heard(delivery, self.agent)
        if isinstance(heard, events.Revoked | events.AccessChanged):
            return Chore(heard)
        if heard is None:
            return None
        key = SessionKey(events.SERVICE, heard.external, self.agent)
        heard = replace(heard, place=self._home(key) or heard.place)
        if heard.speaker.id not in self._bots:
            return heard  # others get a refusal: their session waits for an answer
        return replace(heard, speaker=replace(heard.speaker, kind="bot"))

    @override
    async def do_chore(self, chore: Chore) -> None:
        """Check a token that was revoked; look again after a change of who may do what."""
        if isinstance(chore.metadata, events.Revoked):
            await self._identification.check_token()
            return
        # Who may use the agent may differ, and a team that it can see now may have called it.
        logger.info("%s: its access to teams has changed", self.service_name)
        self._members.forget()
        self._look_back()

    @override
    async def listen(self, take: Take) -> None:
        """Identify the agent, and send heartbeats.

        Raises:
            ServiceRefused: Linear does not accept the agent's settings.
        """
        del take  # its events arrive as webhooks
        await self._identification.identify()
        await self._posting.show_life()

    @override
    async def sources(self) -> Sequence[Source]:
        """List what the agent's sessions show: new ones, and what people wrote in them."""
        find = partial(
            webhook.find_missed,
            self.service_name,
            self._api,
            self._clock,
            self._identification.wait,
        )
        return [Source(SESSIONS, find)]

    def _look_back(self) -> None:
        """Look for what was said to the agent where it had no access until now."""
        now = self._clock.now()
        self.gaps.append(Gap(now - webhook.LOOK_BACK_SECONDS, now, "access"))

    # Installation.

    @override
    def consent_address(self, back: str, state: str) -> str | None:
        """Return the address where an admin consents to the installation; None if not needed."""
        return self._tokens.consent_address(back, state)

    @override
    async def install(self, code: str, back: str) -> str:
        """Install with the code that Linear gave an admin; returns the agent and its workspace.

        Raises:
            ServiceRefused: Linear issues no token for it.
            PostError: not now, or Linear refuses the new token.
        """
        found = await self._identification.install(code, back)
        self._look_back()
        return found

    @override
    async def gather(self, heard: Heard) -> Heard:
        """Check whether the person who delegated an issue wrote it: if not, its text is data.

        Where a session is about no issue, read what it is about.

        Raises:
            SpeakerUnknown: Linear does not say now.
        """
        about = heard.metadata
        begins = heard.message_id == heard.external
        is_task = isinstance(about, events.LinearIssue) and about.task is not None
        if not is_task and not (about is None and begins):
            return heard
        try:
            async with asyncio.timeout(WHO_SECONDS):
                if is_task:
                    author = await self._api.call("author", id=heard.external)
                    return events.in_own_words(heard, author)
                subject = read_subject(await self._api.call("subject", id=heard.external))
                return heard if subject is None else add_subject(heard, subject)
        except LinearRefused as error:
            logger.warning("cannot read what %s is about: %s", heard.external, error)
            return heard
        except (PostDelayed, ServiceRefused, TimeoutError) as error:
            raise SpeakerUnknown(str(error) or "Linear does not answer") from error

    # Access and context.

    @override
    def is_shared(self, _key: SessionKey) -> bool:
        """Return False: a Linear agent session belongs to one agent."""
        return False

    @override
    async def absence(self, heard: Heard) -> str | None:
        """Say how to call another agent: it needs a Linear agent session of its own."""
        return wording.OWN_SESSION

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        """Allow members of the organisation, not guests, apps or strangers.

        Raises:
            SpeakerUnknown: Linear does not answer the agent now.
        """
        try:
            async with asyncio.timeout(WHO_SECONDS):
                return (await self._members.find(speaker.id)).refusal
        except (PostDelayed, ServiceRefused, TimeoutError) as error:
            raise SpeakerUnknown(str(error) or "Linear does not answer") from error

    @override
    async def look_up(self, link: str) -> Sighting | None:
        """Ask Linear about an issue or a comment."""
        me = await self._identification.wait()
        return await look_up(self._api, link, me.user)

    @override
    async def earlier(self, key: SessionKey, before: str) -> Sequence[Earlier]:
        """List the issue's attachments; Linear sends the earlier comments itself.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        if key.external.startswith(events.UNREAD):
            return ()
        found = events.list_attachments(await self._api.call("attachments", id=key.external))
        return () if found is None else (found,)

    @override
    async def suggestions(
        self, key: SessionKey, repositories: Sequence[Repository]
    ) -> Sequence[Suggestion]:
        """Ask Linear which repositories an issue may be about.

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

    @override
    async def fetch(self, file: File) -> File:
        """Download a file to the uploads; if that fails, a note that says why takes its place."""
        chunks = self._api.download(events.upload_path(file))
        return await download(file, chunks, self._uploads, service="Linear")

    # Outbound.

    @override
    async def accompany(self, begun: Begun) -> SessionKey | None:
        """Open a session on the issue that people named, if the operator wants that.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
            ServiceRefused: not with these credentials.
        """
        if not self._proactive:
            return None
        session = await self._posting.accompany(self._identification, begun)
        return None if session is None else SessionKey(events.SERVICE, session, self.agent)

    @override
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Post it in the session: Linear cannot tell one person alone.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        content = PostContent(kind="notice", note=f"{speaker.name}: {words}")
        await self.send(PostSend("create", key, uuid4().hex, content))

    @override
    async def send(self, post: PostSend) -> PostSent:
        """Show what is new in a post.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        return await self._posting.send(post)

    @override
    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for the activity that a post begins with."""
        return await self._posting.find(target, marker)

    @override
    async def close(self) -> None:
        """Stop all tasks and close the connection."""
        await self._posting.close()
        await self._api.close()


def build(context: BuildContext) -> Presence:
    """Build one adapter per agent."""
    configuration, stores = context.configuration, context.stores
    sealer = Sealer(context.secret_key)

    def home(key: SessionKey) -> PlaceKey | None:
        session = stores.sessions.find(key)
        if session is None:
            return None
        # A session about work that began elsewhere is a place of its own.
        return session.place if session.place.service == NAME else PlaceKey(NAME, key.external)

    adapters = [
        LinearAdapter(
            agent,
            credentials,
            api_url=configuration.settings_of(LinearSettings).api_url,
            clock=context.clock,
            vault=context.vault,
            pictures=context.pictures.get(agent, ()),
            paths=configuration.webhook_paths(NAME, agent),
            bots=[who.id for who in configuration.settings.allowed_bots if who.service == NAME],
            home=home,
            uploads=context.uploads,
            grants=Grants(adapter_name(NAME, agent), stores.sealed, sealer),
            install_url=install_address(configuration.base_url, agent),
            proactive=configuration.settings_of(LinearSettings).proactive,
        )
        for agent, credentials in configuration.credentials_of(LinearCredentials).items()
    ]
    return Presence(adapters)
