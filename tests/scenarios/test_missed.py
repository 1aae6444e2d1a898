"""Stories of messages that never arrived: a bridge that was away, frames that Slack lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sim.slack.model import Message
from tests.support.clock import START
from tests.support.slack import SlackWorld
from tests.support.variants import quick

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
AWAY = "while the bridge was away"
ASKED = "Still wanted?"
READING = {"conversations.history", "conversations.replies"}


def direct(world: SlackWorld) -> str:
    """Open a direct conversation with the agent."""
    return world.slack.channel("direct", [world.ann, world.apps["claude"]], kind="im")


def posted(world: SlackWorld, channel: str, thread: str) -> list[Message]:
    """List what the agent's app shows in a thread of any channel."""
    shown = world.slack.thread(channel, thread)
    return [each for each in shown if each.app is world.apps["claude"]]


def leave(world: SlackWorld) -> None:
    """Stop the bridge once it has compared, and let some time pass."""
    world.slack.loses_unheard = True
    world.wait(lambda: [c for c in world.slack.calls if c.method == "conversations.history"])
    world.bridge.stop()
    world.pass_time(5 * MINUTE)


def be_away(world: SlackWorld, seconds: float) -> None:
    """Let time pass until the bridge comes back."""
    world.pass_time(seconds)
    world.bridge.start()
    world.wait_listening()


def test_a_mention_and_a_direct_message_while_the_bridge_is_away_are_answered_late(
    tmp_path: Path,
) -> None:
    with SlackWorld(tmp_path, began=START) as world:
        private = direct(world)
        leave(world)
        mention = world.say(f"{world.at('claude')} say answer to the mention")
        words = world.slack.say(world.ann, private, "say answer to the direct message")
        be_away(world, 10 * MINUTE)

        answer = world.wait_answer(mention, "answer to the mention")
        world.wait(lambda: any("direct message" in m.words for m in posted(world, private, words)))
        world.settle()
        [(began, ended, cause)] = world.bridge.rows("select began, ended, cause from gap")

    assert AWAY in answer.words
    assert world.turns() == 2
    assert cause == "bridge"
    assert ended - began >= 10 * MINUTE
    sent = world.bridge.rows("select sent_at from message where sent_at is not null")
    assert [round(at - START) for (at,) in sent] == [5 * MINUTE, 5 * MINUTE]


@pytest.mark.parametrize("away", quick(1, [2 * HOUR, 2 * DAY]))
def test_what_is_found_after_more_than_an_hour_is_asked_about_first(
    tmp_path: Path, away: float
) -> None:
    with SlackWorld(tmp_path, began=START) as world:
        private = direct(world)
        leave(world)
        wanted = world.say(f"{world.at('claude')} say this was wanted")
        command = world.say(f"{world.at('claude')} status")
        unwanted = world.slack.say(world.ann, private, "say nobody wanted this")
        be_away(world, away)

        question = world.wait_button(wanted, "Yes, do it")
        world.slack.click(world.ann, question.ts, "Yes, do it")
        world.wait_answer(wanted, "this was wanted")
        world.wait(lambda: any(ASKED in each.words for each in posted(world, private, unwanted)))
        other = next(each for each in posted(world, private, unwanted) if ASKED in each.words)
        world.slack.click(world.ann, other.ts, "No, leave it")
        world.wait_told(command, "was not carried out")
        world.settle()

    assert AWAY in question.words
    assert not any("nobody wanted" in each.words for each in posted(world, private, unwanted))
    assert world.bridge.rows("select state from turn order by state") == [("cancelled",), ("done",)]


def test_a_person_who_comes_back_takes_along_what_was_found_late(tmp_path: Path) -> None:
    with SlackWorld(tmp_path, began=START) as world:
        leave(world)
        thread = world.say(f"{world.at('claude')} say from before")
        be_away(world, 3 * HOUR)
        question = world.wait_button(thread, "Yes, do it")

        world.say(f"{world.at('claude')} say from now", thread=thread)
        world.wait_answer(thread, "from now")
        world.settle()

    assert world.turns() == 1
    assert not any(block["type"] == "actions" for block in question.blocks)
    [(prompt,)] = world.bridge.rows("select prompt from turn")
    assert "from before" in prompt
    assert "reached you late" in prompt


def test_what_slack_loses_on_a_live_connection_is_found_and_answered_once(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} say the first answer")
        world.wait_answer(thread, "the first answer")
        world.slack.loss = 1.0
        mention = world.say(f"{world.at('claude')} say the mention was found")
        reply = world.say("say the reply was found", thread=thread)
        world.wait(lambda: len(world.slack.dropped) >= 3)
        world.slack.loss = 0.0

        found = world.wait_answer(mention, "the mention was found")
        world.wait_answer(thread, "the reply was found")
        world.settle()
        calls = len(world.slack.calls)
        world.wait(lambda: len(world.slack.calls) >= calls + 4)  # compared once more

    assert "not delivered" in found.words
    assert world.turns() == 3
    late = "select message_id from message where sent_at is not null order by message_id"
    assert world.bridge.rows(late) == [(mention,), (reply,)]
    assert not [call for call in world.slack.calls if call.answer.get("error") == "ratelimited"]


@pytest.mark.long
def test_edits_and_deletions_that_never_arrived_reach_waiting_messages(tmp_path: Path) -> None:
    with SlackWorld(tmp_path, entry={"while_busy": "queue"}) as world:
        thread = world.say(f"{world.at('claude')} hold never")
        world.wait_state("prompted")
        edited = world.say("say the old words", thread=thread)
        deleted = world.say("say it was deleted", thread=thread)
        world.bridge.wait(
            lambda: world.bridge.rows("select count(*) from message") == [(3,)], "not all is heard"
        )
        world.slack.loss = 1.0
        world.slack.edit(edited, "say the new words")
        world.slack.delete(deleted)

        query = "select message_id, edited from message where edited is not null order by id"
        world.bridge.wait(lambda: len(world.bridge.rows(query)) == 2, "the changes are not found")

    assert world.bridge.rows(query) == [(edited, "say the new words"), (deleted, "")]


def test_a_dead_connection_is_noted_as_a_gap(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        world.slack.loses_unheard = True
        world.slack.silence(world.apps["claude"])
        world.bridge.wait(
            lambda: world.bridge.rows("select cause from gap") == [("socket",)], "no gap is noted"
        )


def test_the_first_run_answers_nothing_that_was_said_before(tmp_path: Path) -> None:
    world = SlackWorld(tmp_path)
    world.slack.loses_unheard = True
    world.say(f"{world.at('claude')} say an old message")
    with world:
        world.wait(lambda: [c for c in world.slack.calls if c.method == "conversations.history"])
        thread = world.say(f"{world.at('claude')} say a fresh one")
        world.wait_answer(thread, "a fresh one")
        world.settle()

    assert world.turns() == 1


def storm(world: SlackWorld, *, conversations: int, messages: int, kills: int) -> list[str]:
    """Say many things in many conversations, of which Slack loses some; returns what was said.

    The bridge is killed now and then.
    """
    chance = random.Random(world.seed)
    threads = [world.say(f"{world.at('claude')} say begun {n}") for n in range(conversations)]
    for number, thread in enumerate(threads):
        world.wait_answer(thread, f"begun {number}")
    deaths = set(chance.sample(range(messages), kills))
    said = []
    for number in range(messages):
        said.append(f"word-{number:04d}.")
        world.say(f"say {said[-1]}", thread=chance.choice(threads))
        if number in deaths:
            world.bridge.kill()
            world.bridge.start()
            world.wait_listening()
    return said


@pytest.mark.parametrize(
    ("conversations", "messages", "kills", "seconds"),
    quick(1, [(4, 40, 1, 40.0), (40, 2_000, 8, 600.0)]),
)
@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_every_message_is_answered_once_whatever_slack_loses(
    tmp_path: Path, conversations: int, messages: int, kills: int, seconds: float
) -> None:
    with SlackWorld(tmp_path, seed=7, entry={"while_busy": "queue"}) as world:
        world.slack.loses_unheard = True
        world.slack.loss = 0.05
        said = storm(world, conversations=conversations, messages=messages, kills=kills)
        known = "select count(distinct message_id) from decision where outcome = 'done'"
        world.bridge.wait(
            lambda: world.bridge.rows(known) == [(conversations + messages,)],
            "not every message has its outcome",
            seconds,
        )
        world.settle()
        prompts = "\n".join(prompt for (prompt,) in world.bridge.rows("select prompt from turn"))
        limited = [call for call in world.slack.calls if call.answer.get("error") == "ratelimited"]

    assert world.slack.dropped, "nothing was lost"
    heard = world.bridge.rows("select message, count(*) from heard group by message")
    assert {times for _, times in heard} == {1}
    assert [word for word in said if word not in prompts] == []
    # What a turn reads of its own thread is not part of the budget of comparing.
    assert not [call for call in limited if call.method in READING and "oldest" in call.arguments]
