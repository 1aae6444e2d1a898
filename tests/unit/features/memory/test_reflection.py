"""After a turn: the agent is asked what to remember, and people do not wait for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from app.core.turns.prompt import holds_words_of_others
from app.features.memory.store import MemoryStore
from app.features.memory.wording import WORTH_KEEPING
from app.model.asks import LEAVE, TAKE
from app.model.ports import AgentListener
from app.model.updates import AskOption, AskRequest, TextUpdate
from app.store.tables import place
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

AUTO = Rules(memory="auto")
MAY_I = AskRequest("call", "May I?", (AskOption("yes", "Yes", "allow_once"),))


def is_reflecting(desk: Desk) -> bool:
    return desk.launcher.told("prompt")[-1:] == [WORTH_KEEPING]


async def answer_note(listener: AgentListener) -> None:
    await listener.on_update(TextUpdate("- Worth it."))


async def test_the_next_message_does_not_wait_for_what_is_remembered(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=AUTO) as desk:

        async def think_forever(listener: AgentListener) -> None:
            await listener.on_update(TextUpdate("- Half a thought."))
            if is_reflecting(desk):
                await asyncio.Event().wait()

        desk.launcher.script = think_forever
        first = await desk.hear(replace(heard("hello"), mentions=("demo",)))
        await desk.until(lambda: is_reflecting(desk))
        await desk.reached(first.turns[0].turn, "done")

        second = await desk.hear(replace(heard("again"), mentions=("demo",)))

        await desk.reached(second.turns[0].turn, "done")
        assert desk.launcher.told("cancel") == [""]
        assert await desk.stores.open(MemoryStore).kept() == []
        await desk.until(lambda: is_reflecting(desk))


async def test_an_agent_gets_no_permission_while_it_remembers(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=AUTO) as desk:
        answers: list[str | None] = []

        async def ask(listener: AgentListener) -> None:
            if is_reflecting(desk):
                answers.append(await listener.on_ask(MAY_I))
                desk.stir()

        desk.launcher.script = ask
        await desk.hear(replace(heard("hello"), mentions=("demo",)))

        await desk.until(lambda: bool(answers))
        assert answers == [None]
        assert await desk.stores.asks.asks(after=0, limit=9) == []


async def test_an_agent_that_is_not_to_remember_is_not_asked(tmp_path: Path) -> None:
    async with running_desk(tmp_path) as desk:
        heard_it = await desk.hear(replace(heard("hello"), mentions=("demo",)))
        await desk.reached(heard_it.turns[0].turn, "done")
        await desk.engine.ended(desk.session().id)

        assert WORTH_KEEPING not in desk.launcher.told("prompt")


@pytest.mark.parametrize(("option", "kept"), [(TAKE, 1), (LEAVE, 0)])
async def test_people_decide_where_they_are_to(tmp_path: Path, option: str, kept: int) -> None:
    async with running_desk(tmp_path, rules=Rules(memory="ask")) as desk:
        desk.launcher.script = answer_note
        await desk.hear(replace(heard("hello"), mentions=("demo",)))
        await desk.until(lambda: bool(desk.stores.asks.open_in(desk.session().id)))
        (ask,) = desk.stores.asks.open_in(desk.session().id)
        assert await desk.stores.open(MemoryStore).kept() == []

        await desk.ledger.answer(ask.id, option, "Ann")

        assert len(await desk.stores.open(MemoryStore).kept()) == kept


async def test_in_a_fork_people_decide_always(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=AUTO) as desk:
        first = await desk.hear(replace(heard("hello"), mentions=("demo",)))
        await desk.reached(first.turns[0].turn, "done")
        await desk.engine.ended(desk.session().id)
        forked = update(place).values(forked_from="web:origin")
        await desk.database.writer.run(lambda connection: connection.execute(forked))
        desk.launcher.script = answer_note

        await desk.hear(replace(heard("go on"), mentions=("demo",)))

        await desk.until(lambda: bool(desk.stores.asks.open_in(desk.session().id)))
        assert await desk.stores.open(MemoryStore).kept() == []


async def test_a_plain_yes_is_for_the_agent_and_not_for_its_memory(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=Rules(memory="ask")) as desk:
        desk.launcher.script = answer_note
        await desk.hear(replace(heard("hello"), mentions=("demo",)))
        await desk.until(lambda: bool(desk.stores.asks.open_in(desk.session().id)))

        said = await desk.hear(replace(heard("yes"), mentions=("demo",)))

        assert len(said.turns) == 1


@pytest.mark.parametrize(
    ("prompt", "holds"),
    [
        ("[Ann on web]\nhello", False),
        ('[Ann on web]\n<data from="what came with the message">\nx\n</data>\nhello', True),
        ('<data from="your own notes from other conversations">\nx\n</data>\nhello', False),
        ('<data from="the transcript of this conversation">\nx\n</data>\nhello', True),
        ('<data from="messages from others that you have not seen yet; hidden parts"', True),
        (
            '<data from="your own request">\n</data>\n<data from="what came with the message">',
            True,
        ),
    ],
)
def test_words_of_others_are_seen_in_a_prompt(prompt: str, holds: bool) -> None:
    assert holds_words_of_others(prompt) is holds
