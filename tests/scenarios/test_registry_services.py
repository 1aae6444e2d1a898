"""The registry on platforms: agents get, change and lose their presence there while people talk."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from sim.slack.model import App
from tests.support.bridge import demo
from tests.support.slack import SlackWorld

LONGEST = 24
NUMBERS = itertools.count(100)
STREAM = 12
"""How many messages are said while something changes."""


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlackWorld]:
    with SlackWorld(tmp_path_factory.mktemp("slack")) as world:
        yield world


def hire(office: SlackWorld, name: str, **entry: str) -> App:
    """Install an app and add its agent over the API."""
    app = office.slack.app(name)
    office.slack.channels[office.channel].members.add(app.user)
    body = {"name": name, **demo(), **entry, "credentials": {"slack": tokens(app)}}
    answer = office.bridge.http.post("/api/v1/agents", json=body)
    assert answer.status_code == 201, answer.text
    office.apps[name] = app
    return app


def tokens(app: App) -> dict[str, str]:
    return {"bot_token": app.token, "app_token": app.app_token}


def change(office: SlackWorld, name: str, **keys: Any) -> None:
    answer = office.bridge.http.patch(f"/api/v1/agents/{name}", json=keys)
    assert answer.status_code == 200, answer.text


@contextmanager
def talking(office: SlackWorld, *names: str) -> Iterator[list[tuple[str, str, str]]]:
    """Have people mention agents in new threads, one after another, while something happens."""
    said: list[tuple[str, str, str]] = []
    over = threading.Event()

    def talk() -> None:
        while len(said) < (LONGEST if not over.is_set() else STREAM):
            name = names[len(said) % len(names)]
            word = f"word-{next(NUMBERS)}."
            said.append((name, word, office.say(f"{office.at(name)} say {word}")))
            over.wait(0.04)

    talker = threading.Thread(target=talk)
    talker.start()
    try:
        yield said
    finally:
        over.set()
        talker.join()


def answered_once(office: SlackWorld, said: list[tuple[str, str, str]]) -> None:
    for name, word, thread in said:
        office.wait_answer(thread, word, name)
    office.settle()
    prompts = [text for (text,) in office.bridge.rows("select prompt from turn")]
    for name, word, thread in said:
        assert sum(word in each.words for each in office.answers(thread, name)) == 1
        assert sum(word in prompt for prompt in prompts) == 1


@pytest.mark.long
def test_an_agent_added_with_credentials_hears_and_answers_at_once(office: SlackWorld) -> None:
    with talking(office, "claude") as said:
        hire(office, "helper")
        office.wait_listening()

    thread = office.say(f"{office.at('helper')} say hello there")

    office.wait_answer(thread, "hello there", "helper")
    answered_once(office, said)


@pytest.mark.long
def test_rotated_credentials_lose_nothing_and_answer_with_the_new_ones(office: SlackWorld) -> None:
    app = hire(office, "rotating")
    waiting = office.say(f"{office.at('rotating')} say begun\nhold go-on\nsay and ended")
    office.wait_state("prompted")
    before = len(office.slack.unheard)

    with talking(office, "rotating", "claude") as said:
        app.token, app.former = f"{app.token}-new", app.token
        change(office, "rotating", credentials={"slack": tokens(app)})
        app.former = ""  # Slack accepts the old token no longer

    release(office, "rotating", waiting)
    answered_once(office, [*said, ("rotating", "and ended", waiting)])
    assert office.slack.unheard[before:] == []


def test_wrong_credentials_are_reported_and_others_listen_on(office: SlackWorld) -> None:
    app = hire(office, "mistaken")
    before = len(office.slack.unheard)

    wrong = {"bot_token": "xoxb-wrong", "app_token": app.app_token}
    change(office, "mistaken", credentials={"slack": wrong})
    thread = office.say(f"{office.at('claude')} say still here")

    office.wait_answer(thread, "still here")
    assert [each.app for each in office.slack.unheard[before:] if each.app != "mistaken"] == []
    troubles = office.bridge.http.get("/readyz")
    assert "slack:mistaken" in troubles.text
    change(office, "mistaken", credentials={"slack": tokens(app)})
    office.wait_answer(office.say(f"{office.at('mistaken')} say mended"), "mended", "mistaken")


@pytest.mark.long
def test_removed_credentials_leave_no_message_without_an_end(office: SlackWorld) -> None:
    app = hire(office, "leaving")

    with talking(office, "leaving", "claude") as said:
        office.bridge.wait(lambda: bool(said), "nothing was said")
        office.wait_answer(said[0][2], said[0][1], "leaving")
        change(office, "leaving", credentials={"slack": None})
        office.bridge.wait(lambda: office.slack.connected(app) == 0, "it is still connected")

    states = office.bridge.rows("select state from delivery where adapter = 'slack:leaving'")
    assert {state for (state,) in states} == {"done"}
    change(office, "leaving", credentials={"slack": tokens(app)})
    for *_, thread in said:
        office.wait(partial(office.said, thread))
    refused = [
        each for each in said if any("not available" in post.words for post in office.said(each[2]))
    ]
    answered_once(office, [each for each in said if each not in refused])
    assert all(name == "leaving" for name, *_ in refused)
    assert all(not told(office, "leaving", thread) for *_, thread in refused)


def told(office: SlackWorld, name: str, thread: str) -> str:
    return "\n".join(each.words for each in office.answers(thread, name))


def release(office: SlackWorld, agent: str, thread: str) -> None:
    """Let a turn go on that holds for a file."""
    query = (
        "select session.id from session join place on place.id = session.place "
        "where place.name = ? and session.agent = ?"
    )
    ((session,),) = office.bridge.rows(query, f"{office.channel}:{thread}", agent)
    (office.bridge.workspace(agent, session) / "go-on").touch()


@pytest.mark.long
def test_an_agent_removed_at_work_says_so_everywhere_and_its_name_begins_anew(
    office: SlackWorld,
) -> None:
    app = hire(office, "quitter", display_name="The Quitter")
    at = office.at("quitter")
    working = office.say(f"{at} say begun\nhold never")
    office.wait_state("prompted")
    office.say(f"{at} say queued", thread=working)
    asking = office.say(f"{at} ask Which? | Red | Blue")
    office.wait_button(asking, "Red", "quitter")
    shared = office.say(f"{at} say the password is swordfish")
    office.wait_answer(shared, "swordfish", "quitter")
    office.say(f"{office.at('claude')} say me too", thread=shared)
    office.wait_answer(shared, "me too")

    removed = office.bridge.http.delete("/api/v1/agents/quitter")

    assert removed.status_code == 204, removed.text
    office.settle()
    for thread in (working, asking):
        assert "The Quitter was removed, and its work here is stopped" in told(
            office, "quitter", thread
        )
    assert not [
        block
        for each in office.answers(asking, "quitter")
        for block in each.blocks
        if block["type"] == "actions"
    ]
    office.bridge.wait(lambda: office.slack.connected(app) == 0, "it is still connected")
    mentioned = office.say(f"{at} say anyone there?")
    office.wait_told(mentioned, "The Quitter was removed, so")
    office.say("say only one left", thread=shared)
    office.wait_answer(shared, "only one left")
    office.say("is this still done?", thread=working)
    office.wait_told(working, "The Quitter was removed, so")
    office.say("hello?", thread=working)
    office.settle()
    assert sum("The Quitter was removed, so" in each.words for each in office.said(working)) == 1

    body = {"name": "quitter", **demo(), "credentials": {"slack": tokens(app)}}
    again = office.bridge.http.post("/api/v1/agents", json=body)
    assert again.json()["id"] == "quitter-2"
    second = office.say(f"{at} recall")
    office.wait_answer(second, "", "quitter")
    office.settle()
    assert "swordfish" not in told(office, "quitter", second)
    assert not any("removed" in each.words for each in office.said(second))


def test_a_session_whose_agent_lost_its_credentials_is_shown_as_disconnected(
    office: SlackWorld,
) -> None:
    app = hire(office, "forgetful")
    office.wait(lambda: office.slack.connected(app))
    office.say(f"{office.at('forgetful')} say hello")

    def sessions() -> list[dict[str, Any]]:
        found = office.bridge.http.get("/api/v1/sessions", params={"agent": "forgetful"})
        items: list[dict[str, Any]] = found.json()["items"]
        return items

    office.bridge.wait(lambda: [each["state"] for each in sessions()] == ["idle"], "not answered")

    change(office, "forgetful", credentials={"slack": None})

    (session,) = sessions()
    listed = office.bridge.http.get("/api/v1/conversations", params={"agent": "forgetful"}).json()
    page = office.bridge.http.get(listed["items"][0]["path"], headers={"Accept": "text/html"}).text
    told = office.bridge.http.get(f"/api/v1/sessions/{session['id']}").json()
    assert session["state"] == told["state"] == "disconnected"
    assert [each["state"] for each in listed["items"][0]["sessions"]] == ["disconnected"]
    assert "<em>not connected</em>" in page
    change(office, "forgetful", credentials={"slack": tokens(app)})
    assert [each["state"] for each in sessions()] == ["idle"]
