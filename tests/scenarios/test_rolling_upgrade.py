"""Two fronts and two workers are restarted one by one, as an upgrade does, while people talk."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest

from tests.support.fleet import Fleet, MemberProcess
from tests.support.invariants import violations
from tests.support.postgres import need_server

pytestmark = pytest.mark.timeout(240)

LEASE_SECONDS = 20.0
"""No member is to be taken for dead here, however busy the machine is."""
PEOPLE = 6
"""More than two workers of a small machine answer at once, less than they ever fall behind with."""


def drain(member: MemberProcess) -> None:
    """Let a member end what it does."""

    def is_drained() -> bool:
        found = member.http.get("/api/v1/drain").json()
        return bool(found["draining"] and not found["turns"])

    assert member.http.post("/api/v1/drain").status_code == 200
    assert member.http.get("/readyz").status_code == 503
    member.wait(is_drained, "never drained", seconds=60)


@pytest.mark.long
def test_members_are_drained_and_restarted_one_by_one_and_every_event_is_taken_and_answered_once(
    tmp_path: Path,
) -> None:
    need_server()
    with Fleet(tmp_path, lease_seconds=LEASE_SECONDS) as fleet:
        is_over = threading.Event()

        def talk(place: str) -> None:
            """Say the next thing once the last one is answered, as people do."""
            for number in itertools.count():
                if is_over.is_set():
                    return
                fleet.say(place, "slow 2")
                fleet.wait_for("done", place, number)

        people = [threading.Thread(target=talk, args=(f"p{number}",)) for number in range(PEOPLE)]
        for each in people:
            each.start()
        try:
            for member in fleet.members:
                drain(member)
                with fleet.reviving:
                    assert member.stop() == 0
                    member.start()
                fleet.wait_members(len(fleet.members))
        finally:
            is_over.set()
            for each in people:
                each.join()
        fleet.settle()
        fleet.end()

        assert fleet.deaths == 0
        assert violations(fleet) == []
