"""Stories on the simulated Slack: a bridge in a process of its own, real agent processes."""

from __future__ import annotations

from pathlib import Path

from tests.support.slack import SlackWorld, too_often


def test_a_mention_is_answered_in_its_thread_and_nobody_is_answered_twice(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} say hello there")

        answer = world.wait_answer(thread, "hello there")
        world.settle()

    assert [each.ts for each in world.answers(thread)] == [answer.ts]
    assert world.turns() == 1
    assert too_often(world.slack) == []
