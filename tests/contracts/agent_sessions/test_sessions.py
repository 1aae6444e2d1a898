"""What every agent does in a session, the demo agent and real ones alike."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest

from app.errors import AgentDied, AgentError, AgentRefused
from app.model.updates import StateUpdate
from tests.agents.rig import Listener, Rig, eventually, told

OVER_A_RELAY = True


async def test_an_answer_arrives_as_it_was_streamed(rig: Rig) -> None:
    opened = await rig.open()

    heard = await told(opened.session, "say the quick brown fox jumps over the lazy dog")

    assert opened.how == "new"
    assert heard.text.endswith("the quick brown fox jumps over the lazy dog")
    assert (heard.end.stop_reason, heard.asked) == ("end_turn", [])


async def test_a_command_that_is_allowed_runs_once_it_was_asked_for(rig: Rig) -> None:
    opened = await rig.open()

    heard = await told(opened.session, "run touch allowed.txt", "allow_once")

    (ask,) = heard.asked
    assert ask.title
    assert ask.arguments_hash
    assert all(option.id and option.name for option in ask.options)
    assert (rig.workspace / "allowed.txt").exists()
    assert heard.end.stop_reason == "end_turn"


async def test_a_command_that_is_rejected_does_not_run_and_the_session_goes_on(rig: Rig) -> None:
    opened = await rig.open()

    heard = await told(opened.session, "run touch rejected.txt", "reject_once")
    after = await told(opened.session, "say still here")

    assert len(heard.asked) == 1
    assert (heard.end.stop_reason == "cancelled") is rig.program.quirks.reject_ends_turn
    assert not (rig.workspace / "rejected.txt").exists()
    assert after.text.endswith("still here")


async def test_an_answer_is_cut_off_in_the_middle_and_the_session_goes_on(rig: Rig) -> None:
    opened = await rig.open()
    listener = Listener()
    turn = asyncio.create_task(opened.session.prompt("slow 600", listener))
    await listener.wait_for_text()

    await opened.session.cancel()

    assert (await turn).stop_reason == "cancelled"
    assert opened.session.alive
    assert (await told(opened.session, "say still here")).text.endswith("still here")


async def test_a_killed_agent_comes_back_with_its_history_and_tells_nothing_twice(
    rig: Rig,
) -> None:
    first = await rig.open()
    await told(first.session, "say the password is swordfish")
    listener = Listener()
    turn = asyncio.create_task(first.session.prompt("slow 600", listener))
    await listener.wait_for_text()
    rig.kill()
    with pytest.raises(AgentDied):
        await turn
    assert rig.processes() == []

    again = await rig.open(first.session)
    heard = await told(again.session, "recall")

    assert again.how == ("resumed" if rig.kit.resumes else "loaded")
    assert again.session.acp_session_id == first.session.acp_session_id
    assert all(isinstance(update, StateUpdate) for update in rig.between.heard)
    assert heard.text.count("the password is swordfish") == 1


@pytest.mark.kits("free_mode")
async def test_the_mode_is_set_anew_in_every_life(rig: Rig, how: str) -> None:
    rig.allow_only(how)
    opened = await rig.open(mode=rig.kit.free_mode)
    free = await told(opened.session, "run touch free.txt")
    assert (rig.workspace / "free.txt").exists()
    assert free.asked == []

    opened = await rig.reopen(opened, how)
    careful = await told(opened.session, "run touch careful.txt")
    await opened.session.configure(mode=rig.kit.free_mode, model=None)
    free = await told(opened.session, "run touch free-again.txt")

    assert len(careful.asked) == 1
    assert not (rig.workspace / "careful.txt").exists()
    assert (rig.workspace / "free-again.txt").exists()
    assert free.asked == []


async def test_a_system_prompt_is_given_to_those_that_take_one_and_to_no_other(rig: Rig) -> None:
    opened = await rig.open(system="You are called Ada.")

    assert opened.instructed == rig.kit.instructed


@pytest.mark.kits("instructed")
async def test_a_system_prompt_stays_with_its_conversation(rig: Rig, how: str) -> None:
    rig.allow_only(how)
    first = await rig.open(system="You are called Ada.")
    await told(first.session, "say hi")
    await first.session.close()
    before = len(rig.model.asked)

    again = await rig.open(None if how == "new" else first.session, system="You are called Bo.")
    await told(again.session, "say again")

    asked = json.dumps([each.body for each in rig.model.asked[before:]])
    begins = how == "new"
    assert (again.how, again.instructed) == (how, begins)
    assert ("You are called Ada." in asked, "You are called Bo." in asked) == (not begins, begins)


async def test_an_agent_without_the_mode_that_is_wanted_is_ended(rig: Rig) -> None:
    with pytest.raises(AgentRefused, match="'no-such-mode'"):
        await rig.open(mode="no-such-mode")

    assert rig.processes() == []


async def test_whatever_an_agent_has_started_goes_with_it(rig: Rig) -> None:
    opened = await rig.open()
    words = "run sh -c 'touch started.txt; exec sleep 600'"
    turn = asyncio.create_task(told(opened.session, words, "allow_once"))
    await eventually((rig.workspace / "started.txt").exists)
    assert rig.processes()

    await opened.session.close()

    assert rig.processes() == []
    with suppress(AgentError):
        await turn
