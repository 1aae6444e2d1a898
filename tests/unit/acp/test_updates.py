"""From an agent's JSON to the bridge's words."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.acp.updates import COMPACTED, TOO_DEEP, arguments_hash, ask_request, bridge_update
from app.model.updates import (
    AskOption,
    BridgeUpdate,
    FileDiff,
    FileUpdate,
    NoticeUpdate,
    PlanStep,
    PlanUpdate,
    StateUpdate,
    TextUpdate,
    ThoughtUpdate,
    ToolUpdate,
    UnknownUpdate,
    UsageUpdate,
)

TEXT = {"type": "text", "text": "hello"}
KINDS = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "plan_update",
    "plan_removed",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
]
FIELDS = [
    "sessionUpdate",
    "content",
    "type",
    "text",
    "toolCallId",
    "title",
    "kind",
    "status",
    "rawInput",
    "rawOutput",
    "locations",
    "path",
    "line",
    "oldText",
    "newText",
    "entries",
    "plan",
    "uri",
    "name",
    "resource",
    "used",
    "size",
    "cost",
    "amount",
    "currency",
    "availableCommands",
    "currentModeId",
    "configOptions",
    "optionId",
    "command",
    "data",
    "mimeType",
    "blob",
    "input",
    "_meta",
    "claudeCode",
    "parentToolUseId",
]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([*KINDS, "text", "diff", "items", "resource", "resource_link", "image"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6)
    ),
    max_leaves=20,
)


def nested(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"sessionUpdate": "agent_message_chunk", "content": TEXT}, TextUpdate("hello")),
        ({"sessionUpdate": "agent_thought_chunk", "content": TEXT}, ThoughtUpdate("hello")),
        ({"sessionUpdate": "user_message_chunk", "content": TEXT}, None),
        (
            {
                "sessionUpdate": "notice",
                "severity": "warning",
                "title": "No key.",
                "description": "x",
            },
            NoticeUpdate("The agent reports: No key. x."),
        ),
        ({"sessionUpdate": "notice", "title": 7}, None),
        (
            {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress"},
            None,
        ),
        (
            {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"},
            NoticeUpdate(COMPACTED, compaction="c"),
        ),
        (
            {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "failed"},
            NoticeUpdate("The agent could not compact its context."),
        ),
        (
            {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "resource_link", "uri": "file:///a", "name": "a"},
            },
            FileUpdate("a", "\n[file: a, file:///a]\n", address="file:///a"),
        ),
        (
            {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "resource", "resource": {"uri": "file:///a", "text": "words"}},
            },
            TextUpdate("\nwords\n"),
        ),
        (
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "AAAA"}},
            FileUpdate("image", "\n[image: 3 bytes]\n", b"\0\0\0"),
        ),
        (
            {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "image", "data": "not base64", "mimeType": "image/png"},
            },
            TextUpdate("\n[image: image/png, 7 bytes]\n"),
        ),
        (
            {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/mpeg"},
            },
            FileUpdate("audio.mp3", "\n[audio: audio/mpeg, 3 bytes]\n", b"\0\0\0"),
        ),
        (
            {
                "sessionUpdate": "agent_message_chunk",
                "content": {
                    "type": "resource",
                    "resource": {"uri": "file:///w/plot.png", "blob": "AAAA"},
                },
            },
            FileUpdate("plot.png", "\n[file: file:///w/plot.png, 3 bytes]\n", b"\0\0\0"),
        ),
        (
            {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "image", "data": "AAAA"},
                "_meta": {"parentToolCallId": "c1"},
            },
            ThoughtUpdate("\n[image: 3 bytes]\n", "c1"),
        ),
        (
            {
                "sessionUpdate": "tool_call",
                "toolCallId": "c1",
                "title": "Edit a.py",
                "kind": "edit",
                "rawInput": {"path": "a.py"},
                "locations": [{"path": "a.py", "line": 3}, {"path": "b.py"}, {"line": 1}],
                "content": [
                    {"type": "content", "content": TEXT},
                    {"type": "diff", "path": "a.py", "oldText": "1", "newText": "2"},
                    {"type": "diff", "path": "b.py", "newText": "new"},
                    {"type": "terminal", "terminalId": "t"},
                ],
            },
            ToolUpdate(
                call="c1",
                title="Edit a.py",
                kind="edit",
                status="pending",
                input={"path": "a.py"},
                output="hello\n[output in a terminal of the agent]",
                diffs=(FileDiff("a.py", "1", "2"), FileDiff("b.py", None, "new")),
                locations=("a.py:3", "b.py"),
            ),
        ),
        (
            {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"},
            ToolUpdate("c1", status="completed"),
        ),
        (
            {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "rawOutput": {"exit": 0}},
            ToolUpdate("c1", output='{"exit": 0}'),
        ),
        (
            {
                "sessionUpdate": "plan",
                "entries": [
                    {"content": "read", "status": "completed", "priority": "high"},
                    {"content": "write", "status": "confused"},
                    {"status": "pending"},
                    "nonsense",
                ],
            },
            PlanUpdate((PlanStep("read", "completed"), PlanStep("write"))),
        ),
        (
            {
                "sessionUpdate": "plan_update",
                "plan": {"type": "items", "planId": "p", "entries": [{"content": "read"}]},
            },
            PlanUpdate((PlanStep("read"),)),
        ),
        (
            {
                "sessionUpdate": "plan_update",
                "plan": {"type": "markdown", "planId": "p", "content": "- one\n\n- two"},
            },
            PlanUpdate((PlanStep("- one"), PlanStep("- two"))),
        ),
        ({"sessionUpdate": "plan_removed", "planId": "p"}, PlanUpdate(())),
        (
            {
                "sessionUpdate": "usage_update",
                "used": 10,
                "size": 200,
                "cost": {"amount": 0.5, "currency": "USD"},
            },
            UsageUpdate(10, 200, 0.5, "USD"),
        ),
        (
            {
                "sessionUpdate": "available_commands_update",
                "availableCommands": [
                    {"name": "compact", "description": "Shrink", "input": {"hint": "how far"}},
                    {"name": 1},
                ],
            },
            StateUpdate(
                "commands", [{"name": "compact", "description": "Shrink", "hint": "how far"}]
            ),
        ),
        (
            {"sessionUpdate": "current_mode_update", "currentModeId": "plan"},
            StateUpdate("mode", "plan"),
        ),
        (
            {"sessionUpdate": "config_option_update", "configOptions": [{"id": "model"}, 1]},
            StateUpdate("options", [{"id": "model"}]),
        ),
        ({"sessionUpdate": "session_info_update", "title": "T"}, StateUpdate("title", "T")),
        ({"sessionUpdate": "session_info_update", "title": None}, StateUpdate("title", "")),
        ({"sessionUpdate": "session_info_update", "updatedAt": "now"}, None),
        (
            {"sessionUpdate": "brand_new", "x": 1},
            UnknownUpdate("brand_new", {"sessionUpdate": "brand_new", "x": 1}),
        ),
        ({"sessionUpdate": 7}, UnknownUpdate("", {"sessionUpdate": 7})),
        ([1, 2], UnknownUpdate("", {})),
    ],
)
def test_every_kind_of_update_has_its_word(update: object, expected: BridgeUpdate | None) -> None:
    assert bridge_update(update) == expected


def test_a_tool_call_without_a_name_is_unknown() -> None:
    update = {"sessionUpdate": "tool_call", "title": "x"}

    assert isinstance(bridge_update(update), UnknownUpdate)


def test_input_that_is_nested_too_deeply_to_be_stored_is_left_out() -> None:
    update = {"sessionUpdate": "tool_call", "toolCallId": "c", "rawInput": nested(500)}

    assert bridge_update(update) == ToolUpdate("c", status="pending", input=TOO_DEEP)


def test_a_tool_gives_raw_output_only_when_it_shows_no_content() -> None:
    update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "content": [{"type": "content", "content": TEXT}],
        "rawOutput": "raw",
    }

    assert bridge_update(update) == ToolUpdate("c", output="hello", diffs=())


def test_an_ask_can_be_shown_alone() -> None:
    call = {"toolCallId": "c1", "kind": "execute", "rawInput": {"command": ["rm", "-r", "x"]}}
    options = [
        {"optionId": "a", "name": "Allow once", "kind": "allow_once"},
        {"optionId": "b", "name": "Allow this branch", "kind": "allow_once"},
    ]

    request = ask_request(call, options)

    assert request.title == "rm -r x"
    assert request.options == (
        AskOption("a", "Allow once", "allow_once"),
        AskOption("b", "Allow this branch", "allow_once"),
    )
    assert request.tool == ToolUpdate("c1", kind="execute", input=call["rawInput"])


def test_the_same_call_hashes_equally_whatever_its_name_and_the_order_of_its_fields() -> None:
    one = {"toolCallId": "1", "kind": "execute", "title": "t", "rawInput": {"a": 1, "b": 2}}
    same = {"rawInput": {"b": 2, "a": 1}, "title": "t", "kind": "execute", "toolCallId": "2"}
    other = {**one, "rawInput": {"a": 1, "b": 3}}

    assert arguments_hash(one) == arguments_hash(same)
    assert arguments_hash(one) != arguments_hash(other)


def test_two_changes_of_one_file_hash_differently_though_only_their_lines_differ() -> None:
    def writing(text: str) -> dict[str, Any]:
        change = {"type": "diff", "path": "a.txt", "oldText": "", "newText": text}
        return {"toolCallId": "1", "kind": "edit", "title": "Writing to a.txt", "content": [change]}

    assert arguments_hash(writing("harmless")) == arguments_hash(writing("harmless"))
    assert arguments_hash(writing("harmless")) != arguments_hash(writing("harmful"))


@settings(deadline=None)
@given(json_values)
def test_whatever_an_agent_sends_becomes_something_that_can_be_stored(value: object) -> None:
    update = bridge_update(value)
    ask = ask_request(value if isinstance(value, dict) else {"rawInput": value}, [])

    orjson.dumps([update, ask], default=str, option=orjson.OPT_NON_STR_KEYS)


@pytest.mark.long
@settings(deadline=None)
@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=8))
def test_every_kind_bears_odd_fields(kind: str, fields: dict[str, Any]) -> None:
    bridge_update({**fields, "sessionUpdate": kind})
