"""A machine loses its disk: sessions continue with what machines share, and people are told."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from tests.support.fleet import Fleet, MemberProcess
from tests.support.git_server import git
from tests.support.postgres import need_server
from tests.support.studio import BRANCH, Studio, studio

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
def test_a_clone_that_is_lost_is_made_again_and_people_are_told(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        here.tell("write a.txt one")
        here.command("repo none", "t2")
        here.tell("write notes.txt two", "t2")
        lose_disk(here)

        post = here.tell("run cat a.txt\nrecall")

        assert "one" in post.content["text"]
        assert said(here, "work that was not pushed is missing")
        here.tell("run ls", "t2")
        assert said(here, "what was in it is missing")


@pytest.mark.long
def test_what_machines_share_is_in_the_shared_folder_and_nothing_else_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    settings = {"SHARED_DIR": str(shared)}
    with studio(tmp_path, entry={"ship": "none"}, settings=settings) as here:
        here.tell(
            "write a.txt one\n"
            "run git add a.txt && git commit -qm 'Mine' && echo x > staged && git add staged\n"
            "give report.md All is well.\n"
            "write b.txt two"
        )
        before = look(here.workspace())
        assert before == f"## {BRANCH}\nA  staged\n?? b.txt\nMine"
        lose_disk(here)

        post = here.tell("run cat a.txt b.txt staged\nrecall")

        assert "onetwox" in post.content["text"].replace("\n", "")
        assert "write b.txt two" in post.content["text"]
        assert look(here.workspace()) == before
        own = {each.name for each in here.world.bridge.data_dir.iterdir()}
        kinds = {"workspaces", "mirrors", "homes", "session-homes", "uploads"}
        assert kinds <= {each.name for each in shared.iterdir()}
        assert not own & (kinds - {"workspaces"})
        assert {"gates", "tools"} <= own

        here.command("repo none", "t2")
        here.tell("write notes.txt all-of-it-0123456789", "t2")
        lose_disk(here)
        post = here.tell("run cat notes.txt", "t2")
        assert "all-of-it-0123456789" in post.content["text"]
        assert not said(here, "missing")


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
        before = look(here.workspace())
        assert before == f"## {BRANCH}\nA  a.txt\n?? b.txt\n"

        lose(fleet, lost)
        fleet.say("t1", "run cat a.txt b.txt\nrecall")
        fleet.settle()

        text = fleet.turns()[-1].content["text"]
        assert "onetwo" in text.replace("\n", "")
        assert "write b.txt two" in text
        assert look(here.workspace()) == before
        assert not said(here, "missing")


@pytest.mark.long
def test_people_are_told_what_is_lost_with_a_machine_that_shares_no_folder(tmp_path: Path) -> None:
    need_server()
    entry = {"ship": "none", "driver": "demo", "sandbox": "none"}
    world = partial(Fleet, fronts=1, shares=False)
    with studio(tmp_path, entry=entry, world=world) as here:
        fleet = here.world
        assert isinstance(fleet, Fleet)
        fleet.say("t1", "write a.txt one")
        fleet.settle()

        lose(fleet, fleet.worker_of("t1"))
        fleet.say("t1", "run ls")
        fleet.settle()

        assert "a.txt" not in fleet.turns()[-1].content["text"]
        assert said(here, "work that was not pushed is missing")


def lose(fleet: Fleet, lost: MemberProcess) -> None:
    """Let a member die with its disk."""
    lost.kill()
    lost.__exit__()
    fleet.members.remove(lost)
    shutil.rmtree(lost.data_dir)
