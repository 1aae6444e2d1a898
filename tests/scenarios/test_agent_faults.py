"""Agents that die, hang, flood or babble: people are told, others notice nothing, none is left."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest

from tests.support.bridge import ADMIN_TOKEN, DEMO
from tests.support.observe import PATIENCE, QUICK, Observed, demo
from tests.support.platform import FINAL, Platform

pytestmark = pytest.mark.one_database

MEMORY = 96 * 2**20
"""Bytes by which the bridge may grow, whatever an agent writes."""
SHOWN_AT_ONCE = 3
"""Asks of one turn that a place sees at once."""
BIG = 100 * 1024 * 1024

# Faults of the whole process are read at its start, so that the next start may be a good one.
SWITCHED = 'AGENT_BRIDGE_DEMO_FAULTS=$(cat "$SWITCH" 2>/dev/null || echo 1) exec "$@"'


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("faults")
    agents = {
        "demo": {
            "command": ["sh", "-c", SWITCHED, "sh", *DEMO],
            "sandbox": "none",
            "env": {"SWITCH": str(folder / "faults")},
        },
        "witness": demo(),
        "late": {"command": [str(folder / "late-agent")], "sandbox": "none"},
    }
    with (
        Platform() as platform,
        Observed(folder, platform, agents=agents, timeouts=QUICK, pace=1.0) as bridge,
    ):
        yield bridge


@contextmanager
def nobody_notices(bridge: Observed) -> Iterator[None]:
    """Have another session in the midst of a turn all the while; it ends as if nothing were."""
    gate, begun = f"gate-{uuid4().hex}", f"begun-{uuid4().hex}"
    number = bridge.begin("witness", f"tell {begun}\nhold {gate}\nsay all is well", "witness")
    bridge.held("witness", begun, "witness")
    alive = bridge.agent_pids("witness")
    yield
    bridge.release("witness", gate, "witness")
    seen = bridge.end("witness", number, "witness")
    assert (seen["state"], seen["note"]) == ("done", "")
    assert seen["text"] == f"{gate} is here.\n\nall is well"
    assert bridge.agent_pids("witness") == alive


@contextmanager
def broken(bridge: Observed, faults: str) -> Iterator[None]:
    """Let the agent start with a fault."""
    switch = bridge.folder / "faults"
    switch.write_text(faults)
    yield
    switch.unlink()


def assert_readable(seen: dict[str, Any]) -> None:
    """See that a person can read this: one line, no traceback, no secret."""
    assert "\n" not in seen["note"]
    assert len(seen["note"]) < 700
    shown = json.dumps(seen)
    assert "Traceback" not in shown
    assert ADMIN_TOKEN not in shown


FATAL = {
    "crashes": ("1", "crash", r"demo crashed\."),
    "leaves at its start": (
        "exit-at-start",
        "say hello",
        r"demo crashed\. Its last words: The demo agent leaves .*",
    ),
    "hangs in initialize": (
        "hang-initialize",
        "say hello",
        r"demo did not answer initialize within 8 s and was stopped\.",
    ),
    "hangs in session/new": (
        "hang-new",
        "say hello",
        r"demo did not answer session/new within 8 s and was stopped\.",
    ),
    "refuses a session": (
        "fail-new",
        "say hello",
        r"demo failed: session/new failed, as it was told to\.",
    ),
    "answers with an error": (
        "1",
        "fail",
        r"demo failed: The demo agent failed, .*",
    ),
    "speaks another version": (
        "only-v2",
        "say hello",
        r"demo could not be started: it speaks version 2 of .*\. Install a version of the agent.*",
    ),
    "names the kind of its error": (
        "1",
        "refuse billing_error",
        r"demo failed: The demo agent refuses, .* Its provider refuses for billing reasons: .*",
    ),
    "reports that its model failed": (
        "1",
        "broken",
        r"demo failed: its model did not answer\. Try again, or choose another model\.",
    ),
    "never ends a line": (
        "1",
        f"line {BIG}",
        r"demo broke the protocol: a message of more than 8 MiB\. It was stopped\.",
    ),
}

SLOWEST = {"hangs in session/new", "never ends a line"}


@pytest.mark.parametrize(
    "fault",
    [pytest.param(each, marks=[pytest.mark.slow] if each in SLOWEST else []) for each in FATAL],
)
def test_an_agent_that_breaks_is_explained_and_the_next_turn_works(
    bridge: Observed, fault: str
) -> None:
    faults, words, expected = FATAL[fault]
    place, before = fault.replace(" ", "-"), bridge.agent_pids()
    held_before = bridge.memory()

    with nobody_notices(bridge), broken(bridge, faults):
        seen = bridge.ask(place, words)

    assert seen["state"] == "failed"
    assert re.fullmatch(expected, seen["note"])
    assert_readable(seen)
    assert bridge.memory("VmHWM") - held_before < MEMORY
    assert bridge.ask(place, "say here again")["text"] == "here again"
    assert len(bridge.agent_pids() - before) <= 1


def test_an_agent_killed_in_its_turn_is_explained_and_remembers_in_the_next(
    bridge: Observed,
) -> None:
    before = bridge.agent_pids()

    with nobody_notices(bridge):
        number = bridge.begin("killed", "say remember me\ntell begun\nhold never")
        bridge.held("killed", "begun")
        (pid,) = bridge.agent_pids() - before
        os.kill(pid, signal.SIGKILL)
        seen = bridge.end("killed", number)

    assert (seen["state"], seen["note"]) == ("failed", "demo crashed.")
    assert seen["text"] == "remember me"
    assert_readable(seen)
    bridge.gone("demo", but=before)
    assert "say remember me" in bridge.ask("killed", "recall")["text"]


def kill_idle(bridge: Observed, place: str) -> None:
    """Kill the process of a session that idles, and wait until the bridge knows."""
    query = 'select "group" from process where session = ?'
    session = bridge.session(place)
    os.kill(bridge.rows(query, session)[0][0], signal.SIGKILL)
    bridge.wait(lambda: not bridge.rows(query, session), "it still counts as alive", PATIENCE)


def test_an_agent_killed_while_it_idles_comes_back_with_its_memory(bridge: Observed) -> None:
    bridge.ask("idle", "say remember me")
    kill_idle(bridge, "idle")

    seen = bridge.ask("idle", "recall")

    assert (seen["state"], seen["note"]) == ("done", "")
    assert seen["text"] == "You told me:\n- say remember me"


@pytest.mark.parametrize("fault", ["hang-resume", "fail-resume,fail-load"])
def test_an_agent_that_cannot_take_up_its_conversation_begins_anew_and_says_so(
    bridge: Observed, fault: str
) -> None:
    bridge.ask(fault, "say remember me")
    kill_idle(bridge, fault)

    with nobody_notices(bridge), broken(bridge, fault):
        seen = bridge.ask(fault, "say here again")

    assert (seen["state"], seen["text"]) == ("done", "here again")
    assert seen["note"].startswith("demo could not restore its conversation")


AT_WORK = "say at work\ntell begun"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ("hang-cancel", "say at work\ntell begun\nhold never"),
        ("mute-tell", "say at work\ntell begun\nhang"),
    ],
    ids=["deaf to cancel", "deaf to everything"],
)
def test_stop_ends_an_agent_that_does_not_listen(bridge: Observed, faults: str, words: str) -> None:
    place, before = uuid4().hex, bridge.agent_pids()

    with nobody_notices(bridge), broken(bridge, faults):
        number = bridge.begin(place, words)
        bridge.held(place, "begun")
        assert bridge.say(place, "stop") == 200
        seen = bridge.end(place, number)

    assert (seen["state"], seen["text"], seen["note"]) == ("stopped", "at work", "Stopped.")
    bridge.gone("demo", but=before)
    assert "say at work" in bridge.ask(place, "recall")["text"]


def test_an_agent_that_hangs_in_its_prompt_can_be_stopped(bridge: Observed) -> None:
    before = bridge.agent_pids()

    with nobody_notices(bridge), broken(bridge, "hang-prompt"):
        number = bridge.begin("mute", "say hello")
        prompted = "select 1 from turn where session = ? and state = 'prompted'"
        bridge.wait(lambda: len(bridge.turns("mute")) > number, "no turn", PATIENCE)
        session = bridge.session("mute")
        bridge.wait(lambda: bool(bridge.rows(prompted, session)), "not prompted", PATIENCE)
        assert bridge.say("mute", "stop") == 200
        seen = bridge.end("mute", number)

    assert (seen["state"], seen["note"]) == ("stopped", "Stopped.")
    bridge.gone("demo", but=before)
    assert bridge.ask("mute", "say hello")["text"] == "hello"


def test_a_command_that_is_missing_is_named_and_works_once_it_is_there(bridge: Observed) -> None:
    with nobody_notices(bridge):
        seen = bridge.ask("late", "say hello", "late")

    command = bridge.folder / "late-agent"
    assert seen["state"] == "failed"
    assert seen["note"] == (
        f"late could not be started: the command '{command}' was not found. "
        "Check its command in AGENTS_JSON."
    )
    assert_readable(seen)
    command.write_text(f'#!/bin/sh\nexec {DEMO[0]} {DEMO[1]} "$@"\n')
    command.chmod(0o755)
    assert bridge.ask("late", "say hello", "late")["text"] == "hello"


@pytest.mark.slow
@pytest.mark.parametrize("updates", [400_000, 1_000_000])
def test_a_flood_of_updates_costs_bounded_memory_while_others_are_answered(
    bridge: Observed, updates: int
) -> None:
    bridge.ask("flood", "say warm")
    held_before = bridge.memory()

    number = bridge.begin("flood", f"flood {updates}")
    answers = [bridge.ask("witness", f"say answer {each}", "witness")["text"] for each in range(3)]
    still_at_it = bridge.turns("flood")[number].content["state"]
    seen = bridge.end("flood", number)

    assert answers == ["answer 0", "answer 1", "answer 2"]
    assert still_at_it not in FINAL
    assert seen["state"] == "done"
    assert seen["text"].startswith("00000000 The quick brown fox")
    assert seen["text"].endswith("more characters in the transcript]")
    assert bridge.memory("VmHWM") - held_before < MEMORY
    kept = bridge.rows(
        "select text from transcript where kind = 'text' "
        "and turn = (select max(id) from turn where session = ?) order by id",
        bridge.session("flood"),
    )
    lines = "".join(text for (text,) in kept).splitlines()
    assert [int(line[:8]) for line in lines] == list(range(updates))


def test_a_filled_stderr_neither_blocks_the_agent_nor_fills_memory(bridge: Observed) -> None:
    bridge.ask("stderr", "say warm")
    held_before = bridge.memory()

    with nobody_notices(bridge):
        seen = bridge.ask("stderr", f"stderr {BIG}\nsay all written")

    assert (seen["state"], seen["text"], seen["note"]) == ("done", "all written", "")
    assert bridge.memory("VmHWM") - held_before < MEMORY


def test_garbage_between_frames_is_dropped_and_counted(bridge: Observed) -> None:
    with nobody_notices(bridge):
        seen = bridge.ask("garbage", "say before\ngarbage 500\nsay after")

    assert (seen["state"], seen["note"]) == ("done", "")
    assert seen["text"] == "before\n\nafter"
    counted = bridge.http.get("/metrics").text
    assert 'agent_bridge_agent_frames_dropped_total{agent="demo",reason="not_json"}' in counted


@pytest.mark.slow
def test_a_flood_of_requests_becomes_few_asks_and_ends_the_agent(bridge: Observed) -> None:
    before, posted_before = bridge.agent_pids(), len(bridge.platform.posts)

    with nobody_notices(bridge):
        seen = bridge.ask("requests", "requests 20000\nhold never")

    assert seen["state"] == "failed"
    assert seen["note"] == "demo broke the protocol: a flood of requests. It was stopped."
    assert_readable(seen)
    session = bridge.session("requests")
    asks = bridge.rows("select state from ask where session = ?", session)
    assert 0 < len(asks) <= SHOWN_AT_ONCE
    assert set(asks) == {("cancelled",)}
    assert len(bridge.platform.posts) - posted_before <= SHOWN_AT_ONCE + 2
    bridge.gone("demo", but=before)
    assert bridge.ask("requests", "say calm")["text"] == "calm"


def test_a_crowd_of_requests_floods_no_place_and_the_turn_goes_on(bridge: Observed) -> None:
    with nobody_notices(bridge):
        number = bridge.begin("crowd", "requests 500\ntell asked\nhold gate")
        bridge.held("crowd", "asked")
        asks = bridge.open_asks(SHOWN_AT_ONCE, "crowd")
        bridge.release("crowd", "gate")
        seen = bridge.end("crowd", number)

    assert len(asks) == SHOWN_AT_ONCE
    assert (seen["state"], seen["text"]) == ("done", "gate is here.")
    left = "select 1 from ask where session = ? and state = 'open'"
    assert bridge.rows(left, bridge.session("crowd")) == []


def _is_released(bridge: Observed, place: str) -> None:
    bridge.release(place, "gate")


def _begins_afresh(bridge: Observed, place: str) -> None:
    assert bridge.say(place, "new") == 200


ENDINGS: dict[str, tuple[str, Callable[[Observed, str], None]]] = {
    "it crashes": ("crash", _is_released),
    "it breaks the protocol": ("line 9000000", _is_released),
    "people begin afresh": ("hold never", _begins_afresh),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_that_an_agent_started_outlives_it(bridge: Observed, ending: str) -> None:
    last, happens = ENDINGS[ending]
    place, before = uuid4().hex, bridge.agent_pids()

    with nobody_notices(bridge):
        number = bridge.begin(place, f"children 4\ntell begun\nhold gate\n{last}")
        bridge.held(place, "begun")
        family = bridge.agent_pids() - before
        happens(bridge, place)
        bridge.end(place, number)

    assert len(family) == 5
    bridge.gone("demo", but=before)


@pytest.mark.long
def test_a_final_post_stays_final_however_soon_the_next_turn_comes(bridge: Observed) -> None:
    seen = [bridge.ask("hasty", f"say {number}")["text"] for number in range(20)]
    bridge.ask("hasty", "slow 2")

    shown = [(post.content["state"], post.content["text"]) for post in bridge.turns("hasty")]

    assert seen == [str(number) for number in range(20)]
    assert shown[:-1] == [("done", text) for text in seen]
    assert [post.finished for post in bridge.turns("hasty")] == [1] * 21


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["thoughts 1000000", "tools 10000"])
def test_other_floods_cost_bounded_memory_too(bridge: Observed, kind: str) -> None:
    bridge.ask("torrent", "say warm")
    held_before = bridge.memory()

    number = bridge.begin("torrent", kind)
    seen = bridge.end("torrent", number)

    assert seen["state"] == "done"
    assert bridge.memory("VmHWM") - held_before < MEMORY
