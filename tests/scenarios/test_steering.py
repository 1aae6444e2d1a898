"""What is said to a working agent goes into its running turn: once, in order, over any crash."""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.invariants import (
    agent_processes,
    disorder,
    outcomes,
    repetitions,
    told,
    violations,
)
from tests.support.observe import Observed
from tests.support.observe import demo as observed_demo
from tests.support.platform import Platform
from tests.support.world import World

STEERED: dict[str, Any] = {"while_busy": "steer"}
SEEDS = 3


def steered(world: World) -> list[tuple[str, str | None]]:
    """List the messages with where they are, in order."""
    return [
        (str(text).splitlines()[0], state)
        for text, state in world.bridge.rows(
            "select transcript.text, heard.steered from heard "
            "join transcript on transcript.id = heard.message order by heard.message"
        )
    ]


def kill_agents(world: World) -> None:
    """Kill every agent process of a bridge."""
    for pid, _ in agent_processes(world.bridge.data_dir):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_words_go_into_the_running_turn_in_order_with_their_speakers(tmp_path: Path) -> None:
    with World(tmp_path, entry=STEERED) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")

        second = world.say("t1", "say second", speaker="Bob")
        third = world.say("t1", "say third", speaker="Cleo")
        world.bridge.wait(lambda: [s for _, s in steered(world)][1:] == ["taken"] * 2, "not taken")
        world.touch("go")
        world.settle()
        world.end()

        assert violations(world) == []
        (turn,) = world.turns()
        assert "second\n\nword-002\n\nthird\n\nword-003" in turn.text
        (prompt,) = told(world, second)
        assert prompt.startswith("[Bob on web, web:t1:demo: said while you work.]\nsay second\n")
        assert len(told(world, third)) == 1
        assert [state for _, state in steered(world)] == [None, "read", "read"]


def test_words_that_are_said_while_the_agent_starts_are_told_with_its_prompt(
    tmp_path: Path,
) -> None:
    with World(tmp_path, entry=STEERED) as world:
        world.bridge.arm("turns.starting", "after", act="pause")
        world.say("t1", "say first")
        world.bridge.wait_reached()
        joined = world.say("t1", "say second", speaker="Bob")
        world.wait_decided(joined)
        world.bridge.let_go()
        world.settle()
        world.end()

        assert violations(world) == []
        (turn,) = world.turns()
        assert turn.text == "first\n\nword-001\n\nsecond\n\nword-002"
        assert len(told(world, joined)) == 1
        assert [state for _, state in steered(world)] == [None, None]


@pytest.mark.parametrize("takes_words", [True, False])
def test_words_that_are_said_when_the_prompt_is_written_go_into_the_turn_or_follow_it(
    tmp_path: Path, takes_words: bool
) -> None:
    faults = {"AGENT_BRIDGE_DEMO_FAULTS": "1" if takes_words else "1,no-steering"}
    with World(tmp_path, entry={**STEERED, "env": faults}) as world:
        world.bridge.arm("turns.prompted", act="pause")
        world.say("t1", "tell here\nhold go")
        world.bridge.wait_reached()
        word = world.say("t1", "say second")
        world.wait_decided(word)
        world.bridge.let_go()
        world.wait_file("here")
        if takes_words:
            world.bridge.wait(lambda: steered(world)[-1][1] == "taken", "not taken")
        else:
            world.wait_for("queued", number=1)
        world.touch("go")
        world.settle()
        world.end()

        assert violations(world) == []
        assert len(world.turns()) == (1 if takes_words else 2)
        assert "second\n\nword-002" in world.turns()[-1].text
        assert len(told(world, word)) == 1


def test_what_is_said_after_the_turn_begins_the_next_one(tmp_path: Path) -> None:
    with World(tmp_path, entry=STEERED) as world:
        world.say("t1", "say first")
        world.settle()
        world.say("t1", "say second")
        world.settle()
        world.end()

        assert violations(world) == []
        assert len(world.turns()) == 2


@pytest.mark.parametrize("words", ["!queue say later", "queue: say later"])
def test_words_can_be_queued_on_purpose(tmp_path: Path, words: str) -> None:
    with World(tmp_path, entry=STEERED) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")
        queued = world.say("t1", words)
        world.wait_for("queued", number=1)
        behind = world.say("t1", "say behind it")
        world.wait_decided(behind)
        world.touch("go")
        world.settle()
        world.end()

        assert [*outcomes(world), *repetitions(world), *disorder(world)] == []
        _, later = world.turns()
        assert later.text == "later\n\nword-002\n\nbehind it\n\nword-003"
        assert len(told(world, queued)) == 1


def test_words_that_are_sent_now_take_the_place_of_the_running_turn(tmp_path: Path) -> None:
    with World(tmp_path, entry=STEERED) as world:
        world.say("t1", "say begun\ntell here\nhold never")
        world.wait_file("here")
        world.say("t1", "!now say at once")
        world.settle()
        world.end()

        assert [*outcomes(world), *repetitions(world), *disorder(world)] == []
        cut, answer = world.turns()
        assert (cut.state, answer.state) == ("stopped", "done")
        assert answer.text == "at once\n\nword-002"


def test_words_that_were_not_read_before_a_stop_are_named_and_not_told_again(
    tmp_path: Path,
) -> None:
    with World(tmp_path, entry=STEERED) as world:
        world.say("t1", "say begun\ntell here\nhold never")
        world.wait_file("here")
        lost = world.say("t1", "say unread")
        world.bridge.wait(lambda: steered(world)[-1][1] == "taken", "not taken")

        world.command("t1", "stop")
        world.settle()
        world.say("t1", "say after")
        world.settle()
        world.end()

        assert violations(world) == []
        stopped, after = world.turns()
        assert stopped.note == "Stopped. 1 message may not have been read: send it again if needed."
        assert after.text == "after\n\nword-003"
        assert told(world, lost) == []


def test_words_wait_while_a_person_is_asked_and_are_read_then(tmp_path: Path) -> None:
    with World(tmp_path, entry=STEERED) as world:
        world.say("t1", "write notes.txt hello")
        world.platform.wait(lambda _: bool(world.platform.shown("ask")))
        second = world.say("t1", "say meanwhile")
        world.bridge.wait(lambda: steered(world)[-1][1] == "taken", "not taken")
        world.settle()
        world.end()

        assert violations(world) == []
        assert len(world.turns()) == 1
        assert len(told(world, second)) == 1


def test_words_that_a_kill_of_the_bridge_took_are_told_again_once(tmp_path: Path) -> None:
    with World(tmp_path, entry=STEERED) as world:
        world.say("t1", "say begun\ntell here\nhold go")
        world.wait_file("here")
        word = world.say("t1", "say steered")
        world.bridge.wait(lambda: steered(world)[-1][1] == "taken", "not taken")

        world.kill()
        world.touch("go")
        world.settle()
        world.end()

        assert violations(world) == []
        assert len([prompt for prompt in told(world, word) if "<!-- bridge:m-" in prompt]) == 1
        assert [state for _, state in steered(world)] == [None, None]


def test_words_before_a_compaction_are_not_told_again_after_a_crash(tmp_path: Path) -> None:
    with World(tmp_path, entry=STEERED) as world:
        world.say("t1", "tell here\nhold go\ncompact\nnotice Low on room\ntell there\nhold on")
        world.wait_file("here")
        word = world.say("t1", "say steered")
        world.bridge.wait(lambda: steered(world)[-1][1] == "taken", "not taken")
        world.touch("go")
        world.wait_file("there")
        world.wait_row("The agent reports: Low on room.")

        world.kill()
        world.touch("on")
        world.settle()
        world.end()

        assert violations(world) == []
        assert len([prompt for prompt in told(world, word) if "<!-- bridge:m-" in prompt]) == 1
        notices = world.bridge.rows(
            "select count(*) from transcript where kind = 'notice' and text like ?", "%compacted%"
        )
        assert notices[0][0] in {1, 2}  # the turn may be told to compact again


def test_an_agent_that_dies_with_words_it_has_not_read_fails_its_turn_and_the_next_one_works(
    tmp_path: Path,
) -> None:
    with World(tmp_path, entry=STEERED) as world:
        world.say("t1", "say begun\ntell here\nhold never")
        world.wait_file("here")
        lost = world.say("t1", "say unread")
        world.bridge.wait(lambda: steered(world)[-1][1] == "taken", "not taken")

        kill_agents(world)
        world.wait_for("failed")
        world.say("t1", "say after")
        world.settle()
        world.end()

        assert [*outcomes(world), *repetitions(world), *disorder(world)] == []
        assert [turn.state for turn in world.turns()] == ["failed", "done"]
        assert told(world, lost) == []


def test_a_message_over_the_api_goes_into_the_running_turn_or_waits_as_asked(
    tmp_path: Path,
) -> None:
    agents = {"demo": observed_demo(**STEERED)}
    with Platform() as platform, Observed(tmp_path, platform, agents=agents, hooks=False) as bridge:
        words = {"agent": "demo", "text": "tell begun\nhold go"}
        session = bridge.http.post("/api/v1/sessions", json=words).json()
        path = f"/api/v1/sessions/{session['id']}/messages"
        bridge.held(session["thread"], "begun")

        inside = bridge.http.post(path, json={"text": "say inside"})
        later = bridge.http.post(path, json={"text": "say later", "while_busy": "queue"})
        odd = bridge.http.post(path, json={"text": "say what", "while_busy": "soon"})
        bridge.release(session["thread"], "go")
        bridge.ended(session["id"], 2)
        rows = bridge.http.get(f"/api/v1/sessions/{session['id']}/transcript").json()["items"]

        assert (inside.status_code, later.status_code, odd.status_code) == (202, 202, 422)
        assert inside.json()["turn"] == session["turn"] != later.json()["turn"]
        said = [row["text"] for row in rows if row["kind"] == "text"]
        assert "".join(said) == "go is here.\n\ninsidelater"


@pytest.mark.parametrize(
    ("seed", "rounds"),
    [
        *(pytest.param(seed, 12, marks=pytest.mark.long) for seed in range(SEEDS)),
        # A thousand words that are steered.
        pytest.param(SEEDS, 410, marks=[pytest.mark.slow, pytest.mark.timeout(2700)]),
    ],
)
def test_steered_words_arrive_once_and_in_order_whenever_bridge_or_agent_die(
    tmp_path: Path, seed: int, rounds: int
) -> None:
    chance = random.Random(seed)
    with World(tmp_path, entry=STEERED) as world:
        for number in range(rounds):
            world.say("t1", f"tell here-{number}\nhold go-{number}")
            world.wait_file(f"here-{number}")
            for _ in range(chance.randrange(1, 5)):
                world.say("t1", "say steered")
            if chance.random() < 0.3:
                world.kill()
            elif chance.random() < 0.2:
                kill_agents(world)
            world.touch(f"go-{number}")
            world.settle()
        world.end()

        assert [*outcomes(world), *repetitions(world), *disorder(world)] == []
        told_twice = [
            said.word
            for said in world.said
            if len([each for each in told(world, said.word) if "<!-- bridge:m-" in each]) > 1
        ]
        assert told_twice == []
        read = [state for _, state in steered(world)].count("read")
        # Else nothing was shown. What is said while a killed bridge starts is told with a prompt.
        assert read >= rounds // 4
