"""Carries signals between members through PostgreSQL's LISTEN and NOTIFY.

Nothing waits for them, and what is lost while the server is away a sweep makes good.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from itertools import islice, repeat
from typing import Any

import psycopg
from psycopg import AsyncConnection
from sqlalchemy import bindparam, select
from typing_extensions import override

from app.clock import Clock
from app.retry import Retries
from app.signals import Switchboard
from app.store.database import Database
from app.store.tables import member, session
from app.tasks import Tasks

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 10.0
"""How often everything is looked at again, in case that a signal was lost."""
AGAIN_SECONDS = 1.0
"""Pause before the next attempt to connect."""
CONNECT_SECONDS = 5
"""How long one attempt to connect may take."""
LAST_SECONDS = 1.0
"""How long closing waits for the last signals to be sent."""
AT_ONCE = 200
"""Signals per statement: together they fit into the server's buffers."""
MOST_WAITING = 10_000
"""Signals that wait while the server is away; more are dropped, since a sweep comes first then."""
_SEND = "select pg_notify(%s, each) from unnest(%s::text[]) as each"
_SERVER = (
    select(session.c.served_by)
    .join(member, member.c.name == session.c.served_by)
    .where(session.c.id == bindparam("of"))
)
_FAULTS = (psycopg.OperationalError, OSError)
_Connection = AsyncConnection[tuple[Any, ...]]


class Notifications(Switchboard):
    """The signals of one member, on a channel of its schema."""

    def __init__(self, database: Database, address: str, name: str, clock: Clock) -> None:
        """Prepare to reach the other members on the database of this address."""
        super().__init__(name, self._list_members)
        self._database = database
        self._address = address
        self._clock = clock
        self._waiting: dict[str, None] = {}
        """What is to be sent: the same twice is sent once."""
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        """Set while there is nothing to send."""
        self._idle.set()
        self._listens = asyncio.Event()
        self._lines = Tasks("notifications", is_held=False)
        self._sweeps = Tasks("sweeps")

    async def start(self) -> None:
        """Listen and send from now on; returns once it listens."""
        self._lines.start(self._keep(self._listen), name="listen")
        self._lines.start(self._keep(self._speak), name="send")
        await self._listens.wait()
        self._sweeps.start(self._sweep_often(), name="sweep")

    @override
    async def close(self) -> None:
        """Send what waits, then stop."""
        await super().close()
        await self._sweeps.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._idle.wait()
        await self._lines.close()

    @override
    def transmit(self, text: str) -> None:
        """Put a text on the channel soon."""
        if len(self._waiting) < MOST_WAITING:
            self._waiting[text] = None
            self._idle.clear()
            self._wake.set()

    @override
    def find_server(self, session_id: int) -> str | None:
        """Name the other member that served a session last, if it is there; None if none."""
        row = self._database.one(_SERVER, of=session_id)
        return row.served_by if row is not None and row.served_by != self.name else None

    async def _list_members(self) -> Collection[str]:
        return [row.name for row in await self._database.all(select(member.c.name))]

    async def _keep(self, work: Callable[[_Connection], Awaitable[None]]) -> None:
        """Do something on a separate connection, on a new one after each fault."""
        retries = Retries(self._clock, repeat(AGAIN_SECONDS))
        while True:
            try:
                async with await self._connect() as connection:
                    # A signal may be lost, so the disk need not be waited for.
                    await connection.execute("set synchronous_commit = off")
                    try:
                        await work(connection)
                    except _FAULTS:
                        self._database.doubt()
                        raise
                    return
            except _FAULTS as error:
                await retries.wait(error)

    async def _connect(self) -> _Connection:
        return await AsyncConnection.connect(
            self._address,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="agent-bridge signals",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
        )

    async def _listen(self, connection: _Connection) -> None:
        await connection.execute(f"listen {await _find_channel(connection)}")
        if self._listens.is_set():
            self.sweep()
        self._listens.set()
        await _follow(connection, self.receive)

    async def _speak(self, connection: _Connection) -> None:
        channel = await _find_channel(connection)
        while True:
            while self._waiting:
                await self._send_some(connection, channel)
            self._idle.set()
            self._wake.clear()
            await self._wake.wait()

    async def _send_some(self, connection: _Connection, channel: str) -> None:
        """Send what waits; what is told again meanwhile is sent again."""
        batch = list(islice(self._waiting, AT_ONCE))
        for text in batch:
            del self._waiting[text]
        try:
            await connection.execute(_SEND, (channel, batch))
        except BaseException:
            self._waiting = dict.fromkeys(batch) | self._waiting
            raise

    async def _sweep_often(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_SECONDS)
            self.sweep()


async def _follow(connection: _Connection, hear: Callable[[str], None]) -> None:
    """Pass on what is told on a connection until it is lost.

    psycopg's own way wakes ten times a second, which is most of what an idle bridge would do.

    Raises:
        psycopg.OperationalError: it is lost.
    """
    loop, server = asyncio.get_running_loop(), connection.pgconn
    lost: asyncio.Future[None] = loop.create_future()

    def read() -> None:
        try:
            server.consume_input()
            while (notice := server.notifies()) is not None:
                hear(notice.extra.decode(errors="replace"))
        except psycopg.OperationalError as error:
            loop.remove_reader(handle)
            lost.set_exception(error)

    handle = connection.fileno()
    loop.add_reader(handle, read)
    try:
        await lost
    finally:
        loop.remove_reader(handle)


async def _find_channel(connection: _Connection) -> str:
    """Name the channel of the connection's schema."""
    row = await (await connection.execute("select current_schema()")).fetchone()
    assert row is not None
    return f"agent_bridge_{hashlib.sha256(str(row[0]).encode()).hexdigest()[:16]}"
