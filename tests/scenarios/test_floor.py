"""Who answers whom: two agents in a place, commands, and those who may not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.support.hook import message
from tests.support.observe import PATIENCE, Observed, demo
from tests.support.platform import Platform


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("floor")
    agents = {"demo": demo(), "second": demo()}
    with Platform() as platform, Observed(folder, platform, agents=agents) as bridge:
        yield bridge


@pytest.fixture
def place() -> str:
    return uuid4().hex


def said(bridge: Observed, event: dict[str, Any], agent: str = "demo") -> tuple[Any, ...]:
    """Deliver an event and return what was decided about it."""
    assert bridge.deliver(event, agent=agent) == 200
    return bridge.settled(event["message_id"])


def both_here(bridge: Observed, place: str) -> None:
    """Bring both agents into a place."""
    bridge.ask(place, "say here", "demo")
    bridge.ask(place, "say here", "second")


def texts(bridge: Observed, place: str, agent: str) -> list[str]:
    return [post.content["text"] for post in bridge.turns(place, agent)]


def test_each_agent_answers_its_own_mention(bridge: Observed, place: str) -> None:
    assert bridge.ask(place, "say I am demo", "demo")["text"] == "I am demo"
    assert bridge.ask(place, "say I am second", "second")["text"] == "I am second"

    assert texts(bridge, place, "demo") == ["I am demo"]
    assert texts(bridge, place, "second") == ["I am second"]


def test_both_mentioned_answer_once_each_although_both_adapters_hear_it(
    bridge: Observed, place: str
) -> None:
    event = message(place, "say both of us", "demo", "second")

    assert bridge.deliver(event, agent="demo") == 200
    assert bridge.deliver(event, agent="second") == 200

    assert bridge.end(place, 0, "demo")["text"] == "both of us"
    assert bridge.end(place, 0, "second")["text"] == "both of us"
    query = (
        "select reason from (select * from delivery order by seq desc limit 2) as last "
        "where state = 'done' order by reason"
    )
    reasons = [("decided_before",), ("mentioned",)]
    bridge.wait(lambda: bridge.rows(query) == reasons, "both decided")
    assert (len(bridge.turns(place, "demo")), len(bridge.turns(place, "second"))) == (1, 1)


def test_an_untagged_message_goes_to_the_only_agent(bridge: Observed, place: str) -> None:
    bridge.ask(place, "say here")

    assert said(bridge, message(place, "say untagged")) == ("done", "only_agent", ["demo"])
    assert bridge.end(place, 1)["text"] == "untagged"


def test_an_untagged_message_before_any_agent_came_starts_nothing(
    bridge: Observed, place: str
) -> None:
    reason = "none_here"
    assert said(bridge, message(place, "say hello")) == ("done", reason, [])
    assert bridge.turns(place) == []


def test_an_untagged_message_among_two_agents_starts_nothing_and_says_why(
    bridge: Observed, place: str
) -> None:
    both_here(bridge, place)

    decided = said(bridge, message(place, "say anybody?"))

    assert decided == ("done", "several_here", [])
    assert bridge.ask(place, "say still one", "demo")["text"] == "still one"
    assert texts(bridge, place, "demo") == ["here", "still one"]
    assert texts(bridge, place, "second") == ["here"]


def test_listen_latest_gives_the_floor_to_the_agent_addressed_last(
    bridge: Observed, place: str
) -> None:
    both_here(bridge, place)
    words = bridge.told(place, "listen latest", "demo")
    assert words == "From now on the agent you spoke to last answers."

    decided = said(bridge, message(place, "say it is me"))

    assert decided == ("done", "latest", ["second"])
    assert bridge.end(place, 1, "second")["text"] == "it is me"
    bridge.ask(place, "say and now me", "demo")
    assert said(bridge, message(place, "say me again"))[2] == ["demo"]
    assert bridge.end(place, 2, "demo")["text"] == "me again"


def test_listen_all_gives_the_floor_to_everybody_and_mention_takes_it_back(
    bridge: Observed, place: str
) -> None:
    both_here(bridge, place)
    bridge.told(place, "listen all", "second")

    decided = said(bridge, message(place, "say together"))

    assert decided == ("done", "all_listen", ["demo", "second"])
    assert bridge.end(place, 1, "demo")["text"] == "together"
    assert bridge.end(place, 1, "second")["text"] == "together"
    bridge.told(place, "listen mention", "second")
    assert said(bridge, message(place, "say nobody"))[2] == []


def test_a_place_stays_with_its_holder_until_it_is_told_otherwise(
    bridge: Observed, place: str
) -> None:
    bridge.ask(place, "say here", "demo")
    assert said(bridge, message(place, "agent second say mine")) == (
        ("done", "handed_over", ["second"])
    )
    assert bridge.end(place, 0, "second")["text"] == "mine"

    bridge.ask(place, "say just asked", "demo")
    assert said(bridge, message(place, "say untagged"))[1:] == ("holder", ["second"])
    bridge.told(place, "listen latest", "demo")
    bridge.ask(place, "say now me", "demo")
    assert said(bridge, message(place, "say latest"))[1:] == ("latest", ["demo"])

    assert bridge.told(place, "agent second") == (
        "second takes over. It answers messages here that mention no agent."
    )
    query = "select session.id from session join surface on surface.session = session.id "
    own = bridge.rows(f"{query} where external = ? and session.agent = 'second'", place)
    assert bridge.http.delete(f"/api/v1/sessions/{own[0][0]}").status_code == 204
    assert said(bridge, message(place, "say alone"))[1:] == ("only_agent", ["demo"])


def test_a_reply_goes_to_the_agent_replied_to(bridge: Observed, place: str) -> None:
    both_here(bridge, place)

    decided = said(bridge, {**message(place, "say reply"), "reply_to": "second"})

    assert decided == ("done", "reply", ["second"])
    assert bridge.end(place, 1, "second")["text"] == "reply"


def test_a_mention_weighs_more_than_a_reply(bridge: Observed, place: str) -> None:
    both_here(bridge, place)

    decided = said(bridge, {**message(place, "say mention", "demo"), "reply_to": "second"})

    assert decided == ("done", "mentioned", ["demo"])


def test_an_agent_that_is_not_here_is_said_to_be_out_of_reach(bridge: Observed, place: str) -> None:
    words = bridge.told(place, "say hello", "stranger")

    assert words == "stranger is not available here: there is no such agent."


def test_a_command_is_the_whole_message_and_never_only_its_first_word(
    bridge: Observed, place: str
) -> None:
    seen = bridge.ask(place, "stop the press")

    assert seen["state"] == "done"
    assert seen["text"].endswith("You said: stop the press")


def test_help_lists_the_commands(bridge: Observed, place: str) -> None:
    words = bridge.told(place, "help")

    for command in ("stop", "new", "status", "queue", "mode", "model", "listen", "quiet"):
        assert f"`{command}" in words


def test_status_and_queue_tell_what_runs_and_what_waits(bridge: Observed, place: str) -> None:
    bridge.begin(place, "tell begun\nhold go")
    bridge.held(place, "begun")
    bridge.begin(place, "say later")
    waits = "select 1 from turn where state = 'queued' and session = ?"
    bridge.wait(lambda: bool(bridge.rows(waits, bridge.session(place))), "nothing waits")

    assert bridge.told(place, "status") == "demo: working, 1 message waiting"
    assert bridge.told(place, "queue") == "demo: working, 1 message waiting"
    bridge.release(place, "go")
    assert bridge.end(place, 1)["text"] == "later"
    assert bridge.told(place, "!status") == "demo: ready"


def test_a_command_that_means_nobody_says_so(bridge: Observed, place: str) -> None:
    both_here(bridge, place)
    event = message(place, "status")

    assert said(bridge, event)[0] == "done"

    assert bridge.notice(place, 1) == "Which agent? Mention it."


def test_new_begins_afresh_while_the_record_stays_readable(bridge: Observed, place: str) -> None:
    bridge.ask(place, "say the old days")
    assert "say the old days" in bridge.ask(place, "recall")["text"]

    assert bridge.told(place, "new") == "The next message starts over."

    seen = bridge.ask(place, "recall")
    assert (seen["text"], seen["note"]) == ("You told me nothing yet.", "")
    path = f"/api/v1/sessions/{bridge.session(place)}/transcript"
    items = bridge.http.get(path).json()["items"]
    assert "the old days" in [item["text"] for item in items if item["kind"] == "text"]


def test_new_keeps_what_waits(bridge: Observed, place: str) -> None:
    bridge.begin(place, "say the old days\ntell begun\nhold never")
    bridge.held(place, "begun")
    bridge.begin(place, "recall", speaker="Bob")
    bridge.wait(lambda: len(bridge.turns(place)) == 2, "nothing waits", PATIENCE)
    bridge.say(place, "stop")
    bridge.end(place, 0)

    bridge.told(place, "new")

    assert bridge.end(place, 1)["text"] == "You told me nothing yet."


def test_new_ends_a_turn_that_runs(bridge: Observed, place: str) -> None:
    bridge.begin(place, "tell begun\nhold never")
    bridge.held(place, "begun")

    bridge.told(place, "new")

    assert bridge.end(place, 0)["state"] == "stopped"
    assert bridge.ask(place, "recall")["text"] == "You told me nothing yet."


def test_a_mode_holds_from_now_on_and_one_that_is_not_offered_is_refused_in_words(
    bridge: Observed, place: str
) -> None:
    bridge.ask(place, "say here")

    assert bridge.told(place, "mode free") == "demo: mode free."
    refusal = bridge.told(place, "mode reckless")

    assert "reckless" in refusal
    assert "ask" in refusal
    assert "free" in refusal
    assert bridge.ask(place, "write notes.txt done")["text"] == "Wrote notes.txt."
    session = bridge.session(place)
    assert bridge.rows("select count(*) from ask where session = ?", session) == [(0,)]
    bridge.told(place, "mode ask")
    bridge.begin(place, "write notes.txt again")
    (ask,) = bridge.open_asks(1, place)
    bridge.answer(ask, "reject")
    assert "rejected" in bridge.end(place, 2)["text"]


def test_quiet_is_kept_for_the_place(bridge: Observed, place: str) -> None:
    bridge.ask(place, "say here")

    assert bridge.told(place, "quiet") == "From now on progress is shown briefly."

    assert bridge.rows("select verbosity from place where name = ?", place) == [("quiet",)]


def test_messages_that_come_while_a_turn_runs_are_joined_with_their_speakers(
    bridge: Observed, place: str
) -> None:
    bridge.begin(place, "tell begun\nhold go")
    bridge.held(place, "begun")

    bridge.begin(place, "say from Bob", speaker="Bob")
    later = message(place, "say from Cleo", "demo", speaker="Cleo")
    said(bridge, later)
    bridge.release(place, "go")

    assert bridge.end(place, 1)["text"] == "from Bob\n\nfrom Cleo"
    query = "select prompt from turn where session = ? order by id desc"
    prompt = bridge.rows(query, bridge.session(place))[0][0]
    assert prompt.splitlines()[0].startswith("[Bob and Cleo on web, ")
    assert prompt.endswith("[Bob:]\nsay from Bob\n[Cleo:]\nsay from Cleo")
    assert len(bridge.turns(place)) == 2


def test_stop_holds_what_waits_until_somebody_wants_it(bridge: Observed, place: str) -> None:
    bridge.begin(place, "say begun\ntell begun\nhold never\nsay too much")
    bridge.held(place, "begun")
    bridge.begin(place, "say kept", speaker="Bob")
    bridge.wait(lambda: len(bridge.turns(place)) == 2, "nothing waits", PATIENCE)

    assert bridge.say(place, "stop") == 200

    stopped = bridge.end(place, 0)
    assert (stopped["state"], stopped["text"]) == ("stopped", "begun")
    assert stopped["note"] == "Stopped. 1 message on hold."
    assert bridge.told(place, "stop") == "Nothing is running here."
    assert bridge.told(place, "status") == "demo: queued, 1 message waiting"
    assert bridge.say(place, "queue now") == 200
    assert bridge.end(place, 1)["text"] == "kept"


def test_stop_all_drops_what_waits(bridge: Observed, place: str) -> None:
    bridge.begin(place, "tell begun\nhold never")
    bridge.held(place, "begun")
    bridge.begin(place, "say never said", speaker="Bob")
    bridge.wait(lambda: len(bridge.turns(place)) == 2, "nothing waits", PATIENCE)

    assert bridge.say(place, "stop all") == 200

    assert bridge.end(place, 0)["note"] == "Stopped."
    dropped = bridge.end(place, 1)
    assert (dropped["state"], dropped["text"]) == ("stopped", "")
    assert dropped["note"] == "Dropped before it began."
    assert bridge.ask(place, "say next at once")["text"] == "next at once"


def test_an_untagged_stop_stops_every_agent_of_the_place(bridge: Observed, place: str) -> None:
    bridge.begin(place, "tell begun\nhold never", "demo")
    bridge.begin(place, "tell begun\nhold never", "second")
    bridge.held(place, "begun", "demo")
    bridge.held(place, "begun", "second")

    assert bridge.deliver(message(place, "stop")) == 200

    assert bridge.end(place, 0, "demo")["state"] == "stopped"
    assert bridge.end(place, 0, "second")["state"] == "stopped"


def test_an_outsider_is_refused_with_an_explanation(bridge: Observed, place: str) -> None:
    event = message(place, "say gotcha", "demo", speaker="Outsider Eve")

    assert said(bridge, event) == ("refused", "refused", [])

    assert bridge.notice(place, 1) == "demo did not act: you may not use this agent here."
    assert bridge.turns(place) == []


def test_an_outsider_neither_stops_a_turn_nor_answers_for_it(bridge: Observed, place: str) -> None:
    bridge.begin(place, "write notes.txt done")
    (ask,) = bridge.open_asks(1, place)

    event = message(place, "stop", "demo", speaker="Outsider Eve")
    assert said(bridge, event)[0] == "refused"
    eve = {"id": "outsider eve", "name": "Outsider Eve"}
    bridge.deliver({"ask": ask, "option": "allow", "speaker": eve})
    refused = "select 1 from delivery where state = 'refused' and reason like 'you may not%'"
    bridge.wait(lambda: bool(bridge.rows(refused)), "the answer was not refused")

    assert bridge.open_asks(1, place) == [ask]
    bridge.answer(ask)
    assert bridge.end(place, 0)["text"] == "Wrote notes.txt."


def test_a_bot_is_refused(bridge: Observed, place: str) -> None:
    robot = {"id": "robot", "name": "Robot", "kind": "bot"}

    outcome, _, agents = said(bridge, {**message(place, "say beep", "demo"), "speaker": robot})

    assert (outcome, agents) == ("refused", [])
    assert bridge.turns(place) == []


def test_messages_of_agents_start_nothing(bridge: Observed, place: str) -> None:
    agent = {"id": "second", "name": "Second", "kind": "agent"}

    decided = said(bridge, {**message(place, "say ping", "demo"), "speaker": agent})

    assert decided == ("done", "from_agent", [])
    assert said(bridge, {**message(place, "stop", "demo"), "speaker": agent})[0] == "done"
    assert bridge.turns(place) == []
    assert bridge.notices(place) == []
