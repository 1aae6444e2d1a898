"""What people see on Slack when one agent asks another: a card, a line, an end, a voice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.served import let_go
from tests.support.slack import SlackWorld


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlackWorld]:
    """Open a workspace with two agents; a third one has no app there."""
    made = SlackWorld(
        tmp_path_factory.mktemp("errands"),
        agents=("claude", "codex"),
        elsewhere=("gemini",),
        entry={"delegation_voice": "own", "agents_allow": ["codex", "gemini"]},
        page=True,
    )
    with made as running:
        yield running


def asking(to: str, task: str, mode: str) -> str:
    """Write what makes an agent ask another one."""
    arguments = json.dumps({"to": to, "text": task, "mode": mode})
    return f"tool agents_message {arguments}\nsay I asked."


def test_an_answer_has_a_line_about_the_agent_that_was_asked(world: SlackWorld) -> None:
    thread = world.say(f"{world.at('claude')} {asking('gemini', 'say It is fine.', 'sync')}")

    answer = world.wait_answer(thread, "I asked.")

    assert "Asked gemini: say It is fine. · done" in answer.words
    world.settle()
    assert not [each for each in world.answers(thread) if "is done with" in each.words]


def test_what_ends_late_is_told_once_by_the_agent_that_asked(world: SlackWorld) -> None:
    task = "hold late\nsay It was late."
    thread = world.say(f"{world.at('claude')} {asking('gemini', task, 'async')}")
    answer = world.wait_answer(thread, "I asked.")
    assert " · still working" in answer.words

    let_go(world.bridge.data_dir, "late")

    world.wait_answer(thread, "gemini is done with what claude asked")
    world.settle()
    told = [each for each in world.answers(thread) if "gemini is done with" in each.words]
    assert len(told) == 1
    assert "It was late." in told[0].words
    assert world.too_often() == []


def test_an_agent_with_a_presence_answers_for_itself(world: SlackWorld) -> None:
    task = "hold own\nsay My **own** words."
    thread = world.say(f"{world.at('claude')} {asking('codex', task, 'async')}")
    world.wait_answer(thread, "I asked.")

    let_go(world.bridge.data_dir, "own")

    world.wait_answer(thread, "My **own** words.", "codex")
    world.settle()
    assert len(world.answers(thread, "codex")) == 1
    assert not [each for each in world.answers(thread) if "is done with" in each.words]
    place = "select count(*) from session where agent = 'codex' and place in "
    here = world.bridge.rows(f"{place} (select id from place where service = 'slack')")
    assert here == [(0,)]
