"""Joins the parts into a bridge and runs it; the only place that knows them all.

Order at start: lock, store, port, and only then what is heavy or slow. Order at the end: no new
requests, running turns get their grace time, then every process, then the store.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from app import logs
from app.agents.catalog import known_agents
from app.agents.isolation import Shelter, shelter_all, try_shelter
from app.agents.registry import Registry
from app.children.hardening import make_undumpable
from app.children.leftovers import ProcessIdentity, kill_leftovers
from app.config import BridgeSecrets, Configuration, ensure_secrets, forget_process_secrets
from app.core.clock import SystemClock, persist
from app.core.consent.ledger import Ledger
from app.core.directory import Directory
from app.core.feed import Feed
from app.core.intake.access import Access
from app.core.intake.listeners import Listeners
from app.core.intake.reader import Intake
from app.core.outbox import Outbox
from app.core.ports import (
    Adapter,
    AgentLauncher,
    AgentListener,
    Clock,
    ListeningAdapter,
    OpenedSession,
    PullRequests,
    TokenSource,
    WebhookAdapter,
)
from app.core.repo_provider import Folders, RepoProvider
from app.core.session_manager import SessionManager
from app.core.tasks import Tasks
from app.core.turns.agents import LiveAgents
from app.core.turns.background import Surroundings
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.runner import Workshop
from app.core.types import Session
from app.core.workspaces import Author
from app.errors import RepositoryError, StoreUnavailable
from app.repos.checkouts import GitCheckouts
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.shoes import Shoes
from app.server.application import build
from app.server.door import Door
from app.server.front import Front
from app.server.listener import Listener
from app.server.metrics import Metrics
from app.server.parts import AgentCard, Check, MissingAgent, Parts
from app.services.web.adapter import WebAdapter
from app.store.database import Database, locked
from app.store.retention import forget
from app.store.stores import Stores
from app.vault import Vault

logger = logging.getLogger(__name__)

RETENTION_SECONDS = 6 * 3600.0
"""How often old rows are looked for."""
READY_SECONDS = 3.0
"""How long the store may take to say that it can write: its busy timeout and a little."""
OUTBOX_GRACE_SECONDS = 2.0
"""What is left for final posts once all turns have ended; the rest goes out at the next start."""

CHECK_COMMAND = "Check its command in AGENTS_JSON."

Wrap = Callable[[Stores], Stores]


def adapters(base: Foundation) -> Sequence[Adapter]:
    """Make the adapters of all agents on the services that run."""
    return [WebAdapter(name) for name in base.configuration.agents]


class LateLauncher:
    """A launcher whose import waits until the port listens: ACP's models take 0.9 s."""

    def __init__(self, make: Callable[[], AgentLauncher]) -> None:
        self._make = make
        self._launcher: AgentLauncher | None = None
        self._lock = asyncio.Lock()

    async def prepare(self) -> AgentLauncher:
        """Import what is needed, in a thread."""
        async with self._lock:
            if self._launcher is None:
                self._launcher = await asyncio.to_thread(self._make)
            return self._launcher

    async def open(
        self, session: Session, workspace: Path, listener: AgentListener
    ) -> OpenedSession:
        """Start the agent's process and its conversation."""
        return await (await self.prepare()).open(session, workspace, listener)

    async def close(self) -> None:
        """End every process that is still being started or ended."""
        if self._launcher is not None:
            await self._launcher.close()


@dataclass(frozen=True, slots=True)
class Foundation:
    """What a bridge stands on."""

    configuration: Configuration
    secrets: BridgeSecrets
    vault: Vault
    database: Database
    stores: Stores
    shelters: dict[str, Shelter]
    clock: Clock
    metrics: Metrics


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
        self.ledger = Ledger(stores.asks, stores.sessions, self._outbox, self.feed, base.vault)
        self._uploads = configuration.data_dir / "uploads"
        directory = _directory(configuration)
        self._checkouts = self._make_checkouts(tokens)
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
            authors=_authors(configuration),
            tokens=tokens,
            pulls=pulls,
        )
        self._live = LiveAgents(
            self._launcher,
            workspaces,
            stores.sessions,
            clock,
            base.vault,
            max_processes=configuration.limits.max_processes,
            idle_seconds=_idle_seconds(configuration),
        )
        shop = Workshop(
            turns=stores.turns,
            sessions=stores.sessions,
            transcript=stores.transcript,
            posts=stores.posts,
            live=self._live,
            workspaces=workspaces,
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
            speaking_of=_speaking_of,
            turn_seconds=60.0 * configuration.limits.turn_minutes,
        )
        self._engine = EmbeddedTurnEngine(shop, max_turns=configuration.limits.max_turns)
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
        self.intake = Intake(
            stores.deliveries,
            stores.decisions,
            self.manager,
            self.ledger,
            adapters=self._adapters,
            access=_access(configuration),
            untagged=configuration.untagged_replies,
            clock=clock,
        )
        self._listeners = Listeners(
            [each for each in adapters if isinstance(each, ListeningAdapter)], self.intake, clock
        )
        self.cards = _cards(configuration, base.shelters, self._adapters)
        self.door = Door(
            stores.logins,
            clock,
            base.vault,
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
            hosts=_hosts(base.configuration),
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
            missing=_missing(base.configuration),
            workspaces=self._workspaces,
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

    def _make_checkouts(self, tokens: TokenSource | None) -> GitCheckouts:
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
            Mirrors(configuration.data_dir / "mirrors", git, tokens, person),
            tokens=tokens,
            vault=self._base.vault,
            person=person,
        )

    def _make_launcher(self) -> AgentLauncher:
        from app.acp.launch import AgentLaunch  # noqa: PLC0415 - see LateLauncher
        from app.acp.launcher import AcpLauncher  # noqa: PLC0415 - see LateLauncher
        from app.acp.peer import AgentTimeouts  # noqa: PLC0415 - see LateLauncher

        configuration = self._base.configuration
        registry = Registry(configuration, known_agents())
        launches: dict[str, AgentLaunch] = {}
        for name, shelter in self._base.shelters.items():
            entry, program = registry.get(name), registry.program(name)
            launches[name] = AgentLaunch(
                name=name,
                argv=entry.command,
                home=shelter.home,
                environment=shelter.environment,
                sandbox=shelter.sandbox,
                confinement=shelter.confinement,
                mode=entry.mode,
                model=entry.model,
                options=entry.options,
                auth=entry.auth,
                meta=program.session_meta if program else {},
                sees=self._workspaces.visible,
                install=f"Install it: {program.install}" if program else CHECK_COMMAND,
                settle_seconds_before_load=program.quirks.load_after_seconds if program else 0,
            )
        return AcpLauncher(
            launches,
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
            logger.debug("forgot %d old rows", gone)
            await self._reap(base.clock.now() - 86400.0 * days)
            await base.clock.sleep(RETENTION_SECONDS)

    async def _reap(self, before: float) -> None:
        """Throw away clones that nobody used for as long as history is kept."""
        try:
            for words in await self._workspaces.reap(before=before):
                logger.warning("%s", words)
        except RepositoryError:
            logger.exception("old clones could not be looked through")


@contextmanager
def founded(
    configuration: Configuration, *, clock: Clock | None = None, wrap: Wrap | None = None
) -> Iterator[Foundation]:
    """Lay the foundation: lock, secrets, shelters, store.

    Raises:
        DataDirInUse: another bridge holds DATA_DIR.
        ConfigurationError: an agent cannot be isolated as it must be.
        StoreUnavailable: the database cannot be used.
    """
    clock = clock or SystemClock()
    with locked(configuration.data_dir):
        secrets = ensure_secrets(configuration)
        vault = Vault([*configuration.secret_values(), *secrets.values()])
        logs.configure(configuration.log_level, configuration.log_format, vault)
        make_undumpable()
        forget_process_secrets(configuration)
        shelters = shelter_all(configuration)
        database = Database(configuration.database_url)
        database.open()
        try:
            stores = Stores.on(database, clock.now)
            yield Foundation(
                configuration=configuration,
                secrets=secrets,
                vault=vault,
                database=database,
                stores=wrap(stores) if wrap is not None else stores,
                shelters=shelters,
                clock=clock,
                metrics=Metrics(),
            )
        finally:
            database.close()


async def serve(bridge: Bridge, port: socket.socket, *, listening: Callable[[], None]) -> None:
    """Serve until told to stop; TERM and Ctrl-C end politely, a second one at once."""
    tasks = Tasks("start")
    failed: list[BaseException] = []

    async def start() -> None:
        try:
            await bridge.start()
        except Exception as error:  # noqa: BLE001 - told to whoever called, once the port is closed
            failed.append(error)
            leave()

    def listens() -> None:
        listening()
        tasks.start(start(), name="bridge")

    def leave() -> None:
        bridge.feed.close()
        if listener.should_exit:
            bridge.hurry()
        listener.leave()

    listener = Listener(bridge.application(), listens)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave)
    try:
        await listener.serve(sockets=[port])
    finally:
        await tasks.close()
        await bridge.stop()
    if failed:
        raise failed[0]


def bridge_id(configuration: Configuration) -> str:
    """Name the bridge of a DATA_DIR in the markers of its processes."""
    return hashlib.sha256(str(configuration.data_dir.resolve()).encode()).hexdigest()[:16]


def _speaking_of(session: Session) -> AbstractContextManager[None]:
    return logs.bind(agent=session.key.agent, session=str(session.key))


def _directory(configuration: Configuration) -> Directory:
    return Directory(
        git_url=configuration.github_git_url,
        home=configuration.home,
        data_dir=configuration.data_dir,
        default=configuration.github_repo,
        channels=configuration.slack_channel_repos,
        teams=configuration.linear_team_repos,
    )


def _authors(configuration: Configuration) -> dict[str, Author]:
    """Name the author of each agent's commits where no platform gives it an identity."""
    return {
        name: Author(entry.display_name or name, f"{name}@noreply.agent-bridge.invalid")
        for name, entry in configuration.agents.items()
    }


def _idle_seconds(configuration: Configuration) -> dict[str, float]:
    usual = configuration.limits.idle_minutes
    return {
        name: 60.0 * (usual if entry.idle_minutes is None else entry.idle_minutes)
        for name, entry in configuration.agents.items()
    }


def _access(configuration: Configuration) -> Access:
    return Access(
        users=frozenset(f"{who.service}:{who.id}" for who in configuration.allowed_users),
        only_users=configuration.allowed_users_only,
        bots=frozenset(f"{who.service}:{who.id}" for who in configuration.allowed_bots),
    )


def _hosts(configuration: Configuration) -> set[str]:
    """List the Host headers that mean this bridge."""
    port = configuration.port
    own = {"127.0.0.1", "localhost", "[::1]", configuration.host}
    return {f"{host}:{port}" for host in own} | {urlsplit(configuration.base_url).netloc}


def _missing(configuration: Configuration) -> Sequence[MissingAgent]:
    """List the known agents that could be on this machine and are not."""
    present = {entry.driver for entry in configuration.agents.values()}
    return [
        MissingAgent(program.title, program.install)
        for program in known_agents()
        if program.discover
        and program.name not in present
        and shutil.which(program.command[0], path=configuration.path) is None
    ]


def _cards(
    configuration: Configuration, shelters: Mapping[str, Shelter], adapters: Mapping[str, Adapter]
) -> dict[str, AgentCard]:
    registry = Registry(configuration, known_agents())
    cards: dict[str, AgentCard] = {}
    for entry in registry:
        program = registry.program(entry.name)
        cards[entry.name] = AgentCard(
            name=entry.name,
            display_name=registry.display_name(entry.name),
            description=entry.description or (program.description if program else ""),
            default=entry.name == configuration.default_agent,
            command=entry.command[0],
            isolation=shelters[entry.name].words,
            examples=program.examples if program else (),
            services=tuple(
                sorted(
                    name.partition(":")[0]
                    for name, adapter in adapters.items()
                    if adapter.agent == entry.name
                )
            ),
        )
    return cards
