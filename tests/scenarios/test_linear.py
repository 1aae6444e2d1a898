"""Stories on Linear: an agent is given an issue, reports, answers, is stopped, and remembers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.linear import LinearWorld

HELD_SECONDS = 1.0
"""How long Linear is held back: an agent that did not wait would have started long before."""


def test_an_assigned_issue_is_acknowledged_worked_on_and_answered(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("plan look; change", "say It is done.")
        world.wait_end(session)

        first, *_ = session.activities
        assert (first.type, first.ephemeral) == ("thought", True)
        assert session.response.endswith("It is done.")
        assert session.status == "complete"
        assert session.plan == [
            {"content": "look", "status": "completed"},
            {"content": "change", "status": "completed"},
        ]
        assert session.issue.state is world.linear.workspace.state("started")
        assert [comment.body for comment in session.issue.comments][1:] == [session.response]
        assert world.linear.faults == []


def test_the_first_activity_does_not_wait_for_the_agent(tmp_path: Path) -> None:
    never = {"command": ["sleep", "600"]}
    with LinearWorld(tmp_path, entry=never) as world:
        session = world.assign("say hello")

        world.wait_status(session, "active")

        assert session.activities[0].body == "On it."


def test_no_process_is_started_before_linear_has_the_first_activity(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        world.linear.held = {"agentActivityCreate"}
        session = world.assign("say hello")
        world.linear.wait(lambda: bool(world.linear.waiting))
        with pytest.raises(TimeoutError):
            world.linear.wait(lambda: world.bridge.rows(PROCESSES) != [(0,)], HELD_SECONDS)

        world.linear.release("agentActivityCreate")
        world.wait_end(session)

        assert session.response == "hello"
        assert not world.linear.workspace.is_unresponsive(session)


def test_a_mention_asks_something_and_leaves_the_issue_where_it_is(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        issue = world.linear.issue("A plan", "say what others wrote")
        thread = world.linear.comment(issue, world.linear.person("Bob"), "say what Bob wrote")
        session = world.linear.mention(issue, world.app, world.ann, "say just this", under=thread)
        world.wait_end(session)

        assert session.response == "just this"
        assert issue.state.type == "unstarted"
        assert issue.delegate is None


def test_pictures_of_the_issue_lie_beside_the_workspace(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign(f"See {world.linear.upload('door.png', b'a door')}", "say seen")
        world.wait_end(session)

        (picture,) = world.bridge.data_dir.glob("workspaces/*.files/*/door.png")
        assert picture.read_bytes() == b"a door"
        assert str(picture) in world.bridge.rows("select prompt from turn")[0][0]


def test_follow_ups_are_answered_in_the_session_and_remembered(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("say the word is plum")
        world.wait_end(session)
        world.linear.move(session.issue, "backlog")

        world.linear.reply(session, world.ann, "recall")
        world.wait_end(session, 2)

        assert "the word is plum" in session.of_type("response")[1].body
        assert session.issue.state.type == "backlog"  # somebody moved it, and knows why


def test_stop_ends_the_work_with_one_final_word(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("say beginning", "hold never")
        world.bridge.wait(lambda: world.bridge.rows(PROMPTED) == [(1,)], "never prompted")
        world.linear.stop(session, world.ann)
        world.wait_end(session)

        (final,) = session.of_type("response", "error")
        assert final.body.endswith("Stopped.")
        world.linear.reply(session, world.ann, "say again")
        world.wait_end(session, 2)
        assert session.of_type("response")[-1].body == "again"
        assert world.linear.faults == []


def test_a_stop_from_another_session_is_answered_there_as_well(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        working = world.assign("hold never")
        world.bridge.wait(lambda: world.bridge.rows(PROMPTED) == [(1,)], "never prompted")

        asking = world.linear.mention(working.issue, world.app, world.ann, "stop")
        world.wait_end(working)
        world.wait_end(asking)

        assert working.response.endswith("Stopped.")
        assert asking.response == "Stopped."


def test_taking_the_issue_away_stops_the_work(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("hold never")
        world.bridge.wait(lambda: world.bridge.rows(PROMPTED) == [(1,)], "never prompted")

        world.linear.undelegate(session.issue, world.ann)
        world.wait_end(session)

        assert session.response.endswith("Stopped.")


def test_taking_the_issue_away_counts_whoever_does_it(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        guest = world.linear.person("Gus", guest=True)
        session = world.assign("hold never")
        world.bridge.wait(lambda: world.bridge.rows(PROMPTED) == [(1,)], "never prompted")

        world.linear.undelegate(session.issue, guest)
        world.wait_end(session)

        assert session.response.endswith("Stopped.")


def test_an_ask_is_shown_with_its_options_and_an_answer_on_the_page_lets_the_work_go_on(
    tmp_path: Path,
) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("write notes.txt hello")
        world.wait_status(session, "awaitingInput")
        (question,) = session.of_type("elicitation")
        (ask,) = world.bridge.http.get("/api/v1/asks", params={"state": "open"}).json()["items"]
        allow = next(each for each in ask["options"] if each["name"] in session.buttons)
        answer = {"option": allow["id"]}
        world.bridge.http.post(f"/api/v1/asks/{ask['id']}/answer", json=answer)
        world.wait_end(session)

        assert question.signal == "select"
        assert (world.bridge.workspace() / "notes.txt").read_text().strip() == "hello"
        assert session.status == "complete"
        assert session.of_type("action")


def test_a_failure_is_told_as_an_error(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("fail")
        world.wait_end(session)

        assert session.status == "error"


def test_the_second_delegation_of_an_issue_remembers_the_first(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        first = world.assign("say the word is plum")
        world.wait_end(first)

        first.issue.description = "recall"
        second = world.linear.delegate(first.issue, world.app, world.ann)
        world.wait_end(second)

        assert "the word is plum" in second.response
        assert world.bridge.rows("select count(*) from session") == [(1,)]


def test_two_agents_on_one_issue_answer_each_for_itself(tmp_path: Path) -> None:
    with LinearWorld(tmp_path, agents=("demo", "twin")) as world:
        issue = world.linear.issue("Who is there?")
        sessions = [
            world.linear.mention(issue, world.apps[name], world.ann, f"say {name} here")
            for name in ("demo", "twin")
        ]
        for session in sessions:
            world.wait_end(session)

        assert [session.response for session in sessions] == ["demo here", "twin here"]


def test_words_during_work_wait_and_are_answered_afterwards(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("hold go")
        world.bridge.wait(lambda: world.bridge.rows(PROMPTED) == [(1,)], "never prompted")
        world.linear.reply(session, world.ann, "say two")
        world.linear.wait(lambda: len(session.of_type("thought")) > 1)

        (world.bridge.workspace() / "go").touch()
        world.wait_end(session, 2)

        assert [answer.body for answer in session.of_type("response")] == ["go is here.", "two"]


def test_guests_strangers_and_automations_are_told_no(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        guest = world.linear.person("Gus", guest=True)
        issue = world.linear.issue("Do this", "say hello")
        sessions = [
            world.linear.delegate(issue, world.app, guest),
            world.linear.delegate(issue, world.app, None),
        ]
        for session in sessions:
            world.wait_end(session)

        assert "full members" in sessions[0].response
        assert "ALLOWED_BOTS" in sessions[1].response
        assert world.turns() == 0


def test_tokens_are_minted_and_renewed_when_linear_takes_them_no_more(tmp_path: Path) -> None:
    with LinearWorld(tmp_path, minted=True) as world:
        session = world.assign("say one")
        world.wait_end(session)
        with world.linear.changed:
            world.app.tokens.clear()

        world.linear.reply(session, world.ann, "say two")
        world.wait_end(session, 2)

        assert session.of_type("response")[-1].body == "two"
        assert world.linear.fields().count("token") == 2


def test_an_answer_that_got_lost_doubles_nothing(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        world.linear.lose_answers = 2
        session = world.assign("say once")
        world.wait_end(session)
        world.bridge.wait(lambda: world.bridge.rows(UNSENT) == [(0,)], "a post is still to be sent")

        assert session.response == "once"
        assert world.linear.lose_answers == 0


PROMPTED = "select count(*) from turn where state = 'prompted'"
UNSENT = "select count(*) from post where state in ('new', 'closing')"
PROCESSES = "select count(*) from process"
