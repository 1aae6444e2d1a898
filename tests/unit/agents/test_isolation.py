"""How agents are kept apart: what is hidden from them, and when the bridge refuses to start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.agents.catalog import known_agents
from app.agents.checks import Admission
from app.agents.isolation import isolate_all
from app.agents.registry import open_registry
from app.children.sandbox import Bubblewrap, Plain, Unavailable
from app.config import AgentRecord, Configuration, load
from app.errors import AgentNotStarted, ConfigurationError
from app.services import registered_services

PATH = "/usr/bin:/bin"


def configured(
    tmp_path: Path, entry: dict[str, object] | None = None, **settings: str
) -> Configuration:
    agents = {
        "demo": {"command": ["/bin/cat"], **(entry or {})},
        "other": {"command": ["/bin/cat"]},
    }
    environ = {
        "PATH": PATH,
        "DATA_DIR": str(tmp_path / "data"),
        "AGENTS_JSON": json.dumps(agents),
        **settings,
    }
    return load(
        environ, known=known_agents(), services=registered_services(), home=tmp_path / "person"
    )


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Unavailable("bubblewrap is not installed", "Install it.")
    monkeypatch.setattr("app.agents.isolation.find_bubblewrap", lambda _path: missing)


@pytest.fixture
def with_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Bubblewrap("/usr/bin/bwrap", ())
    monkeypatch.setattr("app.agents.isolation.find_bubblewrap", lambda _path: found)


@pytest.mark.usefixtures("with_bubblewrap")
def test_files_that_hold_secrets_are_hidden_wherever_they_are(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-long-admin-token-in-a-file")
    database = tmp_path / "elsewhere" / "my.db"

    isolation = isolate_all(
        configured(
            tmp_path,
            BRIDGE_ADMIN_TOKEN_FILE=str(token),
            DATABASE_URL=f"sqlite:///{database}",
        )
    )["demo"]

    assert {token, database} <= set(isolation.confinement.secrets)
    assert tmp_path / "data" in isolation.confinement.masked


@pytest.mark.usefixtures("with_bubblewrap")
def test_the_home_of_another_agent_is_hidden_and_the_own_is_not(tmp_path: Path) -> None:
    elsewhere = tmp_path / "homes" / "mine"

    isolations = isolate_all(configured(tmp_path, {"home": str(elsewhere)}))

    assert elsewhere in isolations["other"].confinement.masked
    assert elsewhere not in isolations["demo"].confinement.masked


@pytest.mark.usefixtures("without_bubblewrap")
def test_on_the_own_machine_an_agent_runs_unisolated_and_that_is_said(tmp_path: Path) -> None:
    isolation = isolate_all(configured(tmp_path))["demo"]

    assert isinstance(isolation.sandbox, Plain)
    assert isolation.words.startswith("not isolated (bubblewrap is not installed): it runs as ")
    assert isolation.words.endswith(". Install it.")


@pytest.mark.usefixtures("without_bubblewrap")
@pytest.mark.parametrize(
    ("entry", "settings"),
    [
        ({"sandbox": "bubblewrap"}, {}),
        ({}, {"HOST": "0.0.0.0", "BRIDGE_ADMIN_TOKEN": "a-long-admin-token-for-tests"}),
    ],
    ids=["asked for", "reached by others"],
)
def test_an_agent_that_must_be_isolated_and_cannot_be_refuses_to_start(
    tmp_path: Path, entry: dict[str, object], settings: dict[str, str]
) -> None:
    with pytest.raises(ConfigurationError, match="cannot be isolated") as refusal:
        isolate_all(configured(tmp_path, entry, **settings))

    assert '"sandbox": "none"' in refusal.value.remedy


@pytest.mark.usefixtures("with_bubblewrap")
@pytest.mark.parametrize("entry", [{"sandbox": "none"}, {"home": "user"}])
def test_an_agent_whose_entry_says_so_is_not_isolated(
    tmp_path: Path, entry: dict[str, object]
) -> None:
    assert isinstance(isolate_all(configured(tmp_path, entry))["demo"].sandbox, Plain)


def test_what_keeps_an_agent_asking_wins_over_its_entry(tmp_path: Path) -> None:
    env = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "MINE": "1"}

    isolations = isolate_all(configured(tmp_path, {"driver": "gemini", "env": env}))

    environment = isolations["demo"].environment("marker")
    assert environment["GEMINI_CLI_TRUST_WORKSPACE"] == "false"
    assert environment["MINE"] == "1"
    assert "GEMINI_CLI_TRUST_WORKSPACE" not in isolations["other"].environment("marker")


@pytest.mark.usefixtures("with_bubblewrap")
@pytest.mark.parametrize(
    ("entry", "remedy"),
    [
        ({"sandbox": "none"}, 'To isolate it, remove "sandbox": "none" from its entry'),
        ({"home": "user"}, 'To isolate it, remove "home": "user" from its entry'),
    ],
)
def test_an_agent_that_is_left_open_is_told_with_the_key_that_opens_it(
    tmp_path: Path, entry: dict[str, object], remedy: str
) -> None:
    isolation = isolate_all(configured(tmp_path, entry))["demo"]

    assert remedy in isolation.words
    assert "as its entry says" not in isolation.words


def test_an_agent_found_on_path_is_told_how_to_be_isolated(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gemini").touch(mode=0o755)
    given = {"PATH": str(tmp_path / "bin"), "DATA_DIR": str(tmp_path / "data")}
    configuration = load(given, home=tmp_path / "home", known=known_agents())

    isolation = isolate_all(configuration)["gemini"]

    assert isolation.words.endswith(
        "It was found on PATH. To isolate it, press Isolate it on its page, "
        "or run `agent-bridge agents add gemini`."
    )


@pytest.mark.usefixtures("without_bubblewrap")
async def test_threads_of_the_demo_agent_keep_no_bridge_from_starting(tmp_path: Path) -> None:
    given = configured(
        tmp_path,
        AGENTS_JSON='{"mine": {"command": ["/bin/cat"], "sandbox": "none"}}',
        SLACK_BOT_TOKEN="xoxb-1",
        SLACK_APP_TOKEN="xapp-1",
    )
    records = (AgentRecord(id="demo", name="demo", source="demo"),)
    registry = open_registry(given, records)
    registry.replace(registry.configuration, isolations=isolate_all(registry.configuration))
    admission = Admission(registry)

    with pytest.raises(AgentNotStarted, match="must be isolated"):
        await admission.admit("demo")

    assert admission.closed() == {}
