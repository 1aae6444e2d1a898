"""The picker of a new thread: what it offers, what it refuses, and what a first message does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.model.conversations import Wanted
from tests.support.office import ADMIN_TOKEN, Office, key, office

pytestmark = pytest.mark.anyio


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Office]:
    async with office(tmp_path) as opened:
        opened.opens["codex"] = ("acme/widget", "acme/docs")
        yield opened


def project(tmp_path: Path) -> str:
    """Make a folder of a person's own."""
    folder = tmp_path / "project"
    folder.mkdir()
    return f"folder:{folder}"


async def problem(desk: Office, name: str, agent: str = "claude") -> str:
    """Check a choice that cannot be used, and read why."""
    answer = await desk.http.get("/repositories/check", params={"agent": agent, "name": name})
    words: str = answer.json()["problem"]
    return words


async def test_a_first_message_brings_its_repository_in_the_same_step(
    desk: Office, tmp_path: Path
) -> None:
    folder = project(tmp_path)

    path = await desk.say("Fix the login", to="codex", repository=folder)

    assert desk.turn_of(path, "codex")
    assert desk.stores.decisions.place(key(path)).repository == folder
    (thread,) = await desk.runtime.stores.conversations.list(Wanted(), limit=5)
    assert (thread.title, thread.repository) == ("Fix the login", folder)


async def test_what_was_chosen_is_offered_again_with_what_the_app_opens(
    desk: Office, tmp_path: Path
) -> None:
    folder = project(tmp_path)
    await desk.say("one", to="codex", repository="acme/widget")
    await desk.say("two", to="codex", repository=folder)
    await desk.say("three", to="codex", repository="none")

    offered = (await desk.http.get("/repositories", params={"agent": "codex"})).json()

    assert offered == {
        "recent": [folder, "acme/widget"],
        "listed": ["acme/widget", "acme/docs"],
        "problem": "",
    }


async def test_a_choice_that_cannot_be_used_is_refused_before_anything_starts(
    desk: Office,
) -> None:
    answer = await desk.post("/send", text="hello", to="codex", repository="acme/secret")

    assert answer.status_code == 409
    assert "can't open acme/secret. Install it there" in answer.json()["detail"]
    assert await desk.runtime.stores.conversations.list(Wanted(), limit=5) == []
    assert "No such folder" in await problem(desk, "folder:/nowhere/at/all")
    assert "belongs to the system" in await problem(desk, "folder:/etc")
    assert "acme/private can't be opened" in await problem(desk, "acme/private")
    assert "OWNER/NAME" in await problem(desk, "what is this")


async def test_a_name_is_written_as_the_app_knows_it(desk: Office) -> None:
    asked = {"agent": "codex", "name": "Acme/Widget"}

    assert (await desk.http.get("/repositories/check", params=asked)).json() == {
        "name": "acme/widget"
    }


async def test_the_api_takes_a_repository_and_says_where_a_session_works(desk: Office) -> None:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    new = {"agent": "claude", "text": "hello", "thread": "t1", "repository": "acme/public"}

    begun = await desk.browser().post("/api/v1/sessions", json=new, headers=headers)
    elsewhere = {**new, "repository": "none"}
    refused = await desk.browser().post("/api/v1/sessions", json=elsewhere, headers=headers)

    assert (begun.status_code, begun.json()["repository"]) == (201, "acme/public")
    assert refused.status_code == 409
    assert "Start a new one" in refused.json()["detail"]
    again = await desk.browser().post("/api/v1/sessions", json=new, headers=headers)
    assert again.status_code == 201
