"""The manifest of a Slack app, and what `doctor` finds out about it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from app.cli.manifest import show
from app.clock import SystemClock
from app.config import AgentRecord, Configuration, ensure_secrets, load
from app.config.process import Sealer
from app.errors import NotFound
from app.services import registered_services
from app.services.service import Finding, Severity
from app.services.slack.doctor import check_events, checks
from app.services.slack.manifest import EVENTS, OPTIONAL, SCOPES, creation_address, manifest, steps
from app.store.database import Database
from app.store.guarding import Guard, put_on_guard
from app.store.stores import Stores
from app.vault import Vault
from sim.slack.model import EVENTS as ALL_EVENTS
from sim.slack.model import SCOPES as ALL_SCOPES
from sim.slack.model import App
from sim.slack.server import SimulatedSlack
from tests.support.bridge import DEMO
from tests.support.doctor import check_context
from tests.support.memory import delivery, prepare_store

pytestmark = pytest.mark.anyio

Configure = Callable[..., Configuration]

GIVEN = {
    "SLACK_API_URL": "http://127.0.0.1:1/api/",
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_APP_TOKEN": "xapp-1",
}


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    def make(**settings: str) -> Configuration:
        entry = {"command": DEMO, "sandbox": "none", "display_name": "Claude"}
        agents = {"claude": entry, "codex": {**entry, "display_name": "Codex"}}
        given = {"DATA_DIR": str(tmp_path / "data"), "AGENTS_JSON": json.dumps(agents), **settings}
        return load(given, services=registered_services(), home=tmp_path)

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
    return [finding async for finding in checks(check_context(configuration))]


def test_the_manifest_can_be_piped_and_the_steps_are_told_aside(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    show(configure(), "slack", "codex", None)

    printed = capsys.readouterr()
    shown = json.loads(printed.out)
    assert shown["display_information"]["name"] == "Codex"
    assert shown["oauth_config"]["scopes"]["bot"] == sorted(SCOPES)
    assert shown["settings"]["event_subscriptions"]["bot_events"] == sorted(EVENTS)
    assert shown["settings"]["socket_mode_enabled"]
    assert "SLACK_BOT_TOKEN__CODEX" in printed.err
    assert all(f"{scope}: {reason}" in printed.err for scope, reason in SCOPES.items())


def test_one_address_fills_in_the_form_with_the_whole_manifest(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    show(configure(), "slack", "codex", None)

    printed = capsys.readouterr()
    (address,) = re.findall(r"https://api\.slack\.com/apps\?new_app=1&\S+", printed.err)
    (filled_in,) = parse_qs(urlsplit(address).query)["manifest_json"]
    assert json.loads(filled_in) == json.loads(printed.out)
    assert "paste the manifest" in printed.err


def test_a_manifest_too_long_for_an_address_is_pasted() -> None:
    made = manifest("日" * 35, "語" * 300)
    assert creation_address(made) is not None

    made["long"] = "語" * 200

    assert creation_address(made) is None
    assert "manifest_json" not in (told := steps("Codex", made, str, ""))
    assert "paste the manifest" in told


@pytest.mark.parametrize("service", ["slack", "linear"])
def test_a_stored_agent_is_given_its_credentials_by_name(
    configure: Configure, capsys: pytest.CaptureFixture[str], service: str
) -> None:
    stored = AgentRecord(id="first", name="helper", former=("first",), entry={"command": "x"})
    there = configure(BRIDGE_BASE_URL="https://bridge.example.com").reader.read([stored])

    show(there, service, "helper", None)

    printed = capsys.readouterr()
    assert f"credentials.{service}." in printed.err
    assert "agents set helper NAME=VALUE" in printed.err
    assert ".env" not in printed.err
    assert "/webhooks/linear/first" not in printed.out
    assert "/install/linear/helper" not in printed.out


def test_a_local_address_is_no_obstacle_but_said(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    show(configure(BRIDGE_BASE_URL="https://bridge.example.com"), "slack", "codex", None)
    assert "BRIDGE_BASE_URL" not in capsys.readouterr().err

    show(configure(), "slack", "codex", None)

    assert capsys.readouterr().err.endswith(
        "Set BRIDGE_BASE_URL to the public https address of this bridge; a tunnel works too.\n"
    )


def test_the_manifest_keeps_to_the_lengths_that_slack_accepts() -> None:
    made = manifest("A name that is longer than Slack would like it to be", "words " * 100)

    [shortcut] = made["features"]["shortcuts"]
    prompts = made["features"]["agent_view"]["suggested_prompts"]
    assert len(made["display_information"]["name"]) == 35
    assert len(made["display_information"]["description"]) == 140
    assert len(made["features"]["agent_view"]["agent_description"]) == 300
    assert (shortcut["type"], len(shortcut["name"])) == ("message", 24)
    assert {"name", "type", "callback_id", "description"} == set(shortcut)
    assert 0 < len(prompts) <= 4
    assert all(set(prompt) == {"title", "message"} for prompt in prompts)


def test_an_unknown_agent_has_no_manifest(configure: Configure) -> None:
    with pytest.raises(NotFound, match="nobody"):
        show(configure(), "slack", "nobody", None)


def test_the_stories_are_played_with_what_the_manifest_asks_for() -> None:
    assert frozenset(SCOPES) == ALL_SCOPES
    assert frozenset(EVENTS) == ALL_EVENTS


async def test_an_app_that_is_set_up_well_is_ok(
    configure: Configure, simulated: SimulatedSlack
) -> None:
    app = simulated.app("claude")

    [finding] = await findings(configure(**tokens(simulated, app)))

    assert finding.verdict is Severity.OK
    assert app.user in finding.reason


@pytest.mark.parametrize("error", ["feature_disabled", "not_an_agent"])
async def test_an_app_without_agent_sessions_is_said_to_show_less(
    configure: Configure, simulated: SimulatedSlack, error: str
) -> None:
    app = simulated.app("claude", no_sessions=error)

    [finding] = await findings(configure(**tokens(simulated, app)))

    assert finding.verdict is Severity.WARNING
    assert error in finding.reason
    assert "!stop" in finding.remedy


async def test_missing_scopes_are_named(configure: Configure, simulated: SimulatedSlack) -> None:
    app = simulated.app("claude", scopes=ALL_SCOPES - {"files:read"})

    [finding] = await findings(configure(**tokens(simulated, app)))

    assert finding.verdict is Severity.PROBLEM
    assert "files:read" in finding.reason
    assert "manifest slack claude" in finding.remedy


async def test_an_app_of_an_earlier_manifest_works_and_is_told_what_it_lacks(
    configure: Configure, simulated: SimulatedSlack
) -> None:
    app = simulated.app("claude", scopes=ALL_SCOPES - OPTIONAL)

    [finding] = await findings(configure(**tokens(simulated, app)))

    assert finding.verdict is Severity.WARNING
    assert ", ".join(sorted(OPTIONAL)) in finding.reason


@pytest.mark.parametrize("name", ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"])
async def test_a_token_that_slack_refuses_is_named_without_its_value(
    configure: Configure, simulated: SimulatedSlack, name: str
) -> None:
    given = tokens(simulated, simulated.app("claude"))
    given[name] += "-old"

    [finding] = await findings(configure(**given))

    assert finding.verdict is Severity.PROBLEM
    assert name in finding.remedy
    assert given[name] not in f"{finding}"


def frame(type_: str, channel_type: str = "") -> bytes:
    event = {"type": type_, **({"channel_type": channel_type} if channel_type else {})}
    return json.dumps({"type": "events_api", "payload": {"event": event}}).encode()


async def heard(configuration: Configuration, *bodies: bytes, **more: str) -> Finding:
    """Say what is found once the default agent's app was sent these."""
    key = ensure_secrets(configuration).secret_key
    prepare_store(configuration.data_dir)
    database = Database(configuration.database_url)
    put_on_guard(database.engine.dialect, Guard(Vault(), lambda: Sealer(key)))
    database.open()
    for body in bodies:
        stores = Stores.on(database, SystemClock().now)
        await stores.deliveries.add(delivery("slack:claude", body, **more))
    database.close()
    context = check_context(configuration)
    [finding] = [finding async for finding in check_events(context, ["claude"])]
    return finding


SAMPLES = {
    "agent_session_stopped": frame("agent_session_stopped"),
    "app_mention": frame("app_mention"),
    "message.channels": frame("message", "channel"),
    "message.groups": frame("message", "group"),
    "message.im": frame("message", "im"),
    "message.mpim": frame("message", "mpim"),
}


async def test_an_app_that_was_told_everything_hears_everything(configure: Configure) -> None:
    finding = await heard(configure(**GIVEN), *SAMPLES.values())

    assert set(SAMPLES) == set(EVENTS)
    assert (finding.verdict, finding.reason) == (Severity.OK, "every kind arrived recently")


@pytest.mark.parametrize("event", EVENTS)
async def test_what_never_arrived_is_named_without_a_verdict(
    configure: Configure, event: str
) -> None:
    others = {**SAMPLES, event: b"no frame at all"}

    finding = await heard(configure(**GIVEN), *others.values())

    assert finding.verdict is Severity.OK
    assert f"not yet: {event}." in finding.reason


async def test_mentions_without_messages_are_a_fault_in_the_subscriptions(
    configure: Configure,
) -> None:
    finding = await heard(configure(**GIVEN), SAMPLES["app_mention"], SAMPLES["message.im"])

    assert finding.verdict is Severity.WARNING
    assert "message.channels" in finding.remedy


async def test_what_the_bridge_fetched_itself_proves_nothing(configure: Configure) -> None:
    finding = await heard(
        configure(**GIVEN), frame("message", "channel"), delivery_id="missed:C1:1.0"
    )

    assert "arrived recently: none" in finding.reason


async def test_before_the_first_start_nothing_was_heard(configure: Configure) -> None:
    context = check_context(configure(**GIVEN))

    assert [finding async for finding in check_events(context, ["claude"])] == []


async def test_a_slack_that_cannot_be_reached_is_a_warning(configure: Configure) -> None:
    [finding] = await findings(configure(**GIVEN))

    assert finding.verdict is Severity.WARNING
