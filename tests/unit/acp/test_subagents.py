"""Sub-agents on the wire: whose work it is, and nothing that breaks on any JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.acp.subagents import KNOWN, Subagents
from app.model.updates import AskRequest, ThoughtUpdate, ToolUpdate

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ("sessionUpdate", "sessionId", "title", "state", "capabilities", "content", "toolCallId")
)


def announce(known: Subagents, key: str, parent: str = "", **more: Any) -> None:
    known.hear(parent, {"sessionUpdate": "subagent_update", "sessionId": key, **more})


def test_each_level_is_named_by_all_above_it() -> None:
    known = Subagents(Counter[str]().update)
    announce(known, "a", title="explore", capabilities={"cancel": {}})
    announce(known, "b", "a", title="reviewer")
    announce(known, "c", "b", title="linter")

    asked = known.address("c", AskRequest("7", "Run", (), tool=ToolUpdate("7")))

    assert asked.subagent.split()[::2] == ["explore", "reviewer", "linter"]
    assert (asked.call, asked.tool and asked.tool.parent) == ("c:7", "c")
    assert [each.can_stop for each in known.running] == [True, False, False]
    assert known.is_within("c", "a")
    assert not known.is_within("a", "c")


def test_what_one_says_belongs_below_it_and_its_end_is_kept() -> None:
    known = Subagents(Counter[str]().update)
    announce(known, "a", title="explore", state={"state": "running"})

    said = known.translate(
        "a", {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}
    )
    announce(known, "a", state={"state": "idle", "stopReason": "cancelled"})

    found = known.find("a")
    assert said == ThoughtUpdate("hi", "a")
    assert found is not None
    assert found.state == "stopped"
    assert not known.running


def test_only_so_many_are_known() -> None:
    dropped = Counter[str]()
    known = Subagents(lambda reason: dropped.update([reason]))
    for number in range(KNOWN + 2):
        announce(known, f"s{number}")

    assert dropped == {"too_many_subagents": 2}


@settings(max_examples=60)
@given(st.lists(st.dictionaries(KEYS, VALUES), max_size=5))
def test_any_update_is_taken_or_left(updates: list[dict[str, Any]]) -> None:
    known = Subagents(Counter[str]().update)
    announce(known, "a")

    for update in updates:
        for kind in ("subagent_update", "session_message"):
            known.hear("", {**update, "sessionUpdate": kind})
        known.translate("a", update)

    assert "a" in known
