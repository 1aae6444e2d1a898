"""What an agent asks while it works for another one: people decide where it all began."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.features.delegation.store import DelegationStore
from app.model.keys import PlaceKey, SessionKey
from app.model.ports import AgentListener
from app.model.types import Entry
from app.model.updates import AskOption, AskRequest, TextUpdate
from tests.support.colleagues import Asking, asked, message
from tests.support.desk import STRANGER, Desk, Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

YES, NO = AskOption("yes", "Allow", "allow_once"), AskOption("no", "Reject", "reject_once")
MAY_I = AskRequest("call", "Run `make`?", (YES, NO), arguments_hash="make")
TEAM = Rules(agents=("demo", "codex"), names={"demo": "Demo", "codex": "Codex"})


async def ask_people(listener: AgentListener) -> None:
    answer = await listener.on_ask(MAY_I)
    await listener.on_update(TextUpdate(f"the answer was {answer}"))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, rules=TEAM) as running:
        running.launcher.scripts["codex"] = ask_people
        yield running


async def shown(desk: Desk) -> int:
    """Wait until people see the ask; returns its number."""
    await desk.until(lambda: any(post.content.kind == "ask" for post in desk.posts()))
    (post,) = (each for each in desk.posts() if each.content.kind == "ask")
    assert post.target == SessionKey("web", "t1", "demo")
    assert post.content.text.startswith("Codex: Run")
    assert post.content.ask is not None
    return post.content.ask


async def questions(desk: Desk, place: PlaceKey) -> list[Entry]:
    rows = await desk.stores.transcript.read_place(place, after=0, limit=100)
    return [row for row in rows if row.kind == "ask"]


async def test_an_ask_is_shown_and_answered_where_it_all_began(desk: Desk) -> None:
    demo = Asking(desk, calls=(message(),))
    (turn,) = await desk.ask("demo")
    ask = await shown(desk)

    await desk.answer(ask, "yes")
    await desk.reached(turn, "done")

    assert demo.got[0]["answer"] == "the answer was yes"
    child = desk.stores.sessions.session(asked(desk).session)
    assert child is not None
    for place in (PlaceKey("web", "t1"), child.place):
        assert [row.data["state"] for row in await questions(desk, place)] == ["open", "answered"]


async def test_a_reply_in_words_answers_it(desk: Desk) -> None:
    demo = Asking(desk, calls=(message(),))
    (turn,) = await desk.ask("demo")
    await shown(desk)

    await desk.hear(replace(heard("allow"), mentions=("demo",)))
    await desk.reached(turn, "done")

    assert demo.got[0]["answer"] == "the answer was yes"


async def test_who_may_answer_is_decided_for_the_place_where_it_is_shown(desk: Desk) -> None:
    Asking(desk, calls=(message(),))
    await desk.ask("demo")
    ask = await shown(desk)

    await desk.answer(ask, "yes", STRANGER)

    found = desk.stores.asks.ask(ask)
    assert found is not None
    assert found.state == "open"
    await desk.answer(ask, "no")


async def test_a_parked_child_goes_on_with_the_answer_and_is_still_the_same_errand(
    tmp_path: Path,
) -> None:
    async with running_desk(tmp_path, rules=replace(TEAM, idle_seconds=0.05)) as desk:
        desk.launcher.scripts["codex"] = ask_people
        Asking(desk, calls=(message(mode="async"),))
        await desk.ask("demo")
        ask = await shown(desk)
        await desk.until(lambda: asked(desk).state == "parked")

        await desk.answer(ask, "yes")

        await desk.until(lambda: asked(desk).state == "done")
        assert desk.stores.open(DelegationStore).answer(asked(desk)).text == "the answer was yes"


async def test_an_agent_that_speaks_for_itself_asks_under_its_own_name(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=replace(TEAM, voice="own")) as desk:
        desk.launcher.scripts["codex"] = ask_people
        demo = Asking(desk, calls=(message(),))
        (turn,) = await desk.ask("demo")
        await desk.until(lambda: any(post.content.kind == "ask" for post in desk.posts("codex")))
        post = next(each for each in desk.posts("codex") if each.content.kind == "ask")

        assert post.content.ask is not None
        await desk.answer(post.content.ask, "yes")
        await desk.reached(turn, "done")

        assert post.target == SessionKey("web", "t1", "codex")
        assert post.content.text.startswith("Run")
        assert demo.got[0]["answer"] == "the answer was yes"
