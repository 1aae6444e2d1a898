"""Members on one store: what one does, the others see; what signals lose, a sweep finds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from secrets import token_hex

import pytest

from app.core.feed import PlaceNews
from app.model.agents import unmet
from app.model.keys import PlaceKey
from app.model.ports import AgentListener
from app.model.updates import AskOption, AskRequest, TextUpdate
from app.signals import Facts, Topic
from tests.support.desk import PATIENCE_SECONDS, Rules
from tests.support.members import Hub, Members, open_members

pytestmark = pytest.mark.anyio

PLACE = PlaceKey("web", "t1")
MAY_I = AskRequest("call", "May I?", (AskOption("yes", "Yes", "allow_once"),))


def sent(members: Members) -> list[tuple[str, str, str]]:
    """List what the platform was sent, by the leader."""
    return [
        (post.op, post.content.state, post.content.text)
        for post in members.desk.adapters["web:demo"].calls
    ]


async def test_a_message_to_a_front_runs_at_a_worker_and_is_posted_by_the_desk_alone(
    tmp_path: Path,
) -> None:
    async with open_members(tmp_path) as members:
        go_on = asyncio.Event()

        async def write(listener: AgentListener) -> None:
            await listener.on_update(TextUpdate("Hello"))
            await go_on.wait()

        members.worker.launcher.script = write
        news = members.front.feed.news(PLACE, after=0, idle=5)
        assert await anext(news) == PlaceNews()

        accepted = await members.ask("go")

        (ref,) = accepted.turns
        texts: list[str] = []
        async with asyncio.timeout(5):
            async for each in news:
                texts += [row.text for row in each.rows]
                if each.unfinished:
                    break
        assert texts[0] == "go"
        assert [each.text for each in each.unfinished] == ["Hello"]
        await members.until(lambda: ("replace", "working", "Hello") in sent(members))
        assert sum(Topic.TEXT in text for text in members.hub.said) == 1

        go_on.set()
        await members.until(lambda: ("finish", "done", "Hello") in sent(members))
        assert members.desk.turn(ref.turn).state == "done"
        assert [op for op, *_ in sent(members)].count("create") == 1
        assert members.worker.adapters["web:demo"].calls == []
        assert members.front.adapters["web:demo"].calls == []
        assert members.desk.launcher.lines == members.front.launcher.lines == []


async def test_an_ask_of_a_worker_is_answered_at_a_front_or_ends_at_the_desk(
    tmp_path: Path,
) -> None:
    async with open_members(tmp_path, Rules(ask_seconds=0.3)) as members:
        answers: list[str | None] = []

        async def ask(listener: AgentListener) -> None:
            answers.append(await listener.on_ask(MAY_I))

        members.worker.launcher.script = ask
        await members.ask("go")
        session = members.desk.session().id
        await members.until(lambda: bool(members.front.stores.asks.open_in(session)))
        (asked,) = members.front.stores.asks.open_in(session)
        await members.front.ledger.answer(asked.id, "yes", "Ann")
        await members.until(lambda: answers == ["yes"])

        await members.ask("again")
        await members.until(lambda: answers == ["yes", None])


async def test_a_front_stops_configures_and_ends_what_a_worker_runs(tmp_path: Path) -> None:
    async with open_members(tmp_path) as members:
        forever = asyncio.Event()

        async def hang(_listener: AgentListener) -> None:
            await forever.wait()

        members.worker.launcher.script = hang
        (ref,) = (await members.ask("go")).turns
        await members.until(lambda: members.worker.launcher.told("prompt") != [])
        session = members.front.session()

        assert members.front.manager.choices(session).mode == "ask"
        await members.front.manager.configure(session.id, "mode", "free")
        assert members.worker.launcher.told("configure") == ["free"]

        await members.front.manager.stop(session.id)
        await members.until(lambda: members.front.turn(ref.turn).state == "cancelled")

        await members.front.reach.rest(session.id)
        assert members.worker.launcher.told("close") == [""]
        workspace = next((tmp_path / "workspaces").glob(f"{session.id}-*"))
        (workspace / "notes.txt").write_text("much")
        size, unshipped = await members.front.reach.measure([session.id])
        assert (size > 0, unshipped) == (True, [])
        await members.front.reach.remove([session.id], [])
        assert await members.front.reach.measure([session.id]) == (0, [])


async def test_what_signals_lose_a_sweep_finds(tmp_path: Path) -> None:
    async with open_members(tmp_path) as members:
        answers: list[str | None] = []

        async def ask(listener: AgentListener) -> None:
            answers.append(await listener.on_ask(MAY_I))

        members.worker.launcher.script = ask
        members.hub.lost = True
        given = asyncio.ensure_future(members.ask("go"))
        # The second one is said when it is stored.
        await members.until(lambda: sum(Topic.INBOX in text for text in members.hub.said) == 2)
        assert not given.done()

        members.sweep()
        await members.until(lambda: members.desk.stores.sessions.in_place(PLACE) != [])
        session = members.desk.session().id
        members.sweep()
        assert (await given).repeated

        members.worker.engine.submit(session)
        await members.until(lambda: bool(members.front.stores.asks.open_in(session)))
        (asked,) = members.front.stores.asks.open_in(session)
        await members.front.ledger.answer(asked.id, "yes", "Ann")
        assert answers == []
        members.sweep()
        await members.until(lambda: answers == ["yes"])
        await members.until(lambda: members.desk.turn(1).state == "done")
        members.sweep()
        await members.until(lambda: ("finish", "done", "") in sent(members))


async def test_what_one_finds_out_about_an_agent_all_know(tmp_path: Path) -> None:
    async with open_members(tmp_path) as members:
        members.worker.availability.note("demo", unmet("login", "No.", "Do.", "login_needed"))
        await members.until(lambda: members.front.availability.of("demo").state == "login_needed")

        members.worker.availability.worked("demo")
        await members.until(lambda: members.front.availability.of("demo").state == "ready")


async def test_one_that_asks_waits_for_all_that_are_alive() -> None:
    hub = Hub()
    asking, slow, gone = (hub.line(name) for name in ("asking", "slow", "gone"))
    say = asyncio.Event()

    async def answer(facts: Facts) -> Facts:
        await say.wait()
        return {"twice": 2 * facts["number"]}

    async def never(_facts: Facts) -> Facts:
        await asyncio.Event().wait()
        return {}

    slow.answer(Topic.END, answer)
    gone.answer(Topic.END, never)
    asked = asyncio.ensure_future(asking.ask(Topic.END, seconds=5, number=4))
    await asyncio.sleep(0)
    say.set()
    del hub.lines["gone"]
    assert await asked == [{"twice": 8}]

    async def answer_at_length(_facts: Facts) -> Facts:
        return {"noise": noise}

    noise = token_hex(100_000)
    slow.answer(Topic.END, answer_at_length)
    assert await asking.ask(Topic.END, seconds=5) == [{"noise": noise}]

    slow.answer(Topic.END, never)
    with pytest.raises(TimeoutError):
        await asking.ask(Topic.END, seconds=0.01, number=4)
    for line in (asking, slow, gone):
        await line.close()


async def test_a_signal_that_is_too_long_is_not_sent() -> None:
    hub = Hub()
    line = hub.line("one")
    line.send(Topic.TEXT, text="ü" * 4_000)
    with pytest.raises(TimeoutError):
        await line.ask(Topic.END, seconds=5, text="ü" * 4_000)
    assert hub.said == []


async def test_a_member_that_comes_later_knows_what_was_found_out_after_a_sweep(
    tmp_path: Path,
) -> None:
    async with open_members(tmp_path) as members:
        members.hub.lost = True
        members.worker.availability.note("demo", unmet("login", "No.", "Do.", "login_needed"))
        members.hub.lost = False
        members.sweep()
        await members.until(lambda: members.front.availability.of("demo").state == "login_needed")

        members.front.availability.forget("demo", "login")
        await members.until(lambda: members.worker.availability.of("demo").state == "ready")
        members.sweep()
        await members.until(lambda: members.hub.said[-1].startswith('["worker"'))
        assert members.front.availability.of("demo").state == "ready"


async def test_a_member_that_cannot_answer_is_not_waited_for() -> None:
    hub = Hub()
    asking, broken = hub.line("asking"), hub.line("broken")

    async def fail(_: Facts) -> Facts:
        raise OSError("no disk")

    broken.answer(Topic.HOLDINGS, fail)

    with pytest.raises(TimeoutError, match="could not answer"):
        await asking.ask(Topic.HOLDINGS, seconds=PATIENCE_SECONDS)
    await broken.close()
