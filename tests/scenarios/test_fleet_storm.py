"""Fronts and workers die, stop and leave at random while many people talk: the same promises."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from tests.scenarios.test_random_crashes import talk
from tests.support.fleet import TAKEN_OVER, Fleet, MemberProcess
from tests.support.invariants import violations
from tests.support.postgres import need_server

PATIENCE_SECONDS = 120.0
"""An event may reach one front after the other that is stopped just then."""


def kill(fleet: Fleet, member: MemberProcess, *, wait: bool) -> None:
    """Kill a member; start it again at once, or when others have taken over."""
    with fleet.reviving:
        member.kill()
        if wait:
            fleet.time_takeover(member)
    fleet.revive()


def freeze(fleet: Fleet, member: MemberProcess) -> None:
    """Stop a member for longer than its lease, then let it find that it is gone."""
    with fleet.reviving:
        member.wait_started()
        member.stop_short()
        fleet.time_takeover(member)
        member.let_run()
        assert member.wait_dead() == TAKEN_OVER
    fleet.revive()


def leave(fleet: Fleet, member: MemberProcess) -> None:
    """End a member politely and start it again."""
    with fleet.reviving:
        member.stop()
    fleet.polite_ends += 1
    fleet.revive()


def storm(folder: Path, seed: int, *, places: int, messages: int, faults: int) -> Fleet:
    """Have people talk in many places while members come and go."""
    need_server()
    chance = random.Random(seed)
    with Fleet(folder, settings={"GRACE_SECONDS": "0.3"}, patience=PATIENCE_SECONDS) as fleet:
        names = [f"p{number}" for number in range(places)]
        talkers = [
            threading.Thread(target=talk, args=(fleet, name, messages, f"{seed} {name}"))
            for name in names
        ]
        for talker in talkers:
            talker.start()
        for _ in range(faults):
            member = chance.choice(fleet.members)
            match chance.choice(("kill", "kill and wait", "freeze", "leave")):
                case "freeze":
                    freeze(fleet, member)
                case "leave":
                    leave(fleet, member)
                case how:
                    kill(fleet, member, wait=how != "kill")
            fleet.answer_asks()
        for talker in talkers:
            talker.join()
        fleet.settle()
        fleet.end()
        return fleet


@pytest.mark.long
@pytest.mark.timeout(180)
def test_nothing_is_lost_or_doubled_when_members_come_and_go(tmp_path: Path) -> None:
    fleet = storm(tmp_path, 1, places=3, messages=4, faults=5)

    assert violations(fleet) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_nothing_is_lost_or_doubled_in_a_long_storm_of_members(tmp_path: Path, seed: int) -> None:
    fleet = storm(tmp_path, seed, places=5, messages=8, faults=10)

    assert violations(fleet) == []
