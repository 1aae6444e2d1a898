"""Two fronts and two workers on one PostgreSQL: one installation, whichever of them is gone."""

from __future__ import annotations

import secrets
import signal
import tempfile
from functools import partial
from pathlib import Path

import pytest

from app.store.database import Database
from tests.scenarios.test_crashes import EVERYWHERE, STORY
from tests.support.fleet import TAKEN_OVER, Fleet
from tests.support.invariants import violations
from tests.support.postgres import Cluster, need_server

PARTS = 6
"""Into which the steps to die at are divided."""
TAKEOVER_SECONDS = 5.0
"""How long after the lease of a member its work may wait for another one."""


@pytest.mark.long
@pytest.mark.timeout(180)
def test_what_a_dead_worker_and_a_stopped_front_leave_is_done_by_the_others(
    tmp_path: Path,
) -> None:
    need_server()
    with Fleet(tmp_path) as fleet:
        # Any front takes a message, any worker answers, and the same one goes on with it.
        for number in range(4):
            fleet.say(f"p{number}", "say hello")
        fleet.settle()
        worker = fleet.worker_of("p0")
        fleet.say("p0", "recall")
        fleet.settle()
        assert fleet.worker_of("p0") is worker

        # A worker dies in the middle of a turn.
        fleet.say("p0", "hold go")
        fleet.wait_for("working", "p0")
        worker.kill()
        assert fleet.time_takeover(worker) < fleet.lease_seconds + TAKEOVER_SECONDS
        fleet.bridge.wait(lambda: fleet.worker_of("p0") is not worker, "p0 is not continued")
        fleet.touch("go", session=fleet.session_of("p0"))
        fleet.say("p0", "say next")
        fleet.settle()

        # The front at the desk is stopped for longer than its lease, and then goes on.
        desk = fleet.wait_desk()
        desk.stop_short()
        assert fleet.time_takeover(desk) < fleet.lease_seconds + TAKEOVER_SECONDS
        fleet.say("p1", "say from another front")
        fleet.wait_desk(but=desk.name)
        desk.let_run()
        assert desk.wait_dead() == TAKEN_OVER
        fleet.settle()
        fleet.end()

        assert violations(fleet) == []


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
def test_a_database_that_restarts_is_waited_for_by_all(tmp_path: Path, end: int) -> None:
    need_server()
    folder = Path(tempfile.gettempdir()) / f"bridge-pg-{secrets.token_hex(4)}"
    with Cluster(folder) as cluster:
        database = Database(cluster.url())
        database.check()  # waits until it listens
        database.close()
        with Fleet(tmp_path, address=cluster.url()) as fleet:
            for place in ("p1", "p2", "p3"):
                fleet.say(place, "tell here\nhold go\nplan look; act")
                fleet.wait_for("working", place)

            cluster.stop(end)
            for member in fleet.members:
                member.wait(partial(member.logged, "the database is away"), "it is not noticed")
            cluster.start()
            for session in (1, 2, 3):
                fleet.touch("go", session)
            fleet.say("p1", "say next")
            fleet.settle()
            fleet.end()

            assert fleet.deaths == 0
            assert violations(fleet) == []
            assert {post.note for post in fleet.platform.turns()} == {""}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_member_may_die_at_any_step_while_others_work(tmp_path: Path, part: int) -> None:
    need_server()
    steps = EVERYWHERE[part::PARTS]
    with Fleet(tmp_path, deadly=True, patient=True) as fleet:
        for number, (step, when) in enumerate(steps):
            fleet.arm(step, when)
            for place in (f"a{number}", f"b{number}"):
                fleet.say(place, STORY)
            fleet.settle(fleet.bridge.reached.exists)
        fleet.end()

        assert fleet.deaths >= len(steps)
        assert violations(fleet) == []
