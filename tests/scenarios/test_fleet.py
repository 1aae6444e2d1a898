"""Two fronts and two workers on one PostgreSQL: one installation, whichever of them is gone."""

from __future__ import annotations

from pathlib import Path

from tests.support.fleet import TAKEN_OVER, Fleet
from tests.support.invariants import violations
from tests.support.postgres import need_server


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
        fleet.time_takeover(worker)
        other = fleet.worker_of("p0")
        assert other is not worker
        fleet.touch("go", session=fleet.session_of("p0"))
        fleet.say("p0", "say next")
        fleet.settle()

        # The front at the desk is stopped for longer than its lease, and then goes on.
        desk = fleet.wait_desk()
        desk.stop_short()
        fleet.time_takeover(desk)
        fleet.say("p1", "say from another front")
        fleet.wait_desk(but=desk.name)
        desk.let_run()
        assert desk.wait_dead() == TAKEN_OVER
        fleet.settle()
        fleet.end()

        assert violations(fleet) == []
