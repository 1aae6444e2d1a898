"""A database that is away: requests are refused at once, turns wait and go on."""

from __future__ import annotations

import secrets
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.store.database import Database
from tests.support.invariants import violations
from tests.support.postgres import Cluster, need_server
from tests.support.world import World

AT_ONCE_SECONDS = 3.0
"""How long an answer may take that waits for nothing, on a machine that is busy."""
HTML = {"Accept": "text/html"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    need_server()
    with Cluster(Path(tempfile.gettempdir()) / f"bridge-pg-{secrets.token_hex(4)}") as cluster:
        database = Database(cluster.url())
        database.check()  # waits until it listens
        database.close()
        yield cluster


def get(world: World, path: str, **headers: str) -> httpx.Response:
    began = time.monotonic()
    answer = world.bridge.http.get(path, headers=headers)
    assert time.monotonic() - began < AT_ONCE_SECONDS, path
    return answer


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
def test_while_the_database_is_away_requests_are_refused_and_turns_wait(
    tmp_path: Path, cluster: Cluster, end: int
) -> None:
    with World(tmp_path, settings={"DATABASE_URL": cluster.url()}) as world:
        for place in ("p1", "p2", "p3"):
            world.say(place, "tell here\nhold go\nplan look; act\nask Really?")
        for place in ("p1", "p2", "p3"):
            world.wait_for("working", place)

        cluster.stop(end)
        world.bridge.wait(lambda: world.bridge.logged("the database is away"), "not noticed")
        for session in (1, 2, 3):
            world.touch("go", session)
        for _ in range(3):
            assert get(world, "/healthz").status_code == 200
            ready = get(world, "/readyz")
            assert (ready.status_code, ready.json()["ready"]) == (503, False)
            assert "the database is away" in ready.text
            page = get(world, "/", **HTML)
            assert (page.status_code, page.headers["Retry-After"]) == (503, "5")
            assert "the database is away" in page.text
            assert "bridge_ready 0" in get(world, "/metrics").text
            assert world.bridge.say("p4", "say lost") == 503

        cluster.start()
        world.say("p1", "say next")
        world.settle()
        assert get(world, "/readyz").status_code == 200
        world.end()

        assert violations(world) == []
        assert {post.note for post in world.platform.turns()} == {""}
