"""Agents that ask each other in real processes: through the tools, with one slot, bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.studio import REPOSITORY, studio

AGENTS = ("demo", "codex", "third", "demo2")
KNOWN = {"name", "title", "description", "state", "activity"}
"""What an agent sees of another one."""


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    agents = {name: demo(permissions="trusted") for name in AGENTS}
    settings = {"MAX_TURNS": "1", "DELEGATION_DEPTH": "3", "DELEGATIONS_PER_TURN": "2"}
    with Platform() as platform:
        folder = tmp_path_factory.mktemp("delegation")
        with Observed(folder, platform, agents=agents, settings=settings) as bridge:
            yield bridge


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """Run a bridge whose agents may not ask each other, in every form of tools."""
    agents = {"demo": demo(), "stdio": demo("no-http"), "skills": demo(tool_exposure="skills")}
    with Platform() as platform:
        folder = tmp_path_factory.mktemp("alone")
        settings = {"DELEGATION_DEPTH": "0"}
        with Observed(folder, platform, agents=agents, settings=settings) as bridge:
            yield bridge


def call(tool: str, **arguments: Any) -> str:
    """Write the line with which the demo agent calls a tool."""
    return f"tool {tool} {json.dumps(arguments)}"


def message(to: str, *lines: str, **more: Any) -> str:
    """Write the line with which the demo agent asks another one to follow lines."""
    return call("agents_message", to=to, text="\n".join(lines), **more)


def results(said: dict[str, Any]) -> list[Any]:
    """Read what each tool call of a turn returned."""
    return [json.loads(each) for each in said["text"].splitlines() if each.startswith("{")]


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


@pytest.mark.parametrize("agent", ["demo", "stdio", "skills"])
def test_where_delegation_is_off_no_agent_has_its_tools_and_a_call_is_told_why(
    alone: Observed, agent: str
) -> None:
    asks = "\n".join((message("stdio", "say no"), call("review", agent="stdio")))

    said = alone.ask(f"off-{agent}", f"tools\n{asks}", agent)["text"]

    assert "memory_read: " in said
    assert not re.findall(r"^(agents_\w+|review): ", said, re.MULTILINE)
    off = "Delegation is switched off on this bridge (DELEGATION_DEPTH=0)."
    assert said.count(off) == 2
    query = "select count(*) from turn where prompt like '%# Your colleagues%'"
    assert alone.rows(query) == [(0,)]


def test_an_agent_that_was_asked_as_deep_as_may_be_is_told_of_no_other_one(
    bridge: Observed,
) -> None:
    deepest = message("third", call("agents_list"))
    said = bridge.ask("deep", message("codex", message("demo2", deepest)))

    assert '"agents": []' in said["text"].replace("\\", "")
    query = "select prompt from turn join delegation on delegation.turn = turn.id"
    depths = [
        "# Your colleagues" in prompt
        for [prompt] in bridge.rows(f"{query} where task like '%agents_list%' order by depth")
    ]
    assert depths == [True, True, False]


def test_an_answer_says_whether_a_session_was_made_and_what_was_done_in_it(
    bridge: Observed,
) -> None:
    work = ("write a.txt one", "run echo two", "say ready")
    [first] = results(bridge.ask("told", message("codex", *work)))
    later = message("codex", "say again", mode="async")
    again, status = results(bridge.ask("told", f"{later}\n{call('agents_status')}"))
    get = call("agents_result", id=again["id"], timeout=60)
    [result] = results(bridge.ask("told", get))

    assert (first["created"], again["created"], result["created"]) == (True, False, False)
    assert first["session"] == again["session"] == result["session"]
    assert (
        first["session_name"] == again["session_name"] == "write a.txt one run echo two say ready"
    )
    assert first["usage"]["seconds"] > 0
    assert first["tool_calls"] == {
        "count": 2,
        "last": [
            {"kind": "edit", "title": "Write a.txt"},
            {"kind": "execute", "title": "Run `echo two`"},
        ],
    }
    assert result["tool_calls"] == {"count": 0, "last": []}
    assert [each["created"] for each in status["asked"]] == [True, False]


def test_an_agent_sees_which_others_are_idle_busy_or_wait_and_nothing_of_their_work(
    bridge: Observed,
) -> None:
    bridge.begin("secret-plan", "ask Which way? | left | right", "codex")
    bridge.open_asks(1, "secret-plan")

    asks = message("third", "say done", mode="async")
    said = bridge.ask("looks", f"{asks}\n{call('agents_list')}")

    listed = results(said)[1]["agents"]
    assert {each["name"]: each["activity"] for each in listed} == {
        "codex": "waiting",
        "third": "busy",
        "demo2": "idle",
    }
    assert all(set(each) == KNOWN for each in listed)
    assert "Which way" not in said["text"]


@pytest.mark.long
def test_the_only_agent_gives_another_session_of_its_own_a_branch_and_a_folder_of_it(
    tmp_path: Path,
) -> None:
    with studio(tmp_path, files={"a.txt": "one"}) as here:
        here.server.commit(REPOSITORY, {"docs/b.txt": "two"}, "Docs", branch="topic")
        given = {"workspace": "same-branch", "branch": "topic", "folder": "docs"}
        task = "write c.txt three"

        said = here.tell(
            "\n".join(
                (
                    call("agents_spawn", agent="demo", task=task, **given),
                    call("agents_spawn", agent="demo", task=task, **(given | {"branch": "none"})),
                    message("demo", "say no"),
                )
            )
        )

        [made] = results(said.content)
        assert made["agent"] == "demo"
        assert made["created"] is True
        assert here.show("docs/c.txt", "topic") == "three"
        assert "There is no branch 'none' in acme/app." in said.content["text"]
        assert "You cannot ask yourself." in said.content["text"]
