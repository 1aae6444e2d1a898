"""Schedules on the page and over the API: listed, made, changed, refused in words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.model.keys import PlaceKey
from tests.support.office import Office, office

pytestmark = pytest.mark.anyio

API = "/api/v1/schedules"
NINE = {"agent": "claude", "expression": "0 9 * * 1-5", "words": "look around"}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Office]:
    async with office(tmp_path) as opened:
        yield opened


async def call(desk: Office, method: str, path: str = "", **body: Any) -> tuple[int, Any]:
    """Call the API as a page does; returns the status and the answer."""
    headers = {"X-CSRF-Token": desk.csrf}
    answer = await desk.http.request(method, f"{API}{path}", headers=headers, json=body or None)
    return answer.status_code, answer.json() if answer.content else None


async def notices(desk: Office, place: str) -> list[str]:
    """List what the bridge said in a thread."""
    rows = await desk.stores.transcript.read_place(PlaceKey("web", place), after=0, limit=100)
    return [row.text for row in rows if row.kind == "notice"]


async def test_a_schedule_is_made_read_changed_and_removed_over_the_api(desk: Office) -> None:
    status, made = await call(desk, "POST", **NINE, thread="daily", zone="Europe/Berlin")
    _, listed = await call(desk, "GET")
    _, paused = await call(desk, "POST", "/1/pause")
    _, resumed = await call(desk, "POST", "/1/resume")
    ran, _ = await call(desk, "POST", "/1/run")
    removed, _ = await call(desk, "DELETE", "/1")
    gone, _ = await call(desk, "GET", "/1")

    assert (status, ran, removed, gone) == (201, 202, 204, 404)
    assert listed == {"items": [made], "next": None}
    assert made["key"] == "web:daily:claude"
    assert (made["state"], paused["state"], resumed["state"]) == ("active", "paused", "active")
    assert made["creator"] == "operator"
    assert made["next"] is not None
    assert paused["next"] is None
    assert (paused["status"], resumed["status"]) == ("paused", made["status"])
    said = await notices(desk, "daily")
    assert said[0].startswith("Schedule 1 for Claude: look around\n0 9 * * 1-5 (Europe/Berlin), ")
    assert said[1] == ("By operator: Schedule 1 is paused. To go on, send `schedule resume 1`.")
    assert said[-1] == "By operator: Schedule 1 was removed."


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"expression": "* * * * *"}, 409, "more often than every 5 minutes"),
        ({"expression": "at nine"}, 409, "is not a cron expression"),
        ({"zone": "Europe/Atlantis"}, 409, "there is no time zone"),
        ({"agent": "ghost"}, 404, "ghost"),
        ({"words": ""}, 422, "words"),
    ],
)
async def test_what_cannot_be_scheduled_is_refused_in_words(
    desk: Office, changed: dict[str, str], status: int, words: str
) -> None:
    answered, problem = await call(desk, "POST", **{**NINE, **changed})

    assert answered == status
    assert words in problem["detail"]
    assert desk.schedules.all() == []


async def test_the_page_makes_lists_and_changes_schedules(desk: Office) -> None:
    wrong = await desk.post("/schedules", **{**NINE, "expression": "<b>"})
    made = await desk.post("/schedules", **{**NINE, "words": "look at <b>this</b>"})
    page = await desk.page("/schedules")
    await desk.post("/schedules/1/pause")
    paused = await desk.page("/schedules")
    await desk.post("/schedules/1/remove")
    empty = await desk.page("/schedules")

    assert wrong.status_code == 400
    assert "Not scheduled: &#39;&lt;b&gt;&#39; is not a cron expression" in wrong.text
    assert made.headers["location"] == "/schedules?done=schedule-added#s-1"
    assert "look at &lt;b&gt;this&lt;/b&gt;" in page
    assert "<code>0 9 * * 1-5</code>" in page
    assert 'action="/schedules/1/pause"' in page
    assert 'action="/schedules/1/resume"' in paused
    assert "There are no schedules yet." in empty


async def test_a_run_shows_on_the_page_which_schedule_it_comes_from(desk: Office) -> None:
    await call(desk, "POST", **NINE, thread="daily")
    await call(desk, "POST", "/1/run")
    await desk.intake.drained("web:claude")

    page = await desk.page("/t/web/daily")

    assert '<a href="/schedules#s-1">schedule 1</a>' in page
