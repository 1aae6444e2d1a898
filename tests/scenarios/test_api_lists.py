"""Lists of the API: filters that everybody tries, pages of what they leave, and typing errors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.support.bridge import BridgeProcess, demo
from tests.support.hook import message
from tests.support.platform import Platform

PROBLEM = "application/problem+json"
LISTS = ("sessions", "conversations", "asks", "deliveries", "posts")
HELD = {"session_id": "1", "turn_id": "1", "number": "1", "schedule_id": "1", "name": "demo"}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BridgeProcess]:
    """Have conversations of two agents; one of them waits for answers."""
    folder = tmp_path_factory.mktemp("lists")
    agents = {"demo": demo(), "second": demo()}
    with Platform() as platform, BridgeProcess(folder, platform, agents=agents) as bridge:
        for number in range(3):
            event = message(f"quick-{number}", f"say {number}", "second")
            assert bridge.deliver(event, agent="second") == 200
        for number in range(2):
            assert bridge.say(f"waiting-{number}", "ask Which? | Red | Blue") == 200
        done = "select id from post where state = 'done' and agent = 'second'"
        bridge.wait(lambda: len(bridge.rows(done)) == 3, "the second agent never answered")
        asks = "select id from ask where state = 'open'"
        bridge.wait(lambda: len(bridge.rows(asks)) == 2, "nothing is asked")
        yield bridge


@pytest.fixture
def api(bridge: BridgeProcess) -> httpx.Client:
    return bridge.http


def items(api: httpx.Client, path: str, **query: Any) -> list[dict[str, Any]]:
    answer = api.get(f"/api/v1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def test_sessions_are_found_by_agent_service_state_and_time(api: httpx.Client) -> None:
    everything = items(api, "sessions")

    assert len(everything) == len(items(api, "sessions", service="web")) == 5
    assert items(api, "sessions", service="slack") == []
    assert {each["agent"] for each in items(api, "sessions", agent="second")} == {"second"}
    assert len(items(api, "sessions", service="web", state="waiting")) == 2
    assert items(api, "sessions", agent="second", state="waiting") == []
    assert len(items(api, "sessions", since=everything[1]["updated_at"])) == 2


def test_conversations_are_found_by_agent_service_state_and_time(api: httpx.Client) -> None:
    everything = items(api, "conversations")

    assert len(items(api, "conversations", agent="second", service="web")) == 3
    assert items(api, "conversations", service="slack") == []
    assert len(items(api, "conversations", state="waiting")) == 2
    assert len(items(api, "conversations", q="say")) == 3
    assert items(api, "conversations", q="say", state="waiting") == []
    assert len(items(api, "conversations", since=everything[2]["updated_at"])) == 3


@pytest.mark.parametrize(("state", "number"), [("open", 2), ("answered", 0)])
def test_asks_are_found_by_state_together_with_agent_and_service(
    api: httpx.Client, state: str, number: int
) -> None:
    assert len(items(api, "asks", state=state)) == number
    assert len(items(api, "asks", state=state, agent="demo", service="web", since=0)) == number
    assert items(api, "asks", state=state, agent="second") == []
    assert items(api, "asks", state=state, service="slack") == []


@pytest.mark.parametrize("path", ["deliveries", "posts"])
def test_what_came_in_and_went_out_is_found_by_agent_service_and_state(
    api: httpx.Client, path: str
) -> None:
    everything = items(api, path, limit=500)

    by_agent = [items(api, path, limit=500, agent=agent) for agent in ("demo", "second")]
    assert sum(map(len, by_agent)) == len(everything)
    assert all(by_agent)
    assert items(api, path, limit=500, service="web") == everything
    assert items(api, path, service="slack") == []
    assert {each["state"] for each in items(api, path, state="done")} == {"done"}
    assert items(api, path, state="failed") == []


def test_agents_are_found_by_service_and_state(api: httpx.Client) -> None:
    assert len(items(api, "agents", service="web", state="ready")) == 2
    assert items(api, "agents", service="slack") == []
    assert items(api, "agents", state="limited") == []


@pytest.mark.parametrize("path", LISTS)
def test_a_time_is_written_as_iso_8601_or_in_seconds(api: httpx.Client, path: str) -> None:
    everything = items(api, path)
    hour_ago = datetime.fromtimestamp(time.time() - 3600, UTC)

    for early in (hour_ago.isoformat(), hour_ago.isoformat()[:19], int(hour_ago.timestamp())):
        assert items(api, path, since=early) == everything
    assert items(api, path, since="2099-01-01") == []
    assert items(api, path, since="2099-01-01T00:00:00+02:00") == []


@pytest.mark.parametrize(
    ("path", "query", "cursor"),
    [
        ("sessions", {"agent": "second"}, "before"),
        ("conversations", {"service": "web"}, "before"),
        ("conversations", {"q": "say", "agent": "second"}, "before"),
        ("asks", {"state": "open"}, "after"),
        ("deliveries", {"service": "web", "state": "done"}, "before"),
        ("posts", {"agent": "second", "since": 0}, "before"),
    ],
)
def test_a_filtered_list_is_read_page_by_page(
    api: httpx.Client, path: str, query: dict[str, Any], cursor: str
) -> None:
    whole = items(api, path, **query, limit=500)
    read: list[dict[str, Any]] = []
    start: dict[str, Any] = {}

    for _ in whole:
        page = api.get(f"/api/v1/{path}", params={**query, **start, "limit": 1}).json()
        read += page["items"]
        start = {cursor: page["next"]}
    last = api.get(f"/api/v1/{path}", params={**query, **start, "limit": 1}).json()

    assert len(whole) > 1
    assert read == whole
    assert (last["items"], last["next"]) == ([], None)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pinned_conversations_come_first_and_once_over_pages(api: httpx.Client, limit: int) -> None:
    whole = items(api, "conversations")
    pinned = [whole[-1]["id"], whole[2]["id"]]
    for number in pinned:
        change = api.patch(f"/api/v1/conversations/{number}", json={"pinned": True})
        assert change.status_code == 200, change.text

    read: list[int] = []
    start: dict[str, Any] = {}
    for _ in whole[::limit]:
        page = api.get("/api/v1/conversations", params={**start, "limit": limit}).json()
        read += [each["id"] for each in page["items"]]
        start = {"before": page["next"]}
    for number in pinned:
        api.patch(f"/api/v1/conversations/{number}", json={"pinned": False})

    assert read[0] == pinned[0]
    assert limit == 1 or read[1] == pinned[1]
    assert sorted(read) == sorted(each["id"] for each in whole)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("sessions?state=sleeping", "query.state: Input should be 'idle', 'queued'"),
        ("asks?state=opened", "query.state: Input should be 'open'"),
        ("posts?state=sent", "query.state: Input should be 'new'"),
        ("deliveries?state=sent", "query.state: Input should be 'new'"),
        ("agents?state=fine", "query.state: Input should be 'ready'"),
        ("schedules?state=on", "query.state: Input should be 'active'"),
        ("sessions?agent=secnd", "query.agent: there is no agent 'secnd'. Did you mean 'second'?"),
        ("schedules?agent=nobody", "query.agent: there is no agent 'nobody'. Known: demo, second."),
        ("posts?service=slak", "query.service: there is no service 'slak'. Did you mean 'slack'?"),
        ("sessions?since=yesterday", "query.since: Write a time as"),
        ("asks?since=2026-13-01", "query.since: Write a time as"),
        ("asks?after=-1", "query.after: Input should be greater than or equal to 0"),
        ("asks?limit=0", "query.limit: Input should be greater than or equal to 1"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_words(
    api: httpx.Client, path: str, words: str
) -> None:
    answer = api.get(f"/api/v1/{path}")

    assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)
    assert answer.json()["detail"].startswith(words)


def test_a_parameter_that_no_list_has_is_refused_everywhere(api: httpx.Client) -> None:
    described = api.get("/openapi.json").json()["paths"]
    routes = [
        (method.upper(), path)
        for path, operations in described.items()
        for method in operations
        if path.startswith("/api/")
    ]

    for method, path in routes:
        filled = path.format_map({**HELD, "path": "SOUL.md"} | dict.fromkeys(_names(path), "1"))
        answer = api.request(method, filled, params={"filtr": "x"})
        assert (method, path, answer.status_code) == (method, path, 422)
        assert answer.headers["content-type"] == PROBLEM
        assert answer.json()["detail"].startswith("Unknown query parameter 'filtr'.")
    assert len([path for method, path in routes if method == "GET"]) > 15


def test_the_nearest_parameter_is_named(api: httpx.Client) -> None:
    answer = api.get("/api/v1/sessions", params={"stat": "idle"})

    assert answer.status_code == 422
    assert answer.json()["detail"] == (
        "Unknown query parameter 'stat'. Did you mean 'state'? "
        "Known: agent, service, state, since, before, limit."
    )
    none = api.get("/api/v1/pauses", params={"agent": "demo"})
    assert none.json()["detail"] == "Unknown query parameter 'agent'. This request takes none."


def test_a_stranger_is_refused_before_a_parameter_is(bridge: BridgeProcess) -> None:
    with httpx.Client(base_url=bridge.http.base_url, trust_env=False) as stranger:
        answers = [
            stranger.get(f"/api/v1/{path}", params={"filtr": "x"})
            for path in ("sessions", "people")
        ]

    assert [answer.status_code for answer in answers] == [401, 401]


def _names(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{") and ":" not in part]
