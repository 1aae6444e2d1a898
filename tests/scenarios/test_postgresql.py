"""PostgreSQL: an installation moves there at work, and its server goes away in the middle."""

from __future__ import annotations

import secrets
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.database import Database
from tests.support.invariants import violations
from tests.support.postgres import Cluster, need_server, server
from tests.support.terminal import run, succeed
from tests.support.world import World


@pytest.fixture(autouse=True)
def _begin_on_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    need_server()
    monkeypatch.delenv("TEST_DATABASE", raising=False)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Start a server that the test can end."""
    folder = Path(tempfile.gettempdir()) / f"bridge-pg-{secrets.token_hex(4)}"
    with Cluster(folder) as own:
        Database(own.url()).close()
        yield own


@pytest.mark.long
@pytest.mark.timeout(180)
def test_an_installation_moves_with_an_open_ask_a_cut_turn_and_posts_that_were_not_sent(
    tmp_path: Path,
) -> None:
    with World(tmp_path) as world:
        world.say("t1", "write notes.txt kept")
        world.platform.wait(lambda _: len(world.platform.shown("ask")) == 1)
        world.say("t2", "say done before")
        world.wait_for("done", "t2")
        world.say("t3", "tell here\nhold go\nsay went on")
        world.wait_file("here", 3)
        world.platform.failures.extend([500] * 1000)
        world.say("t4", "say sent later")
        world.wait_decided("word-004")
        address = server().provide(tmp_path / "new")
        refused = run(world.bridge, "migrate", "--to", address)
        world.bridge.kill()

        moved = succeed(world.bridge, "migrate", "--to", address)
        again = run(world.bridge, "migrate", "--to", address)
        with pytest.raises(RuntimeError, match="was moved to postgresql://bridge@/"):
            world.bridge.start()
        world.bridge.settings["DATABASE_URL"] = address
        world.platform.failures.clear()
        world.bridge.start()
        world.touch("go", 3)
        world.settle()
        world.end()

        assert violations(world) == []
        assert "Every row is in postgresql://bridge@/" in moved
        assert (refused.returncode, "is in use" in refused.stderr) == (1, True)
        assert (again.returncode, "already holds data" in again.stderr) == (1, True)
        assert (world.bridge.workspace() / "notes.txt").read_text() == "kept\n"
        assert [post.text for post in world.turns("t4")] == ["sent later\n\nword-004"]


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restart", "crash"])
def test_a_server_that_restarts_in_the_middle_of_a_turn_is_waited_for(
    tmp_path: Path, cluster: Cluster, how: int
) -> None:
    with World(tmp_path, settings={"DATABASE_URL": cluster.url()}) as world:
        world.say("t1", "tell here\nhold go\nplan look; act\nbig 3000")
        world.wait_file("here")

        cluster.stop(how)
        world.touch("go")
        world.bridge.wait(lambda: world.bridge.logged("the database is away"), "no one saw it")
        cluster.start()
        world.say("t2", "say taken")
        world.settle()
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert (post.state, post.note) == ("done", "")
        assert len(post.text) == len("go is here.\n\nDone: look; act.\n\n\n\nword-001") + 3000
