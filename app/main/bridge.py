"""Runs one bridge: starts its parts in order, serves them, and stops them in order.

Start order: lock, store, port, and only then what is heavy or slow. Stop order: no new
requests, running turns get their grace time, then every process, then the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from fastapi.responses import Response

from app.core.adapters import Adapter
from app.core.repositories.forge import Forge
from app.core.runtime import Presences
from app.features import registered_features
from app.features.part import Part
from app.main.build import build_parts
from app.main.maintenance import Maintenance
from app.main.resources import Resources, presence
from app.mcp_server.endpoints import PATH as TOOLS_PATH
from app.metrics import measure_members
from app.retry import watch
from app.server.application import build
from app.server.front import Front, Redacting, hosts_of
from app.server.health import Health
from app.server.installations import PendingInstallations
from app.server.login_links import LoginLinks, page_url_of, plain_url_of
from app.server.rights import Rights
from app.server.site import Site
from app.server.tokens import Tokens
from app.store.members import HandedOut
from app.tasks import Tasks

if TYPE_CHECKING:
    from app.main.fleet import Fleet

logger = logging.getLogger(__name__)

OUTBOX_GRACE_SECONDS = 2.0
"""The time for final posts once all turns have ended; the rest is sent at the next start."""


class Bridge:
    """One bridge: its parts, joined, and their lifecycle."""

    def __init__(
        self,
        base: Resources,
        adapters: Sequence[Adapter],
        *,
        timeouts: Mapping[str, float] | None = None,
        forge: Forge | None = None,
        build: Callable[[Resources, Collection[str]], Presences] = presence,
        starts_agents: bool = False,
    ) -> None:
        """Join the parts; `timeouts` are seconds by step, where they differ from the defaults.

        `build` makes new adapters when agents change. With `starts_agents`, each agent is
        started once in the background to see if it works.
        """
        configuration = base.configuration
        self._base = base
        self.data_dir = configuration.data_dir
        self.trusted_proxies = configuration.settings.trusted_proxies
        self._fleet = self._open_fleet()
        if self._fleet is not None:
            watch(base.database.outage)
        self._front: Front | None = None
        self._parts = build_parts(
            base,
            adapters,
            forge=forge,
            fleet=self._fleet,
            timeouts=timeouts or {},
            starts_agents=starts_agents,
            go_on=self._go_on_as_leader,
            connect=partial(build, base),
            accept=self._accept,
        )
        self.runtime = runtime = self._parts.runtime
        self.feed = runtime.feed
        self.intake = runtime.intake
        self.features: list[Part] = []
        for feature in registered_features():
            part = feature.build(runtime)
            self.features.append(part)
            runtime.parts.append(part)
            runtime.hooks.add(part.hooks())
            runtime.toolbox.add(feature.list_tools(part))
        runtime.hooks.add((runtime.toolbox,))
        self._maintenance = Maintenance(
            base, runtime.workspaces.unused, runtime.uploads, self.features
        )
        self._tasks = Tasks("bridge")
        base.signals.on_sweep(self._look_again)
        self._started = asyncio.Event()
        self._hurried = False
        self._grace_timeout: asyncio.Timeout | None = None
        self.links = LoginLinks(
            base.stores.logins,
            base.clock,
            base.vault,
            base_url=page_url_of(configuration, base.secrets.secret_key),
            secret_key=base.secrets.secret_key,
            plain_url=plain_url_of(configuration),
        )

    def _open_fleet(self) -> Fleet | None:
        """Prepare to be a member; None on SQLite, where there is one bridge."""
        if self._base.configuration.database_file is not None:
            return None
        # The import takes 0.2 s, and only PostgreSQL needs it.
        from app.main.fleet import Fleet  # noqa: PLC0415

        return Fleet(self._base, lead=self._start_leading, handed_out=self._take_up)

    def application(self) -> Front:
        """Build the HTTP server: the front for webhooks, with the application behind it."""
        base = self._base
        is_worker = base.configuration.settings.role == "worker"
        hooks = [] if is_worker else list(self.runtime.adapters.values())
        application = build(
            self.runtime,
            self._site(),
            [path for hook in hooks for path in hook.paths],
            features=self.features,
            routers=[router for each in registered_features() for router in each.routers()],
        )
        if self._fleet is not None:
            self._fleet.elsewhere.serve(application, base.secrets.admin_token.get_secret_value())
        endpoints = self._parts.endpoints
        endpoints.url = f"{base.configuration.local_url}{TOOLS_PATH}"
        front = Front(
            endpoints.in_front_of(Redacting(application, base.vault)),
            self.intake.take,
            base.clock,
            base.metrics,
            hosts=hosts_of(base.configuration, self.links.base_url),
            base_url=base.configuration.base_url,
            started=self._started,
            hooks_port=base.configuration.settings.hooks_port,
        )
        front.open(hooks)
        self._front = front
        return front

    def _accept(self, adapters: Iterable[Adapter]) -> None:
        """Accept the webhooks of these adapters from now on."""
        if self._front is not None and self._base.configuration.settings.role != "worker":
            self._front.open(adapters)

    def _site(self) -> Site:
        base, fleet = self._base, self._fleet
        health = Health(
            self.runtime,
            self._started,
            lambda: [check for part in self.features for check in part.checks()],
            partial(measure_members, ["all"], silent=0.0, is_leader=True)
            if fleet is None
            else fleet.membership.measure,
        )
        return Site(
            links=self.links,
            tokens=Tokens(base.stores.tokens, base.clock, base.vault),
            rights=Rights({k: v for each in registered_features() for k, v in each.rights.items()}),
            admins=base.stores.people.admins,
            admin_token=base.secrets.admin_token.get_secret_value(),
            installs=PendingInstallations(
                self.runtime.adapters,
                base.stores.sealed,
                base.clock,
                base_url=base.configuration.base_url,
                secret_key=base.secrets.secret_key,
            ),
            ready=health.ready,
            vitals=health.measure,
            fetch_page=self._fetch_page,
        )

    async def _fetch_page(self, session: int, address: str) -> Response | None:
        return None if self._fleet is None else await self._fleet.elsewhere.fetch(session, address)

    async def start(self, *, resume: bool = True) -> None:
        """Clean up after the last run, resume its turns and posts if told to, start reading.

        Where several bridges share a database, that is up to the leader.
        """
        await self._maintenance.end_leftovers(is_shared=self._fleet is not None)
        self._parts.warden.start()
        self._tasks.start(self.runtime.room.watch(), name="disk")
        await self._parts.endpoints.start()
        self._tasks.start(self._parts.launcher.prepare(), name="import of ACP")
        if self._fleet is not None:
            await self._fleet.join()
        await self.runtime.engine.start()
        if not resume:
            self.intake.start()
        else:
            for part in self.features:
                part.join()
            if self._fleet is None:
                await self._start_leading()
            else:
                self._tasks.start(self._maintenance.reap(), name="unused workspaces")
        self._started.set()

    async def _start_leading(self) -> None:
        """Begin what one bridge does for all that share a database.

        A bridge that was restored from a backup does not before it is resumed.
        """
        if any(part.holds_start() for part in self.features):
            self.runtime.outbox.hold()
        else:
            await self._go_on()

    async def _go_on_as_leader(self) -> None:
        """Go on after a backup was restored; others than the leader leave that to it."""
        if self._fleet is None or self._fleet.membership.is_leader:
            await self._go_on()

    def _look_again(self) -> None:
        """Begin to lead if work was resumed at another bridge."""
        fleet = self._fleet
        if fleet is not None and fleet.membership.is_leader and not self._base.signals.is_leader:
            self._tasks.start(self._start_leading(), name="lead")

    async def _go_on(self) -> None:
        """Go on with what the last run left, and start reading."""
        runtime = self.runtime
        if self._fleet is not None and not self._fleet.start_leading():
            return
        # Before any turn resumes: its post may have arrived without being recorded.
        await runtime.outbox.start()
        for part in self.features:
            await part.recover()
        runtime.engine.resume()
        runtime.ledger.start()
        self._tasks.start(self._maintenance.forget(), name="retention")
        if self._fleet is None:
            self._tasks.start(self._maintenance.reap(), name="unused workspaces")
        runtime.listeners.start()
        self.intake.start()
        for part in self.features:
            part.start()

    def _take_up(self, handed_out: HandedOut) -> None:
        """Show what became of turns that another bridge was running."""
        self.runtime.outbox.send(*handed_out.posts)
        for session in handed_out.sessions:
            self.feed.notify(session)

    async def stop(self) -> None:
        """Give running turns their grace time, then stop everything; safe at any moment."""
        grace = self._base.configuration.settings.grace_seconds
        logger.info(
            "stopping: waiting up to %g s for running turns; signal again to stop now", grace
        )
        self._base.database.outage.ignore()
        self.feed.close()
        for part in reversed(self.features):
            await part.close()
        await self.runtime.listeners.close()
        await self.intake.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if self._hurried else None) as self._grace_timeout:
                await self.runtime.engine.drain(grace=grace)
        self._grace_timeout = None
        await self.runtime.engine.drain(grace=0)
        await self.runtime.progress.close()
        await self.runtime.ledger.close()
        for part in reversed(self.features):
            await part.finish()
        await self.runtime.live.close()
        await self._parts.launcher.close()
        await self._parts.endpoints.close()
        await self._parts.warden.close()
        await self.runtime.checkouts.close_all()
        await self.runtime.outbox.close(grace=OUTBOX_GRACE_SECONDS)
        await self._tasks.close()
        for adapter in self.runtime.adapters.values():
            await adapter.close()
        if self._fleet is not None:
            await self._fleet.leave()

    def hurry(self) -> None:
        """Give running turns no more time; they resume at the next start."""
        self._hurried = True
        if self._grace_timeout is not None:
            self._grace_timeout.reschedule(asyncio.get_running_loop().time())
