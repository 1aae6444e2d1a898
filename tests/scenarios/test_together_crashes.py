"""Kill -9 between any two steps of a review in rounds: nothing is lost or done twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest

from tests.support.company import Company, open_company, pulls, states
from tests.support.variants import quick

Point = tuple[str, Literal["before", "after"], int]

POINTS: list[Point] = [
    ("delegation.begin", "after", 1),
    ("together.give", "after", 1),
    ("together.end", "after", 1),
    ("delegation.begin", "before", 1),
    ("decisions.accept", "before", 1),
    ("decisions.accept", "after", 1),
    ("together.give", "before", 1),
    ("together.tell", "before", 1),
    ("together.tell", "after", 1),
    ("together.sent", "before", 1),
    ("together.sent", "after", 1),
    ("turns.finish", "before", 1),
    ("turns.finish", "after", 1),
    ("delegation.begin", "before", 2),
    ("delegation.begin", "after", 2),
    ("turns.finish", "before", 2),
    ("turns.finish", "after", 2),
    ("together.tell", "after", 2),
    ("delegation.begin", "before", 3),
    ("delegation.begin", "after", 3),
    ("together.give", "after", 2),
    ("turns.finish", "after", 3),
    ("together.end", "before", 1),
]


pytestmark = pytest.mark.timeout(240)  # four turns one after another, also on a full machine


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with open_company(tmp_path_factory.mktemp("company")) as company:
        yield company


@pytest.mark.long
@pytest.mark.parametrize(("step", "when", "nth"), quick(3, POINTS))
def test_a_review_goes_on_after_kill_9(
    company: Company, step: str, when: Literal["before", "after"], nth: int
) -> None:
    world, bridge = company.world, company.bridge
    file = f"{step}-{when}-{nth}.txt".replace("/", "-")
    thread = company.begin_work(f"write {file} broken")
    world.settle()
    [pull] = pulls(company.hub, file)

    bridge.arm(step, when, nth)
    world.say("!review codex", thread=thread)
    company.revive()
    world.wait_told(thread, "codex approved")
    world.settle()
    bridge.wait(company.is_over, "the review is not over")

    assert states(pull) == ["changes_requested", "approved"]
    assert company.hub.file(pull, file) == "repaired"
    told = [each.words for each in world.said(thread)]
    for words in ("reviews", "requested changes", "looks at it again", "approved"):
        assert sum(f"codex {words}" in each for each in told) == 1


BEFORE_THE_PICK: list[Point] = [
    ("together.ask", "after", 1),
    ("delegation.begin", "after", 1),
    ("delegation.begin", "after", 2),
    ("turns.finish", "after", 1),
    ("together.ask", "before", 1),
]
AFTER_THE_PICK: list[Point] = [
    ("asks.answer", "after", 1),
    ("checkouts.sent", "before", 1),
    ("checkouts.told", "before", 1),
    ("together.end", "before", 1),
]


@pytest.mark.long
@pytest.mark.parametrize(("step", "when", "nth"), quick(1, BEFORE_THE_PICK))
def test_people_are_asked_once_which_work_to_ship_also_after_kill_9(
    company: Company, step: str, when: Literal["before", "after"], nth: int
) -> None:
    file = f"race-{step}-{when}-{nth}.txt"
    company.bridge.arm(step, when, nth)
    thread = company.begin_race(file)
    company.revive()

    company.pick(thread)

    check_shipped(company, thread, file)


@pytest.mark.long
@pytest.mark.parametrize(("step", "when", "nth"), quick(1, AFTER_THE_PICK))
def test_what_people_picked_is_shipped_once_also_after_kill_9(
    company: Company, step: str, when: Literal["before", "after"], nth: int
) -> None:
    file = f"pick-{step}-{when}-{nth}.txt"
    thread = company.begin_race(file)
    company.wait_for_question(thread)
    company.bridge.arm(step, when, nth)

    company.pick(thread)
    company.revive()

    check_shipped(company, thread, file)


def check_shipped(company: Company, thread: str, file: str) -> None:
    """Check that the work of Codex, and no other, was shipped and told once."""
    world = company.world
    world.wait_told(thread, "The work of codex is shipped")
    world.settle()
    [pull] = pulls(company.hub, file)
    assert pull.user is company.hub.apps["codex"].bot
    told = [each.words for each in world.said(thread)]
    assert sum("The work of codex is shipped" in each for each in told) == 1
    assert sum("is to be shipped?" in each for each in told) == 1
