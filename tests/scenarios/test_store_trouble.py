"""A store that cannot write: what is not kept is not acknowledged, and it recovers by itself."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.support.hook import message
from tests.support.invariants import agent_processes, violations
from tests.support.memory import prepare_store
from tests.support.nursery import nursery
from tests.support.postgres import only_on_files
from tests.support.world import World

BUSY = "retry in 1 s: the store cannot be used now"
DAMAGED = b"SQLite format 3\0" + b"this is no database any more " * 400


def test_an_event_is_refused_while_the_store_is_locked_and_taken_afterwards(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        event = message("t1", "say word-900", "demo")

        with world.bridge.store_locked():
            answer = world.bridge.post(event, delivery_id="first")
            ready = world.bridge.http.get("/readyz").status_code
        kept = world.bridge.rows("select count(*) from delivery")
        again = world.bridge.deliver(event, delivery_id="first")
        world.settle()
        world.end()

        assert violations(world) == []
        assert (answer.status_code, ready, again) == (503, 503, 200)
        assert answer.json() == {
            "title": "the store cannot be used now: database is locked",
            "status": 503,
        }
        assert kept == [(0,)]
        assert world.turns()[0].text == "word-900"


def test_a_turn_that_runs_while_the_store_is_locked_loses_nothing(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold go\nplan look; act\nbig 3000")
        world.wait_file("here")

        with world.bridge.store_locked():
            world.touch("go")
            world.bridge.wait(lambda: world.bridge.logged(BUSY), "nobody waited")
        world.settle()
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert (post.state, post.note) == ("done", "")
        assert len(post.text) == len("go is here.\n\nDone: look; act.\n\n\n\nword-001") + 3000


@pytest.mark.slow
def test_an_ask_that_comes_while_the_store_is_locked_is_asked_afterwards(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.bridge.arm("asks.open", act="pause")
        world.say("t1", "write notes.txt kept")
        world.bridge.wait_reached()

        with world.bridge.store_locked():
            world.bridge.let_go()
            world.bridge.wait(lambda: world.bridge.logged(BUSY), "nobody waited")
        world.settle()
        world.end()

        assert violations(world) == []
        assert (world.bridge.workspace() / "notes.txt").read_text() == "kept\n"


@pytest.mark.slow
def test_an_answer_that_was_acknowledged_counts_although_the_store_was_locked(
    tmp_path: Path,
) -> None:
    with World(tmp_path) as world:
        world.say("t1", "write notes.txt kept")
        world.platform.wait(lambda _: len(world.platform.shown("ask")) == 1)
        world.bridge.arm("asks.answer", act="pause")
        world.answer(1, "allow")
        world.bridge.wait_reached()

        with world.bridge.store_locked():
            world.bridge.let_go()
            world.bridge.wait(lambda: world.bridge.logged(BUSY), "nobody waited")
        world.settle()
        world.end()

        assert violations(world) == []
        assert (world.bridge.workspace() / "notes.txt").read_text() == "kept\n"


@pytest.mark.slow
def test_words_that_waited_for_the_store_are_kept_although_their_agent_died(tmp_path: Path) -> None:
    with World(tmp_path, deadly=True) as world:
        world.say("t1", "hold go\nsay last words")
        world.wait_row("Waiting for go.")
        world.bridge.arm("agent.update.agent_message_chunk", "after", act="mute")

        with world.bridge.store_locked():
            world.touch("go")
            world.bridge.wait(lambda: world.bridge.logged(BUSY), "nobody waited")
            for pid, _ in agent_processes(world.bridge.data_dir):
                os.kill(pid, signal.SIGKILL)
            world.bridge.wait(lambda: world.bridge.logged("could not record its end"), "lives")
        world.settle()
        world.restart()
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert (post.state, post.text) == ("failed", "go is here.")


@pytest.mark.slow
def test_a_bridge_that_starts_while_the_store_is_locked_goes_on_when_it_is_free(
    tmp_path: Path,
) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")
        world.bridge.kill()

        with world.bridge.store_locked():
            world.revive()
            world.bridge.wait(lambda: world.bridge.logged(BUSY), "nobody waited")
            refused = world.bridge.say("t1", "say not now")
        world.touch("go")
        world.settle()
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert refused == 503
        assert post.state == "done"


@only_on_files("the disk is another machine's")
def test_nothing_is_acknowledged_while_the_disk_is_full_and_nothing_is_lost(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold go\nbig 200000")
        world.wait_file("here")
        event = message("t2", f"say word-900\n{'x' * 200_000}", "demo")

        world.bridge.full.touch()
        refused = world.bridge.post(event, delivery_id="first")
        world.touch("go")
        world.bridge.wait(lambda: world.bridge.logged(BUSY), "nobody waited")
        world.bridge.full.unlink()
        taken = world.bridge.deliver(event, delivery_id="first")
        world.settle()
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert (refused.status_code, taken) == (503, 200)
        assert "full" in refused.json()["title"]
        assert (post.state, len(post.text) > 200_000) == ("done", True)
        assert world.turns("t2")[0].state == "done"


# Fills the disk when it is told to and frees it again, from inside, where nobody else can.
FILLER = """
( while [ ! -e "$1/fill" ]; do sleep 0.05; done
  dd if=/dev/zero of="$1/data/filler" bs=4k 2>/dev/null
  # The bridge gives its reserve to the store once; then that is filled too.
  while [ -e "$1/data/reserve" ]; do sleep 0.05; done
  dd if=/dev/zero of="$1/data/filler-too" bs=4k 2>/dev/null; touch "$1/filled"
  while [ -e "$1/fill" ]; do sleep 0.05; done
  rm "$1/data/filler" "$1/data/filler-too"; touch "$1/freed" ) >/dev/null 2>&1 &
shift; exec "$@"
"""


def bubblewrap() -> bool:
    """Tell whether a file system of a certain size can be made here."""
    tried = shutil.which("bwrap") and subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--size", "65536", "--tmpfs", "/tmp", "true"],
        capture_output=True,
        check=False,
    )
    return bool(tried) and tried.returncode == 0  # type: ignore[union-attr]  # it ran


@pytest.mark.slow
@only_on_files("the disk is another machine's")
@pytest.mark.skipif(not bubblewrap(), reason="bubblewrap cannot make a file system of a size here")
def test_a_bridge_on_a_disk_that_is_really_full_refuses_and_recovers(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    sized = ["bwrap", "--dev-bind", "/", "/", "--size", str(4 * 1024 * 1024), "--tmpfs", str(data)]
    shell = ["sh", "-c", FILLER, "sh", str(tmp_path)]
    world = World(tmp_path)
    world.bridge.wrapper = [*sized, "--die-with-parent", "--", *shell]
    with world:
        event = message("t1", f"say hello\n{'x' * 50_000}", "demo")
        (tmp_path / "fill").touch()
        world.bridge.wait((tmp_path / "filled").exists, "the disk was not filled")

        refused = world.bridge.post(event, delivery_id="first")
        (tmp_path / "fill").unlink()
        world.bridge.wait((tmp_path / "freed").exists, "the disk was not freed")
        taken = world.bridge.deliver(event, delivery_id="first")
        world.wait_for("done")

        assert (refused.status_code, taken) == (503, 200)
        assert len(world.turns()) == 1
        world.bridge.kill()


def serve(folder: Path, data_dir: Path, command: str = "serve") -> subprocess.CompletedProcess[str]:
    """Start the product itself, as an operator does, and wait for its end."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "AGENT_BRIDGE_ENV_FILE": os.devnull,
        "DATA_DIR": str(data_dir),
        "PORT": "1",
    }
    return nursery().run(command, environment=environment, cwd=folder)


def test_a_second_bridge_on_the_same_data_dir_refuses_with_one_line(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        second = serve(tmp_path, world.bridge.data_dir)

        assert second.returncode != 0
        assert "is in use by another bridge" in second.stderr
        assert len(second.stderr.strip().splitlines()) == 1
        assert world.bridge.say("t1", "say unharmed") == 200
        world.settle()
        assert world.turns()[0].state == "done"


@only_on_files("there is no file")
def test_a_damaged_database_is_refused_with_one_line_and_kept_as_it_is(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)
    (data_dir / "bridge.db").write_bytes(DAMAGED)

    tried = serve(tmp_path, data_dir)

    assert tried.returncode != 0
    assert "The file is unchanged" in tried.stderr
    assert len(tried.stderr.strip().splitlines()) == 1
    assert (data_dir / "bridge.db").read_bytes() == DAMAGED


@only_on_files("there is no file")
def test_a_database_that_lacks_a_table_is_refused_with_its_name(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    prepare_store(data_dir)
    with closing(sqlite3.connect(data_dir / "bridge.db")) as store, store:
        store.execute("drop table spending")

    started, migrated, checked = (
        serve(tmp_path, data_dir, command) for command in ("serve", "migrate", "doctor")
    )

    assert (started.returncode, migrated.returncode, checked.returncode) == (1, 1, 1)
    assert "missing is spending" in started.stderr
    assert "agent-bridge restore" in started.stderr
    assert len(started.stderr.strip().splitlines()) == 1
    assert migrated.stderr == started.stderr
    assert "missing is spending" in checked.stdout


def holders(file: Path) -> set[int]:
    """List the processes that have a file open."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if link.readlink() == file:
                found.add(int(link.parts[2]))
    return found


@pytest.mark.parametrize("sandbox", ["none", "auto"])
def test_nothing_that_a_bridge_starts_holds_its_lock(tmp_path: Path, sandbox: str) -> None:
    with World(tmp_path, entry={"sandbox": sandbox}) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")
        assert world.bridge.process is not None

        held_by = holders(world.bridge.data_dir / "bridge.lock")
        running = agent_processes(world.bridge.data_dir)
        world.touch("go")
        world.settle()

        assert running
        assert held_by == {world.bridge.process.pid}
