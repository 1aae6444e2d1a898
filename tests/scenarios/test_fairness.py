"""Many sessions on few slots and few processes: everybody's turn comes, in order, remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from app.core.turns.limits import Slot, Slots
from tests.support.observe import PATIENCE, Observed, demo
from tests.support.platform import Platform

SLOTS = 4
DOOMED = 'touch "$HOME/begun"; until [ -e "$HOME/fail" ]; do sleep 0.02; done; exit 3'
ASKING = [f"asking-{number}" for number in range(6)]
WORKING = [f"working-{number}" for number in range(44)]

# Turns that have a slot: those of sessions that ask give theirs back while they wait.
AT_WORK = (
    "select count(*) from turn join session on session.id = turn.session "
    "join place on place.id = session.place "
    "where turn.state in ('starting', 'prompted') and place.name like 'working-%'"
)
ENDED = (
    "select count(*) from turn join session on session.id = turn.session "
    "join place on place.id = session.place "
    "where turn.state = 'done' and place.name like ?"
)


@pytest.mark.slow
def test_fifty_sessions_share_four_slots_and_those_who_wait_for_people_hold_none(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = {"MAX_TURNS": str(SLOTS), "MAX_PROCESSES": "60"}
    folder = tmp_path_factory.mktemp("fifty")
    with (
        Platform() as platform,
        Observed(folder, platform, agents={"demo": demo()}, settings=settings) as bridge,
    ):
        for place in ASKING:
            bridge.begin(place, "write notes.txt done")
        asks = bridge.open_asks(len(ASKING))
        for place in WORKING:
            bridge.begin(place, "tell begun\nhold go\nsay first", speaker="Ann")
        for place in WORKING[:SLOTS]:
            bridge.held(place, "begun")
        for place in WORKING:
            bridge.begin(place, "say second", speaker="Bob")
        everyone = len(WORKING) + len(ASKING)
        known = "select count(*) from session"
        bridge.wait(lambda: bridge.rows(known) == [(everyone,)], "not everybody came", PATIENCE)

        assert bridge.rows(AT_WORK) == [(SLOTS,)]
        assert bridge.rows("select count(*) from turn where state = 'done'") == [(0,)]

        at_once = []

        def all_are_done() -> bool:
            at_once.append(bridge.rows(AT_WORK)[0][0])
            return bridge.rows(ENDED, "working-%") == [(len(WORKING) + SLOTS,)]

        for place in WORKING:
            workspace = bridge.workspace("demo", bridge.session(place))
            workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
            (workspace / "go").touch()
        bridge.wait(all_are_done, "somebody starves", PATIENCE)

        assert max(at_once) == SLOTS
        assert bridge.open_asks(len(ASKING)) == asks
        answers = {place: _said(bridge, place) for place in WORKING}
        assert answers == {place: ["go is here.", "first", "second"] for place in WORKING}

        for ask in asks:
            bridge.answer(ask)
        bridge.wait(
            lambda: bridge.rows(ENDED, "asking-%") == [(len(ASKING),)], "no answer", PATIENCE
        )
        assert [_said(bridge, place) for place in ASKING] == [["Wrote notes.txt."]] * len(ASKING)


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """Run a bridge with room for two processes and agents of different patience."""
    folder = tmp_path_factory.mktemp("room")
    agents = {
        "demo": demo(),
        "sleepy": demo(idle_minutes=0.001),
        "forgetful": demo("no-load", idle_minutes=0.001),
        "doomed": {"command": ["sh", "-c", DOOMED], "sandbox": "none"},
    }
    settings = {"MAX_TURNS": "2", "MAX_PROCESSES": "2"}
    with (
        Platform() as platform,
        Observed(folder, platform, agents=agents, settings=settings) as bridge,
    ):
        yield bridge


@pytest.mark.long
def test_the_session_that_idled_longest_makes_room_and_comes_back_with_its_memory(
    bridge: Observed,
) -> None:
    for place in ("first", "second", "third"):
        assert bridge.ask(place, f"say I am {place}")["text"] == f"I am {place}"

    states = {place: _state(bridge, place) for place in ("first", "second", "third")}

    assert states == {"first": "parked", "second": "idle", "third": "idle"}
    assert len(bridge.agent_pids()) == 2
    back = bridge.ask("first", "recall")
    assert (back["state"], back["note"]) == ("done", "")
    assert back["text"] == "You told me:\n- say I am first"
    assert _state(bridge, "second") == "parked"


def test_an_idle_session_is_parked_and_the_next_message_brings_it_back(bridge: Observed) -> None:
    bridge.ask("nap", "say remember the milk", "sleepy")

    bridge.gone("sleepy")
    bridge.wait(lambda: _state(bridge, "nap", "sleepy") == "parked", "not parked")
    assert bridge.rows("select 1 from process where agent = 'sleepy'") == []
    back = bridge.ask("nap", "recall", "sleepy")
    assert (back["text"], back["note"]) == ("You told me:\n- say remember the milk", "")


def test_an_agent_that_cannot_bring_back_its_memory_gets_the_transcript_and_the_place_is_told(
    bridge: Observed,
) -> None:
    bridge.ask("amnesia", "say remember the milk", "forgetful")
    bridge.gone("forgetful")

    back = bridge.ask("amnesia", "say and the eggs", "forgetful")

    assert back["text"] == "and the eggs"
    assert back["note"] == (
        "forgetful could not restore its conversation, so it got the transcript instead."
    )
    session = bridge.session("amnesia", "forgetful")
    query = "select prompt from turn where session = ? order by id desc"
    prompt = bridge.rows(query, session)[0][0]
    assert "\nAnn: say remember the milk\nyou: remember the milk\n</data>\n" in prompt
    assert prompt.endswith("</data>\nsay and the eggs")


@pytest.mark.long
def test_an_answer_goes_through_while_others_wait_for_a_process(bridge: Observed) -> None:
    for place in ("busy-1", "busy-2"):
        bridge.begin(place, "write notes.txt done")
    asks = bridge.open_asks(2)
    waiting = [bridge.begin(place, "say my turn") for place in ("wait-1", "wait-2")]
    queued = "select 1 from turn where state in ('queued', 'starting')"
    bridge.wait(lambda: len(bridge.rows(queued)) == len(waiting), "nobody waits", PATIENCE)

    for ask in asks:
        bridge.answer(ask)

    assert bridge.end("busy-1", 0)["text"] == "Wrote notes.txt."
    assert bridge.end("busy-2", 0)["text"] == "Wrote notes.txt."
    assert bridge.end("wait-1", 0)["text"] == "my turn"
    assert bridge.end("wait-2", 0)["text"] == "my turn"


def test_a_start_that_fails_makes_room_for_whoever_waits_for_a_process(bridge: Observed) -> None:
    bridge.begin("holding", "ask Go on? | Yes | No")
    (ask,) = bridge.open_asks(1)
    bridge.begin("doomed", "say hello", "doomed")
    homes = bridge.data_dir / "session-homes"
    bridge.wait(lambda: any(homes.glob("*-doomed/begun")), "it was not started", PATIENCE)
    (begun,) = homes.glob("*-doomed/begun")
    bridge.begin("hopeful", "say hello")
    starting = "select 1 from turn where state = 'starting'"
    bridge.wait(lambda: len(bridge.rows(starting)) == 2, "nobody waits", PATIENCE)

    begun.with_name("fail").touch()

    assert bridge.end("doomed", 0, "doomed")["note"] == "doomed crashed."
    assert bridge.end("hopeful", 0)["text"] == "hello"
    bridge.answer(ask, "option-1")
    assert bridge.end("holding", 0)["text"] == "You chose Yes."


@pytest.mark.anyio
async def test_two_asks_of_a_turn_that_end_together_take_its_slot_back_once() -> None:
    slots = Slots(1)
    taken, answered = asyncio.Event(), asyncio.Event()

    async def other() -> None:
        async with slots.one():
            taken.set()
            await answered.wait()

    async def ask(slot: Slot) -> None:
        async with slot.lend():
            await taken.wait()

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        async with slots.one() as slot:
            first = group.create_task(ask(slot))
            group.create_task(other())
            await taken.wait()
            second = group.create_task(ask(slot))
            await asyncio.sleep(0)
            answered.set()
            await asyncio.wait([first, second])
        async with slots.one():
            pass


def _said(bridge: Observed, place: str) -> list[str]:
    """List what an agent said in a place, in the order of its record."""
    query = "select text from transcript where session = ? and kind = 'text' order by id"
    said = "\n\n".join(text for (text,) in bridge.rows(query, bridge.session(place)))
    return [part for part in said.split("\n\n") if part]


def _state(bridge: Observed, place: str, agent: str = "demo") -> str:
    found = bridge.http.get(f"/api/v1/sessions/{bridge.session(place, agent)}").json()
    return str(found["state"])
