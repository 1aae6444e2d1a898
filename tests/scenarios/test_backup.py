"""A backup under load, restored on an empty machine: the same conversations, and they go on."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from tests.support import postgres
from tests.support.bridge import SPEED, BridgeProcess
from tests.support.studio import studio
from tests.support.terminal import run, succeed
from tests.support.world import World

# Several commands, each a separate process, on a machine that many share.
pytestmark = pytest.mark.timeout(180)

OWN = {"BRIDGE_SECRET_KEY": "", "BRIDGE_ADMIN_TOKEN": ""}
"""The bridge's own secrets come with the backup."""
KEPT = (
    "select session, kind, speaker, text from transcript where id <= ? order by id",
    "select id, agent, created_at from session where id <= ? order by id",
)
QUIET = {
    "place": "id <= 3",
    "session": "id <= 3",
    **dict.fromkeys(("transcript", "turn", "surface", "ask", "post"), "session <= 3"),
    "message": "place <= 3",
    "heard": "message in (select id from message where place <= 3)",
}
"""The rows of conversations in which nothing happens meanwhile, by table."""


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put every bridge on one kind of database, then on the other one."""
    if request.param == "postgresql":
        postgres.need_server()
    monkeypatch.setenv(postgres.CHOICE, request.param)


def stored(bridge: BridgeProcess, rows: int, sessions: int) -> list[object]:
    """Read the conversations, up to a row and a session."""
    return [bridge.rows(query, last) for query, last in zip(KEPT, (rows, sessions), strict=True)]


def quiet(bridge: BridgeProcess) -> dict[str, list[str]]:
    """Read every column of the conversations in which nothing happens meanwhile."""
    return {
        table: sorted(str(row) for row in bridge.rows(f"select * from {table} where {which}"))
        for table, which in QUIET.items()
    }


@pytest.mark.long
@pytest.mark.usefixtures("database")
def test_a_backup_under_load_is_restored_on_an_empty_machine_and_goes_on(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    secret, backup = tmp_path / "passphrase", tmp_path / "bridge.backup"
    secret.write_text("correct horse battery")
    sealed = ("--passphrase-file", str(secret))
    with World(old) as world:
        world.say("t1", "say swordfish")
        world.settle()
        world.say("t2", "tell here\nhold go")
        world.wait_file("here", session=2)
        world.wait_decided(behind := world.say("t2", "say behind it"))
        world.say("t3", "write notes.txt hello")
        world.bridge.wait(lambda: bool(world.platform.shown("ask")), "nothing was asked")
        # The platform has a post before the store knows that.
        unsent = "select count(*) from post where state = 'new' and session <= 3"
        world.bridge.wait(lambda: world.bridge.rows(unsent) == [(0,)], "not all was sent")

        is_over = threading.Event()

        def talk() -> None:
            while not is_over.is_set():
                world.say("t4", "say more")

        talking = threading.Thread(target=talk)
        talking.start()
        made = succeed(world.bridge, "backup", str(backup), *sealed)
        is_over.set()
        talking.join()
        world.bridge.kill()
        assert "with the passphrase" in made
        assert "is whole" in succeed(world.bridge, "backup", "--check", str(backup), *sealed)
        assert backup.stat().st_mode & 0o077 == 0

        restored = BridgeProcess(new, world.platform, settings=OWN, speed=SPEED)
        refused = run(restored, "restore", str(backup))
        shown = succeed(restored, "restore", str(backup), *sealed)
        again = run(restored, "restore", str(backup), *sealed)
        assert (refused.returncode, "add --passphrase" in refused.stderr) == (1, True)
        assert "Everything is paused" in shown
        assert "web:t2 demo: prompted" in shown
        assert (again.returncode, "already" in again.stderr) == (1, True)
        last_row = restored.rows("select max(id) from transcript")[0][0]
        last_session = restored.rows("select max(id) from session")[0][0]
        then = stored(restored, last_row, last_session)
        assert then == stored(world.bridge, last_row, last_session)
        same = quiet(restored)
        assert same == quiet(world.bridge)
        assert all(same.values())

        posts = len(world.platform.posts)
        world.bridge, before = restored, world.bridge
        with restored:
            restored.wait(lambda: "restored" in restored.http.get("/readyz").text, "not paused")
            assert world.bridge.say("t5", "say unread") == 200
            assert "Restored from a backup" in restored.http.get("/").text
            assert stored(restored, last_row, last_session) == then
            assert len(world.platform.posts) == posts

            assert "Nothing is paused" in succeed(restored, "resume", "--all", "--yes")
            world.touch("go", session=2)
            world.say("t1", "recall")
            world.settle()
            assert restored.http.get("/readyz").status_code == 200
            assert {turn.state for turn in world.turns()} == {"done"}
            assert "swordfish" in world.turns("t1")[-1].text
            assert behind in world.turns("t2")[-1].text
            assert world.turns("t5")[-1].state == "done"
            notes = restored.workspace(session=3) / "notes.txt"
            assert notes.read_text().strip() == "hello"
        world.bridge = before


@pytest.mark.long
@pytest.mark.skipif(postgres.is_wanted(), reason="the database of this folder is not empty")
def test_a_session_of_a_restored_bridge_has_its_uncommitted_files(tmp_path: Path) -> None:
    backup = str(tmp_path / "bridge.backup")
    with studio(tmp_path, entry={"ship": "none"}) as here:
        bridge = here.world.bridge
        here.tell("run git commit --allow-empty -qm Mine\nwrite b.txt two")
        made = succeed(bridge, "backup", backup)
        bridge.kill()
        shutil.rmtree(bridge.data_dir)

        succeed(bridge, "restore", backup)
        bridge.start()
        succeed(bridge, "resume", "--all", "--yes")
        post = here.tell("run cat b.txt; git log --format=%s -1; git status --short")

        assert "which is not in it" in made
        assert "two\nMine\n?? b.txt" in post.content["text"]
