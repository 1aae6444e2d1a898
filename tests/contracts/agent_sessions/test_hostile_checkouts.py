"""A checkout is hostile: no file in it makes an agent act before anybody is asked."""

from __future__ import annotations

import pytest

from app.errors import AgentNotStarted
from tests.agents.rig import Rig, told
from tests.agents.traps import COMMAND, plant, sprung


async def test_nothing_in_a_checkout_makes_an_agent_act_unasked(rig: Rig, how: str) -> None:
    rig.allow_only(how)
    opened = await rig.open()
    await told(opened.session, "say hello")
    await opened.session.close()
    plant(rig.kit.name, rig.workspace, spare=rig.program.obeys)

    opened = await rig.reopen(opened, how)
    heard = await told(opened.session, f"run {COMMAND}")

    assert opened.how == how
    assert len(heard.asked) == 1
    assert sprung(rig.workspace) == []


@pytest.mark.kits("obeys")
async def test_an_agent_does_not_start_where_it_would_obey_the_checkout(rig: Rig, how: str) -> None:
    opened = await rig.open()
    await told(opened.session, "say hello")
    await opened.session.close()
    plant(rig.kit.name, rig.workspace)

    with pytest.raises(AgentNotStarted, match="which it would obey without asking"):
        await rig.reopen(opened, how)

    assert sprung(rig.workspace) == []


@pytest.mark.kits("unguarded")
async def test_the_traps_go_off_where_nothing_keeps_them_out(rig: Rig) -> None:
    plant(rig.kit.name, rig.workspace)
    rig.lower_the_guard()

    opened = await rig.open()
    await told(opened.session, f"run {COMMAND}")

    assert set(sprung(rig.workspace)) == set(rig.kit.unguarded)
