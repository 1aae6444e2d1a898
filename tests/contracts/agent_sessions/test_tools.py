"""Agents call the bridge's tools, each in the way that is known to work for it."""

from __future__ import annotations

from pathlib import Path

from tests.agents.kits import Kit
from tests.agents.model import Model
from tests.agents.rig import place_files
from tests.support.platform import Platform
from tests.support.tools import Tooled


def test_an_agent_calls_a_tool(installed: Kit, site: Path) -> None:
    with Model() as model, Platform() as platform:
        entry = {**installed.entry(model.url), "tool_exposure": "tools"}
        bridge = Tooled(site, platform, {installed.name: entry}, {"PATH": installed.path})
        place_files(installed, bridge.data_dir / "homes" / installed.name, model)
        with bridge:
            said = bridge.ask("t1", 'tool echo {"text": "hello from a tool"}', installed.name)
            print(said["text"])
            print(bridge.log.read_text()[-3000:])
            assert "hello from a tool" in said["text"]
            assert '"turn"' in said["text"].replace("\\", "")
