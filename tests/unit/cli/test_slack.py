"""The manifest of a Slack app, and what `doctor` finds out about it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from app.cli.checks import Finding, Verdict
from app.cli.checks.slack import check_slack
from app.cli.manifests import slack as print_manifest
from app.config import Configuration, load
from app.errors import NotFound
from app.services.slack.manifest import EVENTS, SCOPES
from app.sim.slack import EVENTS as ALL_EVENTS
from app.sim.slack import SCOPES as ALL_SCOPES
from app.sim.slack import App
from app.sim.slack_server import SimulatedSlack
from tests.support.bridge import DEMO

pytestmark = pytest.mark.anyio

Configure = Callable[..., Configuration]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    def make(**settings: str) -> Configuration:
        entry = {"command": DEMO, "sandbox": "none", "display_name": "Claude"}
        agents = {"claude": entry, "codex": {**entry, "display_name": "Codex"}}
        given = {"DATA_DIR": str(tmp_path / "data"), "AGENTS_JSON": json.dumps(agents), **settings}
        return load(given, home=tmp_path)

    return make


@pytest.fixture
async def simulated() -> AsyncIterator[SimulatedSlack]:
    with SimulatedSlack() as slack:
        yield slack


def tokens(slack: SimulatedSlack, app: App) -> dict[str, str]:
    return {
        "SLACK_API_URL": slack.url,
        "SLACK_BOT_TOKEN": app.token,
        "SLACK_APP_TOKEN": app.app_token,
    }


async def findings(configuration: Configuration) -> list[Finding]:
    return [finding async for finding in check_slack(configuration)]


def test_the_manifest_can_be_piped_and_the_steps_are_told_aside(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    print_manifest(configure(), "codex")

    printed = capsys.readouterr()
    manifest = json.loads(printed.out)
    assert manifest["display_information"]["name"] == "Codex"
    assert manifest["oauth_config"]["scopes"]["bot"] == sorted(SCOPES)
    assert manifest["settings"]["event_subscriptions"]["bot_events"] == sorted(EVENTS)
    assert manifest["settings"]["socket_mode_enabled"]
    assert "SLACK_BOT_TOKEN__CODEX" in printed.err
    assert all(f"{scope}: {reason}" in printed.err for scope, reason in SCOPES.items())


def test_an_unknown_agent_has_no_manifest(configure: Configure) -> None:
    with pytest.raises(NotFound, match="nobody"):
        print_manifest(configure(), "nobody")


def test_the_stories_are_played_with_what_the_manifest_asks_for() -> None:
    assert frozenset(SCOPES) == ALL_SCOPES
    assert frozenset(EVENTS) == ALL_EVENTS


async def test_an_app_that_is_set_up_well_is_ok(
    configure: Configure, simulated: SimulatedSlack
) -> None:
    app = simulated.app("claude")

    [finding] = await findings(configure(**tokens(simulated, app)))

    assert finding.verdict is Verdict.OK
    assert app.user in finding.reason


async def test_missing_scopes_are_named(configure: Configure, simulated: SimulatedSlack) -> None:
    app = simulated.app("claude", scopes=ALL_SCOPES - {"files:read"})

    [finding] = await findings(configure(**tokens(simulated, app)))

    assert finding.verdict is Verdict.PROBLEM
    assert "files:read" in finding.reason
    assert "manifest slack claude" in finding.remedy


@pytest.mark.parametrize("name", ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"])
async def test_a_token_that_slack_refuses_is_named_without_its_value(
    configure: Configure, simulated: SimulatedSlack, name: str
) -> None:
    given = tokens(simulated, simulated.app("claude"))
    given[name] += "-old"

    [finding] = await findings(configure(**given))

    assert finding.verdict is Verdict.PROBLEM
    assert name in finding.remedy
    assert given[name] not in f"{finding}"


async def test_a_slack_that_cannot_be_reached_is_a_warning(configure: Configure) -> None:
    given = {"SLACK_API_URL": "http://127.0.0.1:1/api/"}
    given |= {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}

    [finding] = await findings(configure(**given))

    assert finding.verdict is Verdict.WARNING
