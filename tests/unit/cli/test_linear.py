"""What the command line knows of Linear: how to get there, and whether it works."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from app.agents.catalog import known_agents
from app.cli.manifest import show
from app.clock import SystemClock
from app.config import Configuration, ensure_secrets, load
from app.config.process import Sealer
from app.errors import ConfigurationError, NotFound
from app.model.inbound import Delivery
from app.services import registered_services
from app.services.linear import doctor
from app.services.linear.auth import SCOPES, Grants, LinearGrant
from app.services.service import Finding, Severity
from sim.linear import App, Linear
from tests.support.bridge import DEMO
from tests.support.doctor import check_context
from tests.support.linear import credentials
from tests.support.memory import open_stores

pytestmark = pytest.mark.anyio

Configure = Callable[..., Configuration]
Keep = Callable[[Configuration, LinearGrant], Awaitable[None]]


@pytest.fixture
def linear() -> Iterator[Linear]:
    with Linear() as linear:
        yield linear


@pytest.fixture
def app(linear: Linear) -> App:
    return linear.agent("demo")


@pytest.fixture
def configure(tmp_path: Path, linear: Linear) -> Configure:
    def make(**settings: str) -> Configuration:
        entry = {"command": DEMO, "sandbox": "none"}
        given = {
            "DATA_DIR": str(tmp_path / "data"),
            "PATH": "/usr/bin:/bin",
            "AGENTS_JSON": json.dumps({"demo": entry, "other-one": entry}),
            "LINEAR_API_URL": linear.url,
            "BRIDGE_BASE_URL": "https://bridge.example.com",
            **settings,
        }
        return load(
            given, services=registered_services(), home=tmp_path / "home", known=known_agents()
        )

    return make


async def findings(configuration: Configuration) -> list[Finding]:
    return [finding async for finding in doctor.checks(check_context(configuration))]


def test_the_manifest_of_the_default_agent_has_the_plain_path_and_names(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    show(configure(), "linear", "demo", None)
    out, words = capsys.readouterr()
    made = json.loads(out)

    assert made["webhook"]["url"] == "https://bridge.example.com/webhooks/linear"
    assert made["oauth"]["redirect_uris"] == [
        "https://bridge.example.com/install/linear/demo/callback"
    ]
    assert "LINEAR_CLIENT_ID\n" in words
    assert all(scope in words for scope in SCOPES)
    (address,) = re.findall(r"https://linear\.app/settings/api/applications/new\?\S+", words)
    assert json.loads(parse_qs(urlsplit(address).query)["manifest"][0]) == made


def test_the_manifest_of_another_agent_has_its_own(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    show(configure(), "linear", "other-one", None)
    out, words = capsys.readouterr()

    assert json.loads(out)["webhook"]["url"].endswith("/webhooks/linear/other-one")
    assert "LINEAR_WEBHOOK_SECRET__OTHER_ONE\n" in words


def test_an_address_that_linear_cannot_reach_is_refused(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        show(configure(BRIDGE_BASE_URL="http://127.0.0.1:8000"), "linear", "demo", None)

    assert capsys.readouterr().out == ""
    assert str(refusal.value) == (
        "BRIDGE_BASE_URL: Linear cannot reach http://127.0.0.1:8000. "
        "Set BRIDGE_BASE_URL to the public https address of this bridge; a tunnel works too."
    )


def test_the_manifest_of_nobody_is_an_error(configure: Configure) -> None:
    with pytest.raises(NotFound):
        show(configure(), "linear", "nobody", None)


def test_a_service_without_a_manifest_is_an_error(configure: Configure) -> None:
    with pytest.raises(NotFound, match="chat"):
        show(configure(), "chat", "demo", None)


async def test_who_has_no_credentials_is_not_asked_about(configure: Configure) -> None:
    assert await findings(configure()) == []


async def test_credentials_that_work_are_told_with_the_name_they_have(
    configure: Configure, app: App
) -> None:
    (token, hook) = await findings(configure(**credentials(app, "demo", minted=True)))

    assert (token.verdict, token.reason) == (Severity.OK, "is demo in Acme")
    assert hook.verdict is Severity.OK


async def test_a_token_that_expired_is_a_problem_with_a_remedy(
    configure: Configure, app: App
) -> None:
    given = credentials(app, "demo")
    app.tokens.clear()

    (token, _) = await findings(configure(**given))

    assert token.verdict is Severity.PROBLEM
    assert "LINEAR_ACCESS_TOKEN" in token.remedy


async def test_a_persons_token_is_a_problem(configure: Configure, app: App) -> None:
    app.user.app = False

    (token, _) = await findings(configure(**credentials(app, "demo")))

    assert "actor=app" in token.remedy


async def test_a_linear_that_does_not_answer_is_a_problem(
    configure: Configure, linear: Linear, app: App
) -> None:
    linear.down = True

    (token, _) = await findings(configure(**credentials(app, "demo")))

    assert token.verdict is Severity.PROBLEM
    assert "LINEAR_API_URL" in token.remedy


async def test_the_scopes_that_a_token_lacks_are_named(configure: Configure, app: App) -> None:
    app.scope = "read,app:mentionable"

    (token, _) = await findings(configure(**credentials(app, "demo")))

    assert token.reason == "the token lacks app:assignable, write"


async def test_looking_changes_nothing_at_linear(
    configure: Configure, linear: Linear, app: App
) -> None:
    session = linear.delegate(linear.issue("Do this"), app, linear.person("Ann"))
    (token, _) = await findings(configure(**credentials(app, "demo")))

    assert token.verdict is Severity.OK
    assert linear.fields() == ["viewer", "agentSessionUpdate"]
    assert (session.activities, session.plan) == ([], [])


async def test_what_linear_does_not_tell_is_said_to_be_unknown(
    configure: Configure, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unclear(*_: object) -> None:
        return None

    monkeypatch.setattr(doctor, "may_write", unclear)
    (token, _) = await findings(configure(**credentials(app, "demo")))

    assert token.verdict is Severity.WARNING
    assert "could not check whether it can write" in token.reason


@pytest.fixture
def keep() -> Keep:
    """Keep a grant as the bridge does."""

    async def kept(configuration: Configuration, grant: LinearGrant) -> None:
        clock = SystemClock()
        sealer = Sealer(ensure_secrets(configuration).secret_key)
        with open_stores(configuration.data_dir, clock) as (_, stores):
            await Grants("linear:demo", stores.sealed, sealer).keep(grant, clock)

    return kept


async def test_an_installation_is_looked_at_and_never_renewed(
    configure: Configure, linear: Linear, app: App, keep: Keep
) -> None:
    configuration = configure(**credentials(app, "demo", minted=True))
    token, later = next(iter(app.tokens)), SystemClock().now() + 3600

    await keep(configuration, LinearGrant(app.client_id, token, "refresh", later))
    (works, _) = await findings(configuration)
    await keep(configuration, LinearGrant(app.client_id, "no token", "refresh", later))
    (refused, _) = await findings(configuration)
    await keep(configuration, LinearGrant(app.client_id, token, "refresh", 0.0))
    (old, _) = await findings(configuration)
    await keep(configuration, LinearGrant(app.client_id, ended="it was revoked"))
    (ended, _) = await findings(configuration)

    assert (works.verdict, works.reason) == (Severity.OK, "is demo in Acme")
    assert (refused.verdict, "renews" in refused.remedy) == (Severity.PROBLEM, True)
    assert (old.verdict, "renewed" in old.reason) == (Severity.OK, True)
    assert (ended.verdict, ended.reason) == (Severity.PROBLEM, "it was revoked")
    assert "https://bridge.example.com/install/linear/demo" in ended.remedy
    assert "token" not in linear.fields()


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000", "http://bridge.example.com"])
async def test_an_address_that_linear_cannot_reach_is_a_warning(
    configure: Configure, app: App, address: str
) -> None:
    given = credentials(app, "demo")
    plain = {"BRIDGE_BASE_URL": address, "ALLOW_PLAIN_HTTP": "true"}

    (_, hook) = await findings(configure(**given, **plain))

    assert hook.verdict is Severity.WARNING
    assert "BRIDGE_BASE_URL" in hook.remedy


@pytest.mark.parametrize(
    ("signatures", "verdict", "words"),
    [
        ((), Severity.OK, "none has arrived yet"),
        ((None, None), Severity.WARNING, "none arrive"),
        ((None, "signed"), Severity.OK, "they arrive"),
    ],
)
async def test_webhooks_that_never_arrive_are_told_from_those_that_do(
    configure: Configure,
    app: App,
    signatures: tuple[str | None, ...],
    verdict: Severity,
    words: str,
) -> None:
    configuration = configure(**credentials(app, "demo"))
    ensure_secrets(configuration)
    with open_stores(configuration.data_dir, SystemClock()) as (_, stores):
        for number, signature in enumerate(signatures):
            kept = Delivery("linear:demo", f"d{number}", signature, {}, b"{}", 1.0)
            await stores.deliveries.add(kept)

    (_, hook) = await findings(configuration)

    assert (hook.verdict, words in hook.reason) == (verdict, True)
    assert "https://bridge.example.com/webhooks/linear" in f"{hook.reason} {hook.remedy}"
