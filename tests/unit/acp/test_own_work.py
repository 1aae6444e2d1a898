"""What an agent does without a prompt: kept for its turn, passed on in order, ended, bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.acp import own_work
from app.acp.audience import Audience
from app.model.background import Woken
from app.model.updates import TextUpdate, ToolUpdate
from tests.unit.acp.helpers import BOUND, Counts, Memory
from tests.unit.acp.test_audience import ASK, text

pytestmark = pytest.mark.anyio

CALL = {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "make", "status": "in_progress"}
DONE = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"}
COST = {"sessionUpdate": "usage_update", "used": 1, "cost": {"amount": 0.1, "currency": "USD"}}
KINDS = st.sampled_from(
    [
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "usage_update",
        "session_info_update",
        "current_mode_update",
        "no_such_kind",
    ]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "content", "status", "_meta", "codex", "threadStatus"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
UPDATES = st.builds(
    lambda status, kind, call, content, meta: {
        "sessionUpdate": kind,
        "toolCallId": call,
        "status": status,
        "content": content,
        "_meta": meta,
    },
    JUNK | st.sampled_from(["pending", "completed"]),
    KINDS,
    st.sampled_from(["c1", "c2", 7, None]),
    JUNK | st.builds(lambda words: {"type": "text", "text": words}, st.text(max_size=5)),
    JUNK,
)


class Hall:
    """An audience whose session is open."""

    def __init__(self) -> None:
        self.between, self.turn, self.counts = Memory(), Memory(answer="yes"), Counts()
        self.audience = Audience(self.between, lambda reason: self.counts.count(reason))
        self.audience.session_id = "s1"
        self.audience.attend(self.between)

    async def say(self, *updates: object) -> None:
        for update in updates:
            waiting = self.audience.take({"sessionId": "s1", "update": update})
            if waiting is not None:
                await waiting
        if (waiting := self.audience.settle()) is not None:
            await waiting

    async def follow(self, turn: int = 2) -> None:
        self.audience.listen(self.turn, turn)
        await self.audience.catch_up()


async def test_what_an_agent_begins_wakes_one_turn_which_hears_all_of_it_in_order() -> None:
    hall = Hall()

    await hall.say(text("a"), text("b"), CALL)
    await hall.follow()
    await hall.say(DONE, text("c"))

    assert hall.between.woken == [Woken()]
    assert [type(each) for each in hall.turn.heard] == [
        TextUpdate,
        ToolUpdate,
        ToolUpdate,
        TextUpdate,
    ]
    assert hall.turn.text == "abc"


async def test_what_is_late_for_a_call_belongs_to_the_turn_that_began_it() -> None:
    hall = Hall()
    await hall.follow(1)
    await hall.say(CALL)
    hall.audience.leave()

    await hall.say(DONE)

    assert hall.between.woken == []
    assert [(turn, type(update)) for turn, update in hall.between.late] == [(1, ToolUpdate)]


async def test_an_ask_between_turns_waits_for_a_turn() -> None:
    hall = Hall()

    asking = asyncio.create_task(hall.audience.ask(ASK))
    await asyncio.wait_for(hall.between.roused.wait(), BOUND)
    await hall.follow()

    assert await asyncio.wait_for(asking, BOUND) == "yes"


async def test_it_ends_at_the_agents_own_sign_and_not_while_a_call_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own_work, "QUIET_SECONDS", 0.02)
    hall = Hall()
    await hall.follow()
    await hall.say(CALL)
    ended = asyncio.create_task(hall.audience.own_work.ended())

    await asyncio.sleep(0.1)
    assert not ended.done()
    await hall.say(DONE, COST)

    await asyncio.wait_for(ended, BOUND)


async def test_an_agent_that_is_ignored_opens_nothing_and_what_it_sends_is_named() -> None:
    hall = Hall()
    await hall.say(text("a"))

    hall.audience.ignore()
    await hall.say(text("b"), CALL)

    assert await hall.audience.ask(ASK) is None
    assert hall.audience.woken is None
    assert hall.between.unshown == {"text": 2, "tool": 1, "ask": 1}


async def test_more_than_is_kept_is_dropped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_work, "KEPT_CHARACTERS", 10)
    hall = Hall()

    await hall.say(*[text("four")] * 10)
    await hall.follow()

    assert hall.turn.text == "four" * 3
    assert hall.between.unshown == {"text": 7}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(UPDATES, st.integers(0, 5)), max_size=30))
async def test_no_update_between_turns_breaks_anything(said: list[tuple[Any, int]]) -> None:
    hall = Hall()

    for update, act in said:
        await hall.say(update)
        if act == 0:
            await hall.follow()
        elif act == 1:
            hall.audience.leave()
        hall.audience.notify("_claude/sdkMessage", {"message": update})
    await hall.follow()
    await hall.say(text("still here"))

    assert hall.turn.text.endswith("still here")
