"""A text is purged and a person forgotten on every machine, also on one that is away meanwhile."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import canary
from tests.support.fleet import Fleet, MemberProcess
from tests.support.git_server import git
from tests.support.postgres import dump, need_server
from tests.support.studio import studio

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]
"""Two fronts and two workers start, and one of them a second time."""

LEAKED = "zq7-Pelican-4411-secret"
WORDS = "Pelicans are my favourites."
NAME = "Bobby-Tables"


def find(folder: Path, word: str) -> list[str]:
    """List what a disk holds of a word."""
    return canary.find(folder, *canary.forms(word), but=("reserve",))


def reasons(done: dict[str, Any], member: MemberProcess) -> list[str]:
    """List why something is left, but for what always is, and whether it names a member."""
    return [
        f"{each['why']} {member.name in each['where']}"
        for each in done["left"]
        if each["why"] not in {"copies", "theirs", "unreached"}
    ]


def test_a_machine_that_was_away_erases_when_it_is_back(tmp_path: Path) -> None:
    need_server()
    with Fleet(tmp_path, entry={"mode": "free"}, shares=False) as fleet:
        # One worker has the session first, the other one last.
        fleet.say("p0", f"write key.txt {LEAKED}\nsay {LEAKED}", speaker=NAME)
        fleet.settle()
        first = fleet.worker_of("p0")
        session = fleet.session_of("p0")
        assert first.stop() == 0
        fleet.members.remove(first)
        fleet.say("p0", f"{WORDS}\nwrite key.txt {LEAKED}", speaker=NAME)
        fleet.settle()
        last = fleet.worker_of("p0")
        told = first.workspace(session=session).with_suffix(".files") / "1"
        told.mkdir(parents=True)
        (told / "letter.txt").write_text(f"{NAME} wrote: {WORDS}")
        front = fleet.members[1]
        store = front.settings["DATABASE_URL"]
        assert find(first.data_dir, LEAKED)
        assert find(last.data_dir, LEAKED)

        done = front.http.post("/api/v1/purges", json={"text": LEAKED}, timeout=60).json()

        assert reasons(done, first) == ["away True"]
        clean = fleet.data_dirs
        assert [found for folder in clean for found in find(folder, LEAKED)] == []
        assert canary.find_within(dump(store), LEAKED) == []
        (person,) = front.http.get("/api/v1/people", params={"q": NAME}).json()["items"]
        path = f"/api/v1/people/{person['service']}/{person['id']}"
        forgotten = front.http.delete(path, timeout=60).json()
        assert reasons(forgotten, first) == ["away True"]
        assert [found for folder in clean for found in find(folder, NAME)] == []
        assert find(first.data_dir, LEAKED)
        assert find(first.data_dir, NAME)

        first.start()
        fleet.members.append(first)

        fleet.bridge.wait(lambda: not find(first.data_dir, LEAKED), "it is not purged there")
        fleet.bridge.wait(lambda: not find(first.data_dir, NAME), "they are not forgotten there")
        query = "select count(*) from sealed where name like 'forgetting:%'"
        fleet.bridge.wait(lambda: fleet.bridge.rows(query) == [(0,)], "it is kept who it was")
        assert canary.find_within(dump(store), NAME) == []
        again = front.http.post("/api/v1/purges", json={"text": LEAKED}, timeout=60).json()
        assert reasons(again, first) == []
        assert again["files"] == 0
        fleet.say("p0", "say on", speaker="Ann")
        fleet.settle()
        fleet.end()


def test_what_machines_share_is_cleaned_by_the_one_that_is_asked(tmp_path: Path) -> None:
    need_server()
    entry = {"ship": "none", "sandbox": "none"}
    world = partial(Fleet, fronts=1, workers=1)
    with studio(tmp_path, files={"old.env": LEAKED}, entry=entry, world=world) as here:
        here.tell("write b.txt two")
        front, worker = here.world.bridge, here.world.data_dirs[-1]

        done = front.http.post("/api/v1/purges", json={"text": LEAKED}, timeout=60).json()

        assert [each["why"] for each in done["left"]][:2] == ["unshipped", "remote"]
        # Its agent finds what it needs again, from the remote.
        here.tell("run git show HEAD:old.env; cat b.txt")
        assert git(here.workspace(), "-c", "safe.directory=*", "show", "HEAD:old.env") == LEAKED
        discard = {"text": LEAKED, "discard": True}
        front.http.post("/api/v1/purges", json=discard, timeout=60).raise_for_status()
        shared = here.world.folder / "shared"
        assert canary.find_objects(shared, LEAKED) == canary.find_objects(worker, LEAKED) == []
        assert [found for folder in here.world.data_dirs for found in find(folder, LEAKED)] == []
