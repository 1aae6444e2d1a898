"""The tool schedule_create: a person agrees first, and becomes the creator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.features.schedules import wording
from app.features.schedules.service import MOST
from app.model.asks import LEAVE, TAKE
from app.model.types import Speaker
from tests.support.at_work import at_work, helping
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import ANN

pytestmark = pytest.mark.anyio

DAILY: dict[str, Any] = {"when": "0 9 * * 1-5 Europe/Berlin", "task": "Summarise the issues."}
BEN = Speaker("ben", "Ben")
TEAM = Rules(agents=("demo", "codex"))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, rules=TEAM) as running:
        yield running


def shown(desk: Desk, kind: str) -> list[str]:
    found = [p.content for p in desk.posts() if p.op == "create" and p.content.kind == kind]
    return [each.text or each.note for each in found]


async def test_a_person_who_agrees_becomes_the_creator_and_is_told_once(desk: Desk) -> None:
    async with at_work(desk) as demo:
        asked = await demo.call("schedule_create", **DAILY)
        same = await demo.call("schedule_create", **DAILY)
        await desk.until(lambda: bool(shown(desk, "ask")))
        assert desk.schedules.all() == []

        await desk.answer(1, TAKE, BEN)
        await desk.until(lambda: bool(shown(desk, "notice")))
        await desk.schedules.make_agreed()

    assert asked == same
    assert (asked["state"], len(asked["next"])) == ("asked", 3)
    assert len(shown(desk, "ask")) == 1
    (made,) = desk.schedules.all()
    assert (made.creator, made.words, made.zone) == (BEN, DAILY["task"], "Europe/Berlin")
    assert str(made.key) == "web:t1:demo"
    (told,) = shown(desk, "notice")
    assert told.startswith("Schedule 1 for demo: Summarise the issues.")


async def test_an_answer_on_the_page_leaves_the_rights_to_the_person_who_asked(desk: Desk) -> None:
    async with at_work(desk) as demo:
        await demo.call("schedule_create", **DAILY)
        await desk.ledger.answer(1, TAKE, "the operator")
        await desk.until(lambda: bool(shown(desk, "notice")))

    (made,) = desk.schedules.all()
    assert made.creator == ANN


async def test_without_a_yes_nothing_is_made(desk: Desk) -> None:
    async with at_work(desk) as demo:
        await demo.call("schedule_create", **DAILY)
        await desk.answer(1, LEAVE)
        await desk.schedules.make_agreed()

    assert desk.schedules.all() == []
    assert shown(desk, "notice") == []


async def test_an_agreement_before_a_crash_is_kept_once(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=TEAM) as desk, at_work(desk) as demo:
        await demo.call("schedule_create", **DAILY)
        # The bridge dies between the answer and what follows from it.
        await desk.stores.asks.answer(1, TAKE, "Ben", speaker="ben")
    async with running_desk(tmp_path, rules=TEAM) as desk:
        await desk.schedules.make_agreed()
        await desk.schedules.make_agreed()

        (made,) = desk.schedules.all()
        assert made.creator == BEN
        await desk.until(lambda: len(shown(desk, "notice")) == 1)


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("* * * * *", "more often than every 5 minutes"),
        ("soon", "soon"),
        ("0 9 31 2 *", "day-of-month"),
    ],
)
async def test_a_rule_that_makes_no_sense_is_refused(desk: Desk, when: str, why: str) -> None:
    async with at_work(desk) as demo:
        refused = await demo.call("schedule_create", when=when, task="Look.")

    assert why in refused["error"]
    assert shown(desk, "ask") == []


async def test_limits_hold_and_only_the_agent_that_people_talk_to_proposes(desk: Desk) -> None:
    async with at_work(desk) as demo:
        made = [
            await demo.call("schedule_create", when="0 9 * * *", task=f"Task {number}.")
            for number in range(4)
        ]
        async with helping(desk, demo) as codex:
            foreign = await codex.call("schedule_create", **DAILY)
        for ask in (1, 2, 3):
            await desk.answer(ask, TAKE)
        await desk.schedules.make_agreed()

    assert "3 of your proposals" in made[3]["error"]
    assert foreign["error"] == wording.NOT_FOR_AGENTS
    assert len(desk.schedules.all()) == 3 < MOST
