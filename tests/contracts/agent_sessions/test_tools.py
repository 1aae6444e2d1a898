"""Agents call the bridge's tools, each in the way that is known to work for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.agents.kits import Kit
from tests.agents.model import Model
from tests.agents.rig import place_files
from tests.support.observe import Observed, demo
from tests.support.platform import Platform

HELPED = (
    "select turn.state from turn join session on session.id = turn.session "
    "where session.agent = 'helper'"
)


def test_an_agent_lists_the_others_and_asks_one_in_the_way_that_its_card_names(
    installed: Kit, site: Path
) -> None:
    with working(installed, site) as bridge:
        listed = call(bridge, installed, "agents_list", {})
        asked = call(bridge, installed, "agents_message", {"to": "helper", "text": "say I help"})

        assert '"name": "helper"' in listed
        assert "helper" in asked
        bridge.wait(lambda: bridge.rows(HELPED) == [("done",)], "helper did nothing")


@contextmanager
def working(kit: Kit, site: Path) -> Iterator[Observed]:
    """Run a bridge with an agent, configured as an operator would, and a helper."""
    with Model() as model, Platform() as platform:
        entry = {**kit.entry(model.url), "agents_allow": ["helper"]}
        agents = {kit.name: entry, "helper": demo()}
        bridge = Observed(site, platform, agents, {"PATH": kit.path})
        place_files(kit, bridge.data_dir / "homes" / kit.name, model)
        with bridge:
            yield bridge


def call(bridge: Observed, kit: Kit, name: str, arguments: dict[str, Any]) -> str:
    """Have an agent call a tool, allow it where it asks, and return what came of it."""
    number = bridge.begin("t1", WAYS[kit.program.tool_exposure](name, arguments), kit.name)
    answered: set[int] = set()

    def over() -> bool:
        for ask, options in bridge.rows("select id, options from ask where state = 'open'"):
            if ask not in answered:
                kinds = {each["kind"]: each["id"] for each in json.loads(options)}
                bridge.answer(ask, kinds["allow_once"], kit.name)
                answered.add(ask)
        turns = bridge.turns("t1", kit.name)
        return len(turns) > number and turns[number].content["state"] in ("done", "failed")

    bridge.wait(over, f"{name} was not called", 120.0)
    content = bridge.turns("t1", kit.name)[number].content
    assert content["state"] == "done", content
    return str(content["text"]).replace("\\", "")


def _over_mcp(name: str, arguments: dict[str, Any]) -> str:
    return f"tool {name} {json.dumps(arguments)}"


def _by_command(name: str, arguments: dict[str, Any]) -> str:
    keys = [f"--{key} '{value}'" for key, value in arguments.items()]
    return " ".join(["run agent-bridge-tool", name, *keys])


WAYS: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "tools": _over_mcp,
    "skills": _by_command,
}
