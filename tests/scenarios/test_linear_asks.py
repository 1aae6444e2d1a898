"""Asks on Linear: shown with options, answered by a choice, by a name, or in words."""

from __future__ import annotations

from pathlib import Path

from sim.linear import LinearSession
from tests.support.linear import LinearWorld


def options(session: LinearSession) -> list[str]:
    return list(session.buttons)


def test_an_approval_is_given_by_choosing(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("write notes.txt hello")
        world.wait_status(session, "awaitingInput")

        assert "Allow once" in options(session)
        world.linear.pick(session, world.ann, "Allow once")
        world.wait_end(session)

        assert (world.bridge.workspace() / "notes.txt").read_text().strip() == "hello"
        assert session.status == "complete"
        inbox = [(who.name, what.type) for who, what in world.linear.workspace.notified]
        assert inbox == [("Ann", "elicitation"), ("Ann", "response")]
        assert world.turns() == 1


def test_a_question_is_answered_by_a_choice_and_by_its_name(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("ask Which? | Left | Right")
        world.wait_status(session, "awaitingInput")
        world.linear.pick(session, world.ann, "Left")
        world.wait_end(session)

        world.linear.reply(session, world.ann, "ask And now? | Up | Down")
        world.linear.wait(lambda: len(session.of_type("elicitation")) == 2)
        world.linear.reply(session, world.ann, "down")
        world.wait_end(session, 2)

        first, second = session.of_type("response")
        assert "Left" in first.body
        assert "Down" in second.body


def test_an_approval_is_given_by_the_id_that_an_earlier_release_showed(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("write notes.txt hello")
        world.wait_status(session, "awaitingInput")
        world.linear.reply(session, world.ann, "allow")
        world.wait_end(session)

        assert (world.bridge.workspace() / "notes.txt").read_text().strip() == "hello"


def test_a_question_without_options_is_answered_in_the_words_of_a_reply(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("ask What shall it be called?")
        world.wait_status(session, "awaitingInput")

        (question,) = session.of_type("elicitation")
        assert "What shall it be called?" in question.body
        world.linear.reply(session, world.ann, "Blue Harbour, please")
        world.wait_end(session)

        assert session.response.endswith("You said Blue Harbour, please.")
        assert world.turns() == 1
