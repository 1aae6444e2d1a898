"""One agent's presence on GitHub: reads its App's webhooks, checks access, comments and reacts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from gidgethub import GitHubException
from typing_extensions import override

from app.clock import Clock
from app.config.network import parse_host
from app.config.process import Sealer
from app.core.adapters import Adapter, Source
from app.errors import DeliveryRefused, DeliveryUnreadable, PostDelayed, PostError
from app.markdown.hidden import strip
from app.model.inbound import Changed, Chore, Delivery, Heard, Inbound, Naming, News
from app.model.keys import PlaceKey, SessionKey, adapter_name
from app.model.outcomes import Sighting
from app.model.posts import Cleaned, PostSend, PostSent
from app.model.proposals import Checked
from app.model.types import ActivePlace, Earlier, File, Speaker
from app.services.common.people import PastAgents
from app.services.github import events, render, reviews, wording
from app.services.github.api import GithubApi
from app.services.github.auth import Accounts, GitHubApps
from app.services.github.checks import read_checks
from app.services.github.conversation import Files, Hosts, files_in, purge, read_earlier
from app.services.github.forge import GithubForge
from app.services.github.messages import EventReader
from app.services.github.missed import Conversations
from app.services.github.names import BOT, SERVICE, GitHubIdentity, Name, Spot
from app.services.github.payloads import (
    Comment,
    GitHubAccount,
    GitHubEvent,
    GitHubRepository,
    GitHubReview,
)
from app.services.github.posting import CommentPoster
from app.services.github.settings import NAME, GithubCredentials, GithubSettings
from app.services.github.sightings import look_up
from app.services.github.transport import Gone, retry_github
from app.services.github.webhook import EVENT, AppWebhook, DeliveryRecovery
from app.services.service import BuildContext, Presence
from app.store.sessions import SessionStore
from app.vault import Vault

logger = logging.getLogger(__name__)


T = TypeVar("T")

PACE_SECONDS = 5.0
"""Twelve edits a minute at most: people watch, and several turns fit under GitHub's limits."""
ALLOWED = {"admin", "maintain", "write"}
"""Who may make an agent act: people who could push the change themselves."""


async def no_places(_since: float) -> Sequence[ActivePlace]:
    """List no conversations."""
    return ()


@dataclass(frozen=True, slots=True)
class App:
    """What an adapter needs besides its agent."""

    hook: AppWebhook
    paths: tuple[str, ...]
    api: GithubApi
    accounts: Accounts
    """The people whom settings name by login."""
    host: str = ""
    """The host that repository numbers and names belong to."""
    name_now: Callable[[int], str | None] = lambda _number: None
    """Returns the current name of the repository with a number, if it is known."""
    link_of: Callable[[SessionKey], str] = lambda _key: ""
    """Returns the address of a session's open pull request, if it has one."""
    uploads: Path = Path("uploads")
    """Where files are stored."""
    web_url: str = "https://github.com"
    remember: Callable[[str], Awaitable[None]] | None = None
    """Notes the login of the App's bot."""
    active: Callable[[float], Awaitable[Sequence[ActivePlace]]] = no_places
    """Lists the conversations in use since a time."""


class GitHubAdapter(Adapter):
    """The adapter port, with webhooks, for one GitHub App."""

    def __init__(self, agent: str, app: App, directory: GitHubApps, clock: Clock) -> None:
        super().__init__(
            SERVICE,
            agent,
            pace=PACE_SECONDS,
            paths=app.paths,
            signature_header="X-Hub-Signature-256",
        )
        self._app = app
        self._api = app.api
        self._directory = directory
        self._clock = clock
        self._poster = CommentPoster(agent, app.api, directory, clock, app.link_of)
        self._hosts = Hosts(app.web_url)
        self._files = Files(app.api, app.uploads, self._hosts)
        self._parsed: tuple[Delivery, GitHubEvent] | None = None
        self._sweep = DeliveryRecovery(
            agent, app.hook, app.api, directory, clock, app.accounts, app.remember
        )
        self._conversations = Conversations(
            self.service_name,
            app.api,
            directory,
            clock,
            active=app.active,
            failed=self._sweep.find,
        )

    # Hearing.

    @override
    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Check that GitHub sent this, to this App."""
        return self._app.hook.verify(headers, body, now)

    @property
    @override
    def trouble(self) -> str:
        """Why GitHub's events do not arrive just now."""
        return self._sweep.trouble

    @override
    async def listen(self, take: Callable[[Delivery], Awaitable[None]]) -> None:
        """Look up the App's identity; its events arrive as webhooks."""
        del take
        await self._sweep.introduce()

    @override
    async def sources(self) -> Sequence[Source]:
        """List the App's log of deliveries, and the conversations that its agent works in."""
        return await self._conversations.sources()

    @override
    async def prepare(self) -> None:
        """Wait until the identities of our agents, and the accounts they work for, are known."""
        await self._directory.wait(self.agent)
        await self._directory.wait_for_all()
        await self._api.installations.wait()

    @override
    def parse(self, delivery: Delivery) -> Inbound | None:
        """Parse and interpret an event of an installation that the App works for."""

        def name_of(repository: GitHubRepository) -> str:
            # An event may be older than a rename.
            return self._app.name_now(repository.id) or repository.full_name

        event = self._event(delivery).rename(name_of)
        inbound = events.interpret(delivery.headers.get(EVENT, ""), event, self._reader)
        name = Name.parse(inbound.message_id) if isinstance(inbound, Heard) else None
        if not isinstance(inbound, Heard) or name is None:
            return inbound
        files = files_in(inbound.text, Spot.parse(inbound.external), name, self._hosts)
        return replace(inbound, files=files)

    def _event(self, delivery: Delivery) -> GitHubEvent:
        """Parse an event of an installation that the App works for.

        It is parsed once, although `naming` and `parse` both ask for it.
        """
        if self._parsed is None or self._parsed[0] is not delivery:
            event = events.parse(delivery.headers.get(EVENT, ""), delivery.body)
            self._parsed = (delivery, event)
        self._api.installations.check(self._parsed[1])
        return self._parsed[1]

    @property
    def _reader(self) -> EventReader:
        return EventReader(self.agent, self._directory.us)

    @override
    def naming(self, delivery: Delivery) -> Naming | None:
        """Return the repository that an event is about, and its name."""
        try:
            return events.name_repository(self._event(delivery), self._app.host)
        except (DeliveryRefused, DeliveryUnreadable):
            return None

    @override
    def renamed(self, old: str) -> None:
        """Drop the tokens for a name that may belong to another repository from now on."""
        self._api.forget(old)

    @override
    async def gather(self, heard: Heard) -> Heard:
        """Read the whole of a review: its text and its line comments are one message."""
        if not isinstance(heard.metadata, reviews.InReview):
            return heard
        spot = Spot.parse(heard.external)
        try:
            number = heard.metadata.review
            review, comments = await self._briefly(lambda: self._api.review(spot, number))
        except PostError as error:
            logger.warning("cannot read review %d: %s", number, error)
            return replace(heard, context=f"{heard.context}\n\n{wording.COMMENTS_NOT_READ}".strip())
        whole = reviews.complete(heard, review, comments, self._directory.us)
        parts = [(Name("review", review.id), review.body)]
        parts += [(Name("review-comment", each.id), each.body) for each in comments]
        files = (files_in(strip(body or "").text, spot, name, self._hosts) for name, body in parts)
        return replace(whole, files=tuple(chain.from_iterable(files)))

    @override
    async def reread(self, changed: Changed) -> Changed | None:
        """Read the whole of a review of which a piece changed."""
        piece = changed.metadata
        if not isinstance(piece, reviews.Piece):
            return changed
        read: tuple[GitHubReview | None, list[Comment]] = (None, [])
        try:
            spot = Spot.parse(changed.external)
            read = await self._briefly(lambda: self._api.review(spot, piece.review))
        except Gone:
            logger.info("review %d is gone", piece.review)
        return reviews.complete_change(changed, piece, *read, self._reader)

    async def _briefly(self, call: Callable[[], Awaitable[T]]) -> T:
        """Read what a message depends on, with a few retries."""
        return await retry_github(self._clock, call, brief=True)

    @override
    async def checked(self, news: News) -> Checked | None:
        """Read how the checks of the agent's own pull request ended."""
        try:
            return await read_checks(self._api, news, self._directory.us)
        except (GitHubException, httpx.HTTPError) as error:
            raise PostDelayed(f"cannot read the checks of {news.branch}: {error}") from error

    @override
    async def do_chore(self, chore: Chore) -> None:
        """Answer people who want the agent's checks to run again."""
        if isinstance(chore.metadata, events.Rerun):
            await self._poster.rerun(chore.metadata)

    @override
    def is_group(self, account: str) -> bool:
        """Tell whether an account is a team, written as `organization/team`."""
        return "/" in account

    @override
    def listed_names(self, speaker: Speaker) -> Collection[str]:
        """Name a person by number, and by the logins of the settings that mean this account."""
        number = speaker.number
        return (number, *self._app.accounts.logins_of(int(number))) if number else ()

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        """Ask GitHub whether a person may write to the repository."""
        repository = Spot.parse(place.name).repository
        permission = await self._briefly(lambda: self._api.permission(repository, speaker.id))
        if permission in ALLOWED:
            return None
        return wording.WRITE_ACCESS.format(repository=repository)

    @override
    async def look_up(self, link: str) -> Sighting | None:
        """Ask GitHub about an issue, a pull request, a comment or a review."""
        await self.prepare()  # a mention is known by our agents
        return await look_up(self._api, link, self._app.web_url, self._reader.us)

    @override
    async def earlier(self, key: SessionKey, before: str) -> Sequence[Earlier]:
        """Read what was said on an issue or pull request before a message, oldest first."""
        spot = Spot.parse(key.external)
        us, hosts = self._directory.us, self._hosts
        return await read_earlier(self._api, spot, before, self.agent, us, hosts=hosts)

    @override
    async def fetch(self, file: File) -> File:
        """Store a file in the uploads, or a note with the reason why it could not be fetched."""
        return await self._files.fetch(file)

    @override
    async def purge(self, key: SessionKey, vault: Vault) -> Cleaned:
        """Take a text out of the App's comments on an issue or pull request."""
        await self._directory.wait(self.agent)
        spot = Spot.parse(key.external)

        def is_ours(account: GitHubAccount | None) -> bool:
            return self._directory.us.agent(account) == self.agent

        return await purge(self._api, spot, vault, self._clock, is_ours)

    # Answering.

    @override
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Address one person in a public comment: GitHub has no private messages."""
        await self._api.say(Spot.parse(key.external), render.whisper(speaker.name, words))

    @override
    async def send(self, post: PostSend) -> PostSent:
        """React, write or change a comment, and show it in the check of a pull request."""
        return await self._poster.send(post)

    @override
    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for a comment that may have been written although GitHub did not answer."""
        return await self._poster.find(target, marker)

    @override
    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()


async def _in_use(sessions: SessionStore, agent: str, since: float) -> Sequence[ActivePlace]:
    return await sessions.active(NAME, agent, since=since)


def build(context: BuildContext) -> Presence:
    """Make one adapter per App, and the forge."""
    configuration, clock, stores = context.configuration, context.clock, context.stores
    owned, settings = (
        configuration.credentials_of(GithubCredentials),
        configuration.settings_of(GithubSettings),
    )
    remembered = PastAgents(NAME, stores.sealed, clock)
    directory = GitHubApps(owned, remembered.all(context.absent(owned)))
    host = urlsplit(configuration.settings.git_url).netloc
    sealer = Sealer(context.secret_key)
    users = [who.id for who in configuration.settings.allowed_users if who.service == NAME]
    named = (*users, *chain.from_iterable(given.installations for given in owned.values()))
    logins = [each for each in named if not each.isdigit()]  # a number needs no lookup
    accounts = Accounts(logins, host, stores.sealed, sealer, clock)

    def link_of(key: SessionKey) -> str:
        session = stores.sessions.find(key)
        found = stores.proposals.latest(session.id) if session is not None else None
        return found.link if found is not None and not found.outcome else ""

    own = [*filter(None, [parse_host(urlsplit(settings.web_url).netloc)])]
    made: list[Adapter] = []
    apis: dict[str, GithubApi] = {}
    for agent, given in owned.items():
        secrets = filter(None, (given.webhook_secret, given.webhook_secret_before))
        app = App(
            hook=AppWebhook(
                adapter=adapter_name(NAME, agent),
                app_id=given.app_id,
                secrets=tuple(secret.get_secret_value().encode() for secret in secrets),
            ),
            paths=configuration.webhook_paths(NAME, agent),
            api=GithubApi.of(
                given,
                clock,
                context.vault,
                api_url=settings.api_url,
                pictures=[*own, *context.pictures.get(agent, ())],
            ),
            accounts=accounts,
            host=host,
            name_now=lambda number: stores.names.of(host, number),
            link_of=link_of,
            uploads=context.uploads,
            web_url=settings.web_url,
            remember=partial(remembered.note, agent),
            active=partial(_in_use, stores.sessions, agent),
        )
        if given.bot_login is not None:
            directory.introduce(GitHubIdentity(agent, given.bot_login.removesuffix(BOT) + BOT))
        made.append(GitHubAdapter(agent, app, directory, clock))
        apis[agent] = app.api
    link, git_url = stores.sessions.link, configuration.settings.git_url
    return Presence(made, GithubForge(apis, directory, clock, git_url=git_url, link=link))
