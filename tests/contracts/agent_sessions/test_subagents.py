"""Sub-agents: sessions of their own below the agent's, whose work and asks are told apart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from app.model.subagents import Subagent, SubagentUpdate, apply
from app.model.updates import AskRequest, BridgeUpdate, ToolUpdate
from tests.agents.rig import BOUND, Choice, Listener, Rig, eventually

HOLDS = "run sh -c 'touch begun; until test -e go; do sleep 0.05; done; touch ended'"


@dataclass
class Family(Listener):
    """Hears a turn, and keeps the sub-agents that it tells of."""

    choice: Choice = "allow_once"
    known: dict[str, Subagent] = field(default_factory=dict)
    stirred: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def on_update(self, update: BridgeUpdate) -> None:
        await super().on_update(update)
        if isinstance(update, SubagentUpdate):
            self.known[update.key] = apply(self.known.get(update.key), update)
        async with self.stirred:
            self.stirred.notify_all()

    async def on_ask(self, request: AskRequest) -> str | None:
        answer = await super().on_ask(request)
        async with self.stirred:
            self.stirred.notify_all()
        return answer

    async def wait(self, check: Callable[[], bool]) -> None:
        """Wait until something that was heard is true."""
        async with asyncio.timeout(BOUND), self.stirred:
            await self.stirred.wait_for(check)

    @property
    def only(self) -> Subagent:
        """The one sub-agent that there is."""
        (found,) = self.known.values()
        return found


@pytest.mark.kits("waits_for_subagents")
async def test_a_sub_agent_works_and_asks_under_its_own_name(rig: Rig) -> None:
    opened, family = await rig.open(), Family()

    async with asyncio.timeout(BOUND):
        end = await opened.session.prompt("subagent reviewer run touch made.txt", family)

    child = family.only
    assert end.stop_reason == "end_turn"
    assert (child.parent, child.title, child.state) == ("", "reviewer", "done")
    assert [ask.subagent for ask in family.asked] == ["reviewer"]
    assert (rig.workspace / "made.txt").exists()
    calls = [each for each in family.heard if isinstance(each, ToolUpdate)]
    assert {each.parent for each in calls} == {child.key}
    assert family.asked[0].call in {each.call for each in calls}
    assert not opened.session.subagents


@pytest.mark.kits("waits_for_subagents")
async def test_a_sub_agent_is_stopped_alone(rig: Rig) -> None:
    opened, family = await rig.open(), Family()
    turn = asyncio.create_task(opened.session.prompt(f"subagent reviewer {HOLDS}", family))
    await eventually((rig.workspace / "begun").exists)
    (running,) = opened.session.subagents

    stopped = await opened.session.stop_subagent(running.key)
    async with asyncio.timeout(BOUND):
        end = await turn

    assert stopped
    assert family.only.state == "stopped"
    assert end.stop_reason == "end_turn"
    assert not (rig.workspace / "ended").exists()
    assert not await opened.session.stop_subagent(running.key)


@pytest.mark.kits("waits_for_subagents")
async def test_a_stop_of_the_turn_stops_its_sub_agents(rig: Rig) -> None:
    opened, family = await rig.open(), Family()
    turn = asyncio.create_task(opened.session.prompt(f"subagent reviewer {HOLDS}", family))
    await eventually((rig.workspace / "begun").exists)

    async with asyncio.timeout(BOUND):
        await opened.session.cancel()
        end = await turn

    assert end.stop_reason == "cancelled"
    assert not opened.session.subagents
    assert opened.session.alive


@pytest.mark.kits("leaves_subagents")
async def test_a_sub_agent_may_go_on_after_its_turn_and_is_known(rig: Rig) -> None:
    opened, family = await rig.open(), Family()

    async with asyncio.timeout(BOUND):
        await opened.session.prompt("subagent reviewer slow 600", family)
    known = {**family.known, **{each.key: each for each in opened.session.subagents}}
    await opened.session.cancel()

    assert len(known) == 1
    assert not opened.session.subagents
