"""The API as other programs rely on it: shapes, errors, events, and a description that is true."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.observe import PATIENCE, Observed, demo, mismatches
from tests.support.platform import Platform

PROBLEM = "application/problem+json"
SESSION = {"id", "key", "agent", "thread", "state"}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("api")
    second = demo(description="The other one.", emoji="🦊", visible=False)
    agents = {"demo": demo(), "second": second}
    with Platform() as platform, Observed(folder, platform, agents=agents, hooks=False) as bridge:
        yield bridge


@pytest.fixture
def api(bridge: Observed) -> httpx.Client:
    return bridge.http


@pytest.fixture
def stranger(bridge: Observed) -> Iterator[httpx.Client]:
    """Call without the token."""
    with httpx.Client(base_url=bridge.http.base_url, trust_env=False, timeout=PATIENCE) as client:
        yield client


def begin(api: httpx.Client, text: str, agent: str = "demo", **more: str) -> dict[str, Any]:
    """Begin a session."""
    answer = api.post("/api/v1/sessions", json={"agent": agent, "text": text, **more})
    assert answer.status_code == 201, answer.text
    session: dict[str, Any] = answer.json()
    return session


def transcript(api: httpx.Client, session: int) -> list[dict[str, Any]]:
    answer = api.get(f"/api/v1/sessions/{session}/transcript").json()
    assert set(answer) == {"items", "next"}
    items: list[dict[str, Any]] = answer["items"]
    return items


def texts(items: list[dict[str, Any]], kind: str) -> list[str]:
    return [item["text"] for item in items if item["kind"] == kind]


def asked(bridge: Observed, session: int) -> dict[str, Any]:
    """Wait until a session asks something."""

    def found() -> list[dict[str, Any]]:
        asks = bridge.http.get("/api/v1/asks", params={"state": "open", "limit": 500}).json()
        return [ask for ask in asks["items"] if ask["session"] == session]

    bridge.wait(lambda: bool(found()), "nothing is asked", PATIENCE)
    return found()[0]


def test_a_new_session_answers_with_its_key_and_its_turn(
    bridge: Observed, api: httpx.Client
) -> None:
    session = begin(api, "say hello", thread="t-first")

    assert {*SESSION, "turn"} <= set(session)
    assert session["key"] == "web:t-first:demo"
    assert (session["agent"], session["thread"]) == ("demo", "t-first")
    assert session["state"] in {"queued", "working", "idle"}
    read = bridge.ended(session["id"])
    assert {*SESSION, "title", "turns"} <= set(read)
    turn = {"id": session["turn"], "state": "done", "error": "", "successor": None}
    assert read["turns"] == [turn]
    assert read["title"] == "say hello"


def test_a_session_without_a_thread_gets_one_of_its_own(api: httpx.Client) -> None:
    threads = {begin(api, "say hello")["thread"] for _ in range(2)}

    assert len(threads) == 2


def test_two_agents_share_a_thread_in_sessions_of_their_own(
    bridge: Observed, api: httpx.Client
) -> None:
    one = begin(api, "say first", thread="t-shared")
    other = begin(api, "say second", agent="second", thread="t-shared")

    assert one["id"] != other["id"]
    assert {one["key"], other["key"]} == {"web:t-shared:demo", "web:t-shared:second"}
    bridge.ended(one["id"])
    bridge.ended(other["id"])
    assert texts(transcript(api, one["id"]), "text") == ["first"]
    assert texts(transcript(api, other["id"]), "text") == ["second"]


def test_a_message_is_taken_and_joined_while_a_turn_runs(
    bridge: Observed, api: httpx.Client
) -> None:
    session = begin(api, "tell begun\nhold go")
    path = f"/api/v1/sessions/{session['id']}/messages"
    bridge.held(session["thread"], "begun")

    later = {"while_busy": "queue"}
    answers = [api.post(path, json={"text": f"say {word}", **later}) for word in ("one", "two")]

    assert [answer.status_code for answer in answers] == [202, 202]
    turns = {answer.json()["turn"] for answer in answers}
    assert len(turns) == 1
    assert turns != {session["turn"]}
    bridge.release(session["thread"], "go")
    bridge.ended(session["id"], 2)
    assert texts(transcript(api, session["id"]), "text") == ["go is here.", "one\n\ntwo"]


def test_a_command_becomes_part_of_no_turn(bridge: Observed, api: httpx.Client) -> None:
    session = begin(api, "say hello")
    bridge.ended(session["id"])

    answer = api.post(f"/api/v1/sessions/{session['id']}/messages", json={"text": "status"})

    assert (answer.status_code, answer.json()["turn"]) == (202, None)


def test_the_transcript_tells_everything_that_happened_in_its_kinds(
    bridge: Observed, api: httpx.Client
) -> None:
    session = begin(api, "plan look; leap\nthoughts 1\nwrite notes.txt done\nsay the end")
    ask = asked(bridge, session["id"])
    api.post(f"/api/v1/asks/{ask['id']}/answer", json={"option": "allow"})
    bridge.ended(session["id"])

    items = transcript(api, session["id"])

    kinds = {"message", "text", "thought", "tool", "plan", "ask", "usage"}
    assert {item["kind"] for item in items} >= kinds
    for item in items:
        assert {"id", "turn", "kind", "speaker", "text"} <= set(item)
    assert [item["id"] for item in items] == sorted({item["id"] for item in items})
    assert items[0]["kind"] == "message"
    assert items[0]["speaker"] == "operator"
    steps = [item["data"]["steps"] for item in items if item["kind"] == "plan"][-1]
    assert [(step["text"], step["status"]) for step in steps] == [
        ("look", "completed"),
        ("leap", "completed"),
    ]
    states = [item["data"]["status"] for item in items if item["kind"] == "tool"]
    assert states[-1] == "completed"


def test_the_transcript_is_read_in_pages(bridge: Observed, api: httpx.Client) -> None:
    session = begin(api, "plan a; b; c\nsay the end")
    bridge.ended(session["id"])
    path = f"/api/v1/sessions/{session['id']}/transcript"
    whole = transcript(api, session["id"])

    first = api.get(path, params={"limit": 3}).json()
    second = api.get(path, params={"limit": 500, "after": first["next"]}).json()

    assert first["next"] == first["items"][-1]["id"]
    assert first["items"] + second["items"] == whole
    assert second["next"] is None


def test_asks_are_listed_answered_once_and_then_closed(bridge: Observed, api: httpx.Client) -> None:
    session = begin(api, "write notes.txt done")

    ask = asked(bridge, session["id"])

    assert {"id", "session", "title", "options"} <= set(ask)
    assert ask["title"] == "Write notes.txt"
    assert ask["subject"] == "notes.txt"
    assert (ask["kind"], ask["free_text"]) == ("permission", False)
    assert ask["deadline"] > 0
    assert ask["options"] == [
        {"id": "allow", "name": "Allow once", "kind": "allow_once"},
        {
            "id": "bridge:always",
            "name": "Always allow editing `notes.txt` in this thread",
            "kind": "allow_always",
        },
        {
            "id": "bridge:always-edits",
            "name": "Always allow all edits in the workspace of this thread",
            "kind": "allow_always",
        },
        {"id": "reject", "name": "Reject", "kind": "reject_once"},
    ]
    assert api.get(f"/api/v1/sessions/{session['id']}").json()["state"] == "waiting"
    path = f"/api/v1/asks/{ask['id']}/answer"
    unknown = api.post(path, json={"option": "maybe"})
    first = api.post(path, json={"option": "allow"})
    second = api.post(path, json={"option": "reject"})
    assert [unknown.status_code, first.status_code, second.status_code] == [404, 200, 409]
    assert (first.json()["state"], first.json()["answer"]) == ("answered", "allow")
    assert second.json()["detail"] == "operator already answered this"
    bridge.ended(session["id"])
    assert texts(transcript(api, session["id"]), "text") == ["Wrote notes.txt."]
    *_, call = (row for row in transcript(api, session["id"]) if row["kind"] == "tool")
    assert call["data"]["decided"] == {
        "how": "person",
        "who": "operator",
        "answer": "Allow once",
        "allowed": True,
    }


def test_an_answer_is_an_option_or_words_and_not_both(bridge: Observed, api: httpx.Client) -> None:
    session = begin(api, "ask Tea? | yes | no")
    path = f"/api/v1/asks/{asked(bridge, session['id'])['id']}/answer"

    both = api.post(path, json={"option": "option-1", "text": "yes"})
    neither = api.post(path, json={})
    words = api.post(path, json={"text": "perhaps"})
    option = api.post(path, json={"option": "option-1"})

    statuses = [answer.status_code for answer in (both, neither, words, option)]
    assert statuses == [422, 422, 404, 200]


def test_a_question_without_options_takes_any_words(bridge: Observed, api: httpx.Client) -> None:
    session = begin(api, "ask What shall it be called?")
    ask = asked(bridge, session["id"])

    answer = api.post(f"/api/v1/asks/{ask['id']}/answer", json={"text": "Blue Harbour"})

    assert (ask["kind"], ask["free_text"], answer.status_code) == ("question", True, 200)
    bridge.ended(session["id"])
    assert texts(transcript(api, session["id"]), "text") == ["You said Blue Harbour."]


def test_a_limit_of_the_provider_is_a_wait_that_the_api_shows(
    bridge: Observed, api: httpx.Client
) -> None:
    session = begin(api, "limit 600")
    ask = asked(bridge, session["id"])

    assert ask["kind"] == "pause"
    assert "hit its usage limit. It resets at" in ask["title"]
    assert api.get(f"/api/v1/sessions/{session['id']}").json()["state"] == "limited"

    api.post(f"/api/v1/asks/{ask['id']}/answer", json={"option": "bridge:go-on"})
    bridge.ended(session["id"])
    assert texts(transcript(api, session["id"]), "text") == ["The limit is over."]


def test_cancel_stops_what_runs(bridge: Observed, api: httpx.Client) -> None:
    session = begin(api, "say begun\ntell begun\nhold never\nsay too much")
    bridge.held(session["thread"], "begun")

    assert api.post(f"/api/v1/sessions/{session['id']}/cancel").status_code == 200

    read = bridge.ended(session["id"])
    assert [turn["state"] for turn in read["turns"]] == ["cancelled"]
    items = transcript(api, session["id"])
    assert texts(items, "text") == ["begun"]
    assert texts(items, "notice") == ["Stopped."]


def test_a_session_is_renamed(bridge: Observed, api: httpx.Client) -> None:
    session = begin(api, "say hello")
    bridge.ended(session["id"])

    answer = api.patch(f"/api/v1/sessions/{session['id']}", json={"title": "Greetings"})

    assert (answer.status_code, answer.json()["title"]) == (200, "Greetings")
    assert api.get(f"/api/v1/sessions/{session['id']}").json()["title"] == "Greetings"


def annotate(api: httpx.Client, session: int, **attributes: Any) -> httpx.Response:
    """Change the attributes of a session."""
    return api.patch(f"/api/v1/sessions/{session}", json={"attributes": attributes})


def test_other_programs_keep_attributes_with_a_session(bridge: Observed, api: httpx.Client) -> None:
    session = begin(api, "say hello")["id"]
    before = bridge.ended(session)
    kept = {
        "ticket": " OPS-7 ",
        "acme.labels": ["a", {"b": None}],
        "done": False,
        "n": 1.5,
    }

    first = annotate(api, session, **kept)
    second = annotate(api, session, ticket=None, done=True)

    assert before["attributes"] == {}
    assert (first.status_code, first.json()["attributes"]) == (200, kept)
    assert first.json()["updated_at"] > before["updated_at"]
    left = {"acme.labels": ["a", {"b": None}], "done": True, "n": 1.5}
    assert second.json()["attributes"] == left
    read = api.get(f"/api/v1/sessions/{session}").json()
    assert (read["attributes"], read["title"]) == (left, before["title"])


def test_attributes_are_bounded_and_what_is_refused_changes_nothing(
    bridge: Observed, api: httpx.Client
) -> None:
    session = begin(api, "say hello")["id"]
    full = {f"key-{number}": "x" * 200 for number in range(64)}
    assert annotate(api, session, **full).status_code == 200

    refused = [
        annotate(api, session, one_more=1),
        annotate(api, session, **{"key-0": "x" * 5000}),
        annotate(api, session, Key=1),
        annotate(api, session, **{"k" * 65: 1}),
        annotate(api, session, **{"": 1}),
        annotate(api, session, **{"a b": None}),
        annotate(api, 999999, ticket=1),
        api.patch(f"/api/v1/sessions/{session}", json={}),
        api.patch(f"/api/v1/sessions/{session}", json={"attributes": [1]}),
    ]

    statuses = [409, 409, 422, 422, 422, 422, 404, 422, 422]
    assert [answer.status_code for answer in refused] == statuses
    assert api.get(f"/api/v1/sessions/{session}").json()["attributes"] == full
    assert annotate(api, session, **{"key-0": None, "other": 1}).status_code == 200


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("NaN", 422),
        ("1e999", 422),
        (r'"\ud800"', 422),
        ("[" * 500 + "]" * 500, 422),
        ("[" * 5000 + "]" * 5000, 400),
    ],
)
def test_an_attribute_that_cannot_be_kept_is_a_problem(
    api: httpx.Client, value: str, status: int
) -> None:
    session = begin(api, "say hello")["id"]
    body = f'{{"attributes": {{"odd": {value}}}}}'

    answer = api.patch(
        f"/api/v1/sessions/{session}", content=body, headers={"Content-Type": "application/json"}
    )

    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)


def test_attributes_end_with_their_conversation_and_a_fork_begins_without(
    bridge: Observed, api: httpx.Client
) -> None:
    session = begin(api, "say hello")["id"]
    bridge.ended(session)
    annotate(api, session, ticket="OPS-private")

    forked = api.post(f"/api/v1/sessions/{session}/fork", json={})
    assert forked.status_code == 201, forked.text
    kept = "select count(*) from session where cast(attributes as text) like '%OPS-private%'"
    assert bridge.rows(kept) == [(1,)]

    [(number,)] = bridge.rows("select place from session where id = ?", session)
    assert api.delete(f"/api/v1/conversations/{number}").status_code == 204
    bridge.wait(lambda: bridge.rows(kept) == [(0,)], "it is still kept")


def test_a_session_that_is_deleted_ends_its_process_and_stays_readable(
    bridge: Observed, api: httpx.Client
) -> None:
    session = begin(api, "say begun\ntell begun\nhold never")
    bridge.held(session["thread"], "begun")
    process = "select 1 from process where session = ?"
    assert bridge.rows(process, session["id"]) == [(1,)]

    assert api.delete(f"/api/v1/sessions/{session['id']}").status_code == 204

    read = bridge.ended(session["id"])
    assert read["state"] == "removed"
    assert bridge.rows(process, session["id"]) == []
    assert texts(transcript(api, session["id"]), "text") == ["begun"]


def test_sessions_are_listed_by_agent_state_and_page(bridge: Observed, api: httpx.Client) -> None:
    sessions = [begin(api, f"say {number}", agent="second") for number in range(3)]
    for session in sessions:
        bridge.ended(session["id"])
    newest = [session["id"] for session in reversed(sessions)]

    found = api.get("/api/v1/sessions", params={"agent": "second", "limit": 2}).json()
    more = api.get(
        "/api/v1/sessions", params={"agent": "second", "limit": 1, "before": found["next"]}
    ).json()

    listed = [session["id"] for session in found["items"] + more["items"]]
    assert sorted(listed) == sorted(newest)
    assert {session["agent"] for session in found["items"]} == {"second"}
    none = api.get("/api/v1/sessions", params={"agent": "second", "state": "waiting"}).json()
    assert none == {"items": [], "next": None}


def test_deliveries_and_posts_are_listed_newest_first_without_what_came_in(
    bridge: Observed, api: httpx.Client
) -> None:
    bridge.ended(begin(api, "say first")["id"])
    session = begin(api, "say hello")
    bridge.ended(session["id"])

    deliveries = api.get("/api/v1/deliveries", params={"limit": 2}).json()
    posts = api.get("/api/v1/posts", params={"limit": 2}).json()
    older = api.get("/api/v1/posts", params={"limit": 2, "before": posts["next"]}).json()

    assert deliveries["items"][0]["state"] == "done"
    assert deliveries["items"][0]["reason"] == "mentioned"
    assert "body" not in deliveries["items"][0]
    ids = [post["id"] for post in posts["items"] + older["items"]]
    assert ids == sorted(ids, reverse=True)
    assert any(post["target"] == session["key"] for post in posts["items"])


def test_agents_are_listed_and_read(api: httpx.Client) -> None:
    agents = api.get("/api/v1/agents").json()

    assert [agent["name"] for agent in agents["items"]] == ["demo", "second"]
    assert [agent["default"] for agent in agents["items"]] == [True, False]
    assert agents["items"][1]["services"] == ["web"]
    second = api.get("/api/v1/agents/second").json()
    assert second["description"] == "The other one."
    assert (second["emoji"], second["visible"]) == ("🦊", False)
    assert agents["items"][0]["visible"]


def follow(
    bridge: Observed, session: int, until: str, **headers: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Follow a session's events until a row of that text: id, kind of event, data."""
    path = f"/api/v1/sessions/{session}/events"
    with bridge.http.stream("GET", path, headers=headers, timeout=PATIENCE) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        event: dict[str, str] = {}
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            event[name] = value
            if line == "" and "data" in event:
                data = json.loads(event["data"])
                yield event.get("id", ""), event["event"], data
                if event["event"] == "entry" and data["text"] == until:
                    return
                event = {}


def test_events_go_on_where_a_follower_left(bridge: Observed, api: httpx.Client) -> None:
    session = begin(api, "say one")
    first = list(follow(bridge, session["id"], "one"))
    api.post(f"/api/v1/sessions/{session['id']}/messages", json={"text": "say two"})
    bridge.ended(session["id"], 2)

    last = next(number for number, _, data in reversed(first) if data["text"] == "one")
    second = list(follow(bridge, session["id"], "two", **{"Last-Event-ID": last}))

    rows = [(number, data) for number, kind, data in first + second if kind == "entry"]
    assert [int(number) for number, _ in rows] == [data["id"] for _, data in rows]
    known = transcript(api, session["id"])
    seen = [data for _, data in rows]
    assert seen == known[: len(seen)]
    assert texts(seen, "message") == ["say one", "say two"]


def test_unfinished_text_is_shown_without_a_number_and_replaced_by_its_row(
    bridge: Observed, api: httpx.Client
) -> None:
    session = begin(api, "tell begun\nhold go\nslow 1\nthoughts 1\nsay the end")
    following = follow(bridge, session["id"], "\n\nthe end")
    next(following)
    bridge.held(session["thread"], "begun")
    bridge.release(session["thread"], "go")

    events = list(following)

    unfinished = [(number, data) for number, kind, data in events if kind == "unfinished"]
    assert any(data["text"].startswith("go is here.") for _, data in unfinished)
    assert {number for number, _ in unfinished} == {""}
    assert {data["turn"] for _, data in unfinished} == {session["turn"]}
    rows = [data for _, kind, data in events if kind == "entry"]
    assert "".join(texts(rows, "text")) == "go is here.\n\nOne \n\nthe end"


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YWRtaW46YWRtaW4="}],
    ids=["no token", "a wrong token", "another scheme"],
)
def test_nobody_gets_in_without_the_token(stranger: httpx.Client, headers: dict[str, str]) -> None:
    paths = ("/api/v1/sessions", "/api/v1/asks", "/api/v1/agents", "/api/v1/sessions/1/events")
    new = {"agent": "demo", "text": "say no"}

    answers = [stranger.get(path, headers=headers) for path in paths]
    answers.append(stranger.post("/api/v1/sessions", json=new, headers=headers))

    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["content-type"] for answer in answers} == {PROBLEM}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8000"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
    ids=["another host", "another host with a port", "another origin", "no origin"],
)
@pytest.mark.parametrize("path", ["/api/v1/sessions", "/healthz", "/openapi.json"])
def test_strangers_are_refused_before_anything_else(
    api: httpx.Client, headers: dict[str, str], path: str
) -> None:
    answer = api.get(path, headers=headers)

    assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM)


def test_the_own_origin_is_let_in(bridge: Observed, api: httpx.Client) -> None:
    origin = {"Origin": f"http://127.0.0.1:{bridge.port}"}

    assert api.get("/api/v1/sessions", headers=origin).status_code == 200


ERRORS: dict[str, tuple[str, str, Any, int]] = {
    "an unknown session": ("GET", "/api/v1/sessions/999999", None, 404),
    "an unknown transcript": ("GET", "/api/v1/sessions/999999/transcript", None, 404),
    "unknown events": ("GET", "/api/v1/sessions/999999/events", None, 404),
    "to cancel nothing": ("POST", "/api/v1/sessions/999999/cancel", None, 404),
    "to delete nothing": ("DELETE", "/api/v1/sessions/999999", None, 404),
    "to talk to nobody": ("POST", "/api/v1/sessions/999999/messages", {"text": "say x"}, 404),
    "an unknown agent": ("POST", "/api/v1/sessions", {"agent": "nobody", "text": "say x"}, 404),
    "an unknown ask": ("POST", "/api/v1/asks/999999/answer", {"option": "allow"}, 404),
    "an unknown path": ("GET", "/api/v1/nothing", None, 404),
    "a wrong method": ("PUT", "/api/v1/sessions", {}, 405),
    "a command without a session": (
        "POST",
        "/api/v1/sessions",
        {"agent": "demo", "text": "status", "thread": "t-nobody"},
        409,
    ),
    "no text": ("POST", "/api/v1/sessions", {"agent": "demo"}, 422),
    "an empty text": ("POST", "/api/v1/sessions", {"agent": "demo", "text": "  "}, 422),
    "an unknown key": ("POST", "/api/v1/sessions", {"agent": "demo", "text": "x", "mode": 1}, 422),
    "an odd thread": (
        "POST",
        "/api/v1/sessions",
        {"agent": "demo", "text": "x", "thread": "../up"},
        422,
    ),
    "a senseless id": ("GET", "/api/v1/sessions/one", None, 422),
    "a senseless page": ("GET", "/api/v1/sessions?limit=0", None, 422),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_problems_in_words(api: httpx.Client, case: str) -> None:
    method, path, body, status = ERRORS[case]

    answer = api.request(method, path, json=body)

    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    problem = answer.json()
    assert problem["status"] == status
    assert problem["title"]
    assert "Traceback" not in answer.text


def test_a_body_that_is_no_json_is_a_problem_too(api: httpx.Client) -> None:
    answer = api.post(
        "/api/v1/sessions", content=b"{", headers={"Content-Type": "application/json"}
    )

    assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)


def measured(text: str, series: str) -> float:
    """Read one series of the bridge; of a histogram, how often it was observed."""
    names = (series, f"{series}_count")
    return next(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        for name in names
        if line.startswith(f"agent_bridge_{name} ")
    )


def test_health_readiness_and_counters_are_seen_without_a_token(
    bridge: Observed, api: httpx.Client, stranger: httpx.Client
) -> None:
    bridge.ended(begin(api, "say hello")["id"])

    health, ready, metrics = map(stranger.get, ("/healthz", "/readyz", "/metrics"))

    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    assert metrics.status_code == 200
    assert 'agent_bridge_turns_total{state="done"}' in metrics.text
    details = api.get("/readyz").json()["checks"]
    assert {check["name"] for check in details} >= {"started", "store"}
    named = api.get("/metrics").text
    assert 'agent_bridge_turns_total{agent="demo",state="done"}' in named
    assert 'agent_bridge_turns_total{agent="demo",state="failed"}' in named  # before any failed
    for worked in ("queue_seconds", 'turn_phase_seconds_count{phase="working"}', "commit_seconds"):
        assert measured(named, worked) >= 1
    assert measured(metrics.text, "ready") == 1
    assert measured(metrics.text, "slots") > measured(metrics.text, "slots_used")
    assert measured(metrics.text, "disk_free_bytes") > 0
    assert measured(metrics.text, "database_bytes") > 0
    assert measured(metrics.text, "inbox_oldest_seconds") == 0


def test_openapi_is_served_and_true(bridge: Observed, api: httpx.Client) -> None:
    described = api.get("/openapi.json").json()
    session = begin(api, "write notes.txt done")
    ask = asked(bridge, session["id"])
    own = f"/api/v1/sessions/{session['id']}"
    calls: list[tuple[str, str, str, Any]] = [
        ("POST", "/api/v1/sessions", "/api/v1/sessions", {"agent": "second", "text": "say x"}),
        ("GET", "/api/v1/sessions", "/api/v1/sessions", None),
        ("GET", "/api/v1/sessions/{session_id}", own, None),
        ("PATCH", "/api/v1/sessions/{session_id}", own, {"title": "Described"}),
        ("PATCH", "/api/v1/sessions/{session_id}", own, {"attributes": {"a": [1, "b"]}}),
        ("POST", "/api/v1/sessions/{session_id}/messages", f"{own}/messages", {"text": "say y"}),
        ("GET", "/api/v1/asks", "/api/v1/asks", None),
        (
            "POST",
            "/api/v1/asks/{ask_id}/answer",
            f"/api/v1/asks/{ask['id']}/answer",
            {"option": "allow"},
        ),
        ("GET", "/api/v1/sessions/{session_id}/transcript", f"{own}/transcript", None),
        ("POST", "/api/v1/sessions/{session_id}/cancel", f"{own}/cancel", None),
        ("GET", "/api/v1/deliveries", "/api/v1/deliveries", None),
        ("GET", "/api/v1/posts", "/api/v1/posts", None),
        ("GET", "/api/v1/agents", "/api/v1/agents", None),
        ("GET", "/api/v1/agents/{name}", "/api/v1/agents/demo", None),
    ]

    for method, template, path, body in calls:
        answer = api.request(method, path, json=body)
        operation = described["paths"][template][method.lower()]
        promised = operation["responses"][str(answer.status_code)]
        schema = promised["content"]["application/json"]["schema"]
        assert mismatches(answer.json(), schema, described) == [], (method, template)
        assert operation["security"] == [{"HTTPBearer": []}]

    deleted = api.delete(own)
    assert (
        str(deleted.status_code)
        in (described["paths"]["/api/v1/sessions/{session_id}"]["delete"]["responses"])
    )


def test_openapi_says_that_errors_are_problems(api: httpx.Client) -> None:
    described = api.get("/openapi.json").json()
    responses = described["paths"]["/api/v1/sessions"]["post"]["responses"]

    assert list(responses["422"]["content"]) == [PROBLEM]
    assert {"401", "404", "409"} <= set(responses)
