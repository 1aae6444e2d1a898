"""Tells how a bridge is: whether it is ready, and what is measured of its store, slots and disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse, Response

from app.core.runtime import Runtime
from app.errors import StoreUnavailable
from app.metrics import Check, Vital
from app.server import login
from app.server.site import RuntimeOf, SiteOf
from app.store.transcript import check_turns

SignedIn = Annotated[bool, Depends(login.is_signed_in)]
READY_SECONDS: Final = 3.0
"""How long the store may take to confirm that it can write: its busy timeout plus a margin."""

router = APIRouter()


class Health:
    """How one bridge is."""

    def __init__(
        self,
        runtime: Runtime,
        started: asyncio.Event,
        checks: Callable[[], Sequence[Check]],
        members: Callable[[], Sequence[Vital]],
    ) -> None:
        """Look at a bridge; `checks` are those of its features.

        `members` measures those that share its database.
        """
        self._runtime = runtime
        self._started = started
        self._checks = checks
        self._members = members

    async def ready(self) -> Sequence[Check]:
        """Check each part."""
        troubles, closed = self._runtime.listeners.troubles(), self._runtime.admission.closed()
        store = await self._check_store()
        return [
            Check("started", self._started.is_set()),
            store,
            *(self._checks() if store.ok else ()),
            *(Check(name, ok=not words, words=words) for name, words in troubles.items()),
            *(
                Check(f"agent {name}", ok=False, words=f"closed, {words}")
                for name, words in closed.items()
            ),
        ]

    async def _check_store(self) -> Check:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._runtime.database.check_writable()
                await check_turns(self._runtime.database)
        except (StoreUnavailable, TimeoutError) as error:
            return Check("store", ok=False, words=str(error) or "no answer")
        return Check("store", ok=True)

    async def measure(self) -> Sequence[Vital]:
        """Measure everything; agents without a process count with zero."""
        runtime = self._runtime
        # Series of agents that came meanwhile begin at zero.
        runtime.metrics.know(runtime.agents, runtime.adapters)
        (used, slots), disk = runtime.engine.slots, runtime.room.disk
        alive = {**dict.fromkeys(runtime.agents, 0), **runtime.live.processes()}
        checks = await self.ready()
        try:
            stored = await runtime.stores.vitals.read()
        except StoreUnavailable:  # then nothing is known of what waits there
            stored = ()
        return [
            *stored,
            Vital("disk_free_bytes", await asyncio.to_thread(disk.free)),
            Vital("disk_watermark_bytes", await asyncio.to_thread(disk.watermark)),
            *self._members(),
            Vital("slots", slots),
            Vital("slots_used", used),
            *(Vital("processes", number, (("agent", name),)) for name, number in alive.items()),
            Vital("ready", float(all(check.ok for check in checks))),
        ]


@router.get("/healthz")
async def healthy() -> dict[str, str]:
    """Report that the process is alive."""
    return {"status": "ok"}


@router.get("/readyz")
async def ready(site: SiteOf, signed_in: SignedIn) -> Response:
    """Report whether everything works; signed-in callers also see each check."""
    checks = await site.ready()
    body: dict[str, Any] = {"ready": all(check.ok for check in checks)}
    if signed_in:
        body["checks"] = [
            {"name": check.name, "ok": check.ok, "words": check.words} for check in checks
        ]
    return JSONResponse(body, status_code=200 if body["ready"] else 503)


@router.get("/metrics")
async def metrics(runtime: RuntimeOf, site: SiteOf, signed_in: SignedIn) -> Response:
    """Return all series for Prometheus; signed-in callers see them by agent."""
    text = runtime.metrics.text(await site.vitals(), by_name=signed_in)
    return Response(text, media_type="text/plain; version=0.0.4")
