"""A conversation through the whole bridge, which dies in between: people see every answer once."""

from __future__ import annotations

import json
from pathlib import Path

from tests.agents.kits import Kit
from tests.agents.model import Model
from tests.agents.rig import BOUND, place_files
from tests.support.bridge import BridgeProcess
from tests.support.hook import message
from tests.support.invariants import agent_processes
from tests.support.observe import Observed
from tests.support.platform import Platform, RemotePost


def test_a_conversation_outlives_the_bridge_and_nothing_is_posted_twice(
    installed: Kit, site: Path
) -> None:
    with Model() as model, Platform() as platform:
        entry = installed.entry(model.url)
        bridge = BridgeProcess(site, platform, {installed.name: entry}, {"PATH": installed.path})
        place_files(installed, bridge.data_dir / "homes" / installed.name, model)
        with bridge:
            first = answer(bridge, installed, "say the password is swordfish", 1)
            bridge.kill()
            bridge.start()
            second = answer(bridge, installed, "recall", 2)

            assert bridge.stop() == 0

        assert first.text.endswith("the password is swordfish")
        assert second.text.count("the password is swordfish") == 1
        assert [post.reopened for post in platform.turns()] == [0, 0]
        assert platform.shown("notice") == []
        assert agent_processes(bridge.data_dir) == []


def test_a_turn_in_which_the_agent_asks_is_not_ended_for_want_of_asking(
    installed: Kit, site: Path
) -> None:
    with Model() as model, Platform() as platform:
        entry = {**installed.entry(model.url), "unasked": "stop"}
        bridge = Observed(site, platform, {installed.name: entry}, {"PATH": installed.path})
        place_files(installed, bridge.data_dir / "homes" / installed.name, model)
        with bridge:
            number = bridge.begin("t1", "run touch made.txt", installed.name)
            (ask,) = bridge.open_asks()
            ((options,),) = bridge.rows("select options from ask where id = ?", ask)
            allow = [each["id"] for each in json.loads(options) if each["kind"] == "allow_once"]
            bridge.answer(ask, allow[0], installed.name)
            made = bridge.end("t1", number, installed.name)

        assert (made["state"], made["note"]) == ("done", "")
        assert (bridge.workspace(installed.name) / "made.txt").exists()


def answer(bridge: BridgeProcess, kit: Kit, words: str, number: int) -> RemotePost:
    """Say something and wait for the answer, the so-manieth in this place."""
    assert bridge.deliver(message("t1", words, kit.name), agent=kit.name) == 200

    def done(_posts: list[RemotePost]) -> bool:
        return [post.state for post in bridge.platform.turns()] == ["done"] * number

    bridge.platform.wait(done, BOUND)
    return bridge.platform.turns()[-1]
