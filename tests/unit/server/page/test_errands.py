"""What agents ask of each other, on the page: under the turn that asked, and on its own page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.feed import Unfinished
from app.core.types import Entry, TurnRef
from tests.support.document import Element, parse
from tests.support.errands import delegate
from tests.support.office import Office, office

pytestmark = pytest.mark.anyio

TASK = "look at <b>the tests</b>"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Office]:
    async with office(tmp_path) as opened:
        yield opened


def part(page: str, name: str) -> Element:
    found = parse(page.partition(">")[2])
    return next(each for each in found.elements() if each.id == name)


async def ask_codex(
    desk: Office, task: str = "look at <b>the tests</b>"
) -> tuple[str, TurnRef, str, TurnRef]:
    """Let Claude work in a thread, and ask Codex; returns both paths and turns."""
    path = await desk.say("Fix the login", to="claude")
    caller = desk.turn_of(path)
    await desk.begin(caller)
    await desk.write(caller, Entry("text", "I ask Codex."))
    below = await desk.say(TASK, to="codex")
    errand = desk.turn_of(below, "codex")
    await delegate(desk.stores, caller, errand, TASK)
    return path, caller, below, errand


async def test_what_an_agent_was_asked_is_one_line_under_the_turn_that_asked(desk: Office) -> None:
    path, caller, below, errand = await ask_codex(desk)
    await desk.begin(errand)
    await desk.write(errand, Entry("text", "The tests are **fine**."))
    await desk.write(caller, Entry("text", "Codex is happy."))

    page = await desk.page(path)
    line = part(page, f"t{errand.turn}")

    assert line.tag == "details"
    assert "open" not in line.attributes
    assert "look at <b>the tests</b>" in part(page, f"t{errand.turn}-head").text
    assert "working" in part(page, f"t{errand.turn}-head").text
    assert "The tests are fine." in part(page, f"t{errand.turn}-body").text
    body = part(page, f"t{caller.turn}-body").text
    assert body.index("I ask Codex.") < body.index("look at") < body.index("Codex is happy.")
    assert part(page, "log").text.count("look at <b>the tests</b>") == 1
    assert f'href="{below}"' in page
    assert f'data-post="/stop{below}"' in page


async def test_an_open_page_follows_what_an_agent_does_for_another(desk: Office) -> None:
    path, _, _, errand = await ask_codex(desk)
    events = desk.events(path)
    await events.next("blocks")

    await desk.begin(errand)
    await desk.write(errand, Entry("text", "Looking."))
    _, patches = await events.next("blocks")
    assert {patch["id"] for patch in patches} >= {f"t{errand.turn}-head"}
    desk.feed.show(Unfinished(errand.session, errand.turn, "text", "and more"))
    _, live = await events.next("live")
    await desk.write(errand, Entry("notice", "", data={"end": "done"}))
    _, ended = await events.next("blocks")

    assert any("and more" in patch["html"] for patch in live)
    head = next(patch for patch in ended if patch["id"] == f"t{errand.turn}-head")
    assert "done" in head["html"]
    assert 'role="timer"' not in head["html"]
    await events.close()


async def test_its_own_page_shows_the_task_as_a_message(desk: Office) -> None:
    _, _, below, errand = await ask_codex(desk)
    await desk.write(errand, Entry("text", "Looking."))

    page = await desk.page(below)

    assert "look at <b>the tests</b>" in part(page, "log").text
    assert part(page, f"t{errand.turn}").tag == "article"


async def test_stopping_it_stops_it_alone(desk: Office) -> None:
    _, _, below, errand = await ask_codex(desk)
    await desk.begin(errand)

    answer = await desk.post(f"/stop{below}", session=str(errand.session), turns=f"t{errand.turn}")

    assert answer.status_code == 204
    assert desk.engine.cancelled == [errand.session]
