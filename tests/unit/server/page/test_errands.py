"""What agents ask of each other, on the page: under the turn that asked, and on its own page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.feed import Unfinished
from app.features.conversations.export import export
from app.model.conversations import path_of
from app.model.types import Entry, Thread, TurnRef
from tests.support.document import Element, parse
from tests.support.errands import ask_agent
from tests.support.office import Office, key, office

pytestmark = pytest.mark.anyio

TASK = "look at <b>the tests</b>"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Office]:
    async with office(tmp_path) as opened:
        yield opened


def part(page: str, name: str) -> Element:
    found = parse(page.partition(">")[2])
    return next(each for each in found.elements() if each.id == name)


async def ask_codex(desk: Office, say: str = "I ask Codex.") -> tuple[str, TurnRef, str, TurnRef]:
    """Let Claude work in a thread, and ask Codex; returns both paths and turns."""
    path = await desk.say("Fix the login", to="claude")
    caller = desk.turn_of(path)
    await desk.begin(caller)
    if say:
        await desk.write(caller, Entry("text", say))
    asked = await ask_agent(desk.stores, caller, "codex", TASK)
    below = desk.stores.sessions.session(asked.session)
    assert below is not None
    return path, caller, path_of(below.place), TurnRef(asked.session, asked.turn)


async def test_what_an_agent_was_asked_is_one_line_under_the_turn_that_asked(desk: Office) -> None:
    path, caller, below, errand = await ask_codex(desk)
    await desk.begin(errand)
    await desk.write(errand, Entry("text", "The tests are **fine**."))
    await desk.write(caller, Entry("text", "Codex is happy."))

    page = await desk.page(path)
    line = part(page, f"t{errand.turn}")

    assert line.tag == "details"
    assert "open" not in line.attributes
    assert "look at <b>the tests</b>" in part(page, f"t{errand.turn}-head").text
    assert "working" in part(page, f"t{errand.turn}-head").text
    assert "The tests are fine." in part(page, f"t{errand.turn}-body").text
    body = part(page, f"t{caller.turn}-body").text
    assert body.index("I ask Codex.") < body.index("look at") < body.index("Codex is happy.")
    assert part(page, "log").text.count("look at <b>the tests</b>") == 1
    assert f'href="{below}"' in page
    assert f'data-post="/stop{below}"' in page


async def test_an_agent_may_ask_before_anything_else_that_it_does_is_stored(desk: Office) -> None:
    path, caller, _, errand = await ask_codex(desk, say="")
    events = desk.events(path)
    await events.next("blocks")

    await desk.write(caller, Entry("text", "I asked Codex."))
    await events.next("blocks")
    await events.close()

    body = part(await desk.page(path), f"t{caller.turn}-body")
    assert [each.id for each in body.elements() if each.id == f"t{errand.turn}"]
    assert body.text.index("look at") < body.text.index("I asked Codex.")


async def test_an_open_page_follows_what_an_agent_does_for_another(desk: Office) -> None:
    path, _, _, errand = await ask_codex(desk)
    events = desk.events(path)
    await events.next("blocks")

    await desk.begin(errand)
    await desk.write(errand, Entry("text", "Looking."))
    _, patches = await events.next("blocks")
    assert {patch["id"] for patch in patches} >= {f"t{errand.turn}-head"}
    desk.feed.show(Unfinished(errand.session, errand.turn, "text", "and more"))
    _, live = await events.next("live")
    await desk.write(errand, Entry("notice", "", data={"end": "done"}))
    _, ended = await events.next("blocks")

    assert any("and more" in patch["html"] for patch in live)
    head = next(patch for patch in ended if patch["id"] == f"t{errand.turn}-head")
    assert "done" in head["html"]
    assert 'role="timer"' not in head["html"]
    await events.close()


async def test_its_own_page_shows_the_task_as_a_message(desk: Office) -> None:
    path, caller, below, errand = await ask_codex(desk)
    await desk.write(errand, Entry("text", "Looking."))

    page = await desk.page(below)

    assert "look at <b>the tests</b>" in part(page, "log").text
    assert part(page, f"t{errand.turn}").tag == "article"
    assert "Claude asked for this on behalf of <bdi>Ada</bdi>." in page
    assert f'<a href="{path}">Fix the login</a>' in page
    assert f'href="{path}#t{caller.turn}"' in page
    assert 'id="composer"' not in page
    assert 'id="manage"' not in page
    assert 'href="/fork' not in page


async def test_what_that_one_asks_is_shown_under_it_and_on_its_page(desk: Office) -> None:
    path, _, below, errand = await ask_codex(desk)
    await desk.begin(errand)
    deeper = await ask_agent(desk.stores, errand, "gemini", "count the tests", name="Codex")
    await desk.write(TurnRef(deeper.session, deeper.turn), Entry("text", "Forty-two."))

    for where in (path, below):
        page = await desk.page(where)
        line = part(page, f"t{deeper.turn}")
        assert line.tag == "details"
        assert "Forty-two." in line.text
        assert "count the tests" in part(page, f"t{errand.turn}-body").text


async def test_stopping_it_stops_it_alone(desk: Office) -> None:
    _, _, below, errand = await ask_codex(desk)
    await desk.begin(errand)

    answer = await desk.post(f"/stop{below}", session=str(errand.session), turns=f"t{errand.turn}")

    assert answer.status_code == 204
    assert desk.engine.cancelled == [errand.session]


async def test_it_is_found_in_the_thread_where_it_began_and_is_none_of_its_own(
    desk: Office,
) -> None:
    path, _, below, errand = await ask_codex(desk)
    await desk.write(errand, Entry("text", "The zebra is striped."))

    listed = await desk.page("/")
    found = await desk.page("/threads?q=zebra")

    assert f'href="{path}"' in listed
    assert below not in listed
    assert f'href="{path}"' in found
    assert "<mark>zebra</mark>" in found
    assert below not in found


async def test_a_thread_is_marked_by_who_works_for_its_agents(desk: Office) -> None:
    path, caller, _, errand = await ask_codex(desk)
    await desk.end(caller)
    await desk.begin(errand)

    working = await desk.page(path)
    await desk.write(errand, Entry("notice", "", data={"end": "done"}))
    await desk.end(errand)
    done = await desk.page(path)

    assert 'data-mark="work"' in working
    assert '<i class="dot work"></i><h1' in working
    assert 'data-mark="work"' not in done
    assert '<i class="dot work"></i><h1' not in done


async def test_what_it_asks_people_names_it_in_the_thread_where_it_began(desk: Office) -> None:
    path, caller, _, errand = await ask_codex(desk)
    asked = {"ask": 7, "state": "open", "options": [], "call": "c1"}
    await desk.write(caller, Entry("ask", "Write a.txt", data=asked))
    await desk.write(errand, Entry("ask", "Write a.txt", data=asked))

    page = await desk.page(path)

    ask = part(page, "a7")
    assert "Codex asks:" in ask.text
    assert part(page, f"t{errand.turn}-body").text.strip() == ""
    assert "waiting for an answer" in part(page, f"t{errand.turn}-head").text


async def test_a_new_thread_proposes_the_agent_that_a_person_used_last(desk: Office) -> None:
    await ask_codex(desk)

    assert 'value="claude" selected' in await desk.page("/")


async def test_the_record_of_a_turn_says_what_caused_it_and_what_it_asked(desk: Office) -> None:
    _, caller, _, errand = await ask_codex(desk)
    decided = {"how": "person", "who": "Ada", "answer": "Allow once", "allowed": True}
    call = {"call": "c1", "title": "make test", "status": "completed", "decided": decided}
    usage = {"used": 10, "size": 100, "cost": 0.5, "currency": "USD", "estimated": True}
    await desk.write(errand, Entry("tool", "make test", data=call), Entry("usage", data=usage))

    asked = (await desk.http.get(f"/api/v1/sessions/{errand.session}/turns/{errand.turn}")).json()
    asking = (await desk.http.get(f"/api/v1/sessions/{caller.session}/turns/{caller.turn}")).json()

    assert asked["cause"]["kind"] == "delegation"
    assert asked["cause"]["delegation"] == {
        "id": 1,
        "agent": "claude",
        "session": caller.session,
        "turn": caller.turn,
        "root_session": caller.session,
        "root_turn": caller.turn,
        "person": "Ada",
    }
    assert [each["text"] for each in asked["cause"]["messages"]] == [TASK]
    assert asked["decisions"] == [
        {
            "title": "make test",
            "how": "person",
            "who": "Ada",
            "rule": "",
            "answer": "Allow once",
            "allowed": True,
            "ask": None,
        }
    ]
    assert (asked["usage"]["used"], asked["usage"]["cost"]) == (10, 0.5)
    assert asking["cause"]["kind"] == "message"
    assert asking["usage"] is None
    (delegated,) = asking["delegations"]
    assert (delegated["agent"], delegated["task"], delegated["turn"]) == (
        "codex",
        TASK,
        errand.turn,
    )


async def test_an_export_has_what_an_agent_was_asked_as_one_line(desk: Office) -> None:
    path, _, _, errand = await ask_codex(desk)
    await desk.write(errand, Entry("text", "A long answer."))
    await desk.end(errand)

    whole = await export(desk.runtime, await thread_of(desk, path), "markdown")
    text = bytes(whole.body).decode()

    assert text.count("Asked Codex: look at <b>the tests</b> · done") == 1
    assert "A long answer." not in text


async def thread_of(desk: Office, path: str) -> Thread:
    found = await desk.stores.conversations.thread(key(path))
    assert found is not None
    return found
