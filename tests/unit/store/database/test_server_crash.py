"""A server that crashes in the middle of a commit: what it lost is not taken to be stored."""

from __future__ import annotations

import secrets
import signal
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import Connection, Insert, insert, select

from app.clock import SystemClock
from app.retry import persist
from app.store.database import Database
from app.store.database.backend import Fence
from app.store.members import MemberStore
from app.store.tables import sealed
from tests.support.postgres import Cluster, need_server

pytestmark = pytest.mark.anyio

USED_AGAIN = 20
"""More transactions than were lost."""


def row(name: str) -> Insert:
    """Make a row that only its name tells from others."""
    return insert(sealed).values(name=name, value="", kept_at=0.0)


def use_numbers(other: Connection) -> None:
    """Write: the server gives the numbers of lost transactions to others."""
    for number in range(USED_AGAIN):
        other.execute(row(f"other {number}"))


@pytest.mark.long
async def test_a_commit_that_a_crash_undid_is_repeated_although_its_number_is_used_again() -> None:
    need_server()
    folder = Path(tempfile.gettempdir()) / f"bridge-pg-{secrets.token_hex(4)}"
    with Cluster(folder) as cluster:
        ours, theirs = Database(cluster.url()), Database(cluster.url())
        ours.open()
        theirs.open()
        clock = SystemClock()
        members = MemberStore(ours, clock.now, Fence(lambda: None))
        await members.join("ours", "all", 1)
        attempts = 0

        def lose(connection: Connection) -> None:
            nonlocal attempts
            attempts += 1
            connection.execute(row("kept"))
            if attempts == 1:
                cluster.stop(signal.SIGQUIT)
                cluster.start()
                theirs.look(use_numbers)

        await persist(clock, ours.writer.run, lose)

        assert attempts == 2
        assert ours.one(select(sealed).where(sealed.c.name == "kept")) is not None
        ours.close()
        theirs.close()
