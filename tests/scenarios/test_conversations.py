"""Conversations that people manage over the API: rename, pin, archive, clear, fork, delete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import canary, postgres
from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.postgres import read_store
from tests.support.studio import REPOSITORY, studio


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("conversations")
    agents = {"demo": demo(), "second": demo()}
    with Platform() as platform, Observed(folder, platform, agents=agents, hooks=False) as bridge:
        yield bridge


@pytest.fixture
def api(bridge: Observed) -> httpx.Client:
    return bridge.http


def talk(bridge: Observed, text: str, agent: str = "demo", **more: str) -> dict[str, Any]:
    """Begin a conversation and wait for its first answer."""
    session = bridge.open_session(agent, text, **more)
    bridge.ended(session["id"])
    return session


def say(bridge: Observed, session: dict[str, Any], text: str, turns: int) -> None:
    """Go on with a conversation and wait for the answer."""
    answer = bridge.http.post(f"/api/v1/sessions/{session['id']}/messages", json={"text": text})
    assert answer.status_code == 202, answer.text
    bridge.ended(session["id"], turns)


def read(api: httpx.Client, path: str, **query: Any) -> Any:
    answer = api.get(f"/api/v1{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def find(api: httpx.Client, session: dict[str, Any], **query: Any) -> dict[str, Any]:
    """Find the conversation of a session in a list."""
    for each in read(api, "/conversations", limit=500, **query)["items"]:
        if session["id"] in [member["id"] for member in each["sessions"]]:
            found: dict[str, Any] = each
            return found
    raise AssertionError("it is not listed")


def is_listed(api: httpx.Client, session: dict[str, Any], **query: Any) -> bool:
    listed = read(api, "/conversations", limit=500, **query)["items"]
    return any(session["id"] == each["id"] for one in listed for each in one["sessions"])


def texts(api: httpx.Client, session: int) -> list[str]:
    rows = read(api, f"/sessions/{session}/transcript", limit=500)["items"]
    return [row["text"] for row in rows if row["kind"] in {"message", "text"}]


def change(api: httpx.Client, number: int, **what: Any) -> dict[str, Any]:
    answer = api.patch(f"/api/v1/conversations/{number}", json=what)
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


@pytest.mark.long
def test_a_persons_title_wins_and_an_archived_conversation_comes_back_with_a_message(
    bridge: Observed, api: httpx.Client
) -> None:
    session = talk(bridge, "say heron")
    other = talk(bridge, "say stork", agent="second")
    number = find(api, session)["id"]

    renamed = change(api, number, title="  Birds of   the reeds ")
    assert renamed["title"] == "Birds of the reeds"
    assert read(api, f"/sessions/{session['id']}")["title"] == "Birds of the reeds"
    # It counts as something that happened.
    newest, *_ = read(api, "/conversations", limit=1)["items"]
    assert newest["id"] == number

    # An agent that names the conversation does not change that.
    say(bridge, session, "title Something else\nsay named", 2)
    assert find(api, session)["title"] == "Birds of the reeds"

    assert change(api, number, pinned=True)["pinned"]
    assert change(api, number, archived=True)["archived"]
    assert not is_listed(api, session)
    assert is_listed(api, session, archived=True)
    assert is_listed(api, session, q="reeds")
    assert is_listed(api, session, q="HERON")
    assert not is_listed(api, session, q="stork")

    say(bridge, session, "say back", 3)
    assert is_listed(api, session)
    assert not find(api, session)["archived"]
    # The most recent one with an agent; what is pinned does not count as recent.
    (latest,) = read(api, "/conversations", agent="second", limit=1)["items"]
    assert latest["id"] == find(api, other)["id"]


def test_a_cleared_conversation_begins_with_nothing(bridge: Observed, api: httpx.Client) -> None:
    word = "kingfisher-canary"
    session = talk(bridge, f"say {word}\ntell notes")
    assert canary.find(bridge.data_dir, word)
    number = find(api, session)["id"]

    answer = api.post(f"/api/v1/conversations/{number}/clear")

    assert answer.status_code == 200, answer.text
    (notice,) = read(api, f"/conversations/{number}/export")["transcript"]
    assert "cleared this conversation" in notice["text"]
    assert texts(api, session["id"]) == []
    assert canary.find(bridge.data_dir, word) == []
    assert not any(word.encode() in kept for kept in read_store(bridge.data_dir).values())
    assert (bridge.workspace("demo", session["id"]) / "notes").exists()
    say(bridge, session, "recall", 1)
    assert word not in "".join(texts(api, session["id"]))
    assert find(api, session)["title"] == "recall"


def fork(api: httpx.Client, path: str, **where: int) -> dict[str, Any]:
    answer = api.post(f"/api/v1{path}/fork", json=where)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_a_fork_at_the_end_has_the_agents_own_conversation(
    bridge: Observed, api: httpx.Client
) -> None:
    session = talk(bridge, "say plover", thread="whole")

    made = fork(api, f"/sessions/{session['id']}")
    say(bridge, made, "recall", 2)
    say(bridge, session, "recall", 2)

    forked, original = texts(api, made["id"]), texts(api, session["id"])
    assert forked[:2] == original[:2] == ["say plover", "plover"]
    # Each knows what it was told itself: the fork has a copy, not the same conversation.
    assert "plover" in forked[-1]
    assert forked[-1].count("recall") <= original[-1].count("recall")
    rows = read(api, f"/conversations/{find(api, made)['id']}/export")["transcript"]
    said = [row["text"] for row in rows if row["kind"] == "notice" and row["text"]]
    assert any("with what the agents remember" in words for words in said)
    assert find(api, made)["forked_from"] == "web:whole"


def test_a_fork_at_a_message_continues_from_the_transcript(
    bridge: Observed, api: httpx.Client
) -> None:
    before = talk(bridge, "say something before")
    session = talk(bridge, "say first-words")
    rows = read(api, f"/sessions/{session['id']}/transcript")["items"]
    say(bridge, session, "say later-words", 2)
    number = find(api, session)["id"]

    made = fork(api, f"/conversations/{number}", after=rows[-1]["id"])

    (copy,) = made["sessions"]
    assert texts(api, copy["id"]) == ["say first-words", "first-words"]
    say(bridge, copy, "say on", 2)
    prompt = bridge.rows("select prompt from turn where session = ? order by id desc", copy["id"])
    assert "first-words" in prompt[0][0]
    assert "later-words" not in prompt[0][0]
    exported = read(api, f"/conversations/{made['id']}/export")["transcript"]
    assert any("continues from the transcript" in row["text"] for row in exported)
    early = read(api, f"/sessions/{before['id']}/transcript")["items"][0]["id"]
    wrong = api.post(f"/api/v1/conversations/{number}/fork", json={"after": early})
    assert wrong.status_code == 404


def attach(api: httpx.Client, text: str, name: str, content: bytes) -> str:
    """Send a message with a file, as the page does; returns the thread."""
    answer = api.post(
        "/send",
        data={"text": text},
        files={"files": (name, content, "text/plain")},
        headers={"Accept": "application/json"},
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["path"]).rpartition("/")[2]


def test_nothing_of_a_deleted_conversation_is_left(bridge: Observed, api: httpx.Client) -> None:
    word = "bittern-canary"
    others = talk(bridge, "say untouched")
    thread = attach(
        api, f"say {word}\ngive out.txt {word}\ntell {word}", f"{word}.txt", word.encode()
    )
    session = {"id": bridge.session(thread)}
    bridge.ended(session["id"])
    answer = api.post(
        f"/api/v1/sessions/{session['id']}/messages", json={"text": f"ask {word}? | yes | no"}
    )
    assert answer.status_code == 202
    bridge.open_asks(1, thread)
    found = find(api, session)
    before = canary.find(bridge.data_dir, word)
    there = {path.partition("/")[0] for path in before}
    assert there >= {"session-homes", "uploads", "workspaces"}
    assert any(word.encode() in kept for kept in read_store(bridge.data_dir).values())
    listed = read(api, f"/conversations/{found['id']}/contents")
    assert (listed["messages"], listed["turns"], listed["unshipped"]) == (2, 2, [])
    assert sorted(listed["files"]) == [f"{word}.txt", "out.txt"]
    ids = bridge.rows("select delivery_id from delivery")

    assert api.delete(f"/api/v1/conversations/{found['id']}").status_code == 204

    assert canary.find(bridge.data_dir, word) == []
    assert api.get(f"/api/v1/conversations/{found['id']}").status_code == 404
    assert api.get(f"/api/v1/sessions/{session['id']}").status_code == 404
    assert api.get("/api/v1/asks", params={"state": "open"}).json()["items"] == []
    assert texts(api, others["id"]) == ["say untouched", "untouched"]
    # The ids of events stay: one that comes again begins nothing.
    assert bridge.rows("select delivery_id from delivery") == ids
    assert postgres.is_wanted() or bridge.rows("pragma foreign_key_check") == []


def test_a_deletion_that_a_crash_cut_off_is_finished_by_the_next_start(
    bridge: Observed, api: httpx.Client
) -> None:
    word = "curlew-canary"
    session = talk(bridge, f"say {word}\ntell {word}")
    place = find(api, session)
    api.post(f"/api/v1/sessions/{session['id']}/messages", json={"text": f"ask {word}? | a | b"})
    bridge.open_asks(1, session["thread"])
    bridge.kill()
    # What a deletion commits first, before it stops or removes anything.
    bridge.write("update place set deleted_at = 1 where id = ?", place["id"])

    bridge.start()

    bridge.wait(lambda: not canary.find(bridge.data_dir, word), "it is still there", 30)
    assert bridge.http.get(f"/api/v1/conversations/{place['id']}").status_code == 404


def test_an_event_of_a_deleted_conversation_that_comes_again_begins_nothing(
    bridge: Observed, api: httpx.Client
) -> None:
    name = "ab" * 16
    sent = {"text": "say once", "id": name, "thread": "gone", "to": "demo"}
    assert api.post("/send", data=sent, follow_redirects=False).status_code == 303
    session = {"id": bridge.session("gone")}
    bridge.ended(session["id"])
    assert api.delete(f"/api/v1/conversations/{find(api, session)['id']}").status_code == 204
    # As a platform does that forgot that it sent it: the same message under another id.
    bridge.write("update delivery set delivery_id = 'other' where delivery_id = ?", name)

    api.post("/send", data=sent)
    assert bridge.rows("select id from place where name = 'gone'") == []
    api.post("/send", data={**sent, "id": "cd" * 16, "text": "say new"})

    assert bridge.ended(bridge.session("gone"))["title"] == "say new"


@pytest.mark.long
def test_a_conversation_that_no_one_used_for_its_time_is_deleted(tmp_path: Path) -> None:
    word = "whimbrel-canary"
    settings = {"RETENTION_CONVERSATIONS_DAYS": "90"}
    with (
        Platform() as platform,
        Observed(
            tmp_path, platform, agents={"demo": demo()}, hooks=False, settings=settings
        ) as bridge,
    ):
        old, pinned, new = (talk(bridge, f"say {word}-{each}") for each in ("a", "b", "c"))
        change(bridge.http, find(bridge.http, pinned)["id"], pinned=True)
        bridge.kill()
        ago = "update session set updated_at = updated_at - 100 * 86400 where id in (?, ?)"
        bridge.write(ago, old["id"], pinned["id"])

        bridge.start()

        bridge.wait(lambda: "deleted 1 old" in bridge.log.read_text(), "it is not deleted", 60)
        assert canary.find(bridge.data_dir, f"{word}-a") == []
        assert is_listed(bridge.http, pinned)
        assert is_listed(bridge.http, new)


@pytest.mark.long
def test_work_that_is_nowhere_else_is_named_and_deleted_only_if_that_is_said(
    tmp_path: Path,
) -> None:
    word = "sandpiper-canary"
    # Its agent has made a folder read-only, as caches of build tools are.
    locked = "run mkdir ro && touch ro/x && chmod 500 ro"
    with studio(tmp_path, entry={"ship": "none"}) as here:
        here.tell(f"write {word}.txt {word}\nrun git add . && git commit -qm {word}\n{locked}")
        bridge = here.world.bridge
        (place,) = read(bridge.http, "/conversations")["items"]
        path = f"/api/v1/conversations/{place['id']}"
        (work,) = read(bridge.http, f"/conversations/{place['id']}/contents")["unshipped"]

        refused = bridge.http.delete(path)

        assert (work["repository"], "1 commit" in work["held"]) == (REPOSITORY, True)
        assert refused.status_code == 409
        assert "nowhere else" in refused.json()["detail"]
        assert canary.find(bridge.data_dir, word)
        assert bridge.http.delete(path, params={"discard": "true"}).status_code == 204
        assert canary.find(bridge.data_dir, word) == []
        assert list(bridge.data_dir.glob("gates/*")) == []
