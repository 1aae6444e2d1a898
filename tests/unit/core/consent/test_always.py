"""An "always" of the bridge: given for exactly what was shown, kept, listed and taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from app.core.consent.grants import ALWAYS, ALWAYS_EDITS
from app.errors import Conflict, NotFound
from app.model.asks import GRANT_SECONDS, Grant, WantedGrants
from app.model.conversations import EVERYTHING, ListFilter
from app.model.inbound import Heard
from app.model.policy import Policy, Rule
from app.model.ports import AgentListener
from app.model.updates import AskOption, AskRequest, TextUpdate, ToolUpdate
from app.store.tables import ask as ask_table
from tests.support.clock import ManualClock
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

IDLE = 1800.0
ONCE = AskOption("allow", "Allow once", "allow_once")
OWN = AskOption("always", "Yes, and don't ask again for make commands", "allow_always")
NEVER = AskOption("never", "Never", "reject_always")
REJECT = AskOption("no", "Reject", "reject_once")
SECRET = "sk-of-the-operator-0123456789"


def to_demo(words: str, place: str = "t1") -> Heard:
    return replace(heard(words, place), mentions=("demo",))


def wants(tool: ToolUpdate, *options: AskOption) -> AskRequest:
    offered = options or (ONCE, OWN, REJECT, NEVER)
    return AskRequest(tool.call, tool.title or "", offered, tool, arguments_hash="0" * 64)


def run(command: str, call: str = "call") -> AskRequest:
    return wants(ToolUpdate(call, "Tidy up", "execute", input={"command": command}))


def edit(*paths: str) -> AskRequest:
    return wants(ToolUpdate(f"edit {paths}", "Tidy up", "edit", locations=paths))


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
def rules() -> Rules:
    return Rules(idle_seconds=IDLE, turn_seconds=1e9, agents=("demo", "other"), secrets=(SECRET,))


@pytest.fixture
async def desk(tmp_path: Path, clock: ManualClock, rules: Rules) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        yield desk


async def asked(desk: Desk, asks: int) -> list[dict[str, str]]:
    """Wait until there were so many asks, and return the options of each by id."""

    def seen() -> list[Any]:
        return [p.content for p in desk.posts() if p.op == "create" and p.content.ask]

    await desk.until(lambda: len(seen()) >= asks)
    return [{option.id: option.name for option in content.options} for content in seen()]


async def said(desk: Desk, turn: int, place: str = "t1") -> str:
    await desk.reached(turn, "done")
    rows = await desk.stores.transcript.read(desk.session(place).id, after=0, limit=500)
    return "".join(row.text for row in rows if row.kind == "text" and row.turn == turn)


async def grants(desk: Desk, **wanted: Any) -> list[Grant]:
    return list(await desk.ledger.grants(WantedGrants(**wanted), limit=50))


async def grant(desk: Desk, request: AskRequest, option: str = ALWAYS) -> None:
    """Let Ann always allow what the agent asks for first."""
    desk.launcher.script = asking(request)
    await desk.hear(to_demo("go"))
    await asked(desk, 1)
    await desk.answer(1, option)
    assert await said(desk, 1) == "[allow]"


async def test_an_always_covers_exactly_the_command_that_it_names_and_says_who_gave_it(
    desk: Desk, clock: ManualClock
) -> None:
    await grant(desk, run("make"))
    desk.launcher.script = asking(run("make", "again"), run("make test", "other"))

    await desk.hear(to_demo("go on"))
    first, second = await asked(desk, 2)
    await desk.answer(2, "no")

    assert await said(desk, 2) == "[allow][no]"
    assert first == {
        "allow": "Allow once",
        ALWAYS: "Always allow `make` in this thread",
        "no": "Reject",
    }
    assert second[ALWAYS] == "Always allow `make test` in this thread"
    rows = await desk.stores.transcript.read(desk.session().id, after=0, limit=500)
    (decided,) = (row.data["decided"] for row in rows if row.data.get("call") == "again")
    assert {name: decided[name] for name in ("how", "who", "what", "allowed")} == {
        "how": "grant",
        "who": "Ann",
        "what": "`make`",
        "allowed": True,
    }
    (kept,) = await grants(desk)
    assert (kept.subject, kept.granted_by, kept.state) == ("make", "Ann", "active")
    assert (kept.granted_at, kept.expires_at - kept.granted_at) == (decided["at"], GRANT_SECONDS)


async def test_one_file_is_granted_or_all_edits_in_the_workspace_and_nothing_outside(
    desk: Desk,
) -> None:
    await grant(desk, edit("a.txt"))
    desk.launcher.script = asking(edit("a.txt"), edit("b.txt"), edit("c.txt"), edit("/etc/hosts"))

    await desk.hear(to_demo("go on"))
    second = (await asked(desk, 2))[1]
    await desk.answer(2, ALWAYS_EDITS)
    outside = (await asked(desk, 3))[2]
    await desk.answer(3, "no")

    assert await said(desk, 2) == "[allow][allow][allow][no]"
    assert second == {
        "allow": "Allow once",
        ALWAYS: "Always allow editing `b.txt` in this thread",
        ALWAYS_EDITS: "Always allow all edits in the workspace of this thread",
        "no": "Reject",
    }
    assert outside == {"allow": "Allow once", "no": "Reject"}


async def test_another_thread_and_another_agent_ask_for_the_same_command(desk: Desk) -> None:
    await grant(desk, run("make"))

    await desk.hear(to_demo("go", "t2"))
    await asked(desk, 2)
    await desk.hear(replace(heard("go"), mentions=("other",)))
    await desk.until(lambda: any(post.content.ask for post in desk.posts("other")))

    assert len(await desk.ledger.list(ListFilter(state="open"), after=0, limit=9)) == 2


async def test_a_grant_ends_when_the_conversation_starts_over(desk: Desk) -> None:
    await grant(desk, run("make"))
    await desk.hear(to_demo("new"))

    await desk.hear(to_demo("go"))

    await asked(desk, 2)
    assert [each.state for each in await grants(desk)] == ["ended"]
    assert await grants(desk, state="active") == []


async def test_a_grant_that_is_taken_back_covers_no_further_call_of_a_turn_that_runs(
    desk: Desk,
) -> None:
    await grant(desk, run("make"))

    async def twice(listener: AgentListener) -> None:
        await listener.on_update(TextUpdate(f"[{await listener.on_ask(run('make', '1'))}]"))
        await desk.ledger.take_back(1, "Bob")
        await listener.on_update(TextUpdate(f"[{await listener.on_ask(run('make', '2'))}]"))

    desk.launcher.script = twice
    await desk.hear(to_demo("go on"))
    await asked(desk, 2)
    await desk.answer(2, "no")

    assert await said(desk, 2) == "[allow][no]"
    (ended,) = await grants(desk)
    assert (ended.state, ended.ended_by) == ("ended", "Bob")
    with pytest.raises(Conflict, match="no longer holds"):
        await desk.ledger.take_back(1, "Bob")
    with pytest.raises(NotFound):
        await desk.ledger.take_back(2, "Bob")


async def test_a_grant_expires(desk: Desk, clock: ManualClock) -> None:
    await grant(desk, run("make"))
    await clock.advance(GRANT_SECONDS)

    await desk.hear(to_demo("go on"))

    await asked(desk, 2)
    assert [each.state for each in await grants(desk)] == ["expired"]


async def test_a_grant_outlives_the_bridge_and_a_rule_written_since_overrides_it(
    tmp_path: Path, clock: ManualClock, rules: Rules
) -> None:
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        await grant(desk, run("make"))
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        desk.launcher.script = asking(run("make"))
        await desk.hear(to_demo("go on"))
        assert await said(desk, 2) == "[allow]"

    asks = replace(rules, policy=Policy((Rule("ask", command=("make",)),)))
    async with running_desk(tmp_path, clock=clock, rules=asks) as desk:
        desk.launcher.script = asking(run("make"))
        await desk.hear(to_demo("go on"))
        assert await asked(desk, 1) == [{"allow": "Allow once", "no": "Reject"}]
        await desk.answer(2, "allow")
        assert await said(desk, 3) == "[allow]"

    denies = replace(rules, policy=Policy((Rule("deny", command=("make",)),)))
    async with running_desk(tmp_path, clock=clock, rules=denies) as desk:
        desk.launcher.script = asking(run("make"))
        await desk.hear(to_demo("go on"))
        assert await said(desk, 4) == "[no]"


async def test_an_always_for_a_parked_turn_holds_when_the_work_goes_on(
    desk: Desk, clock: ManualClock
) -> None:
    desk.launcher.script = asking(run("make"), run("make"))
    await desk.hear(to_demo("go"))
    await asked(desk, 1)
    await clock.asleep(2)
    await clock.advance(IDLE)
    await desk.reached(1, "parked")

    await desk.answer(1, ALWAYS)

    assert await said(desk, 2) == "[allow][allow]"
    assert len(await desk.ledger.list(EVERYTHING, after=0, limit=9)) == 1


async def test_how_to_go_on_is_offered_in_the_agents_own_words(desk: Desk) -> None:
    options = (
        AskOption("auto", "Yes, and auto-accept edits", "allow_always"),
        AskOption("manual", "Yes", "allow_once"),
        AskOption("plan", "No", "reject_once"),
    )
    plan = ToolUpdate("call", "Ready to code?", "switch_mode", input={"plan": "all of it"})
    desk.launcher.script = asking(wants(plan, *options))

    await desk.hear(to_demo("go"))
    (offered,) = await asked(desk, 1)
    await desk.answer(1, "auto")

    assert offered == {option.id: option.name for option in options}
    assert await said(desk, 1) == "[auto]"
    assert await grants(desk) == []


async def test_what_cannot_be_shown_word_for_word_is_not_granted(desk: Desk) -> None:
    unclear = ToolUpdate("call", "Tidy up", "execute", input={"command": {"odd": 1}})
    desk.launcher.script = asking(run(f"curl -H {SECRET} x"), wants(unclear))

    await desk.hear(to_demo("go"))
    (hidden,) = await asked(desk, 1)
    await desk.answer(1, "allow")
    unread = (await asked(desk, 2))[1]

    assert hidden == unread == {"allow": "Allow once", "no": "Reject"}


async def test_what_an_earlier_release_allowed_for_the_whole_session_holds_no_longer(
    desk: Desk,
) -> None:
    desk.launcher.script = asking(run("make"), run("make"))
    await desk.hear(to_demo("go"))
    await asked(desk, 1)
    with desk.database.engine.begin() as connection:
        old = {"id": "bridge:session", "name": "All", "kind": "allow_always"}
        change = update(ask_table).values(scopes=None, options=[old, asdict(ONCE)])
        connection.execute(change)

    await desk.answer(1, "bridge:session")

    await asked(desk, 2)
    assert await grants(desk) == []
