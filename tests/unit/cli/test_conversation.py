"""One turn followed to its end, over a bridge that a test plays."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from typing import Any

import pytest

from app.cli.answers import Question
from app.cli.conversation import AgentUnknown, Conversation, Item
from app.errors import BridgeError, Conflict, NotFound
from app.model.updates import AskView, ShownFact
from app.server.shapes import EntryOut, NewSession, SessionTurn, TurnOut, UnfinishedOut
from app.terminal.screen import PlainLines, Screen

TURN = 7
SECONDS = 5.0
OPTIONS = [{"id": "yes", "name": "Yes", "kind": "allow_once"}]
NEW = NewSession(agent="demo", text="hi")


class Bridge:
    """A bridge in one test's hands: rows are pushed, the turn is ended, calls are kept."""

    def __init__(self, state: str = "prompted") -> None:
        self.state = state
        self.error = ""
        self.successor: int | None = None
        self.begun: int | None = TURN
        self.rows: list[EntryOut] = []
        self.calls: list[tuple[Any, ...]] = []
        self.called = asyncio.Event()
        self._stream: asyncio.Queue[Item | None] = asyncio.Queue()

    def push(self, kind: Any, text: str = "", *, turn: int = TURN, **data: Any) -> None:
        number = len(self.rows) + 1
        row = EntryOut(id=number, turn=turn, kind=kind, speaker="", text=text, data=data, at=0.0)
        self.rows.append(row)
        self._stream.put_nowait(row)

    def ask(self, state: str, text: str = "May I?", **more: Any) -> None:
        self.push("ask", text, ask=3, state=state, options=OPTIONS, call="c1", **more)

    def cut(self) -> None:
        self._stream.put_nowait(None)

    def end(self, state: str = "done", error: str = "") -> None:
        self.state, self.error = state, error

    async def begin(self, new: NewSession) -> SessionTurn:
        return SessionTurn(
            id=1,
            key="web:t:demo",
            agent=new.agent,
            thread="t",
            state="working",
            title="",
            updated_at=0.0,
            turn=self.begun,
        )

    async def turn(self, session: int, turn: int) -> TurnOut:
        successor = self.successor if turn == TURN else None
        return TurnOut(id=turn, state=self.state, error=self.error, successor=successor)

    async def transcript(self, session: int, *, after: int) -> list[EntryOut]:
        return [row for row in self.rows if row.id > after]

    async def answer(self, ask: int, answer: str, *, in_words: bool) -> None:
        self._note("answer", ask, answer, *(["in words"] if in_words else []))

    async def cancel(self, session: int) -> None:
        self._note("cancel", session)
        self.end("cancelled")

    async def follow(self, session: int) -> AsyncIterator[Item]:
        yield UnfinishedOut(turn=TURN, kind="thought", text="hm")
        while (item := await self._stream.get()) is not None:
            yield item
        raise BridgeError("the stream broke")

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        self.called.set()


class Desk:
    """Somebody who answers, or never does."""

    def __init__(self, answer: str | None = "yes", *, silent: bool = False) -> None:
        self._answer = answer
        self._silent = silent
        self.asked: list[Question] = []
        self.reached = asyncio.Event()

    async def choose(self, question: Question) -> str | None:
        self.asked.append(question)
        self.reached.set()
        if self._silent:
            await asyncio.Event().wait()
        return self._answer


class Talk:
    """A conversation, and what is seen of it."""

    def __init__(self, bridge: Bridge, desk: Desk | None = None) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.desk = desk or Desk()
        self.conversation = Conversation(bridge, Screen(self.out, PlainLines(self.err)), self.desk)

    async def run(self, *meanwhile: Callable[[], Awaitable[object]]) -> TurnOut:
        async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
            running = group.create_task(self.conversation.run(NEW))
            for step in meanwhile:
                await step()
        return running.result()[1]


async def test_the_rows_of_the_turn_are_shown_and_those_of_others_are_not() -> None:
    bridge = Bridge()
    talk = Talk(bridge)
    bridge.push("text", "theirs", turn=6)
    bridge.push("text", "ours")
    bridge.end()

    turn = await talk.run()

    assert turn.state == "done"
    assert talk.out.getvalue() == "ours"


async def test_rows_that_the_stream_did_not_bring_are_read_at_the_end_once() -> None:
    bridge = Bridge()
    talk = Talk(bridge)
    bridge.push("text", "one ")
    bridge.cut()
    bridge.push("text", "two")
    bridge.end()

    await talk.run()

    assert talk.out.getvalue() == "one two"


async def test_an_ask_is_shown_with_what_would_be_done_and_answered() -> None:
    bridge = Bridge()
    talk = Talk(bridge)
    bridge.ask("open", view=asdict(AskView("May I?", (ShownFact("command", "ls -l"),))))

    async def answered() -> None:
        await bridge.called.wait()
        bridge.ask("answered", "operator: Yes")
        bridge.end()

    await talk.run(answered)

    assert bridge.calls == [("answer", 3, "yes")]
    assert [(q.title, tuple(q.details)) for q in talk.desk.asked] == [
        ("May I?", ("Command:", "| ls -l"))
    ]


async def test_an_ask_of_an_earlier_release_says_what_it_is_about() -> None:
    bridge = Bridge()
    talk = Talk(bridge, Desk(answer=None))
    bridge.ask("open", about="/etc/hosts\n\x1b[2J/etc/passwd")

    await talk.run()

    details = ("Input:", "| /etc/hosts", r"| \u{1B}[2J/etc/passwd")
    assert [q.details for q in talk.desk.asked] == [details]


async def test_a_turn_that_goes_on_with_a_parked_one_is_followed_to_its_end() -> None:
    bridge = Bridge("parked")
    talk = Talk(bridge)
    bridge.push("text", "before ")

    async def answered() -> None:
        bridge.push("text", "after", turn=TURN + 1)
        bridge.successor = TURN + 1
        bridge.end()

    await talk.run(answered)

    assert talk.out.getvalue() == "before after"


async def test_an_ask_that_somebody_else_answers_is_not_waited_for() -> None:
    bridge = Bridge()
    talk = Talk(bridge, Desk(silent=True))
    bridge.ask("open")

    async def elsewhere() -> None:
        await talk.desk.reached.wait()
        bridge.ask("answered", "Ada: Yes")
        bridge.end()

    await talk.run(elsewhere)

    assert bridge.calls == []
    assert "Ada: Yes" in talk.err.getvalue()


async def test_an_ask_that_nobody_can_answer_stops_the_turn() -> None:
    bridge = Bridge()
    talk = Talk(bridge, Desk(answer=None))
    bridge.ask("open")

    turn = await talk.run()

    assert turn.state == "cancelled"
    assert talk.conversation.unanswered == "the agent asks 'May I?'."


async def test_stop_stops_a_turn_that_runs() -> None:
    bridge = Bridge()
    talk = Talk(bridge)

    async def stop() -> None:
        talk.conversation.stop()

    turn = await talk.run(stop)

    assert bridge.calls == [("cancel", 1)]
    assert turn.state == "cancelled"


async def test_stop_leaves_a_turn_alone_that_waits_behind_another() -> None:
    bridge = Bridge(state="queued")
    talk = Talk(bridge)

    async def stop() -> None:
        talk.conversation.stop()

    turn = await talk.run(stop)

    assert bridge.calls == []
    assert turn.state == "queued"


async def test_a_closed_stdout_stops_the_turn() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    bridge = Bridge()
    bridge.push("text", "hello")
    conversation = Conversation(bridge, Screen(Closed(), PlainLines(io.StringIO())), Desk())

    with pytest.raises(BrokenPipeError):
        await conversation.run(NEW)

    assert bridge.calls == [("cancel", 1)]


async def test_a_command_of_the_bridge_is_no_turn() -> None:
    bridge = Bridge()
    bridge.begun = None

    with pytest.raises(Conflict, match="'hi' is a command of the bridge"):
        await Talk(bridge).conversation.run(NEW)


async def test_an_unknown_agent_is_told_with_the_way_to_the_known_ones() -> None:
    class Strange(Bridge):
        async def begin(self, new: NewSession) -> SessionTurn:
            raise NotFound("agent", new.agent)

    with pytest.raises(AgentUnknown, match="`agent-bridge agents list`"):
        await Talk(Strange()).conversation.run(NEW)


async def test_a_bridge_that_went_away_is_told() -> None:
    class Gone(Bridge):
        async def turn(self, session: int, turn: int) -> TurnOut:
            raise BridgeError("it went away")

    with pytest.raises(BridgeError, match="it went away"):
        await Talk(Gone()).conversation.run(NEW)
