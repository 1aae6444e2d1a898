"""A machine loses its disk: the session continues with all that its clone held."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from tests.support.bucket import serve_bucket
from tests.support.fleet import Fleet
from tests.support.git_server import git
from tests.support.postgres import need_server
from tests.support.studio import BRANCH, Studio, pull_of, studio

pytestmark = pytest.mark.timeout(240)
"""Each starts bridges twice and git many times: a busy machine may take minutes."""


def lose_disk(here: Studio, *also: str) -> None:
    """Kill the bridge, remove what a machine has for itself, and start it again."""
    here.world.bridge.kill()
    for folder in ("workspaces", "gates", "mirrors", *also):
        shutil.rmtree(here.world.bridge.data_dir / folder, ignore_errors=True)
    here.world.revive()


def look(clone: Path) -> str:
    """Tell what git says about a clone."""
    its = (clone, "-c", "safe.directory=*")
    state = git(*its, "status", "--short", "--branch")
    return "\n".join((state, git(*its, "log", "--format=%s", "origin/main..")))


def said(here: Studio, words: str) -> bool:
    """Tell whether the bridge said something in the session's transcript."""
    query = "select count(*) from transcript where kind = 'notice' and text like ?"
    return here.world.bridge.rows(query, f"%{words}%") != [(0,)]


@pytest.mark.long
def test_a_session_continues_with_its_uncommitted_files_after_the_disk_was_lost(
    tmp_path: Path,
) -> None:
    with studio(tmp_path, entry={"ship": "none"}) as here:
        here.tell(
            "write a.txt one\n"
            "run git add a.txt && git commit -qm 'Mine' && echo x > staged && git add staged\n"
            "write b.txt two"
        )
        before = look(here.workspace())
        assert before == f"## {BRANCH}\nA  staged\n?? b.txt\nMine"
        lose_disk(here)

        post = here.tell("run cat a.txt b.txt staged\nrecall")

        assert "onetwox" in post.content["text"].replace("\n", "")
        assert "write b.txt two" in post.content["text"]
        assert look(here.workspace()) == before
        assert said(here, "rebuilt from its saved state")


@pytest.mark.long
def test_what_machines_share_is_in_the_shared_folder_and_nothing_else_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    with studio(tmp_path, settings={"SHARED_DIR": str(shared)}) as here:
        here.tell("write a.txt one\ngive report.md All is well.\nwrite b.txt two")
        lose_disk(here)

        post = here.tell("write c.txt three")

        assert pull_of(post) == here.proposals[0]["link"]
        assert [here.show(name) for name in ("a.txt", "b.txt", "c.txt")] == ["one", "two", "three"]
        assert said(here, "rebuilt from its saved state")
        own = {each.name for each in here.world.bridge.data_dir.iterdir()}
        kinds = {"kept", "mirrors", "homes", "session-homes", "uploads"}
        assert kinds <= {each.name for each in shared.iterdir()}
        assert not own & kinds
        assert {"workspaces", "gates", "tools"} <= own

        here.command("repo none", "t2")
        here.tell("write notes.txt all-of-it-0123456789", "t2")
        lose_disk(here)
        post = here.tell("run cat notes.txt", "t2")
        assert "all-of-it-0123456789" in post.content["text"]

        assert len(list(shared.glob("kept/*.folder/*"))) == 1
        purge = {"text": "all-of-it-0123456789"}
        answer = here.world.bridge.http.post("/api/v1/purges", json=purge, timeout=60)
        assert answer.status_code == 200
        assert list(shared.glob("kept/*.folder/*")) == []


@pytest.mark.long
def test_a_bucket_holds_what_a_session_needs_on_another_machine_and_shows_none_of_it(
    tmp_path: Path,
) -> None:
    with (
        serve_bucket() as server,
        studio(
            tmp_path, entry={"ship": "none", "driver": "demo"}, settings=server.settings
        ) as here,
    ):
        here.tell("write a.txt canary-in-a-file\nsay canary-in-a-history")
        lose_disk(here, "session-homes")

        post = here.tell("run cat a.txt\nrecall")

        assert "canary-in-a-file" in post.content["text"]
        assert "say canary-in-a-history" in post.content["text"]
        assert said(here, "rebuilt from its saved state")
        content = server.content()
        assert {name.split("/")[1] for name in content} == {"1-demo-1", "1-demo.home"}
        assert not any(b"canary" in each for each in content.values())
        assert not (here.world.bridge.data_dir / "kept").exists()


@pytest.mark.long
def test_a_worker_is_lost_with_its_disk_and_another_one_continues(tmp_path: Path) -> None:
    need_server()
    entry = {"ship": "none", "driver": "demo", "sandbox": "none"}
    with studio(tmp_path, entry=entry, world=partial(Fleet, fronts=1)) as here:
        fleet = here.world
        assert isinstance(fleet, Fleet)
        fleet.say("t1", "write a.txt one\nrun git add a.txt\nwrite b.txt two")
        fleet.settle()
        lost = fleet.worker_of("t1")
        before = look(lost.data_dir / "workspaces" / "1-demo-1")
        assert before == f"## {BRANCH}\nA  a.txt\n?? b.txt\n"

        lost.kill()
        lost.__exit__()
        fleet.members.remove(lost)
        shutil.rmtree(lost.data_dir)
        fleet.say("t1", "run cat a.txt b.txt\nrecall")
        fleet.settle()

        text = fleet.turns()[-1].content["text"]
        assert "onetwo" in text.replace("\n", "")
        assert "write b.txt two" in text
        other = fleet.worker_of("t1")
        assert look(other.data_dir / "workspaces" / "1-demo-1") == before
