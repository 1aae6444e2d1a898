"""Tools with which agents ask each other: whom they see, what begins, and what they are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.errors import BridgeError
from app.model.agents import Scope, unmet
from app.model.keys import PlaceKey, SessionKey
from app.model.ports import AgentListener
from app.model.types import Speaker
from app.model.updates import TextUpdate
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import ANN, heard

pytestmark = pytest.mark.anyio

TEAM = Rules(
    agents=("demo", "codex", "shy", "denied"),
    hidden=("shy",),
    names={"demo": "Demo", "codex": "Codex"},
    scopes={"demo": Scope(agents_deny=("denied",)), "shy": Scope(tools_allow=())},
)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, rules=TEAM) as running:
        yield running


async def during(
    desk: Desk, tool: str, place: str = "t1", *, by: Speaker = ANN, **arguments: Any
) -> Mapping[str, Any]:
    """Let the first agent use a tool in a turn; returns what it got."""
    got: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()

    async def use(listener: AgentListener) -> None:
        try:
            got.set_result(await desk.call("demo", tool, **arguments))
        except BridgeError as error:
            got.set_result({"error": str(error)})
        await listener.on_update(TextUpdate("done"))

    desk.launcher.scripts["demo"] = use
    begun = await desk.hear(replace(heard("go", place, by), mentions=("demo",)))
    async with asyncio.timeout(5):
        found = await got
        await desk.reached(begun.turns[0].turn, "done")
    return found


async def test_an_agent_sees_the_agents_that_are_visible_and_not_denied(desk: Desk) -> None:
    listed = await during(desk, "agents_list")

    assert [each["name"] for each in listed["agents"]] == ["codex"]


async def test_a_message_begins_a_turn_of_the_other_agent_in_a_place_of_its_own(
    desk: Desk,
) -> None:
    made = await during(desk, "agents_message", to="codex", text="look at it", mode="async")

    asked = desk.delegations.read(int(made["id"]))
    await desk.reached(asked.turn, "done")
    child = desk.stores.sessions.session(asked.session)
    assert child is not None
    assert child.key == SessionKey("agents", str(asked.id), "codex")
    assert (asked.depth, asked.person.name, asked.root_session) == (1, "Ann", desk.session().id)
    (message,) = desk.stores.turns.messages(asked.turn)
    assert (message.text, message.speaker.name, message.speaker.kind) == (
        "look at it",
        "Demo",
        "agent",
    )
    assert desk.stores.decisions.place(PlaceKey("agents", str(asked.id))).repository == "none"


async def test_a_hidden_agent_is_reachable_by_name(desk: Desk) -> None:
    made = await during(desk, "agents_message", to="shy", text="look", mode="async")

    assert made["agent"] == "shy"


async def test_a_denied_agent_is_refused_as_one_that_does_not_exist(desk: Desk) -> None:
    denied = await during(desk, "agents_message", to="denied", text="look", mode="async")
    unknown = await during(desk, "agents_message", to="unknown", text="look", mode="async")

    assert denied["error"].replace("denied", "unknown") == unknown["error"]


async def test_an_agent_that_cannot_work_is_refused_with_the_reason(desk: Desk) -> None:
    desk.availability.note("codex", unmet("key", "No key.", "Set OPENAI_API_KEY.", "unavailable"))

    refused = await during(desk, "agents_message", to="codex", text="look", mode="async")

    assert refused["error"] == "Codex cannot work now: No key. Set OPENAI_API_KEY."


async def test_a_person_who_may_not_use_the_other_agent_does_not_use_it_through_the_first(
    desk: Desk,
) -> None:
    async def refuse(speaker: Speaker, place: PlaceKey) -> str:
        return f"{speaker.name} is no member of {place.service}"

    desk.adapters["web:codex"].refusal = refuse  # type: ignore[method-assign]

    refused = await during(desk, "agents_message", to="codex", text="look", mode="async")

    assert refused["error"] == (
        "Ann, for whom you work, may not use Codex: Ann is no member of web."
    )
    assert desk.delegations.begun_in(PlaceKey("web", "t1")) == []


async def test_a_conversation_goes_on_only_where_it_began(desk: Desk) -> None:
    ask: dict[str, Any] = {"to": "codex", "mode": "async"}
    first = await during(desk, "agents_message", **ask, text="one", session="create")
    other = await during(desk, "agents_message", "t2", **ask, text="two", session="create")

    same = await during(desk, "agents_message", **ask, text="three", session="latest")
    named = await during(desk, "agents_message", **ask, text="four", session=first["session"])
    foreign = await during(desk, "agents_message", **ask, text="five", session=other["session"])
    unknown = await during(desk, "agents_message", **ask, text="six", session="999")
    new = await during(desk, "agents_message", **ask, text="seven", session="create")

    assert same["session"] == named["session"] == first["session"] != new["session"]
    assert foreign["error"] == unknown["error"].replace("999", other["session"])
