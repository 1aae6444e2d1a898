"""Joins what makes this process one of several bridges on one PostgreSQL."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable

from app.children.proc_table import kill_leftovers
from app.core.turns.turn_context import TurnContext
from app.fleet.engine import FleetTurnEngine, FleetWorker
from app.fleet.membership import Membership
from app.main.resources import Resources, read_name
from app.server.elsewhere import Elsewhere
from app.store.database.backend import Fence
from app.store.database.signals import Notifications
from app.store.members import ClaimStore, HandedOut, MemberStore

logger = logging.getLogger(__name__)

TAKEN_OVER = 75
"""The status of a process that others have taken over from: try again, as sysexits.h says."""


class Fleet:
    """This process as a member."""

    def __init__(
        self,
        base: Resources,
        *,
        lead: Callable[[], Awaitable[None]],
        handed_out: Callable[[HandedOut], None],
    ) -> None:
        """Prepare; `lead` begins what one member does for all."""
        configuration = base.configuration
        assert isinstance(base.signals, Notifications), "it is PostgreSQL"
        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        self._base = base
        self._signals = base.signals
        self.elsewhere = Elsewhere(base.signals, base.signals.find_server)
        """The pages that other members build."""
        self.name = read_name(configuration.data_dir)
        fence = Fence(lambda: self._die("another member has taken over"))
        self._claims = ClaimStore(base.database, base.clock.now, fence)
        self._engine: FleetTurnEngine | None = None
        self.membership = Membership(
            MemberStore(base.database, base.clock.now, fence),
            base.clock,
            name=self.name,
            role=configuration.settings.role,
            slots=configuration.settings.max_turns,
            lease_seconds=configuration.settings.lease_seconds,
            load=lambda: {} if self._engine is None else self._engine.load(),
            lead=lead,
            handed_out=handed_out,
            die=self._die,
        )

    async def join(self) -> None:
        """Become a member that hears the others."""
        await self._signals.start()
        await self.membership.join()

    async def leave(self) -> None:
        """Stop being a member."""
        await self.membership.leave()
        await self._signals.close()

    def start_leading(self) -> bool:
        """Do what one member does for all from now on; the others tell this one what there is.

        False if it does already.
        """
        is_new = not self._signals.is_leader
        self._signals.is_leader = True
        return is_new

    def build_engine(self, context: TurnContext) -> FleetTurnEngine:
        """Build what runs turns for all members."""
        configuration, base = self._base.configuration, self._base

        worker = FleetWorker(
            configuration.database_url,
            self.name,
            self._claims,
            base.clock,
            lease_seconds=configuration.settings.lease_seconds,
        )
        self._engine = FleetTurnEngine(
            context,
            self._claims,
            max_turns=configuration.settings.max_turns,
            total=configuration.settings.max_turns_total,
            worker=None if configuration.settings.role == "front" else worker,
        )
        return self._engine

    def _die(self, why: str) -> None:
        """End this process at once, its agents first: its work belongs to others now."""
        logger.critical("%s: this process ends, its sessions continue elsewhere", why)
        kill_leftovers((), bridge=self._base.configuration.bridge_id)
        os._exit(TAKEN_OVER)
