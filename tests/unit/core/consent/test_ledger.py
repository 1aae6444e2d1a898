"""What agents ask and people answer: by whom, how, in time, in order, and what is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.core.consent.gate import JudgedRequest, PermissionGate
from app.core.repositories.folders import Folders
from app.errors import NotFound
from app.model.conversations import ListFilter
from app.model.inbound import Heard
from app.model.policy import PRESETS, Policy, Rule
from app.model.ports import AgentListener
from app.model.types import Speaker
from app.model.updates import AskOption, AskRequest, TextUpdate, ToolUpdate
from tests.support.clock import ManualClock
from tests.support.desk import STRANGER, Desk, Rules, running_desk
from tests.support.memory import ANN, heard

pytestmark = pytest.mark.anyio

BOB = Speaker("bob", "Bob")
ONCE = AskOption("allow", "Allow once", "allow_once")
ALWAYS = AskOption("always", "Allow always", "allow_always")
REJECT = AskOption("no", "Reject", "reject_once")
QUESTION = AskRequest(
    "", "Which colour?", (AskOption("r", "Red", ""),), kind="question", free_text=True
)


def run(command: str, *options: AskOption, call: str = "call") -> AskRequest:
    tool = ToolUpdate(call, f"Run {command}", "execute", input={"command": command})
    return AskRequest(call, f"Run {command}", options or (ONCE, ALWAYS, REJECT), tool, command)


def to_demo(text: str, speaker: Speaker = ANN) -> Heard:
    return replace(heard(text, speaker=speaker), mentions=("demo",))


def asking(*requests: AskRequest) -> Any:
    """Make an agent that asks one thing after another and says what was answered."""

    async def script(listener: AgentListener) -> None:
        for request in requests:
            answer = await listener.on_ask(request)
            await listener.on_update(TextUpdate(f"[{answer}]"))

    return script


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def desk(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, clock=clock, rules=Rules(idle_seconds=1e9)) as desk:
        yield desk


async def shown(desk: Desk, asks: int = 1) -> list[str]:
    """Wait until so many asks were shown, and list them."""

    def seen() -> list[str]:
        return [p.content.text for p in desk.posts() if p.op == "create" and p.content.ask]

    await desk.until(lambda: len(seen()) >= asks)
    return seen()


async def said(desk: Desk, turn: int = 1) -> str:
    """Wait until a turn is over, and tell what the agent said in it."""
    await desk.reached(turn, "done")
    rows = await desk.stores.transcript.read(desk.session().id, after=0, limit=500)
    return "".join(row.text for row in rows if row.kind == "text" and row.turn == turn)


async def decisions(desk: Desk) -> list[Any]:
    rows = await desk.stores.transcript.read(desk.session().id, after=0, limit=500)
    return [row.data.get("decided") for row in rows if row.kind == "tool"]


async def test_what_a_person_allows_stands_in_the_record_of_the_call(desk: Desk) -> None:
    desk.launcher.script = asking(run("make"))
    await desk.hear(to_demo("build"))
    await shown(desk)

    await desk.answer(1, "allow")

    assert await said(desk) == "[allow]"
    by_ann = {"how": "person", "who": "Ann", "answer": "Allow once", "allowed": True}
    assert (await decisions(desk))[-1] == by_ann


async def test_whoever_is_asked_sees_the_call_though_it_was_not_announced_and_has_another_name(
    desk: Desk,
) -> None:
    named = replace(run("rm -rf build"), title="Tidy up")
    desk.launcher.script = asking(named)
    await desk.hear(to_demo("clean"))

    assert await shown(desk) == ["Tidy up\n```\nrm -rf build\n```"]
    rows = await desk.stores.transcript.read(desk.session().id, after=0, limit=500)
    (call, ask) = (row for row in rows if row.kind in {"tool", "ask"})
    assert (call.kind, call.data["input"]) == ("tool", {"command": "rm -rf build"})
    assert (ask.text, ask.data["view"]["facts"][0]["text"]) == ("Tidy up", "rm -rf build")


async def test_what_a_rule_allows_or_denies_is_not_asked_and_names_its_rule(
    tmp_path: Path, clock: ManualClock
) -> None:
    rules = (Rule("deny", command=("rm *",)), Rule("allow", command=("make *",)))
    async with running_desk(tmp_path, clock=clock, rules=Rules(policy=Policy(rules))) as desk:
        desk.launcher.script = asking(run("make test", call="1"), run("rm x", call="2"))
        await desk.hear(to_demo("go"))

        assert await said(desk) == "[allow][no]"
        assert await desk.stores.asks.asks(after=0, limit=10) == []
        assert await decisions(desk) == [
            {"how": "rule", "rule": "allow command make *", "allowed": True},
            {"how": "rule", "rule": "deny command rm *", "allowed": False},
        ]


async def test_what_a_rule_would_allow_is_not_allowed_after_a_stop(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging, stopped, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()
    answers: list[str | None] = []
    judge = PermissionGate.judge

    async def slowly(self: PermissionGate, *facts: Any) -> JudgedRequest:
        judged = await judge(self, *facts)
        judging.set()
        await stopped.wait()
        return judged

    async def script(listener: AgentListener) -> None:
        answers.append(await listener.on_ask(run("make")))
        answered.set()

    monkeypatch.setattr(PermissionGate, "judge", slowly)
    rules = Rules(policy=PRESETS["trusted"])
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        desk.launcher.script, desk.launcher.cancelling = script, answered.wait
        await desk.hear(to_demo("go"))
        await judging.wait()
        stopping = asyncio.ensure_future(desk.hear(to_demo("stop")))
        await desk.until(lambda: bool(desk.launcher.told("cancel")))

        stopped.set()
        await stopping

        assert answers == [None]


async def test_a_denial_without_a_fitting_option_is_a_cancel(
    tmp_path: Path, clock: ManualClock
) -> None:
    rules = Rules(policy=PRESETS["read-only"])
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        desk.launcher.script = asking(run("make", ONCE))
        await desk.hear(to_demo("go"))

        assert await said(desk) == "[None]"


@pytest.mark.parametrize("options", [(ALWAYS, REJECT), (ONCE, replace(ONCE, id="b"), REJECT)])
async def test_an_allowance_without_one_fitting_option_is_asked(
    tmp_path: Path, clock: ManualClock, options: tuple[AskOption, ...]
) -> None:
    rules = Rules(policy=PRESETS["trusted"])
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        desk.launcher.script = asking(run("make", *options))
        await desk.hear(to_demo("go"))

        assert await shown(desk) == ["Run make"]


async def test_a_tool_call_that_nobody_was_asked_for_says_so(desk: Desk) -> None:
    async def script(listener: AgentListener) -> None:
        await listener.on_update(ToolUpdate("1", "Read a", "read", "pending"))
        await listener.on_update(ToolUpdate("1", status="completed"))

    desk.launcher.script = script
    await desk.hear(to_demo("go"))
    await said(desk)

    assert (await decisions(desk))[-1] == {"how": "not asked"}


async def test_a_link_out_of_the_workspace_is_not_inside_it(
    tmp_path: Path, clock: ManualClock
) -> None:
    rules = Rules(policy=PRESETS["trusted"])
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        await desk.hear(to_demo("first"))
        await said(desk)
        workspace = await Folders(tmp_path / "workspaces", tmp_path, tmp_path).open(desk.session())
        (workspace / "out").symlink_to("/etc")
        paths = ("in/a", "out/a", f"file://{workspace}/in/b", f"file://{workspace}/out/b")
        tools = [ToolUpdate(path, path, "edit", locations=(path,)) for path in paths]
        requests = [AskRequest(tool.call, tool.call, (ONCE, REJECT), tool) for tool in tools]

        async def at_once(listener: AgentListener) -> None:
            await asyncio.gather(*(listener.on_ask(request) for request in requests))

        desk.launcher.script = at_once
        await desk.hear(to_demo("go"))

        asked = await shown(desk, 2)
        assert [text.partition("\n")[0] for text in asked] == [paths[1], paths[3]]


async def test_an_agent_cannot_give_the_bridges_own_options_another_name(desk: Desk) -> None:
    disguised = AskOption("bridge:always", "Reject", "reject_once")
    desk.launcher.script = asking(run("make", ONCE, disguised, REJECT))
    await desk.hear(to_demo("go"))
    await shown(desk)

    (post,) = (p for p in desk.posts() if p.content.ask)
    assert [(option.id, option.name) for option in post.content.options] == [
        ("allow", "Allow once"),
        ("bridge:always", "Always allow `make` in this thread"),
        ("no", "Reject"),
    ]


async def test_somebody_who_may_not_is_told_so_and_the_ask_stays_open(desk: Desk) -> None:
    desk.launcher.script = asking(run("make"))
    await desk.hear(to_demo("go"))
    await shown(desk)

    await desk.answer(1, "allow", STRANGER)

    assert desk.deliveries.settled == [("refused", "you may not use this agent here")]
    ((key, whom, words),) = desk.adapters["web:demo"].whispers
    assert (str(key), whom) == ("web:t1:demo", STRANGER)
    assert words == "This does not count: you may not use this agent here."
    assert [
        ask.state for ask in await desk.ledger.list(ListFilter(state="open"), after=0, limit=9)
    ] == ["open"]


async def test_a_second_answer_is_told_who_was_first(desk: Desk) -> None:
    desk.launcher.script = asking(run("make"))
    await desk.hear(to_demo("go"))
    await shown(desk)
    await desk.answer(1, "allow")
    await said(desk)

    await desk.answer(1, "no", BOB)

    assert desk.deliveries.settled[-1] == ("refused", "Ann already answered this")
    assert len(desk.adapters["web:demo"].whispers) == 1


async def test_an_ask_expires_where_people_see_it(tmp_path: Path, clock: ManualClock) -> None:
    rules = Rules(ask_seconds=3600, idle_seconds=1e9)
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        desk.launcher.script = asking(run("make"))
        await desk.hear(to_demo("go"))
        await shown(desk)
        await clock.asleep(3)

        await clock.advance(3601)

        assert await said(desk) == "[None]"
        (ask,) = await desk.ledger.list(ListFilter(state="expired"), after=0, limit=9)
        assert ask.title == "Run make"
        assert (await decisions(desk))[-1] == {"how": "unanswered"}


async def test_a_flood_of_asks_is_shown_a_few_at_a_time_and_in_order(desk: Desk) -> None:
    async def flood(listener: AgentListener) -> None:
        asks = [listener.on_ask(run(f"c{n}", call=str(n))) for n in range(8)]
        answers = await asyncio.gather(*asks)
        await listener.on_update(TextUpdate(",".join(map(str, answers))))

    desk.launcher.script = flood
    await desk.hear(to_demo("go"))
    assert await shown(desk, 3) == ["Run c0", "Run c1", "Run c2"]
    assert len(await desk.ledger.list(ListFilter(state="open"), after=0, limit=9)) == 3

    for number in range(8):
        await shown(desk, number + 1)
        await desk.answer(number + 1, "allow" if number else "no")

    assert await said(desk) == "no," + ",".join(["allow"] * 7)
    assert await shown(desk) == [f"Run c{number}" for number in range(8)]


async def test_stop_withdraws_also_what_was_not_shown_yet(desk: Desk) -> None:
    async def flood(listener: AgentListener) -> None:
        await asyncio.gather(*(listener.on_ask(run(f"c{n}", call=str(n))) for n in range(8)))

    desk.launcher.script = flood
    await desk.hear(to_demo("go"))
    await shown(desk, 3)

    await desk.hear(to_demo("stop"))
    await desk.reached(1, "cancelled")

    kept = await desk.ledger.list(after=0, limit=9)
    assert [ask.state for ask in kept] == ["cancelled"] * 3


@pytest.mark.parametrize("words", ["Allow once", " allow ONCE ", "allow"])
async def test_a_message_that_is_an_option_answers_the_ask(desk: Desk, words: str) -> None:
    desk.launcher.script = asking(run("make"))
    await desk.hear(to_demo("go"))
    await shown(desk)

    accepted = await desk.hear(to_demo(words, BOB))

    assert accepted.turns == ()
    assert (await desk.last_delivery()).reason == "answers_ask"
    assert await said(desk) == "[allow]"
    ask = desk.stores.asks.ask(1)
    assert ask is not None
    assert ask.answered_by == "Bob"
    rows = await desk.stores.transcript.read(desk.session().id, after=0, limit=99)
    assert [row.text for row in rows if row.kind == "message"] == ["go", words]


async def test_other_words_than_an_option_are_for_the_agent(desk: Desk) -> None:
    desk.launcher.script = asking(run("make"))
    await desk.hear(to_demo("go"))
    await shown(desk)

    accepted = await desk.hear(to_demo("allow once more"))

    assert len(accepted.turns) == 1
    assert len(await desk.ledger.list(ListFilter(state="open"), after=0, limit=9)) == 1


async def test_a_strangers_words_answer_nothing(desk: Desk) -> None:
    desk.launcher.script = asking(run("make"))
    await desk.hear(to_demo("go"))
    await shown(desk)

    await desk.hear(to_demo("Allow once", STRANGER))

    assert (await desk.last_delivery()).state == "refused"
    assert len(await desk.ledger.list(ListFilter(state="open"), after=0, limit=9)) == 1


async def test_the_oldest_ask_that_fits_is_answered_by_words(desk: Desk) -> None:
    async def two(listener: AgentListener) -> None:
        answers = await asyncio.gather(
            listener.on_ask(run("a", call="1")), listener.on_ask(run("b", call="2"))
        )
        await listener.on_update(TextUpdate(str(answers)))

    desk.launcher.script = two
    await desk.hear(to_demo("go"))
    await shown(desk, 2)

    await desk.hear(to_demo("reject"))
    await desk.hear(to_demo("allow once"))

    assert await said(desk) == "['no', 'allow']"


@pytest.mark.parametrize(("words", "answer"), [("red", "r"), ("a light blue", "a light blue")])
async def test_any_words_answer_a_question_that_takes_them(
    desk: Desk, words: str, answer: str
) -> None:
    desk.launcher.script = asking(QUESTION)
    await desk.hear(to_demo("go"))
    await shown(desk)

    await desk.hear(to_demo(words))

    assert await said(desk) == f"[{answer}]"


async def test_a_button_may_carry_words_only_where_they_are_asked_for(desk: Desk) -> None:
    desk.launcher.script = asking(run("make"), QUESTION)
    await desk.hear(to_demo("go"))
    await shown(desk)

    with pytest.raises(NotFound):
        await desk.ledger.answer(1, "perhaps", "Ann")
    await desk.ledger.answer(1, "no", "Ann")
    await shown(desk, 2)
    with pytest.raises(NotFound):
        await desk.ledger.answer(2, "  ", "Ann")
    await desk.ledger.answer(2, "green", "Ann")

    assert await said(desk) == "[no][green]"


async def test_a_short_answer_counts_where_it_is_clear_and_is_asked_back_where_it_is_not(
    desk: Desk,
) -> None:
    desk.launcher.script = asking(run("make"))
    await desk.hear(to_demo("build"))
    await shown(desk)

    await desk.hear(replace(to_demo("4"), message_id="unclear"))
    await desk.until(lambda: any(p.content.kind == "notice" for p in desk.posts()))
    (notice,) = (p.content.note for p in desk.posts() if p.content.kind == "notice")
    await desk.hear(replace(to_demo("YES"), message_id="clear"))

    assert notice.startswith("Which one? Answer 1 for `Allow once`, 2 for ``Always allow `make` in")
    assert await said(desk) == "[allow]"
    assert len(await desk.stores.turns.turns(desk.session().id)) == 1


async def test_a_yes_is_asked_back_while_several_asks_are_open(desk: Desk) -> None:
    async def both(listener: AgentListener) -> None:
        requests = (run("make", call="1"), run("make test", call="2"))
        await asyncio.gather(*(listener.on_ask(each) for each in requests))

    desk.launcher.script = both
    await desk.hear(to_demo("build"))
    await shown(desk, 2)

    await desk.hear(replace(to_demo("yes"), message_id="unclear"))

    await desk.until(lambda: any(p.content.kind == "notice" for p in desk.posts()))
    (notice,) = (p.content.note for p in desk.posts() if p.content.kind == "notice")
    assert notice.startswith("2 questions are open. Answer the oldest with the name of an option")
