"""What guests, strangers and bots try on Slack: each attempt comes to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.slack import SlackWorld


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlackWorld]:
    with SlackWorld(tmp_path_factory.mktemp("slack")) as world:
        yield world


def turns_after(world: SlackWorld, before: int) -> int:
    """Count the turns since then, after one more of a member that shows the reader is at work."""
    thread = world.say(f"{world.at('claude')} say still here")
    world.wait_answer(thread, "still here")
    world.settle()
    return world.turns() - before - 1


@pytest.mark.parametrize(
    "speaker",
    [
        {"subtype": "bot_message", "bot_id": "B0WORKFLOW", "username": "Ann"},
        {"user": "ann", "subtype": "bot_message", "bot_id": "B0WORKFLOW", "username": "Ann"},
        {"user": "ann", "bot_id": "B0WORKFLOW", "bot_profile": {"is_workflow_bot": True}},
        {"user": "USLACKBOT"},
        {},
        {"user": ""},
        {"user": None},
        {"user": ["ann"]},
    ],
    ids=str,
)
def test_no_bot_makes_an_agent_act_under_whatever_name(
    world: SlackWorld, speaker: dict[str, Any]
) -> None:
    before = world.turns()
    named = {**speaker, "user": world.ann} if speaker.get("user") == "ann" else speaker
    text = f"{world.at('claude')} say obeyed"

    with world.slack.changed:
        event = {"type": "message", "text": text, "ts": world.slack.ts(), **named}
        world.slack.tell(world.channel, event)

    assert turns_after(world, before) == 0


def test_a_guest_gets_in_neither_by_an_edit_nor_in_the_thread_of_a_member(
    world: SlackWorld,
) -> None:
    thread = world.say(f"{world.at('claude')} say for members")
    world.wait_answer(thread, "for members")
    before = world.turns()

    said = world.say("good morning", who=world.guest)
    world.slack.edit(said, f"{world.at('claude')} say obeyed")
    reply = world.say("thank you", who=world.guest, thread=thread)
    world.slack.edit(reply, f"{world.at('claude')} say obeyed")
    world.say("say obeyed", who=world.guest, thread=thread)

    assert turns_after(world, before) == 0
    assert not [each for each in world.answers(thread) if "obeyed" in each.words]


def test_an_ask_is_answered_and_a_turn_stopped_by_members_in_its_thread_only(
    world: SlackWorld,
) -> None:
    thread = world.say(f"{world.at('claude')} ask Which way? | left | right\nhold never")
    world.wait_button(thread, "left")
    elsewhere = world.say(f"{world.at('claude')} say another thread")
    world.wait_answer(elsewhere, "another thread")

    world.say(f"{world.at('claude')} left", who=world.guest, thread=thread)
    world.say("!stop", who=world.guest, thread=thread)
    world.say(f"{world.at('claude')} stop", who=world.stranger, thread=thread)
    world.say(f"{world.at('claude')} left", thread=elsewhere)
    world.wait_answer(elsewhere, "left")

    assert world.bridge.rows("select state from ask") == [("open",)]
    world.say(f"{world.at('claude')} left", thread=thread)
    world.wait(lambda: [each for each in world.answers(thread) if "Ann: left" in each.words])
    world.say("!stop", thread=thread)
    world.wait_answer(thread, "Stopped.")
    world.settle()


@pytest.mark.parametrize(
    "name",
    [
        "file:///etc",
        "ssh://localhost/srv/git",
        "git@localhost:srv/git",
        "ext::sh",
        "--upload-pack=/bin/sh",
        "acme/../app",
        "folder:/etc",
    ],
)
def test_a_place_is_given_no_repository_that_is_none(world: SlackWorld, name: str) -> None:
    thread = world.say(f"{world.at('claude')} say begun")
    world.wait_answer(thread, "begun")
    said = len(world.answers(thread))

    world.say(f"!repo {name}", thread=thread)
    world.wait(lambda: len(world.answers(thread)) > said)
    world.settle()

    place = f"{world.channel}:{thread}"
    assert world.bridge.rows("select repository from place where name = ?", place) == [(None,)]
