"""Agents that ask each other in real processes: through the tools, with one slot, bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.observe import Observed, demo
from tests.support.platform import Platform

AGENTS = ("demo", "codex", "third")


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    agents = {name: demo(permissions="trusted") for name in AGENTS}
    settings = {"MAX_TURNS": "1", "DELEGATION_DEPTH": "3", "DELEGATIONS_PER_TURN": "2"}
    with Platform() as platform:
        folder = tmp_path_factory.mktemp("delegation")
        with Observed(folder, platform, agents=agents, settings=settings) as bridge:
            yield bridge


def call(tool: str, **arguments: Any) -> str:
    """Write the line with which the demo agent calls a tool."""
    return f"tool {tool} {json.dumps(arguments)}"


def message(to: str, *lines: str, **more: Any) -> str:
    """Write the line with which the demo agent asks another one to follow lines."""
    return call("agents_message", to=to, text="\n".join(lines), **more)


def test_with_one_slot_an_agent_gets_the_answer_of_one_that_asked_a_third(
    bridge: Observed,
) -> None:
    said = bridge.ask("chain", message("codex", message("third", "say the deepest words")))

    assert "the deepest words" in said["text"]
    assert bridge.rows("select depth, told_at is not null from delegation order by id") == [
        (1, 1),
        (2, 1),
    ]


def test_agents_that_ask_in_a_circle_are_refused_and_people_are_told_once(
    bridge: Observed,
) -> None:
    back = message("demo", "say never")
    said = bridge.ask("circle", message("codex", message("third", back, back)))

    assert "never" not in said["text"].replace("say never", "")
    assert len([each for each in bridge.notices("circle") if "must not ask one that" in each]) == 1


def test_a_turn_that_asks_for_everything_is_stopped_at_its_limit(bridge: Observed) -> None:
    bombs = [message("codex", f"say bomb {n}", mode="async", session="create") for n in range(6)]
    said = bridge.ask("bombs", "\n".join(bombs))

    assert said["text"].count("You asked as often as one turn may") == 4
    begun = bridge.rows("select count(*) from delegation where task like 'say bomb%'")
    assert begun == [(2,)]


@pytest.mark.long
def test_stop_ends_the_tree_and_leaves_no_turn(bridge: Observed) -> None:
    waits = message("codex", message("third", "slow 600"))
    number = bridge.begin("stopped", waits)
    bridge.wait(
        lambda: (
            bool(bridge.agent_pids("third"))
            and bridge.rows(
                "select count(*) from delegation join turn on turn.id = delegation.turn "
                "where delegation.task = 'slow 600' and turn.state = 'prompted'"
            )
            == [(1,)]
        ),
        "the third agent never began",
    )

    bridge.http.post(f"/api/v1/sessions/{bridge.session('stopped')}/cancel")

    bridge.end("stopped", number)
    bridge.wait(
        lambda: (
            bridge.rows(
                "select count(*) from turn where state in ('queued', 'starting', 'prompted')"
            )
            == [(0,)]
        ),
        "a turn of the tree went on",
    )
