"""The toolbox: which tools an agent has by its lists, and what is checked before one runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from app.core.tools.toolbox import Toolbox
from app.model.agents import Arguments, Caller, Result, Tool, ToolRefused
from app.model.keys import PlaceKey, SessionKey
from app.model.types import Session, SessionState, Turn, TurnState
from app.store.sessions import SessionStore
from app.store.turns import TurnStore
from tests.agents.rig import Notes
from tests.support.agent_values import make_agent
from tests.support.scoping import CASES

KEY = SessionKey("web", "t1", "demo")
SESSION = Session(1, KEY, PlaceKey("web", "t1"), SessionState.WORKING)
TURN = Turn(7, 1, KEY, TurnState.PROMPTED)
CAPABILITIES = {
    "echo": ("test.read",),
    "echo_loud": ("test.read", "test.loud"),
    "refuse": ("test.write",),
    "break": ("test.write",),
    "wait": ("test.wait",),
    "agents_list": ("agents.read",),
    "agents_message": ("agents.ask",),
}


async def tell_caller(caller: Caller, arguments: Arguments) -> Result:
    """Return who calls, and with what."""
    return {**arguments, "turn": caller.turn.id, "waits": caller.waits_seconds}


class Table:
    """The one session and turn that there is."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def session(self, session: int) -> Session | None:
        return SESSION if session == SESSION.id else None

    def turn(self, turn: int) -> Turn | None:
        return self._turn if turn == self._turn.id else None


def make(turn: Turn = TURN, running: int | None = TURN.id, **lists: Any) -> Toolbox:
    """Make a toolbox for one agent with these lists."""
    tools = [
        Tool(name, "Tells who calls.", {"text": {"type": "string"}}, needed, tell_caller)
        for name, needed in CAPABILITIES.items()
    ]
    lists = {name: tuple(globs) for name, globs in lists.items()}
    table = Table(turn)
    return Toolbox(
        tools,
        {"demo": make_agent("demo", tool_seconds=42.0, **lists)},
        cast("SessionStore", table),
        cast("TurnStore", table),
        Notes(),
        running=lambda _session: running,
    )


async def works(box: Toolbox, name: str) -> bool:
    """Call a tool; tells whether it was there."""
    try:
        return await box.call(1, name, {}) == {"turn": 7, "waits": 42.0}
    except ToolRefused as refusal:
        return "There is no tool" not in str(refusal)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_an_agent_has_the_tools_of_its_lists_and_no_others(case: Any) -> None:
    box = make(**case.entry)

    assert {tool.name for tool in box.tools("demo")} == case.tools
    assert {name for name in CAPABILITIES if await works(box, name)} == case.tools


def test_an_agent_that_is_gone_has_no_tools() -> None:
    assert list(make().tools("removed")) == []
    assert list(make().tools_in(2)) == []


@pytest.mark.parametrize(
    ("turn", "running"),
    [
        (TURN, None),
        (TURN, 8),
        (replace(TURN, stopped=True), 7),
        (replace(TURN, state=TurnState.DONE), 7),
        (replace(TURN, state=TurnState.STARTING), 7),
    ],
    ids=["idle", "unknown", "stopped", "over", "starting"],
)
async def test_a_tool_works_only_in_a_turn_that_runs(turn: Turn, running: int | None) -> None:
    with pytest.raises(ToolRefused, match="only during your turn"):
        await make(turn, running).call(1, "echo", {})


async def test_long_arguments_are_refused_before_they_are_looked_at() -> None:
    def check(_tool: Tool, _arguments: Arguments) -> Arguments:
        raise AssertionError("it was looked at")

    with pytest.raises(ToolRefused, match="too long"):
        await make().call(1, "echo", {"text": "é" * 40_000}, check=check)


async def test_a_tool_gets_the_arguments_that_were_checked() -> None:
    found = await make().call(1, "echo", {"text": "a"}, check=lambda _tool, _given: {"text": "b"})

    assert found["text"] == "b"
