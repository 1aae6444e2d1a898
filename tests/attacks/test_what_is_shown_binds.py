"""An answer counts for what was shown, whole, and for nothing else.

A core with scripted agents: what an agent says before it asks, and asks again after a park.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from app.model.inbound import Heard
from app.model.ports import AgentListener
from app.model.updates import AskOption, AskRequest, FileDiff, TextUpdate, ToolUpdate
from tests.support.clock import ManualClock
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

IDLE = 1800.0
OPTIONS = (AskOption("allow", "Allow once", "allow_once"), AskOption("no", "Reject", "reject_once"))
SECRET = "sk-of-the-operator-0123456789"


def to_demo(words: str) -> Heard:
    return replace(heard(words, "t1"), mentions=("demo",))


def request(**tool: object) -> AskRequest:
    """Make the request of an agent that says the same about every call."""
    call = ToolUpdate("call", "Tidy up", **tool)  # type: ignore[arg-type]  # its fields
    return AskRequest("call", "Tidy up", OPTIONS, call, arguments_hash="0" * 64)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def desk(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    rules = Rules(idle_seconds=IDLE, max_turns=1, secrets=(SECRET,))
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        yield desk


def asks(desk: Desk) -> list[str]:
    """List what people were asked, as Markdown shows it."""
    return [p.content.text for p in desk.posts() if p.op == "create" and p.content.kind == "ask"]


async def park(desk: Desk, clock: ManualClock) -> None:
    await desk.hear(to_demo("tidy up"))
    await desk.until(lambda: len(asks(desk)) == 1)
    await clock.asleep(2)
    await clock.advance(IDLE)
    await desk.reached(1, "parked")
    await desk.until(lambda: desk.launcher.told("close") == [""])


async def test_an_answer_to_one_command_does_not_allow_another_that_was_announced_since(
    desk: Desk, clock: ManualClock
) -> None:
    commands = iter(["ls", "rm -rf /", "rm -rf /"])

    async def script(listener: AgentListener) -> None:
        await listener.on_update(ToolUpdate("call", "Tidy up", input={"command": next(commands)}))
        answer = await listener.on_ask(request())
        await listener.on_update(TextUpdate(f"The answer was {answer}."))

    desk.launcher.script = script
    await park(desk, clock)
    await desk.answer(1, "allow")
    await desk.until(lambda: len(asks(desk)) == 2)
    await desk.answer(2, "no")
    await desk.reached(2, "done")

    assert "rm -rf /" in asks(desk)[1]
    await desk.until(lambda: any("was no." in post.content.text for post in desk.posts()))


async def test_an_ask_of_the_release_before_can_be_answered_but_is_asked_again_as_it_is_shown_now(
    desk: Desk, clock: ManualClock
) -> None:
    async def script(listener: AgentListener) -> None:
        answer = await listener.on_ask(request(input={"command": "make deploy"}))
        await listener.on_update(TextUpdate(f"The answer was {answer}."))

    desk.launcher.script = script
    await park(desk, clock)
    with desk.database.engine.begin() as connection:
        connection.execute(text("update ask set arguments_hash = :old"), {"old": "0" * 64})
        for table, column in (("post", "content"), ("transcript", "data")):
            rows = connection.execute(text(f"select id, {column} from {table}")).all()
            for number, stored in rows:
                kept = json.loads(stored or "{}")
                kept.pop("view", None)
                change = text(f"update {table} set {column} = :kept where id = :number")
                connection.execute(change, {"kept": json.dumps(kept), "number": number})

    await desk.answer(1, "allow")
    await desk.until(lambda: len(asks(desk)) == 2)
    await desk.answer(2, "no")
    await desk.reached(2, "done")


async def test_what_does_not_fit_is_allowed_on_the_page_alone(
    desk: Desk, clock: ManualClock
) -> None:
    long = f"echo {'x' * 9_000}; rm -rf / #{'y' * 9_000}"

    async def script(listener: AgentListener) -> None:
        answer = await listener.on_ask(request(input={"command": long}))
        await listener.on_update(TextUpdate(f"The answer was {answer}."))

    desk.launcher.script = script
    await desk.hear(to_demo("tidy up"))
    await desk.until(lambda: len(asks(desk)) == 1)
    await desk.answer(1, "allow")
    state, reason = desk.deliveries.settled[-1]
    assert (state, "allow it on the bridge's page" in reason) == ("refused", True)
    await desk.hear(to_demo("Allow once"))
    assert [ask.state for ask in await desk.ledger.list(after=0, limit=9)] == ["open"]

    content = next(post.content for post in desk.posts() if post.content.kind == "ask")
    assert [option.id for option in content.offered] == ["no"]
    (fact,) = content.asked.facts
    assert fact.left == len(long) - len(fact.text) - len(fact.tail) > 0
    assert long.startswith(fact.text)
    assert long.endswith(fact.tail)

    await desk.ledger.answer(1, "allow", "operator")
    await desk.until(lambda: any("was allow." in post.content.text for post in desk.posts()))


async def test_what_nobody_can_read_is_refused(desk: Desk, clock: ManualClock) -> None:
    async def script(listener: AgentListener) -> None:
        answer = await listener.on_ask(request(input={"command": f"true {'x' * 200_000}"}))
        await listener.on_update(TextUpdate(f"The answer was {answer}."))

    desk.launcher.script = script
    await desk.hear(to_demo("tidy up"))
    await desk.reached(1, "done")

    assert asks(desk) == []
    await desk.until(lambda: any("was no." in post.content.text for post in desk.posts()))


@pytest.mark.parametrize(
    ("kind", "tool", "unsaid"),
    [("edit", {"locations": ("a.py",)}, "change"), ("other", {}, "call")],
)
async def test_an_agent_that_does_not_say_what_it_does_is_shown_as_such(
    desk: Desk, kind: str, tool: dict[str, object], unsaid: str
) -> None:
    async def script(listener: AgentListener) -> None:
        await listener.on_ask(request(kind=kind, **tool))

    desk.launcher.script = script
    await desk.hear(to_demo("tidy up"))
    await desk.until(lambda: len(asks(desk)) == 1)

    content = next(post.content for post in desk.posts() if post.content.kind == "ask")
    assert content.asked.unsaid == unsaid
    await desk.answer(1, "no")
    await desk.reached(1, "done")


async def test_a_secret_in_a_command_is_hidden_and_that_is_said(desk: Desk) -> None:
    async def script(listener: AgentListener) -> None:
        diffs = (FileDiff("a.env", None, f"KEY={SECRET}\n"),)
        await listener.on_ask(request(input={"command": f"curl -H {SECRET} x"}, diffs=diffs))

    desk.launcher.script = script
    await desk.hear(to_demo("tidy up"))
    await desk.until(lambda: len(asks(desk)) == 1)

    view = next(post.content for post in desk.posts() if post.content.kind == "ask").asked
    assert view.secret
    assert [fact.text for fact in view.facts] == ["+KEY=[secret]", "curl -H [secret] x"]
    await desk.answer(1, "no")
    await desk.reached(1, "done")
