"""An ask that nobody answers is brought to those who may answer, once, and settled everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.slack.model import Message
from tests.support.github import GithubWorld
from tests.support.linear import LinearWorld
from tests.support.slack import SlackWorld
from tests.support.variants import quick

SOON = {"ASK_REMIND_MINUTES": "0.1"}
"""Six seconds of the bridge's clock."""
WORK = "write a.txt hello\nsay written down"


def buttons(message: Message) -> list[str]:
    """List the labels of a message's buttons that answer."""
    return [
        element["text"]["text"]
        for block in message.blocks
        if block["type"] == "actions"
        for element in block["elements"]
        if "url" not in element
    ]


def direct(world: SlackWorld, person: str) -> list[Message]:
    """List what the agent's app says to one person alone."""
    where = world.slack.direct(world.apps["claude"], person)
    return [each for each in world.slack.messages if each.channel == where and each.app]


def test_on_slack_who_asked_is_reminded_by_a_direct_message_whose_buttons_answer(
    tmp_path: Path,
) -> None:
    with SlackWorld(tmp_path, settings=SOON) as world:
        thread = world.say(f"{world.at('claude')} {WORK}")
        question = world.wait_button(thread, "Allow once")
        world.wait(lambda: direct(world, world.ann))
        [copy] = direct(world, world.ann)
        asked = buttons(copy)
        world.slack.click(world.ann, copy.ts, "Allow once")

        world.wait_answer(thread, "written down")
        world.wait(lambda: "Ann: Allow once" in world.slack.message(question.ts).words)
        world.wait(lambda: "Ann: Allow once" in copy.words)
        world.settle()

    assert asked == buttons(question) or asked[:1] == ["Allow once"]
    assert "waiting for an answer" not in question.words
    assert not buttons(copy)
    assert direct(world, world.bob) == []
    assert world.turns() == 1


@pytest.mark.long
def test_on_slack_approvers_follow_by_direct_message_and_as_a_group_in_the_thread(
    tmp_path: Path,
) -> None:
    world = SlackWorld(tmp_path, settings=SOON)
    eve = world.slack.person("Eve")
    group = world.slack.group([eve])
    world.slack.channels[world.channel].members.add(eve)
    world.entry = {"approvers": [f"slack:{world.bob}", f"slack:{group}", f"slack:{world.guest}"]}
    with world:
        thread = world.say(f"{world.at('claude')} {WORK}")
        question = world.wait_button(thread, "Allow once")
        world.wait(lambda: direct(world, world.bob))
        world.wait(lambda: any(f"<!subteam^{group}>" in m.words for m in world.answers(thread)))
        [named] = [m for m in world.answers(thread) if f"<!subteam^{group}>" in m.words]
        world.wait(lambda: world.slack.notified(eve))
        world.slack.click(eve, named.ts, "Allow once")

        world.wait_answer(thread, "written down")
        copies = [question, named, *direct(world, world.ann), *direct(world, world.bob)]
        world.wait(lambda: all("Eve: Allow once" in each.words for each in copies))
        world.settle()

    assert len(copies) == 4
    assert direct(world, world.guest) == []
    assert world.turns() == 1


def test_a_reminder_is_sent_once_though_the_bridge_is_killed_before_and_after_it_is_sent(
    tmp_path: Path,
) -> None:
    with SlackWorld(tmp_path, settings=SOON) as world:
        thread = world.say(f'{world.at("claude")} tool ask_person {{"question": "Which way?"}}')
        world.wait(lambda: any("Which way?" in m.words for m in world.answers(thread)))
        world.slack.stall("chat.postMessage")
        world.bridge.wait(
            lambda: (
                world.bridge.rows("select state from post where key like 'ask:%:%'") == [("new",)]
            ),
            "no reminder is committed",
        )
        world.bridge.kill()
        world.slack.go_on("chat.postMessage")
        world.bridge.start()
        world.wait_listening()
        world.wait(lambda: direct(world, world.ann))
        world.bridge.wait(
            lambda: (
                world.bridge.rows("select state from post where key like 'ask:%:%'") == [("open",)]
            ),
            "the reminder was not sent",
        )
        world.bridge.kill()
        world.bridge.start()
        world.wait_listening()
        [copy] = direct(world, world.ann)
        world.say(f"{world.at('claude')} to the left", thread=thread)
        world.wait(lambda: "Ann: to the left" in copy.words)
        world.settle()

    assert len(direct(world, world.ann)) == 1


def test_without_the_right_to_write_direct_messages_the_thread_names_the_person(
    tmp_path: Path,
) -> None:
    world = SlackWorld(tmp_path, settings=SOON)
    app = world.apps["claude"]
    app.scopes -= {"im:write"}
    with world:
        thread = world.say(f"{world.at('claude')} {WORK}", who=world.bob)
        world.wait_button(thread, "Allow once")
        world.wait(lambda: any(f"<@{world.bob}>" in m.words for m in world.answers(thread)))

    assert direct(world, world.bob) == []


@pytest.mark.long
def test_on_github_comments_mention_who_may_answer_and_are_settled_with_the_ask(
    tmp_path: Path,
) -> None:
    entry = {"approvers": ["github:bob", "github:acme/leads", "github:rae"]}
    with GithubWorld(tmp_path, settings=SOON, entry=entry) as world:
        issue = world.issue()
        world.github.comment("ann", issue, f"@claude-bridge {WORK}")
        asked = world.wait_for(issue, "\N{RAISED HAND}")
        second = world.wait_for(issue, "@bob @acme/leads\n")
        first = world.answers(issue)[-2]
        assert first.body.startswith("@ann\n")
        assert "Allow once" in first.body
        assert "Allow once" in second.body
        world.github.comment("bob", issue, "@claude-bridge 1")
        world.wait_for(issue, "written down")
        copies = (asked, first, second)
        world.github.wait(lambda: all("bob: Allow once" in each.body for each in copies))
        world.settled()

        answers = world.visible(issue)
        assert len(answers) == 4
        assert "@rae" not in "".join(each.body for each in answers)


@pytest.mark.long
def test_on_linear_the_ask_is_put_again_and_mentions_the_approvers(tmp_path: Path) -> None:
    world = LinearWorld(tmp_path, settings=SOON)
    bob = world.linear.person("Bob")
    world.bridge.agents["demo"]["approvers"] = [f"linear:{bob.id}"]
    with world:
        session = world.assign(*WORK.splitlines())
        world.linear.wait(lambda: len(session.of_type("elicitation")) == 3)
        _, first, second = session.of_type("elicitation")
        world.linear.pick(session, bob, "Allow once")
        world.wait_end(session)

        told = [(who.name, what.type) for who, what in world.linear.workspace.notified]
        assert told.count(("Ann", "elicitation")) == 3
        assert told.count(("Bob", "elicitation")) == 1
        assert world.ann.child()["url"] in first.body
        assert bob.child()["url"] in second.body
        assert session.response.endswith("written down")
        assert world.turns() == 1


@pytest.mark.parametrize("idle", quick(1, {"parked": "0.05", "alive": "30"}))
def test_an_ask_that_nobody_answers_is_no_refusal_and_the_agent_is_told(
    tmp_path: Path, idle: str
) -> None:
    never = {"ASK_HOURS": "0.004", "ASK_REMIND_MINUTES": "0", "IDLE_MINUTES": idle}
    with SlackWorld(tmp_path, settings=never) as world:
        thread = world.say(f"{world.at('claude')} {WORK}")
        question = world.wait_button(thread, "Allow once")
        world.wait(lambda: "Nobody answered" in world.slack.message(question.ts).words)
        world.settle()
        world.say("say what now", thread=thread)
        world.wait_answer(thread, "what now")
        world.say("say once is enough", thread=thread)
        world.wait_answer(thread, "once is enough")
        world.settle()

    told = [prompt for (prompt,) in world.bridge.rows("select prompt from turn order by id")]
    assert ["Nobody answered what you asked: Write a.txt." in each for each in told] == [
        False,
        True,
        False,
    ]
    shown = "\n".join(each.words for each in world.answers(thread))
    assert "Reject" not in shown
