"""Two fronts and two workers are restarted one by one, as an upgrade does, while people talk."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.fleet import Fleet, MemberProcess
from tests.support.invariants import violations
from tests.support.postgres import need_server

pytestmark = pytest.mark.timeout(240)

LEASE_SECONDS = 20.0
"""No member is to be taken for dead here, however busy the machine is."""


def drain(member: MemberProcess) -> None:
    """Let a member end what it does."""

    def is_drained() -> bool:
        found = member.http.get("/api/v1/drain").json()
        return bool(found["draining"] and not found["turns"])

    assert member.http.post("/api/v1/drain").status_code == 200
    assert member.http.get("/readyz").status_code == 503
    member.wait(is_drained, "never drained", seconds=60)


@pytest.mark.slow
def test_members_are_drained_and_restarted_one_by_one_and_every_event_is_taken_and_answered_once(
    tmp_path: Path,
) -> None:
    need_server()
    with Fleet(tmp_path, lease_seconds=LEASE_SECONDS) as fleet:
        is_over = threading.Event()

        def talk() -> None:
            number = 0
            while not is_over.is_set():
                number += 1
                word = fleet.say(f"p{number % 4}", "slow 2")
                fleet.wait_decided(word)

        talking = threading.Thread(target=talk)
        talking.start()
        try:
            for member in fleet.members:
                drain(member)
                with fleet._reviving:
                    assert member.stop() == 0
                    member.start()
                fleet.wait_members(len(fleet.members))
        finally:
            is_over.set()
            talking.join()
        fleet.settle()
        fleet.end()

        assert fleet.deaths == 0
        assert violations(fleet) == []
