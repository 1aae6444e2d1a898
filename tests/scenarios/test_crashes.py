"""Kill -9 at every step of the way: nothing is lost, nothing is doubled, and the place says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.invariants import violations
from tests.support.world import World

STORY = """\
plan look; act
thoughts 1
garbage 15
say precious words
write notes.txt kept"""

BEFORE_THE_PROMPT = [
    ("adapter.verify", "before"),
    ("adapter.verify", "after"),
    ("deliveries.add", "before"),
    ("deliveries.add", "after"),
    ("commit", "before"),
    ("commit", "after"),
    ("ack", "before"),
    ("ack", "after"),
    ("decisions.accept", "before"),
    ("decisions.accept", "after"),
    ("turns.starting", "before"),
    ("turns.starting", "after"),
    ("processes.started", "before"),
    ("processes.started", "after"),
    ("agent.initialize", "before"),
    ("agent.initialize", "after"),
    ("agent.session/new", "before"),
    ("agent.session/new", "after"),
    ("turns.prompted", "before"),
]
DURING_THE_PROMPT = [
    ("turns.prompted", "after"),
    ("agent.session/prompt", "before"),
    ("agent.session/prompt", "after"),
    ("transcript.append.plan", "before"),
    ("transcript.append.plan", "after"),
    ("transcript.append.thought", "before"),
    ("transcript.append.thought", "after"),
    ("transcript.append.notice", "before"),
    ("transcript.append.notice", "after"),
    ("transcript.append.text", "before"),
    ("transcript.append.text", "after"),
    ("transcript.append.tool", "before"),
    ("transcript.append.tool", "after"),
    ("transcript.append.usage", "before"),
    ("transcript.append.usage", "after"),
    ("agent.ask", "after"),
    ("asks.open", "before"),
    ("asks.open", "after"),
    ("asks.answer", "before"),
    ("asks.answer", "after"),
    ("agent.answer", "before"),
    ("agent.answer", "after"),
    ("turns.finish", "before"),
]
ON_THE_WAY_OUT = [
    ("adapter.send.create", "before"),
    ("adapter.send.create", "after"),
    ("posts.sent", "before"),
    ("posts.sent", "after"),
    ("turns.finish", "after"),
    ("adapter.send.finish", "before"),
    ("adapter.send.finish", "after"),
]


def play(folder: Path, step: str, when: str, nth: int = 1) -> World:
    """Tell a story in which the bridge dies at a step, and one more turn that recalls it."""
    with World(folder, deadly=True) as world:
        world.bridge.arm(step, when, nth)
        world.say("t1", STORY)
        world.settle(lambda: world.deaths > 0)
        world.say("t1", "recall")
        world.settle()
        world.end()
        return world


@pytest.mark.parametrize(("step", "when"), [*BEFORE_THE_PROMPT, *DURING_THE_PROMPT, *ON_THE_WAY_OUT])
def test_x(tmp_path: Path, step: str, when: str) -> None:
    world = play(tmp_path, step, when)

    first, second = world.turns()
    assert violations(world) == []
    assert first.state == "done"
    assert "word-001" in second.text
