"""Which repository? Asked where it is unclear, answered once, remembered for the channel."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.linear import LinearSession
from sim.slack.blocks import lists
from sim.slack.model import Message
from tests.support.github import Hub
from tests.support.linear import LinearWorld
from tests.support.slack import SlackWorld

OTHERS = ("acme/site", "acme/tools")
CHECKOUTS = "select name from checkout order by session"
ASKS = "select state, answer, answered_by from ask where kind = 'repository' order by id"


def offered(question: Message) -> list[str]:
    """List what a question offers."""
    [choices] = lists(question.blocks)
    return [option["text"]["text"] for option in choices["options"]]


def options(session: LinearSession) -> list[str]:
    """List what the last question on Linear offers."""
    return list(session.buttons)


def workspace(world: SlackWorld | LinearWorld, name: str) -> Path:
    """Find the one clone of an agent."""
    [found] = (world.bridge.data_dir / "workspaces").glob(f"*-{name}-1")
    return found


def wait_said(world: LinearWorld, session: LinearSession, words: str) -> None:
    """Wait until an agent says something in its session."""
    world.linear.wait(
        lambda: any(words in each.body for each in session.of_type("thought", "response"))
    )


@pytest.mark.slow
def test_an_unclear_repository_is_chosen_from_a_list_and_remembered_for_the_channel(
    tmp_path: Path,
) -> None:
    with Hub(tmp_path, ("claude",)) as hub, SlackWorld(tmp_path, settings=hub.settings) as world:
        hub.open_more(*OTHERS)
        thread = world.say(f"{world.at('claude')} say it works")
        question = world.wait_list(thread)
        assert offered(question) == ["acme/tools", "acme/site", "acme/widgets", "No repository"]
        world.slack.choose(world.guest, question.ts, "acme/widgets")
        world.wait(lambda: world.whispers(world.guest))
        world.slack.choose(world.bob, question.ts, "acme/site")

        world.wait_answer(thread, "it works")
        world.wait(lambda: "Bob: acme/site" in world.slack.message(question.ts).words)
        clone = workspace(world, "claude")
        second = world.say(f"{world.at('claude')} say and again")
        world.wait_answer(second, "and again")
        world.settle()

    assert "guest" in world.whispers(world.guest)[0]
    assert (clone / "README.md").exists()
    assert not list(lists(world.slack.message(question.ts).blocks))
    assert not any([*lists(each.blocks)] for each in world.answers(second))
    assert world.bridge.rows(CHECKOUTS) == [("acme/site",), ("acme/site",)]
    assert world.bridge.rows(ASKS) == [("answered", "acme/site", "Bob")]
    assert world.turns() == 2


def test_the_question_survives_a_crash_and_no_repository_is_an_answer(tmp_path: Path) -> None:
    with Hub(tmp_path, ("claude",)) as hub, SlackWorld(tmp_path, settings=hub.settings) as world:
        hub.open_more(*OTHERS)
        thread = world.say(f"{world.at('claude')} say it works")
        question = world.wait_list(thread)
        world.bridge.kill()
        world.bridge.start()
        world.wait_listening()
        world.slack.choose(world.ann, question.ts, "No repository")

        world.wait_answer(thread, "it works")
        world.settle()

    assert len([each for each in world.answers(thread) if "Which repository" in each.words]) == 1
    assert world.bridge.rows(ASKS) == [("answered", "none", "Ann")]
    assert world.bridge.rows(CHECKOUTS) == []
    assert world.turns() == 1


@pytest.mark.slow
def test_the_command_answers_the_question_and_with_always_the_channel_remembers(
    tmp_path: Path,
) -> None:
    with Hub(tmp_path, ("claude",)) as hub, SlackWorld(tmp_path, settings=hub.settings) as world:
        hub.open_more(*OTHERS)
        thread = world.say(f"{world.at('claude')} say it works")
        world.wait_list(thread)
        world.say("!repo acme/tools", thread=thread)
        world.wait_answer(thread, "it works")

        second = world.say(f"{world.at('claude')} say once more")
        question = world.wait_list(second)
        world.say("!repo acme/widgets always", thread=second)
        world.wait_answer(second, "once more")
        third = world.say(f"{world.at('claude')} say for the last time")
        world.wait_answer(third, "for the last time")
        world.settle()

    assert "Ann: acme/widgets" in world.slack.message(question.ts).words
    named = [("acme/tools",), ("acme/widgets",), ("acme/widgets",)]
    assert world.bridge.rows(CHECKOUTS) == named
    assert world.turns() == 3


@pytest.mark.slow
def test_nobody_is_asked_where_the_words_name_the_repository(tmp_path: Path) -> None:
    with Hub(tmp_path, ("claude",)) as hub, SlackWorld(tmp_path, settings=hub.settings) as world:
        hub.open_more(*OTHERS)
        thread = world.say(f"{world.at('claude')} fix acme/site, please\nsay fixed")

        answer = world.wait_answer(thread, "fixed")
        world.settle()

    assert "Working in acme/site, which the message names" in answer.words
    assert world.bridge.rows(CHECKOUTS) == [("acme/site",)]
    assert world.bridge.rows(ASKS) == []


@pytest.mark.slow
def test_the_only_repository_is_used_and_none_at_all_is_an_empty_folder(tmp_path: Path) -> None:
    with Hub(tmp_path, ("claude",)) as hub:
        agents = ("claude", "codex")
        with SlackWorld(tmp_path, agents=agents, settings=hub.settings) as world:
            thread = world.say(f"{world.at('codex')} say no app, no question")
            world.wait_answer(thread, "no app, no question", "codex")
            other = world.say(f"{world.at('claude')} say the only one")
            world.wait_answer(other, "the only one")
            world.settle()

    assert world.bridge.rows(CHECKOUTS) == [("acme/widgets",)]
    assert world.bridge.rows(ASKS) == []


@pytest.mark.long
def test_linear_shows_what_is_likely_first_and_takes_a_choice_then_remembers_the_team(
    tmp_path: Path,
) -> None:
    with Hub(tmp_path, ("demo",)) as hub:
        hub.open_more(*OTHERS)
        with LinearWorld(tmp_path, settings=hub.settings) as world:
            world.linear.workspace.likely = {"acme/widgets": 0.4, "acme/site": 0.7}
            session = world.assign("say It is done.")
            world.wait_status(session, "awaitingInput")
            names = ["acme/site", "acme/widgets", "acme/tools", "No repository"]
            assert options(session) == names
            assert session.buttons["acme/site"].startswith("http")
            world.linear.pick(session, world.ann, "acme/widgets")
            world.wait_end(session)
            second = world.assign("say And this.")
            world.wait_end(second)

    assert "It is done." in session.response
    assert "And this." in second.response
    assert second.of_type("elicitation") == []
    assert world.bridge.rows(CHECKOUTS) == [("acme/widgets",), ("acme/widgets",)]
    assert world.turns() == 2
    assert world.linear.faults == []


@pytest.mark.slow
def test_on_linear_a_name_in_words_answers_also_after_a_crash(tmp_path: Path) -> None:
    with Hub(tmp_path, ("demo",)) as hub:
        hub.open_more(*OTHERS)
        with LinearWorld(tmp_path, settings=hub.settings) as world:
            world.linear.forbidden.add("issueRepositorySuggestions")
            session = world.assign("say It is done.")
            world.wait_status(session, "awaitingInput")
            world.bridge.kill()
            world.bridge.start()
            world.linear.reply(session, world.linear.person("Gus", guest=True), "site")
            wait_said(world, session, "only full members")
            world.linear.reply(session, world.ann, "the one with the pages")
            wait_said(world, session, "acme/tools, acme/site, acme/widgets or none")
            world.linear.reply(session, world.ann, "Site")
            wait_said(world, session, "It is done.")

    assert world.bridge.rows(ASKS) == [("answered", "acme/site", "Ann")]
    assert world.bridge.rows(CHECKOUTS) == [("acme/site",)]
    assert world.turns() == 1


@pytest.mark.slow
def test_what_linear_is_sure_of_is_not_asked(tmp_path: Path) -> None:
    with Hub(tmp_path, ("demo",)) as hub:
        hub.open_more(*OTHERS)
        with LinearWorld(tmp_path, settings=hub.settings) as world:
            world.linear.workspace.likely = {"acme/tools": 0.97, "acme/site": 0.2}
            session = world.assign("say It is done.")
            world.wait_end(session)

    assert session.of_type("elicitation") == []
    assert "Working in acme/tools" in session.response
    assert world.bridge.rows(CHECKOUTS) == [("acme/tools",)]
