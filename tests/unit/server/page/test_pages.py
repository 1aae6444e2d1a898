"""The page over HTTP: what it shows, what people do on it, what it refuses, and how it follows."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from app.core.feed import Unfinished
from app.model.conversations import Wanted
from app.model.types import Entry
from app.server.page.assets import assets
from app.server.page.stream import Patch
from tests.support.document import Document, Element, parse
from tests.support.office import Office, key, office

PAGES = (
    "/",
    "/t/web/x",
    "/events",
    "/events/t/web/x",
    "/threads",
    "/commands/t/web/x",
    "/uploads/a/b",
    "/agents",
    "/agents/claude",
    "/new-agent",
)
ACTIONS = (
    "/send",
    "/asks/1",
    "/stop/t/web/x",
    "/queue/1/now",
    "/set/1/mode",
    "/agents",
    "/agents/claude/set/model",
    "/agents/claude/remove",
)

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 32


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Office]:
    async with office(tmp_path) as opened:
        yield opened


def tree(page: str) -> Element:
    return parse(page.partition(">")[2])


def part(page: str, name: str) -> Element:
    return next(each for each in tree(page).elements() if each.id == name)


def log_of(page: str) -> Document:
    return Document("".join(c.html() for c in part(page, "log").children if isinstance(c, Element)))


def patches(data: list[dict[str, Any]]) -> list[Patch]:
    return [Patch(**each) for each in data]


# Reading.


async def test_a_newcomer_sees_the_agents_what_is_missing_and_something_to_try(
    desk: Office,
) -> None:
    page = tree(await desk.page("/"))

    assert "Claude" in page.text
    assert "not isolated: a reason" in page.text
    assert "npm install -g @google/gemini-cli" in page.text
    assert [e for e in page.elements() if "data-example" in e.attributes]


async def test_every_page_is_locked_up(desk: Office) -> None:
    path = await desk.say("hello")

    for address in ("/", path, "/t/web/nowhere", "/t/nothing/x"):
        headers = (await desk.http.get(address)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/", "/t/web/x", "/events", "/events/t/web/x", "/threads", "/uploads/a/b"]
)
async def test_strangers_see_nothing(desk: Office, path: str) -> None:
    assert (await desk.browser().get(path)).status_code == 401


async def test_a_thread_that_is_not_there_is_said_to_be_missing(desk: Office) -> None:
    answer = await desk.http.get("/t/web/nowhere")

    assert answer.status_code == 404
    assert "Thread not found" in answer.text


PAGE_BYTES = 40_000
"""What a page loads of style and scripts: less than one photograph."""


def transferred(answers: Iterable[Response]) -> int:
    return sum(each.num_bytes_downloaded for each in answers if b"<svg" not in each.content)


async def test_style_and_scripts_are_kept_as_long_as_they_do_not_change(desk: Office) -> None:
    page = await desk.page("/")
    addresses = re.findall(r'"(/static/[^"]+)"', page)

    answers = [await desk.http.get(address) for address in addresses]

    assert {address.partition("?")[0].rpartition("/")[2] for address in addresses} == {
        *assets().keys() - {"changes.css", "changes.js", "agents.css", "forms.js", "managed.css"}
    }
    assert transferred(answers) < PAGE_BYTES
    assert {answer.status_code for answer in answers} == {200}
    assert all("immutable" in answer.headers["cache-control"] for answer in answers)
    assert (await desk.http.get("/static/page.css?v=old")).headers["cache-control"] == "no-cache"
    assert (await desk.http.get("/static/../pages/routes.py")).status_code == 404


async def test_style_and_scripts_come_compressed_when_the_browser_takes_that(desk: Office) -> None:
    asked = await desk.http.get("/static/page.css", headers={"Accept-Encoding": "gzip, br"})
    plain = await desk.http.get("/static/page.css", headers={"Accept-Encoding": "identity"})

    assert asked.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert asked.content == plain.content
    assert asked.num_bytes_downloaded < plain.num_bytes_downloaded / 2
    assert asked.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


async def test_the_page_of_agents_is_as_light_as_the_others(desk: Office) -> None:
    page = await desk.page("/agents")
    addresses = re.findall(r'"(/static/[^"]+)"', page)

    answers = [await desk.http.get(address) for address in addresses]

    assert {"agents.css", "forms.js"} <= {each.partition("?")[0][8:] for each in addresses}
    assert transferred(answers) < PAGE_BYTES
    assert "Codex" in tree(page).text


# Saying something.


async def test_a_new_thread_goes_to_the_agent_that_was_picked(desk: Office) -> None:
    path = await desk.say("Fix the login", to="codex")

    page = await desk.page(path)

    assert desk.turn_of(path, "codex")
    assert part(page, "state").text.strip().startswith("Fix the login")
    assert "to Codex" in part(page, "log").text


async def test_a_mention_wins_over_the_picker(desk: Office) -> None:
    path = await desk.say("@codex look", to="claude")

    assert desk.turn_of(path, "codex")
    assert len(desk.stores.sessions.in_place(key(path))) == 1


async def test_both_agents_that_are_mentioned_are_asked(desk: Office) -> None:
    path = await desk.say("@claude and @codex: say hello")

    assert desk.turn_of(path, "claude")
    assert desk.turn_of(path, "codex")


async def test_an_untagged_message_among_two_agents_goes_to_the_one_addressed_last(
    desk: Office,
) -> None:
    path = await desk.say("@claude @codex hi")
    await desk.say("and now?", thread=key(path).name)

    assert part(await desk.page(path), "log").text.count("to Codex") == 1


async def test_a_message_that_is_sent_again_after_a_crash_is_one_message_in_one_thread(
    tmp_path: Path,
) -> None:
    async with office(tmp_path) as desk:
        path = await desk.say("@claude hi", id="c" * 32)

    async with office(tmp_path) as desk:
        again = await desk.say("@claude hi", id="c" * 32)
        page = await desk.page(again)

    assert again == path
    assert len(re.findall('<article class="msg"', page)) == 1


async def test_a_message_that_no_agent_answers_is_given_to_those_who_are_asked_once(
    desk: Office,
) -> None:
    path = await desk.say("@claude @codex hi")
    await desk.say("listen mention", thread=key(path).name)
    await desk.say("and now?", thread=key(path).name)
    page = await desk.page(path)
    asked = re.search(r'data-post="([^"]+)" data-message="(\d+)" data-to="(claude codex)"', page)
    assert asked is not None
    fields = {"message": asked[2], "to": asked[3].split(), "id": "a" * 32}

    answers = [await desk.post(asked[1], **fields) for _ in range(2)]

    assert [each.status_code for each in answers] == [204, 204]
    page = await desk.page(path)
    assert part(page, "log").text.count("asked Claude and Codex.") == 1
    assert "Who should answer?" not in page
    assert "Choose an agent" in part(page, "to").text


async def test_listen_latest_lets_the_latest_answer(desk: Office) -> None:
    path = await desk.say("@claude @codex hi")
    await desk.say("listen latest", thread=key(path).name)

    page = await desk.page(path)

    assert part(page, "to").text.strip().startswith("Codex")


async def test_a_command_after_a_mention_is_a_command_and_the_message_keeps_the_mention(
    desk: Office,
) -> None:
    path = await desk.say("@claude hi")
    await desk.begin(desk.turn_of(path))

    await desk.say("@claude stop", thread=key(path).name)

    assert len(desk.engine.cancelled) == 1
    assert "@claude stop" in part(await desk.page(path), "log").text


async def test_a_mention_alone_is_a_message(desk: Office) -> None:
    path = await desk.say("@codex")

    assert desk.turn_of(path, "codex")


async def test_a_new_thread_goes_to_the_agent_used_last(desk: Office) -> None:
    await desk.say("@codex hello")

    path = await desk.say("hello again")

    assert desk.turn_of(path, "codex")
    assert '<option value="codex" selected>' in await desk.page("/")


async def test_a_form_without_script_leads_to_the_thread(desk: Office) -> None:
    answer = await desk.http.post("/send", data={"csrf": desk.csrf, "text": "hello"})

    assert answer.status_code == 303
    assert "hello" in await desk.page(answer.headers["location"])


async def test_a_message_from_another_page_is_refused(desk: Office) -> None:
    for headers in ({}, {"X-CSRF-Token": "guess"}):
        answer = await desk.http.post("/send", data={"text": "hello"}, headers=headers)
        assert answer.status_code == 403
    assert (await desk.runtime.stores.conversations.list(Wanted(), limit=5)) == []


@pytest.mark.parametrize(
    "path", ["/send", "/asks/1", "/stop/t/web/x", "/queue/1/now", "/set/1/mode"]
)
@pytest.mark.parametrize(
    ("known", "length", "status"), [(False, 10, 401), (True, 10**9, 413), (True, None, 411)]
)
async def test_nothing_is_read_of_a_form_that_is_refused_by_its_head(
    desk: Office, path: str, known: bool, length: int | None, status: int
) -> None:
    read = []

    async def body() -> AsyncIterator[bytes]:
        read.append(1)
        yield b"option=allow"

    sender = desk.http if known else desk.browser()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "X-CSRF-Token": desk.csrf}
    if length is not None:
        headers["Content-Length"] = str(length)
    answer = await sender.post(path, content=body(), headers=headers)

    assert answer.status_code == status
    assert read == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"text": "  "}, 422),
        ({"text": "x", "thread": "../x"}, 422),
        ({"text": "x" * 100_001}, 413),
    ],
)
async def test_what_cannot_be_sent_is_refused_with_a_reason(
    desk: Office, fields: dict[str, str], status: int
) -> None:
    answer = await desk.post("/send", **fields)

    assert answer.status_code == status
    assert answer.json()["detail"]


# Files.


async def test_a_file_comes_with_the_message_and_can_be_read_back(desk: Office) -> None:
    files = [
        ("files", ("a b.png", PNG, "image/png")),
        ("files", ("page.html", b"<script>alert(1)</script>", "text/html")),
        ("files", ("fake.png", b"<svg onload=alert(1)>", "image/png")),
    ]
    path = await desk.say("see", files=files)

    page = await desk.page(path)
    links = re.findall(r'href="(/uploads/[^"]+)"', page)
    picture, document, fake = [await desk.http.get(link) for link in links]

    assert len(re.findall("<img ", page)) == 1
    assert picture.headers["content-type"] == "image/png"
    assert picture.headers["content-disposition"].startswith("inline")
    assert picture.content == PNG
    for answer in (document, fake):
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-security-policy"].startswith("sandbox")
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_an_agent_finds_the_file_where_the_message_says(desk: Office) -> None:
    path = await desk.say("", files=[("files", ("a.txt", b"hello", "text/plain"))])

    (message,) = desk.stores.turns.messages(desk.turn_of(path).turn)

    assert message.text == "See the attached file."
    assert (desk.runtime.uploads / message.files[0].url).read_bytes() == b"hello"


async def test_a_file_that_is_too_large_is_refused_and_leaves_nothing_behind(
    desk: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.server.page.uploads.FILE_BYTES", 10)
    files = [("files", ("ok", b"1", "")), ("files", ("large", b"x" * 11, "text/plain"))]

    answer = await desk.post("/send", text="x", files=files)

    assert answer.status_code == 413
    assert list(desk.runtime.uploads.iterdir()) == []
    assert (await desk.runtime.stores.conversations.list(Wanted(), limit=5)) == []


async def test_too_many_files_and_too_large_a_body_are_refused(desk: Office) -> None:
    many = [("files", (f"{n}", b"1", "text/plain")) for n in range(11)]

    assert (await desk.post("/send", text="x", files=many)).status_code == 400
    headers = {"X-CSRF-Token": desk.csrf, "Content-Length": str(10**9)}
    answer = await desk.http.post("/send", content=b"", headers=headers)
    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/uploads/../bridge.db", "/uploads/a/..%2f..%2fbridge.db"])
async def test_nothing_outside_the_uploads_can_be_read(desk: Office, path: str) -> None:
    assert (await desk.http.get(path)).status_code == 404


# Asks, stop, what waits.


async def test_an_ask_is_answered_once_by_a_button(desk: Office) -> None:
    path = await desk.say("@claude go")
    ref = desk.turn_of(path)
    await desk.begin(ref)
    ask = await desk.ask(ref)
    assert f'data-post="/asks/{ask}"' in await desk.page(path)

    first = await desk.post(f"/asks/{ask}", option="allow")
    second = await desk.post(f"/asks/{ask}", option="allow")

    assert (first.status_code, second.status_code) == (204, 409)
    assert "already answered this" in second.json()["detail"]
    assert "operator: Allow once" in part(await desk.page(path), "log").text


async def test_stop_stops_all_that_works_in_a_thread_or_one_of_them(desk: Office) -> None:
    path = await desk.say("@claude @codex go")
    claude, codex = desk.turn_of(path), desk.turn_of(path, "codex")
    await desk.begin(claude)
    await desk.begin(codex)

    await desk.post(f"/stop{path}", session=str(codex.session))
    assert desk.engine.cancelled == [codex.session]
    await desk.post(f"/stop{path}")

    assert set(desk.engine.cancelled) == {claude.session, codex.session}


async def test_a_stop_that_comes_late_stops_only_the_turn_it_was_meant_for(desk: Office) -> None:
    path = await desk.say("@claude go")
    first = desk.turn_of(path)
    await desk.begin(first)
    await desk.write(first, Entry("text", "Looking."))
    buttons = part(await desk.page(path), "state").elements()
    meant = next(each.attributes["data-turns"] for each in buttons if each.text == "Stop")
    assert meant == f"t{first.turn}"
    await desk.end(first)
    await desk.say("one more", thread=key(path).name)
    second = desk.turn_of(path)
    await desk.begin(second)

    late = await desk.post(f"/stop{path}", turns=meant)
    assert (late.status_code, desk.engine.cancelled) == (204, [])
    await desk.post(f"/stop{path}", turns=f"{meant} t{second.turn}")

    assert desk.engine.cancelled == [second.session]


async def test_messages_that_wait_are_shown_and_run_or_dropped(desk: Office) -> None:
    path = await desk.say("@claude go")
    first = desk.turn_of(path)
    await desk.begin(first)
    await desk.say("one more", thread=key(path).name)
    await desk.say("and another", thread=key(path).name)
    status = part(await desk.page(path), "status").text
    assert "one more" in status
    assert "and another" in status

    now = await desk.post(f"/queue/{first.session}/now")
    drop = await desk.post(f"/queue/{first.session}/drop")
    nothing = await desk.post(f"/queue/{first.session}/now")

    assert (now.status_code, drop.status_code, nothing.status_code) == (204, 204, 409)
    assert desk.engine.cancelled == [first.session]
    page = await desk.page(path)
    assert "one more" not in part(page, "status").text
    assert "Discarded." in part(page, "log").text


async def test_a_mode_is_chosen_without_words_in_a_persons_name(desk: Office) -> None:
    path = await desk.say("@claude go")
    session = desk.turn_of(path).session
    assert f'data-set="/set/{session}/mode"' in await desk.page(path)

    chosen = await desk.post(f"/set/{session}/mode", value="free")
    refused = await desk.post(f"/set/{session}/mode", value="wild")
    lost = await desk.post("/set/999/mode", value="free")

    assert (chosen.status_code, refused.status_code, lost.status_code) == (204, 409, 404)
    assert "it has no mode 'wild'" in refused.json()["detail"]
    assert desk.seats.configured == [(session, "free")]
    found = desk.stores.sessions.session(session)
    assert found is not None
    assert found.mode == "free"
    side = part(await desk.page(path), "side")
    picked = [each for each in side.elements() if "selected" in each.attributes]
    assert [each.text for each in picked] == ["Free"]


async def test_the_commands_of_agents_and_of_the_bridge_are_listed(desk: Office) -> None:
    path = await desk.say("@claude go")
    ref = desk.turn_of(path)
    for names in (["old"], ["review", "in\u202eit"]):
        offered = [{"name": name, "description": "Looks", "hint": "what"} for name in names]
        data = {"state": "commands", "value": offered}
        entry = Entry("notice", "", data=data, session=ref.session, turn=ref.turn)
        await desk.stores.transcript.append([entry])

    items = (await desk.http.get(f"/commands{path}")).json()

    own = {"name": "/review", "words": "Claude · Looks · what", "text": "/review ", "whole": False}
    assert items[0] == own
    assert "\u202e" not in items[1]["name"]
    assert "/stop" in [item["name"] for item in items[2:]]
    assert not any(item["name"] == "/old" for item in items)


# Following.


async def test_an_open_page_ends_up_as_one_that_is_opened_later(desk: Office) -> None:
    path = await desk.say("@claude go")
    document = log_of(await desk.page(path))
    ref = desk.turn_of(path)
    await desk.begin(ref)
    events = desk.events(path, after=int(part_after(await desk.page(path))))

    await desk.write(ref, Entry("thought", "hm"))
    document.take(patches((await events.next("blocks"))[1]))
    await desk.write(ref, Entry("text", "Hello "))
    document.take(patches((await events.next("blocks"))[1]))
    desk.feed.show(Unfinished(ref.session, ref.turn, "text", "wor"))
    number, live = await events.next("live")
    document.take_live(patches(live))
    shown = document.log.text
    (row,) = await desk.write(ref, Entry("text", "world"))
    last, blocks = await events.next("blocks")
    document.take(patches(blocks))
    await events.close()

    assert number is None
    assert last == row
    assert "Hello wor" in shown
    assert document.html() == log_of(await desk.page(path)).html()


def part_after(page: str) -> str:
    found = re.search(r'data-after="(\d+)"', page)
    assert found is not None
    return found[1]


async def test_a_page_that_comes_back_gets_what_it_missed_and_no_more(desk: Office) -> None:
    path = await desk.say("@claude go")
    ref = desk.turn_of(path)
    await desk.begin(ref)
    (seen,) = await desk.write(ref, Entry("text", "one "))
    document = log_of(await desk.page(path))
    await desk.write(ref, Entry("text", "two"), Entry("usage", data={"used": 5, "size": 10}))

    events = desk.events(path, after=seen)
    document.take(patches((await events.next("blocks"))[1]))
    await events.close()

    assert document.html() == log_of(await desk.page(path)).html()
    assert document.log.text.count("one two") == 1


async def test_the_state_is_sent_when_it_changes(desk: Office) -> None:
    path = await desk.say("@claude go")
    ref = desk.turn_of(path)
    events = desk.events(path)
    _, first = await events.next("state")

    await desk.begin(ref)
    _, working = await events.next("state")
    await desk.end(ref)
    _, idle = await events.next("state")
    await events.close()

    assert "Claude is working" in working["status"]
    assert "Stop" in first["state"]
    assert "Claude is working" not in idle["status"]
    assert "Stop" not in idle["state"]


async def test_a_page_without_a_thread_follows_the_list(desk: Office) -> None:
    events = desk.events("")
    await events.next("state")

    path = await desk.say("@claude go")
    _, state = await events.next("state")
    await events.close()

    assert f'href="{path}"' in state["threads"]


async def test_an_agent_that_cannot_work_is_marked_with_the_remedy_wherever_it_is_shown(
    desk: Office,
) -> None:
    path = await desk.say("@claude go")
    start, thread = desk.events(""), desk.events(path)
    await start.next("state")
    await thread.next("state")

    desk.availability.logged_out("claude")
    _, at_start = await start.next("state")
    _, in_thread = await thread.next("state")
    page = await desk.page("/")
    desk.availability.worked("claude")
    _, again = await start.next("state")
    await start.close()
    await thread.close()

    remedy = "Not logged in. Run <code>agent-bridge agents login claude</code>, or give it its key."
    assert "Claude (not logged in)</option>" in at_start["to"]
    assert "card off" in at_start["cards"]
    assert at_start["crew"].count("agent off") == 1
    assert remedy in at_start["crew"]
    assert "Claude: not logged in" in in_thread["state"]
    assert remedy in in_thread["side"]
    assert "data-unable" in in_thread["to"]
    assert remedy in page
    assert "New thread with Claude<small>not logged in</small>" in page
    assert "not logged in" not in "".join(again.values())


async def test_a_stream_ends_with_the_log_in(desk: Office) -> None:
    path = await desk.say("@claude go")
    answer = desk.events(path)
    answer._stream = _stream_of(desk, path)
    await answer.next("state")

    await desk.site.links.close_all()
    with pytest.raises(AssertionError, match="the stream ended"):
        await answer.next("never")


def _stream_of(desk: Office, path: str) -> AsyncIterator[bytes]:
    from app.server.page.stream import Stream

    cookie = desk.http.cookies[desk.site.links.cookie_name]
    return Stream(
        desk.runtime,
        key(path),
        0,
        100,
        "",
        lambda: desk.site.links.login_of(cookie) is not None,
    ).events(0)


# Much of everything.


async def test_a_long_thread_shows_its_end_and_a_way_to_the_rest(desk: Office) -> None:
    path = await desk.say("@claude message 0")
    for number in range(1, 12):
        await desk.say(f"message {number}", thread=key(path).name)

    page = await desk.page(f"{path}?articles=5")
    (earlier,) = re.findall(r'href="([^"]+)">Show earlier', page)
    more = await desk.page(earlier.replace("&amp;", "&").partition("#")[0])

    assert "message 7" in part(page, "log").text
    assert "message 6" not in part(page, "log").text
    assert "message 0" in part(more, "log").text


async def test_an_open_turn_is_never_cut_off_by_what_came_after_it(desk: Office) -> None:
    path = await desk.say("@claude go")
    ref = desk.turn_of(path)
    await desk.begin(ref)
    ask = await desk.ask(ref)
    for number in range(12):
        await desk.say(f"message {number}", thread=key(path).name)

    page = await desk.page(f"{path}?articles=3")

    assert f'data-post="/asks/{ask}"' in page


async def test_the_whole_of_a_long_output_can_be_read(desk: Office) -> None:
    path = await desk.say("@claude go")
    ref = desk.turn_of(path)
    await desk.begin(ref)
    output = "\n".join(f"line {n}" for n in range(500))
    data = {"call": "a", "title": "Run", "kind": "execute", "status": "completed", "output": output}
    await desk.write(ref, Entry("tool", "Run", data=data))

    page = await desk.page(path)
    (address,) = re.findall(r'data-all="([^"]+)"', page)

    assert "line 498" not in page
    assert "line 498" in await desk.page(address)
    assert (await desk.http.get(f"/whole{path}?row=1")).status_code == 404


async def test_many_threads_are_listed_in_part(desk: Office) -> None:
    for number in range(5):
        await desk.say(f"@claude thread {number}")

    page = await desk.page("/?threads=3")

    assert len(re.findall(r'class="thread"', page)) == 3
    assert 'href="/?threads=15"' in page
