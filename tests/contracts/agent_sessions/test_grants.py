"""An "always" through the whole bridge: it covers one command, and no agent keeps it for itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.kits import Kit
from tests.agents.model import Model
from tests.agents.rig import place_files
from tests.support.git_server import git
from tests.support.hook import message
from tests.support.observe import Observed
from tests.support.platform import Platform

COMMAND = "touch made.txt"


def options_of(bridge: Observed, ask: int) -> dict[str, Any]:
    ((options,),) = bridge.rows("select options from ask where id = ?", ask)
    return {each["kind"]: each for each in json.loads(options)}


@pytest.mark.long
def test_an_always_covers_one_command_over_turns_and_restarts_and_leaves_no_file(
    installed: Kit, site: Path
) -> None:
    name, folder = installed.name, site / "project"
    git(site, "init", "-q", str(folder))
    with Model() as model, Platform() as platform:
        entry = {**installed.entry(model.url), "unasked": "stop"}
        bridge = Observed(site, platform, {name: entry}, {"PATH": installed.path})
        place_files(installed, bridge.data_dir / "homes" / name, model)
        with bridge:
            assert bridge.deliver(message("t1", f"repo folder:{folder}", name), agent=name) == 200
            bridge.notice("t1", 1)
            first = bridge.begin("t1", f"run {COMMAND}", name)
            (ask,) = bridge.open_asks()
            offered = options_of(bridge, ask)
            bridge.answer(ask, offered["allow_always"]["id"], name)
            ends = [bridge.end("t1", first, name)["state"]]
            ends.append(bridge.ask("t1", f"run {COMMAND}", name)["state"])
            bridge.kill()
            bridge.start()
            ends.append(bridge.ask("t1", f"run {COMMAND}", name)["state"])
            asked = len(bridge.rows("select id from ask"))
            decided = bridge.rows("select data from transcript where kind = 'tool'")

            other = bridge.begin("t1", f"run {COMMAND} too.txt", name)
            (unlike,) = bridge.open_asks()
            bridge.answer(unlike, options_of(bridge, unlike)["reject_once"]["id"], name)
            bridge.end("t1", other, name)
            bridge.begin("t2", f"run {COMMAND}", name)
            (elsewhere,) = bridge.open_asks()
            bridge.answer(elsewhere, options_of(bridge, elsewhere)["reject_once"]["id"], name)

        assert (ends, asked) == (["done"] * 3, 1)
        assert {each.name for each in folder.iterdir()} == {".git", "made.txt"}
        assert offered["allow_always"]["name"].startswith("Always allow ")
        records = [json.loads(data).get("decided", {}).get("what", "") for (data,) in decided]
        assert any(COMMAND in record for record in records)
