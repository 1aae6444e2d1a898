"""Who hears an agent, what is joined on the way, and what becomes of its asks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from acp import RequestError
from acp.schema import PermissionOption, ToolCallUpdate

from app.acp.audience import Audience
from app.acp.client import BridgeAcpClient
from app.acp.peer import AudienceWitness
from app.errors import StoreUnavailable
from app.model.updates import (
    AskOption,
    AskRequest,
    BridgeUpdate,
    NoticeUpdate,
    StateUpdate,
    TextUpdate,
    ThoughtUpdate,
    ToolUpdate,
    UnknownUpdate,
)
from tests.unit.acp.helpers import BOUND, Counts, Memory

pytestmark = pytest.mark.anyio

ASK = AskRequest("c1", "rm x", (AskOption("yes", "Allow", "allow_once"),))
TOOL = {"sessionUpdate": "tool_call_update", "toolCallId": "c1"}
MODE = {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}


def text(words: str, kind: str = "agent_message_chunk") -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": words}}


class Hall:
    """An audience with everybody in it."""

    def __init__(self) -> None:
        self.between, self.turn, self.counts = Memory(), Memory(answer="yes"), Counts()
        self.audience = Audience(self.between, lambda reason: self.counts.count(reason))
        self.audience.session_id = "s1"

    async def say(self, *updates: object, session: str = "s1") -> None:
        for update in updates:
            waiting = self.audience.take({"sessionId": session, "update": update})
            if waiting is not None:
                await waiting

    async def settle(self) -> None:
        waiting = self.audience.settle()
        if waiting is not None:
            await waiting


async def test_text_that_came_together_is_told_together() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)

    await hall.say(text("a"), text("b"))
    assert hall.turn.heard == []
    await hall.settle()

    assert hall.turn.heard == [TextUpdate("ab")]


async def test_whatever_comes_between_texts_keeps_its_place() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)

    await hall.say(text("a"), text("b"), TOOL, text("c"), text("d", "agent_thought_chunk"))
    await hall.say(text("e", "agent_thought_chunk"), text("f"))
    await hall.settle()

    assert hall.turn.heard == [
        TextUpdate("ab"),
        ToolUpdate("c1"),
        TextUpdate("c"),
        ThoughtUpdate("de"),
        TextUpdate("f"),
    ]


async def test_updates_of_another_session_are_not_ours() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)

    await hall.say(text("foreign"), TOOL, session="s2")
    await hall.settle()

    assert hall.turn.heard == []
    assert hall.counts.dropped == {"other_session": 2}


async def test_between_turns_only_the_state_of_the_session_is_news() -> None:
    hall = Hall()

    await hall.say(text("late"), TOOL, MODE, text("again", "user_message_chunk"))
    await hall.settle()

    assert hall.between.heard == [StateUpdate("mode", "plan")]
    assert hall.counts.dropped == {"between_turns": 2}


async def test_a_turn_begins_with_what_changed_about_the_session_before_it() -> None:
    hall = Hall()
    title = {"sessionUpdate": "session_info_update", "title": "Bridges"}

    await hall.say(MODE | {"currentModeId": "build"}, MODE, title)
    first = hall.audience.listen(hall.turn)
    hall.audience.leave()
    await hall.say(MODE)
    second = hall.audience.listen(hall.turn)

    assert first == (StateUpdate("mode", "plan"),)
    assert second == ()


async def test_a_state_that_a_turn_has_heard_is_no_news_for_the_next() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)
    await hall.say(MODE)
    hall.audience.leave()

    await hall.say(MODE)

    assert hall.audience.listen(hall.turn) == ()


async def test_what_a_sub_agent_says_is_not_the_answer() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)
    inner = text("found it") | {"_meta": {"claudeCode": {"parentToolUseId": "task"}}}

    await hall.say(text("a"), inner, text("b"))
    await hall.settle()

    assert hall.turn.heard == [
        TextUpdate("a"),
        ThoughtUpdate("found it", "task"),
        TextUpdate("b"),
    ]


async def test_a_kind_that_nobody_knows_is_kept_and_counted() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)

    await hall.say({"sessionUpdate": "brand_new", "x": 1})

    assert hall.turn.heard == [UnknownUpdate("brand_new", {"sessionUpdate": "brand_new", "x": 1})]
    assert hall.counts.dropped == {"unknown_kind": 1}


async def test_a_turn_that_is_over_hears_nothing() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)
    hall.audience.leave()

    await hall.say(text("late"))
    await hall.settle()

    assert hall.turn.heard == []
    assert hall.counts.dropped == {"between_turns": 1}


async def test_before_the_session_has_a_name_every_update_is_taken_for_ours() -> None:
    hall = Hall()
    hall.audience.session_id = None

    await hall.say(MODE, session="not yet known")

    assert hall.between.heard == [StateUpdate("mode", "plan")]


@pytest.mark.parametrize("params", [None, [], "x", 7, {}, {"sessionId": "s1"}])
async def test_parameters_that_make_no_sense_are_counted(params: object) -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)

    waiting = hall.audience.take(params)
    assert waiting is not None
    await waiting

    assert hall.counts.dropped == {"senseless_update": 1}


@pytest.mark.parametrize(
    "update",
    [
        text("") | {"sessionUpdate": []},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 7}},
        {"sessionUpdate": "agent_message_chunk", "content": "text"},
        {"sessionUpdate": "agent_message_chunk"},
    ],
)
async def test_odd_text_is_no_text(update: dict[str, Any]) -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)

    await hall.say(update, text("fine"))
    await hall.settle()

    assert hall.turn.text == "fine"


async def test_state_that_cannot_be_kept_between_turns_costs_nothing() -> None:
    class Full(Memory):
        async def on_update(self, update: BridgeUpdate) -> None:
            raise StoreUnavailable("disk full")

    audience = Audience(Full(), lambda _: None)

    waiting = audience.take({"sessionId": "s1", "update": MODE})
    assert waiting is not None
    await waiting


async def test_an_ask_is_answered_by_the_listener_of_the_turn() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)

    assert await hall.audience.ask(ASK) == "yes"
    assert hall.turn.asked == [ASK]


async def test_an_answer_that_was_not_offered_is_none() -> None:
    hall = Hall()
    hall.turn.answer = "something else"
    hall.audience.listen(hall.turn)

    assert await hall.audience.ask(ASK) is None


async def test_a_line_by_the_bridge_keeps_its_place_in_the_turn() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)

    await hall.say(text("a"))
    await hall.audience.note("refused")

    assert hall.turn.heard == [TextUpdate("a"), NoticeUpdate("refused")]


async def test_what_the_network_refused_between_turns_is_told_in_the_next_one() -> None:
    hall = Hall()
    witness = AudienceWitness("claude", hall.audience)

    assert await witness.ask("evil.example", 443) is None
    await witness.note("Network: refused evil.example:443, not on this agent's list.")

    (notice,) = hall.audience.listen(hall.turn)
    assert notice == NoticeUpdate("Network: refused evil.example:443, not on this agent's list.")
    hall.audience.leave()
    assert hall.audience.listen(hall.turn) == ()


async def test_between_turns_nobody_is_asked() -> None:
    hall = Hall()

    assert await hall.audience.ask(ASK) is None
    assert hall.between.asked == []


async def test_open_asks_are_cancelled_with_the_turn_and_later_ones_not_asked() -> None:
    hall = Hall()
    hall.turn.patience = asyncio.Event()
    hall.audience.listen(hall.turn)

    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        asks = [group.create_task(hall.audience.ask(ASK)) for _ in range(3)]
        await hall.turn.asking.wait()
        hall.audience.hush()

    assert [ask.result() for ask in asks] == [None, None, None]
    assert await hall.audience.ask(ASK) is None
    assert len(hall.turn.asked) == 3


async def test_the_next_turn_can_ask_again() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)
    hall.audience.leave()
    hall.audience.listen(hall.turn)

    assert await hall.audience.ask(ASK) == "yes"


OPTIONS = [PermissionOption(option_id="yes", name="Allow", kind="allow_once")]


async def test_permission_is_given_by_option_id() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)
    call = ToolCallUpdate(tool_call_id="c1", title="rm x", kind="execute", raw_input={"a": 1})

    response = await BridgeAcpClient(hall.audience).request_permission(
        "s1", call, OPTIONS, some_meta=1
    )

    assert response.model_dump(by_alias=True)["outcome"] == {
        "outcome": "selected",
        "optionId": "yes",
        "_meta": None,
    }
    request = hall.turn.asked[0]
    assert (request.call, request.title) == ("c1", "rm x")
    assert request.tool == ToolUpdate("c1", title="rm x", kind="execute", input={"a": 1})


async def test_permission_for_another_session_is_cancelled() -> None:
    hall = Hall()
    hall.audience.listen(hall.turn)

    response = await BridgeAcpClient(hall.audience).request_permission(
        "s2", ToolCallUpdate(tool_call_id="c1"), OPTIONS
    )

    assert response.outcome.outcome == "cancelled"
    assert hall.turn.asked == []


async def test_an_ask_that_cannot_be_stored_is_cancelled() -> None:
    class Full(Memory):
        async def on_ask(self, request: AskRequest) -> str | None:
            raise StoreUnavailable("disk full")

    hall = Hall()
    hall.audience.listen(Full())

    response = await BridgeAcpClient(hall.audience).request_permission(
        "s1", ToolCallUpdate(tool_call_id="c1"), OPTIONS
    )

    assert response.outcome.outcome == "cancelled"


async def test_files_and_terminals_are_the_agents_own_business() -> None:
    client = BridgeAcpClient(Hall().audience)

    for attempt in (
        client.read_text_file(session_id="s1", path="/etc/passwd"),
        client.write_text_file(session_id="s1", path="/x", content="y"),
        client.create_terminal(session_id="s1", command="sh"),
        client.ext_method("vendor/thing", {}),
    ):
        with pytest.raises(RequestError) as caught:
            await attempt
        assert caught.value.code == -32601
