"""From ACP_AGENT_COMMAND to AGENTS_JSON: conversations on Slack and GitHub go on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge import DEMO, demo
from tests.support.github import Hub
from tests.support.slack import SlackWorld


@contextmanager
def single(folder: Path) -> Iterator[tuple[SlackWorld, Hub]]:
    """Run one agent without a name of its own on Slack and GitHub."""
    world = SlackWorld(folder, agents=("default",))
    with Hub(folder, ("default",)) as hub:
        app = world.apps["default"]
        world.settings = {
            "AGENTS_JSON": "",
            "ACP_AGENT_COMMAND": shlex.join(DEMO),
            "SLACK_BOT_TOKEN": app.token,
            "SLACK_APP_TOKEN": app.app_token,
            "SLACK_BOT_TOKEN__DEFAULT": "",
            "SLACK_APP_TOKEN__DEFAULT": "",
            **{name.removesuffix("__DEFAULT"): value for name, value in hub.settings.items()},
        }
        with world:
            hub.call(world.bridge)
            yield world, hub


def restart(world: SlackWorld, **agents: dict[str, Any]) -> None:
    """Start again with agents that have names."""
    world.bridge.stop()
    del world.bridge.settings["ACP_AGENT_COMMAND"]
    world.bridge.settings["AGENTS_JSON"] = json.dumps(agents)
    world.bridge.start()
    world.wait_listening()


def converse(world: SlackWorld, hub: Hub) -> tuple[str, Any]:
    """Begin one conversation on each platform."""
    thread = world.say(f"{world.at('default')} say the door is blue")
    world.wait_answer(thread, "the door is blue", "default")
    issue = hub.github.open_issue("ann", hub.repository, "A bug", "@default-bridge say it is red")
    hub.github.wait(lambda: any("it is red" in each.body for each in issue.comments))
    world.settle()
    return thread, issue


def goes_on(world: SlackWorld, hub: Hub, thread: str, issue: Any) -> None:
    """Have both conversations remembered by the agent they are with now."""
    world.say("recall", thread=thread)
    hub.github.comment("ann", issue, "@default-bridge recall")
    world.wait_answer(thread, "the door is blue", "default", times=2)
    hub.github.wait(lambda: sum("it is red" in each.body for each in issue.comments) >= 2)
    world.settle()
    assert world.bridge.rows("select count(*) from session") == [(2,)]


@pytest.mark.long
def test_the_same_program_goes_on_with_every_conversation(tmp_path: Path) -> None:
    with single(tmp_path) as (world, hub):
        thread, issue = converse(world, hub)

        restart(world, claude=demo(), other=demo(*DEMO, "--other"))

        goes_on(world, hub, thread, issue)
        items = world.bridge.http.get("/api/v1/sessions").json()["items"]
        assert {each["agent"] for each in items} == {"claude"}


@pytest.mark.slow
def test_another_program_goes_on_when_the_operator_says_so(tmp_path: Path) -> None:
    with single(tmp_path) as (world, hub):
        thread, issue = converse(world, hub)

        restart(world, claude=demo(*DEMO, "--other"))

        world.bridge.wait(
            lambda: world.bridge.logged("agent-bridge agents rename default claude"), "not said"
        )
        items = world.bridge.http.get("/api/v1/sessions").json()["items"]
        assert {each["state"] for each in items} == {"removed"}
        moved = world.bridge.http.post("/api/v1/agents/default/rename", json={"to": "claude"})
        assert moved.status_code == 200, moved.text
        world.wait_listening()
        goes_on(world, hub, thread, issue)
