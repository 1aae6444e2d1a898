"""One bridge: its parts, joined, and their life.

Order at start: lock, store, port, and only then what is heavy or slow. Order at the end: no new
requests, running turns get their grace time, then every process, then the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from app import logs
from app.agents.isolation import try_shelter
from app.children.leftovers import ProcessIdentity, kill_leftovers
from app.core.adapters import Adapter, InstallableAdapter, ListeningAdapter, WebhookAdapter
from app.core.attachments import Attachments
from app.core.clock import persist
from app.core.consent.ledger import Ledger
from app.core.directory import Directory, Target
from app.core.feed import Feed
from app.core.folders import Folders
from app.core.intake.listeners import Listeners
from app.core.intake.reader import Intake
from app.core.outbox import Outbox
from app.core.outgoing import Outgoing
from app.core.ports import AgentLauncher, PullRequests, RepositoryCatalog, TokenSource
from app.core.proposals import Proposals
from app.core.renames import Renames
from app.core.repo_provider import RepoProvider
from app.core.session_manager import SessionManager
from app.core.tasks import Tasks
from app.core.turns.agents import LiveAgents
from app.core.turns.background import Surroundings
from app.core.turns.choice import RepositoryChoice
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.workshop import Workshop
from app.core.types import Session
from app.errors import RepositoryError, StoreUnavailable
from app.main.cards import cards_of, missing_agents
from app.main.foundation import Foundation, bridge_id
from app.main.launching import LateLauncher, launches
from app.main.terms import (
    access_of,
    authors_of,
    directory_of,
    fetched_as,
    file_link_of,
    hosts_of,
    idle_seconds,
    own_limits,
    page_of,
    place_prompts,
    terms_of,
    variables_of,
)
from app.repos.checkouts import GitCheckouts
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.shoes import Shoes
from app.server.application import build
from app.server.door import Door
from app.server.front import Front
from app.server.installations import Installations
from app.server.pages import uploads
from app.server.parts import Check, Parts
from app.store.retention import DAY_SECONDS, forget, named_files, unread_deliveries

logger = logging.getLogger(__name__)

RETENTION_SECONDS = 6 * 3600.0
"""How often old rows are looked for."""
READY_SECONDS = 3.0
"""How long the store may take to say that it can write: its busy timeout and a little."""
OUTBOX_GRACE_SECONDS = 2.0
"""What is left for final posts once all turns have ended; the rest goes out at the next start."""


class Bridge:
    """One bridge: its parts, joined, and their life."""

    def __init__(
        self,
        base: Foundation,
        adapters: Sequence[Adapter],
        *,
        timeouts: Mapping[str, float] | None = None,
        tokens: TokenSource | None = None,
        pulls: PullRequests | None = None,
        catalog: RepositoryCatalog | None = None,
    ) -> None:
        """Join the parts; `timeouts` are seconds by step, where they differ from the usual."""
        configuration, stores, clock = base.configuration, base.stores, base.clock
        self._base = base
        self._timeouts = dict(timeouts or {})
        self._tasks = Tasks("bridge")
        self._started = asyncio.Event()
        self._hurried = False
        self._patience: asyncio.Timeout | None = None
        self._adapters = {adapter.service_name: adapter for adapter in adapters}
        self._launcher = LateLauncher(self._make_launcher)
        self.feed = Feed(stores.transcript, stores.sessions)
        self._outbox = Outbox(stores.posts, self._adapters, clock, base.vault, base.metrics)
        self.ledger = Ledger(
            stores.asks,
            stores.sessions,
            self._outbox,
            self.feed,
            base.vault,
            clock=clock,
            submit=lambda session: self._engine.submit(session),
        )
        self._uploads = configuration.data_dir / "uploads"
        directory = directory_of(configuration)
        variables = variables_of(configuration, directory)
        self._checkouts = self._make_checkouts(tokens, directory, variables)
        self._workspaces = workspaces = RepoProvider(
            Folders(configuration.data_dir / "workspaces", self._uploads),
            self._checkouts,
            stores.checkouts,
            stores.decisions,
            stores.sessions,
            stores.transcript,
            directory=directory,
            clock=clock,
            vault=base.vault,
            ship={name: entry.ship for name, entry in configuration.agents.items()},
            authors=authors_of(configuration),
            tokens=tokens,
            pulls=pulls,
            names=stores.names,
            variables=variables,
        )
        self._live = LiveAgents(
            self._launcher,
            workspaces,
            stores.sessions,
            clock,
            base.vault,
            max_processes=configuration.limits.max_processes,
            idle_seconds=idle_seconds(configuration),
            of_agent=own_limits(configuration, "max_processes"),
        )
        shop = Workshop(
            turns=stores.turns,
            sessions=stores.sessions,
            transcript=stores.transcript,
            posts=stores.posts,
            live=self._live,
            workspaces=workspaces,
            choice=RepositoryChoice(
                stores.decisions,
                stores.sessions,
                directory,
                clock,
                adapters=self._adapters,
                catalog=catalog,
            ),
            attachments=Attachments(self._adapters),
            outgoing=Outgoing(
                workspaces,
                self._uploads,
                stores.posts,
                self._adapters,
                base.vault,
                link=file_link_of(configuration),
            ),
            surroundings=Surroundings(
                stores.transcript,
                self._adapters,
                base.vault,
                messages=configuration.place_context,
            ),
            ledger=self.ledger,
            outbox=self._outbox,
            feed=self.feed,
            clock=clock,
            counters=base.metrics,
            vault=base.vault,
            verbosity=lambda place: (
                stores.decisions.place(place).verbosity or configuration.verbosity
            ),
            page=page_of(configuration),
            place_prompt=place_prompts(configuration),
            adapters=self._adapters,
            speaking_of=_speaking_of,
            terms={name: terms_of(configuration, name) for name in configuration.agents},
        )
        self._engine = EmbeddedTurnEngine(
            shop,
            max_turns=configuration.limits.max_turns,
            of_agent=own_limits(configuration, "max_turns"),
        )
        self.manager = SessionManager(
            stores.decisions,
            stores.sessions,
            stores.turns,
            engine=self._engine,
            live=self._live,
            outbox=self._outbox,
            feed=self.feed,
            clock=clock,
            directory=directory,
        )
        proposals = Proposals(
            stores.proposals,
            self._checkouts,
            self.ledger,
            self._outbox,
            self.feed,
            adapters=self._adapters,
            clock=clock,
            offer_seconds=configuration.limits.ask_hours * 3600,
        )
        self.intake = Intake(
            stores.deliveries,
            stores.decisions,
            self.manager,
            self.ledger,
            adapters=self._adapters,
            access=access_of(configuration),
            untagged=configuration.untagged_replies,
            clock=clock,
            proposals=proposals,
            renames=Renames(
                stores.names,
                self._checkouts,
                adapters=adapters,
                directory=directory,
                clock=clock,
            ),
        )
        self._listeners = Listeners(
            [each for each in adapters if isinstance(each, ListeningAdapter)], self.intake, clock
        )
        self.cards = cards_of(configuration, base.shelters, self._adapters)
        self.door = Door(
            stores.logins,
            clock,
            base.vault,
            base_url=configuration.base_url,
            secret_key=base.secrets.secret_key,
        )
        self._installs = Installations(
            {
                name: adapter
                for name, adapter in self._adapters.items()
                if isinstance(adapter, InstallableAdapter)
            },
            stores.sealed,
            clock,
            base_url=configuration.base_url,
            secret_key=base.secrets.secret_key,
        )

    def application(self) -> Front:
        """Build what serves HTTP: the front for webhooks, the application behind it."""
        base = self._base
        hooks = [a for a in self._adapters.values() if isinstance(a, WebhookAdapter)]
        application = build(self.parts(), [path for hook in hooks for path in hook.paths])
        front = Front(
            application,
            self.intake.take,
            base.clock,
            hosts=hosts_of(base.configuration),
            started=self._started,
        )
        front.open(hooks)
        return front

    def parts(self) -> Parts:
        """Hand out what people reach, over HTTP or from a terminal."""
        base = self._base
        return Parts(
            agents=self.cards,
            intake=self.intake,
            manager=self.manager,
            ledger=self.ledger,
            feed=self.feed,
            sessions=base.stores.sessions,
            turns=base.stores.turns,
            transcript=base.stores.transcript,
            deliveries=base.stores.deliveries,
            posts=base.stores.posts,
            clock=base.clock,
            metrics=base.metrics,
            door=self.door,
            admin_token=base.secrets.admin_token.get_secret_value(),
            uploads=self._uploads,
            ready=self.ready,
            missing=missing_agents(base.configuration),
            workspaces=self._workspaces,
            installs=self._installs,
            troubles=self._listeners.troubles,
        )

    async def start(self, *, resume: bool = True) -> None:
        """End what the last run left, go on with its turns and posts if told to, begin to read."""
        await self._end_leftovers()
        self._tasks.start(self._launcher.prepare(), name="import of ACP")
        await self._engine.start()
        if resume:
            # Before any turn goes on: its post may have arrived although nobody noted that.
            await self._outbox.start()
            self._engine.resume()
            self.ledger.start()
            self._tasks.start(self._probe(), name="isolation probe")
            self._tasks.start(self._forget(), name="retention")
            self._listeners.start()
        self.intake.start()
        self._started.set()

    async def stop(self) -> None:
        """Give running turns their grace time, then end everything; safe at any moment."""
        grace = self._base.configuration.limits.grace_seconds
        logger.info("stopping: running turns get up to %g s, a second signal ends them now", grace)
        self.feed.close()
        await self._listeners.close()
        await self.intake.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if self._hurried else None) as self._patience:
                await self._engine.drain(grace=grace)
        self._patience = None
        await self._engine.drain(grace=0)
        await self.ledger.close()
        await self._live.close()
        await self._launcher.close()
        await self._checkouts.close_all()
        await self._outbox.close(grace=OUTBOX_GRACE_SECONDS)
        await self._tasks.close()
        for adapter in self._adapters.values():
            await adapter.close()

    def hurry(self) -> None:
        """Give running turns no more time; they go on at the next start."""
        self._hurried = True
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def ready(self) -> Sequence[Check]:
        """Say of each part whether it works."""
        troubles = self._listeners.troubles()
        return [
            Check("started", self._started.is_set()),
            await self._store_check(),
            *(Check(name, ok=not words, words=words) for name, words in troubles.items()),
        ]

    async def _store_check(self) -> Check:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._base.database.writer.run(lambda _connection: None)
        except (StoreUnavailable, TimeoutError) as error:
            return Check("store", ok=False, words=str(error) or "it does not answer")
        return Check("store", ok=True)

    async def _end_leftovers(self) -> None:
        stores = self._base.stores
        known = await stores.processes.leftovers()
        identities = [ProcessIdentity(each.group, each.started, each.marker) for each in known]
        sweep = await asyncio.to_thread(
            kill_leftovers, identities, bridge=bridge_id(self._base.configuration)
        )
        if sweep.killed:
            logger.warning("ended what the last run left behind: %s", ", ".join(sweep.killed))
        for record in known:
            await persist(self._base.clock, stores.processes.ended, record.marker)

    def _make_checkouts(
        self,
        tokens: TokenSource | None,
        directory: Directory,
        variables: Mapping[Target, Mapping[str, str]],
    ) -> GitCheckouts:
        configuration = self._base.configuration
        person = configuration.surroundings
        git = Git(person, bridge_id(configuration))
        shoes = {
            name: Shoes(shelter.sandbox, shelter.confinement, replace(shelter, own={}).environment)
            for name, shelter in self._base.shelters.items()
        }
        return GitCheckouts(
            configuration.data_dir / "gates",
            shoes,
            git,
            Mirrors(
                configuration.data_dir / "mirrors",
                git,
                tokens,
                person,
                shallow=fetched_as("shallow", configuration, directory),
                partial=fetched_as("partial", configuration, directory),
            ),
            tokens=tokens,
            vault=self._base.vault,
            person=person,
            variables=variables,
        )

    def _make_launcher(self) -> AgentLauncher:
        from app.acp.launcher import AcpLauncher  # noqa: PLC0415 - see LateLauncher
        from app.acp.peer import AgentTimeouts  # noqa: PLC0415 - see LateLauncher

        configuration = self._base.configuration
        return AcpLauncher(
            launches(
                configuration,
                self._base.shelters,
                sees=self._workspaces.visible,
                outgoing=self._workspaces.outgoing,
                knows=self._workspaces.variables,
            ),
            self._base.stores.processes,
            self._base.clock,
            self._base.metrics,
            bridge=bridge_id(configuration),
            timeouts=AgentTimeouts(**self._timeouts),
        )

    async def _probe(self) -> None:
        """Find out how each agent is really kept apart, and say so."""
        for name, shelter in self._base.shelters.items():
            tried = await try_shelter(self._base.configuration, shelter)
            self.cards[name] = replace(self.cards[name], isolation=tried.words)
            logger.info("%s: %s", name, tried.words)

    async def _forget(self) -> None:
        base = self._base
        while True:
            days = base.configuration.limits.retention_days
            gone = await persist(base.clock, forget, base.database, now=base.clock.now(), days=days)
            files = await self._forget_uploads(before=base.clock.now() - days * DAY_SECONDS)
            logger.debug("forgot %d old rows and %d attachments", gone, files)
            await self._reap(base.clock.now() - days * DAY_SECONDS)
            await base.clock.sleep(RETENTION_SECONDS)

    async def _reap(self, before: float) -> None:
        """Throw away clones that nobody used for as long as history is kept."""
        try:
            for words in await self._workspaces.reap(before=before):
                logger.warning("%s", words)
        except RepositoryError:
            logger.exception("old clones could not be looked through")

    async def _forget_uploads(self, *, before: float) -> int:
        """Remove files that were attached to nothing: a crash may come before their message."""
        database = self._base.database
        named, unread = await named_files(database), await unread_deliveries(database)
        return await asyncio.to_thread(uploads.forget, self._uploads, named, unread, before=before)


def _speaking_of(session: Session) -> AbstractContextManager[None]:
    return logs.bind(agent=session.key.agent, session=str(session.key))
