"""One bridge: how its parts start, what people reach of them, and how they end.

Order at start: lock, store, port, and only then what is heavy or slow. Order at the end: no new
requests, running turns get their grace time, then every process, then the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from app.agents.isolation import try_shelter
from app.core.adapters import Adapter, InstallableAdapter, WebhookAdapter
from app.core.ports import PullRequests, RepositoryCatalog, TokenSource
from app.core.tasks import Tasks
from app.errors import StoreUnavailable
from app.main.cards import cards_of, missing_agents
from app.main.foundation import Foundation
from app.main.joining import Joined
from app.main.terms import hosts_of
from app.main.upkeep import Upkeep
from app.server.application import build
from app.server.door import Door
from app.server.front import Front
from app.server.installations import Installations
from app.server.parts import Check, Parts

logger = logging.getLogger(__name__)

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
        configuration = base.configuration
        self._base = base
        self._joined = joined = Joined(
            base, adapters, timeouts=timeouts or {}, tokens=tokens, pulls=pulls, catalog=catalog
        )
        self.feed = joined.feed
        self.intake = joined.intake
        self._upkeep = Upkeep(base, joined.workspaces, joined.uploads)
        self._tasks = Tasks("bridge")
        self._started = asyncio.Event()
        self._hurried = False
        self._patience: asyncio.Timeout | None = None
        self.cards = cards_of(configuration, base.shelters, joined.adapters)
        self.door = Door(
            base.stores.logins,
            base.clock,
            base.vault,
            base_url=configuration.base_url,
            secret_key=base.secrets.secret_key,
        )
        self._installs = Installations(
            {
                name: adapter
                for name, adapter in joined.adapters.items()
                if isinstance(adapter, InstallableAdapter)
            },
            base.stores.sealed,
            base.clock,
            base_url=configuration.base_url,
            secret_key=base.secrets.secret_key,
        )

    def application(self) -> Front:
        """Build what serves HTTP: the front for webhooks, the application behind it."""
        base = self._base
        hooks = [a for a in self._joined.adapters.values() if isinstance(a, WebhookAdapter)]
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
            reception=self._joined.reception,
            manager=self._joined.manager,
            ledger=self._joined.ledger,
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
            uploads=self._joined.uploads,
            ready=self.ready,
            missing=missing_agents(base.configuration),
            workspaces=self._joined.workspaces,
            installs=self._installs,
            troubles=self._joined.listeners.troubles,
        )

    async def start(self, *, resume: bool = True) -> None:
        """End what the last run left, go on with its turns and posts if told to, begin to read."""
        await self._upkeep.end_leftovers()
        self._tasks.start(self._joined.launcher.prepare(), name="import of ACP")
        await self._joined.engine.start()
        if resume:
            # Before any turn goes on: its post may have arrived although nobody noted that.
            await self._joined.outbox.start()
            self._joined.engine.resume()
            self._joined.ledger.start()
            self._tasks.start(self._probe(), name="isolation probe")
            self._tasks.start(self._upkeep.forget(), name="retention")
            self._joined.listeners.start()
        self.intake.start()
        self._started.set()

    async def stop(self) -> None:
        """Give running turns their grace time, then end everything; safe at any moment."""
        grace = self._base.configuration.limits.grace_seconds
        logger.info("stopping: running turns get up to %g s, a second signal ends them now", grace)
        self.feed.close()
        await self._joined.listeners.close()
        await self.intake.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if self._hurried else None) as self._patience:
                await self._joined.engine.drain(grace=grace)
        self._patience = None
        await self._joined.engine.drain(grace=0)
        await self._joined.ledger.close()
        await self._joined.live.close()
        await self._joined.launcher.close()
        await self._joined.checkouts.close_all()
        await self._joined.outbox.close(grace=OUTBOX_GRACE_SECONDS)
        await self._tasks.close()
        for adapter in self._joined.adapters.values():
            await adapter.close()

    def hurry(self) -> None:
        """Give running turns no more time; they go on at the next start."""
        self._hurried = True
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def ready(self) -> Sequence[Check]:
        """Say of each part whether it works."""
        troubles = self._joined.listeners.troubles()
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

    async def _probe(self) -> None:
        """Find out how each agent is really kept apart, and say so."""
        for name, shelter in self._base.shelters.items():
            tried = await try_shelter(self._base.configuration, shelter)
            self.cards[name] = replace(self.cards[name], isolation=tried.words)
            logger.info("%s: %s", name, tried.words)
