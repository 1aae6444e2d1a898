"""Platform credentials and a known program on PATH: the agent starts, and it is isolated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.found import install
from tests.support.served import PLAIN_PATH
from tests.support.slack import SlackWorld

pytestmark = pytest.mark.one_database


def test_a_found_agent_is_on_slack_isolated_and_its_threads_outlive_the_credentials(
    tmp_path: Path,
) -> None:
    install(tmp_path / "bin", "opencode")
    world = SlackWorld(tmp_path, agents=("opencode",), page=True)
    app = world.apps["opencode"]
    credentials = {"SLACK_BOT_TOKEN": app.token, "SLACK_APP_TOKEN": app.app_token}
    unset = {f"{name}__OPENCODE": "" for name in credentials}
    found = {"AGENTS_JSON": "", "PATH": f"{tmp_path / 'bin'}:{PLAIN_PATH}"}
    world.settings = {**found, **unset, **credentials}
    with world:
        agent = world.bridge.http.get("/api/v1/agents/opencode").json()
        thread = world.say(f"{world.at('opencode')} say the door is blue")
        world.wait_answer(thread, "the door is blue", "opencode")
        world.settle()

        world.bridge.stop()
        world.bridge.settings |= dict.fromkeys(credentials, "")
        world.bridge.start()
        alone = world.bridge.http.get("/api/v1/agents/opencode").json()
        world.bridge.stop()
        world.bridge.settings |= credentials
        world.bridge.start()
        world.wait_listening()
        world.say("recall", thread=thread)

        world.wait_answer(thread, "the door is blue", "opencode", times=2)
        assert (agent["source"], agent["default"]) == ("found", True)
        assert agent["isolation"].startswith("isolated (bubblewrap)")
        assert "slack" in agent["services"]
        assert alone["isolation"].startswith("not isolated")
        assert alone["isolation_change"].startswith("Its isolation changed. Before: isolated")
        assert world.bridge.rows("select count(*) from session") == [(1,)]
        assert world.bridge.rows("select id from agent") == [("opencode",)]
