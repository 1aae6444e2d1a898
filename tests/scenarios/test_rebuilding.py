"""A machine loses its disk: the session continues with all that its clone held."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.git_server import git
from tests.support.studio import BRANCH, Studio, studio


def lose_disk(here: Studio) -> None:
    """Kill the bridge, remove what a machine has for itself, and start it again."""
    here.world.bridge.kill()
    for folder in ("workspaces", "gates", "mirrors"):
        shutil.rmtree(here.world.bridge.data_dir / folder)
    here.world.revive()


def look(here: Studio) -> str:
    """Tell what git says about the clone of the session."""
    its = (here.workspace(), "-c", "safe.directory=*")
    state = git(*its, "status", "--short", "--branch")
    return "\n".join((state, git(*its, "log", "--format=%s", "origin/main..")))


def said(here: Studio, words: str) -> bool:
    """Tell whether the bridge said something in the session's transcript."""
    query = "select count(*) from transcript where kind = 'notice' and instr(text, ?)"
    return here.world.bridge.rows(query, words) != [(0,)]


def test_a_session_continues_with_its_uncommitted_files_after_the_disk_was_lost(
    tmp_path: Path,
) -> None:
    with studio(tmp_path, entry={"ship": "none"}) as here:
        here.tell(
            "write a.txt one\n"
            "run git add a.txt && git commit -qm 'Mine' && echo x > staged && git add staged\n"
            "write b.txt two"
        )
        before = look(here)
        assert before == f"## {BRANCH}\nA  staged\n?? b.txt\nMine"
        lose_disk(here)

        post = here.tell("run cat a.txt b.txt staged")

        assert "one\ntwo\nx" in post.content["text"].replace("onetwo", "one\ntwo\n")
        assert look(here) == before
        assert said(here, "rebuilt from its saved state")
