"""What a good configuration means."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from app.agents.catalog import known_agents
from app.config import (
    Account,
    AgentConfig,
    Configuration,
    PermissionRule,
    Settings,
    forget_process_secrets,
    from_process,
    load,
)
from app.config.agents import KEYS
from app.services import registered_services
from app.services.github.settings import GithubCredentials
from app.services.linear.settings import LinearCredentials, LinearSettings
from app.services.slack.settings import SlackCredentials, SlackSettings

PEM = """\
-----BEGIN RSA PRIVATE KEY-----
MIIEsecretline1
secretline2=
-----END RSA PRIVATE KEY-----
"""
SLACK = {"SLACK_BOT_TOKEN": "xoxb-default", "SLACK_APP_TOKEN": "xapp-default"}
GITHUB = {
    "GITHUB_APP_ID": "4711",
    "GITHUB_PRIVATE_KEY": PEM,
    "GITHUB_WEBHOOK_SECRET": "github-hook-secret",
}
TWO = {
    "AGENTS_JSON": json.dumps(
        {
            "claude": {"command": "claude-agent-acp", "default": True},
            "codex": {"command": ["codex-acp"], "mode": "read-only"},
        }
    )
}


def configured(
    tmp_path: Path,
    environ: Mapping[str, str] | None = None,
    dotenv: str | None = None,
    executable: Path = Path("/opt/bridge/bin/python"),
) -> Configuration:
    """Load a configuration in an empty world."""
    path = tmp_path / ".env"
    if dotenv is not None:
        path.write_text(dotenv)
    return load(
        {"PATH": "", **(environ or {})},
        known=known_agents(),
        dotenv=path if dotenv is not None else None,
        services=registered_services(),
        home=tmp_path / "home",
        executable=executable,
    )


def agent(tmp_path: Path, **keys: Any) -> AgentConfig:
    """Configure one agent with the given keys."""
    entry = {"command": "my-agent", **keys}
    return configured(tmp_path, {"AGENTS_JSON": json.dumps({"mine": entry})}).agents["mine"]


def program(folder: Path, name: str) -> Path:
    """Put an executable into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_nothing_configured_means_the_demo_agent_on_the_page_only(tmp_path: Path) -> None:
    configuration = configured(tmp_path)

    assert list(configuration.agents) == ["demo"]
    assert configuration.default_agent == "demo"
    assert configuration.agents_source == "demo"
    assert configuration.agents["demo"].driver == "demo"
    assert configuration.agents["demo"].home == "own"
    assert configuration.services == ("web",)
    assert configuration.settings == Settings()
    assert configuration.data_dir == tmp_path / "home/.local/share/agent-bridge"
    assert configuration.database_url == f"sqlite:///{configuration.data_dir}/bridge.db"
    assert (configuration.settings.host, configuration.settings.port) == ("127.0.0.1", 8000)
    assert configuration.base_url == "http://127.0.0.1:8000"
    assert configuration.loopback
    assert not configuration.isolation_required
    assert list(configuration.secret_values()) == []


def test_the_demo_agent_is_found_beside_the_interpreter(tmp_path: Path) -> None:
    script = program(tmp_path / "venv/bin", "agent-bridge-demo-agent")

    configuration = configured(tmp_path, executable=tmp_path / "venv/bin/python")

    assert configuration.agents["demo"].command == (str(script),)


def test_the_demo_agent_runs_from_its_file_where_it_is_not_installed(tmp_path: Path) -> None:
    (executable, file) = configured(tmp_path).agents["demo"].command

    assert executable == "/opt/bridge/bin/python"
    assert file.endswith("app/demo_agent.py")


def test_known_agents_on_path_run_as_the_persons_own(tmp_path: Path) -> None:
    for name in ("gemini", "claude-code-acp", "codex-acp", "unknown"):
        program(tmp_path / "bin", name)

    configuration = configured(tmp_path, {"PATH": f"/nowhere:{tmp_path}/bin"})

    assert configuration.agents_source == "path"
    assert list(configuration.agents) == ["claude", "codex", "gemini"]
    assert configuration.default_agent == "claude"
    assert configuration.agents["claude"].command == (f"{tmp_path}/bin/claude-code-acp",)
    assert configuration.agents["gemini"].command == (f"{tmp_path}/bin/gemini", "--acp")
    assert {one.home for one in configuration.agents.values()} == {"user"}
    assert {one.sandbox for one in configuration.agents.values()} == {"none"}


@pytest.mark.parametrize(
    "opened", [SLACK, {"HOST": "0.0.0.0", "BRIDGE_ADMIN_TOKEN": "long-and-random-enough"}]
)
def test_known_agents_on_path_are_isolated_once_others_can_reach_them(
    tmp_path: Path, opened: dict[str, str]
) -> None:
    for name in ("gemini", "claude-agent-acp"):
        program(tmp_path / "bin", name)

    configuration = configured(tmp_path, {"PATH": f"{tmp_path}/bin", **opened})

    assert list(configuration.agents) == ["claude", "gemini"]
    assert configuration.plain_agent == "claude"
    assert {(each.home, each.sandbox) for each in configuration.agents.values()} == {
        ("own", "auto")
    }


def test_a_single_command_makes_the_agent_default(tmp_path: Path) -> None:
    program(tmp_path / "bin", "gemini")
    environ = {"ACP_AGENT_COMMAND": "'my agent' --flag 'a b'", "PATH": f"{tmp_path}/bin"}

    configuration = configured(tmp_path, environ)

    assert configuration.agents_source == "ACP_AGENT_COMMAND"
    assert list(configuration.agents) == ["default"]
    assert configuration.agents["default"].command == ("my agent", "--flag", "a b")
    assert configuration.agents["default"].sandbox == "auto"


def test_agents_json_comes_before_everything_else(tmp_path: Path) -> None:
    configuration = configured(tmp_path, {**TWO, "ACP_AGENT_COMMAND": "other"})

    assert configuration.agents_source == "AGENTS_JSON"
    assert list(configuration.agents) == ["claude", "codex"]
    assert configuration.default_agent == "claude"
    assert configuration.agents["codex"].command == ("codex-acp",)
    assert configuration.agents["codex"].mode == "read-only"


def test_the_first_agent_is_the_default_when_none_is_marked(tmp_path: Path) -> None:
    entries = {"b": {"command": "x"}, "a": {"command": "y", "default": False}}

    configuration = configured(tmp_path, {"AGENTS_JSON": json.dumps(entries)})

    assert configuration.default_agent == "b"
    assert configuration.agents["b"].default
    assert not configuration.agents["a"].default


def test_every_key_of_an_entry_is_understood(tmp_path: Path) -> None:
    entry = {
        "command": "my-agent --acp",
        "driver": "gemini",
        "default": True,
        "display_name": "Mine",
        "emoji": "🦊",
        "description": "Good at tests.",
        "prompt": "You test.",
        "visible": False,
        "env": {"A": "1", "MY_TOKEN": "secret-of-mine"},
        "env_passthrough": ["OPENAI_API_KEY"],
        "mode": "plan",
        "model": "large",
        "options": {"effort": "high", "fast": True},
        "auth": "gemini-api-key",
        "permissions": [
            {"allow": "read"},
            {"ask": ["edit", "execute"]},
            {"deny": {"kind": "execute", "command": ["rm *", "sudo *"]}},
        ],
        "unasked": "tell",
        "memory": "ask",
        "home": "~/agents/mine",
        "sandbox": "bubblewrap",
        "network": "restricted",
        "network_hosts": ["api.example.com", "*.example.org", "127.0.0.1:11434", "@registries"],
        "ship": "push",
        "while_busy": "queue",
        "idle_minutes": 5,
        "limits": {"max_turns": 2, "budget_usd": 1.5},
        "tool_exposure": "mixed",
        "tools_allow": ["agents_*", "memory_read"],
        "tools_deny": ["agents_spawn"],
        "capabilities_allow": [],
        "capabilities_deny": ["place.*"],
        "agents_allow": ["codex"],
        "agents_deny": ["*-secret"],
        "delegation_voice": "own",
        "approvers": ["slack:U0123"],
    }

    mine = agent(tmp_path, **entry)

    assert set(entry) == set(KEYS) - {"extends", "url", "remote_folder", "tls"}
    assert mine.command == ("my-agent", "--acp")
    assert mine.home == tmp_path / "home/agents/mine"
    assert mine.permissions == (
        PermissionRule("allow", kind=("read",)),
        PermissionRule("ask", kind=("edit", "execute")),
        PermissionRule("deny", kind=("execute",), command=("rm *", "sudo *")),
    )
    assert dict(mine.options) == {"effort": "high", "fast": True}
    assert mine.limits.max_turns == 2
    assert mine.limits.turn_minutes is None
    assert mine.suffix == "MINE"
    assert mine.tools_allow == ("agents_*", "memory_read")
    assert mine.capabilities_allow == ()


def test_presets_are_understood(tmp_path: Path) -> None:
    assert agent(tmp_path).permissions == "careful"
    assert agent(tmp_path, permissions="trusted").permissions == "trusted"


@pytest.mark.parametrize(
    ("command", "driver"),
    [
        ("claude-code-acp", "claude"),
        ("/opt/bin/claude-agent-acp", "claude"),
        ("npx -y @agentclientprotocol/claude-agent-acp@0.99.1", "claude"),
        ("npx @zed-industries/codex-acp", "codex-zed"),
        (["codex-acp"], "codex"),
        ("opencode acp", "opencode"),
        ("my-own-agent", None),
    ],
)
def test_the_driver_is_guessed_from_the_command(
    tmp_path: Path, command: object, driver: str | None
) -> None:
    assert agent(tmp_path, command=command).driver == driver


def test_a_driver_brings_its_command(tmp_path: Path) -> None:
    environ = {"AGENTS_JSON": '{"helper": {"driver": "gemini"}}'}

    helper = configured(tmp_path, environ).agents["helper"]

    assert helper.command == ("gemini", "--acp")
    assert helper.driver == "gemini"


def test_the_persons_home_implies_no_sandbox(tmp_path: Path) -> None:
    assert agent(tmp_path, home="user").sandbox == "none"
    assert agent(tmp_path, home="own").sandbox == "auto"


def test_an_agent_without_isolation_may_be_asked_for_in_words(tmp_path: Path) -> None:
    entry = {"command": "x", "home": "user", "sandbox": "none"}

    configuration = configured(tmp_path, {"AGENTS_JSON": json.dumps({"mine": entry}), **SLACK})

    assert configuration.isolation_required
    assert configuration.agents["mine"].sandbox == "none"


def test_services_with_credentials_are_enabled(tmp_path: Path) -> None:
    configuration = configured(tmp_path, {**TWO, **SLACK, **GITHUB})

    assert configuration.services == ("slack", "github", "web")
    assert set(configuration.credentials) == {("slack", "claude"), ("github", "claude")}


def test_a_service_that_is_not_enabled_has_no_credentials(tmp_path: Path) -> None:
    environ = {**TWO, **SLACK, **GITHUB, "ENABLED_SERVICES": "web, slack"}

    configuration = configured(tmp_path, environ)

    assert configuration.services == ("slack", "web")
    assert set(configuration.credentials) == {("slack", "claude")}
    assert "github-hook-secret" in set(configuration.secret_values())


def test_plain_credentials_belong_to_the_default_agent_alone(tmp_path: Path) -> None:
    configuration = configured(tmp_path, {**TWO, **SLACK})

    assert ("slack", "claude") in configuration.credentials
    assert ("slack", "codex") not in configuration.credentials


def test_suffixed_credentials_belong_to_their_agent(tmp_path: Path) -> None:
    environ = {
        **TWO,
        **SLACK,
        "SLACK_BOT_TOKEN__CODEX": "xoxb-codex",
        "SLACK_APP_TOKEN__CODEX": "xapp-codex",
        "SLACK_BOT_TOKEN__CLAUDE": "xoxb-claude",
    }

    configuration = configured(tmp_path, environ)

    assert configuration.credentials["slack", "codex"] == SlackCredentials(
        bot_token=SecretStr("xoxb-codex"), app_token=SecretStr("xapp-codex")
    )
    assert configuration.credentials["slack", "claude"] == SlackCredentials(
        bot_token=SecretStr("xoxb-claude"), app_token=SecretStr("xapp-default")
    )


def test_a_hyphen_in_a_name_is_an_underscore_in_its_suffix(tmp_path: Path) -> None:
    environ = {
        "AGENTS_JSON": '{"a": {"command": "x"}, "code-x2": {"command": "y"}}',
        "SLACK_BOT_TOKEN__CODE_X2": "xoxb-2",
        "SLACK_APP_TOKEN__CODE_X2": "xapp-2",
    }

    assert set(configured(tmp_path, environ).credentials) == {("slack", "code-x2")}


@pytest.mark.parametrize("key", [PEM, PEM.replace("\n", "\\n"), PEM.replace("\n", "\r\n")])
def test_a_private_key_may_stand_inline_with_any_line_breaks(tmp_path: Path, key: str) -> None:
    configuration = configured(tmp_path, {**TWO, **GITHUB, "GITHUB_PRIVATE_KEY": key})

    credentials = configuration.credentials["github", "claude"]
    assert isinstance(credentials, GithubCredentials)
    assert credentials.private_key.get_secret_value() == PEM
    assert {"MIIEsecretline1", "secretline2="} <= set(configuration.secret_values())


def test_linear_takes_a_token_or_what_mints_one(tmp_path: Path) -> None:
    hook = {"LINEAR_WEBHOOK_SECRET": "linear-hook-secret"}
    minted = {"LINEAR_CLIENT_ID": "id", "LINEAR_CLIENT_SECRET": "linear-secret"}

    by_hand = configured(tmp_path, {**TWO, **hook, "LINEAR_ACCESS_TOKEN": "lin_token"})
    by_client = configured(tmp_path, {**TWO, **hook, **minted})

    assert isinstance(by_hand.credentials["linear", "claude"], LinearCredentials)
    assert isinstance(by_client.credentials["linear", "claude"], LinearCredentials)


def test_the_environment_beats_the_file(tmp_path: Path) -> None:
    configuration = configured(tmp_path, {"PORT": "9001"}, dotenv="PORT=9000\nMAX_TURNS=7\n")

    assert configuration.settings.port == 9001
    assert configuration.settings.max_turns == 7


def test_the_file_may_quote_comment_and_span_lines(tmp_path: Path) -> None:
    dotenv = f'# comment\n\nexport PORT="9000" # why\nGITHUB_PRIVATE_KEY="{PEM}"\n' + "".join(
        f"{name}={value}\n" for name, value in GITHUB.items() if name != "GITHUB_PRIVATE_KEY"
    )

    configuration = configured(tmp_path, TWO, dotenv=dotenv)

    assert configuration.settings.port == 9000
    assert ("github", "claude") in configuration.credentials


def test_a_dollar_sign_in_the_file_stays_what_it_is(tmp_path: Path) -> None:
    dotenv = "SLACK_BOT_TOKEN=xoxb-${HOME}\nSLACK_APP_TOKEN=xapp-$1\n"

    configuration = configured(tmp_path, dotenv=dotenv)

    assert set(configuration.secret_values()) == {"xoxb-${HOME}", "xapp-$1"}


def test_other_programs_variables_are_no_concern_of_ours(tmp_path: Path) -> None:
    environ = {
        "GITHUB_TOKEN": "x",
        "SLACK_WEBHOOK": "x",
        "BRIDGE_OVER": "x",
        "A__B": "x",
        "_": "/x",
    }

    assert configured(tmp_path, environ).services == ("web",)


def test_empty_placeholders_count_as_absent(tmp_path: Path) -> None:
    environ = {"SLACK_BOT_TOKEN": "", "SLACK_APP_TOKEN": "", "PORT": "", "ANTHROPIC_API_KEY": ""}

    configuration = configured(tmp_path, environ)

    assert configuration.services == ("web",)
    assert configuration.settings.port == 8000


def test_every_secret_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(PEM)
    (tmp_path / "hook").write_text("webhook secret from a file\n")
    (tmp_path / "token").write_text("token-from-a-file-0123\r\n")
    (tmp_path / "openai").write_text("sk-openai-from-file")
    environ = {
        **TWO,
        "GITHUB_APP_ID__CODEX": "4711",
        "GITHUB_PRIVATE_KEY__CODEX_FILE": f"{tmp_path}/key",
        "GITHUB_WEBHOOK_SECRET__CODEX_FILE": f"{tmp_path}/hook",
        "BRIDGE_ADMIN_TOKEN_FILE": f"{tmp_path}/token",
        "OPENAI_API_KEY_FILE": f"{tmp_path}/openai",
    }

    configuration = configured(tmp_path, environ)

    credentials = configuration.credentials["github", "codex"]
    assert isinstance(credentials, GithubCredentials)
    assert credentials.webhook_secret.get_secret_value() == "webhook secret from a file"
    assert configuration.settings.bridge_admin_token == SecretStr("token-from-a-file-0123")
    assert configuration.model_keys("codex") == {"OPENAI_API_KEY": SecretStr("sk-openai-from-file")}


def test_model_keys_go_only_to_agents_that_list_them(tmp_path: Path) -> None:
    environ = {
        **TWO,
        "ANTHROPIC_API_KEY": "sk-anthropic",
        "OPENAI_API_KEY": "sk-openai",
        "OPENAI_API_KEY__CODEX": "sk-openai-of-codex",
        "GEMINI_API_KEY": "sk-gemini",
        "UNRELATED": "x",
    }

    configuration = configured(tmp_path, environ)

    assert configuration.model_keys("claude") == {"ANTHROPIC_API_KEY": SecretStr("sk-anthropic")}
    assert configuration.model_keys("codex") == {"OPENAI_API_KEY": SecretStr("sk-openai-of-codex")}
    # What nobody uses is hidden all the same.
    assert "sk-gemini" in set(configuration.secret_values())


def test_a_passthrough_name_works_like_a_model_key(tmp_path: Path) -> None:
    entries = {
        "a": {"command": "x", "env_passthrough": ["MY_KEY", "http_proxy"]},
        "b": {"command": "y", "env": {"MY_KEY": "from-the-table", "FLAG": "on"}},
    }
    dotenv = "MY_KEY=plain-value\nhttp_proxy=http://proxy\nMY_KEY__A=value-of-a\n"

    configuration = configured(tmp_path, {"AGENTS_JSON": json.dumps(entries)}, dotenv=dotenv)

    assert configuration.model_keys("a") == {
        "MY_KEY": SecretStr("value-of-a"),
        "http_proxy": SecretStr("http://proxy"),
    }
    assert configuration.model_keys("b") == {
        "MY_KEY": SecretStr("from-the-table"),
        "FLAG": SecretStr("on"),
    }


def test_only_what_is_named_like_a_secret_is_hidden(tmp_path: Path) -> None:
    entry = {"command": "x", "env": {"MY_PASSWORD": "hide-me-please", "MY_PATH": "/usr/share/x"}}

    configuration = configured(tmp_path, {"AGENTS_JSON": json.dumps({"mine": entry})})

    assert set(configuration.secret_values()) == {"hide-me-please"}


def test_lists_maps_and_words_are_parsed(tmp_path: Path) -> None:
    environ = {
        "ALLOWED_USERS": "slack:U1, github:octocat,linear:2f6a-1",
        "ALLOWED_USERS_ONLY": "yes",
        "ALLOWED_BOTS": "github:41898282,slack:B1",
        "GITHUB_REPO": "owner/name.js",
        "SLACK_CHANNEL_REPOS": "C1=owner/one, C2=folder:/srv/two",
        "LINEAR_TEAM_REPOS": '{"ENG": "owner/three"}',
        "SLACK_CHANNEL_PROMPTS": '{"C1": "Be brief, please."}',
        "UNTAGGED_REPLIES": "latest",
        "VERBOSITY": "full",
        "LOG_LEVEL": "DEBUG",
        "LOG_FORMAT": "json",
        "IDLE_MINUTES": "0.5",
        "BUDGET_USD": "12.5",
        "DATABASE_URL": f"sqlite:///{tmp_path}/other.db",
        "DATA_DIR": "~/bridge",
        "BRIDGE_BASE_URL": "https://bridge.example/",
        "SLACK_API_URL": "http://127.0.0.1:9000/api/",
    }

    configuration = configured(tmp_path, environ)

    assert configuration.settings.allowed_users == (
        Account("slack", "U1"),
        Account("github", "octocat"),
        Account("linear", "2f6a-1"),
    )
    assert configuration.settings.allowed_users_only
    assert configuration.settings.allowed_bots == (
        Account("github", "41898282"),
        Account("slack", "B1"),
    )
    assert configuration.settings.default_repository == "owner/name.js"
    assert configuration.settings_of(SlackSettings).channel_repos == {
        "C1": "owner/one",
        "C2": "folder:/srv/two",
    }
    assert configuration.settings_of(LinearSettings).team_repos == {"ENG": "owner/three"}
    assert configuration.settings_of(SlackSettings).channel_prompts == {"C1": "Be brief, please."}
    assert configuration.settings.untagged_replies == "latest"
    assert configuration.settings.verbosity == "full"
    assert (configuration.settings.log_level, configuration.settings.log_format) == (
        "debug",
        "json",
    )
    assert (configuration.settings.idle_minutes, configuration.settings.budget_usd) == (0.5, 12.5)
    assert configuration.database_url == f"sqlite:///{tmp_path}/other.db"
    assert configuration.data_dir == tmp_path / "home/bridge"
    assert configuration.base_url == "https://bridge.example"
    assert configuration.settings_of(SlackSettings).api_url == "http://127.0.0.1:9000/api/"


def test_a_public_address_with_a_token_needs_isolation(tmp_path: Path) -> None:
    environ = {"HOST": "0.0.0.0", "BRIDGE_ADMIN_TOKEN": "f3a91c07d25b8e64"}

    configuration = configured(tmp_path, environ)

    assert not configuration.loopback
    assert configuration.isolation_required
    assert configuration.base_url == "http://127.0.0.1:8000"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback_has_many_names(tmp_path: Path, host: str) -> None:
    assert configured(tmp_path, {"HOST": host}).loopback


def test_an_address_of_six_parts_gets_brackets(tmp_path: Path) -> None:
    assert configured(tmp_path, {"HOST": "::1"}).base_url == "http://[::1]:8000"


def test_nothing_can_be_changed_afterwards(tmp_path: Path) -> None:
    configuration = configured(tmp_path, {**TWO, **SLACK})

    with pytest.raises(dataclasses.FrozenInstanceError):
        configuration.base_url = ""  # type: ignore[misc]
    with pytest.raises(ValidationError):
        configuration.settings.port = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        configuration.agents["x"] = configuration.agents["claude"]  # type: ignore[index]
    with pytest.raises(ValidationError):
        configuration.agents["claude"].mode = "yolo"


def test_no_representation_shows_a_secret(tmp_path: Path) -> None:
    entry = {"command": "x", "env": {"A_KEY": "canary-1"}, "env_passthrough": ["B_KEY"]}
    environ = {
        "AGENTS_JSON": json.dumps({"mine": entry}),
        "B_KEY": "canary-2",
        "SLACK_BOT_TOKEN": "xoxb-canary-3",
        "SLACK_APP_TOKEN": "xapp-canary-4",
        "BRIDGE_ADMIN_TOKEN": "canary-5-0123456789",
    }

    configuration = configured(tmp_path, environ)

    assert len(set(configuration.secret_values())) == 5
    assert "canary" not in repr(configuration) + str(configuration)
    assert "canary" not in repr(configuration.model_keys("mine"))


def test_loading_reads_nothing_but_what_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORT", "1234")
    monkeypatch.setenv("HOME", "/somewhere/else")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("PORT=4321")

    configuration = configured(tmp_path / "world")

    assert configuration.settings.port == 8000
    assert configuration.home == tmp_path / "world/home"


def test_the_process_brings_its_environment_and_the_file_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-process")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("ACP_AGENT_COMMAND", "my-agent")
    monkeypatch.setattr("app.config.process.checkout", lambda: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("SLACK_APP_TOKEN=xapp-file\nPORT=4321\n")

    configuration = from_process(known_agents(), registered_services())

    assert configuration.settings.port == 4321
    assert configuration.home == tmp_path / "home"
    assert configuration.dotenv == tmp_path / ".env"
    assert configuration.path == "/nowhere"
    assert ("slack", "default") in configuration.credentials


def test_what_children_may_get_of_the_environment_holds_no_secret(tmp_path: Path) -> None:
    environ = {**TWO, **SLACK, "OPENAI_API_KEY": "sk-1", "LANG": "C.UTF-8"}

    surroundings = configured(tmp_path, environ).surroundings

    assert surroundings == {"PATH": "", "LANG": "C.UTF-8"}


def test_secrets_are_taken_out_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "OPENAI_API_KEY", "OPENAI_API_KEY__CODEX"]
    values = dict(zip(names, ["xoxb-1", "xapp-1", "sk-1", "sk-2"], strict=True))
    for name, value in {**values, **TWO, "PORT": "9000"}.items():
        monkeypatch.setenv(name, value)

    forget_process_secrets(configured(tmp_path, {**TWO, **values}))

    assert not {*names, "AGENTS_JSON"} & set(os.environ)
    assert os.environ["PORT"] == "9000"


def test_plain_names_and_paths_are_those_of_the_default_agent(tmp_path: Path) -> None:
    configuration = configured(tmp_path, TWO)
    claude, codex = (configuration.agents[name] for name in ("claude", "codex"))

    assert claude.setting("CHAT_TOKEN") == "CHAT_TOKEN"
    assert codex.setting("CHAT_TOKEN") == "CHAT_TOKEN__CODEX"
    assert configuration.webhook_paths("chat", "codex") == ("/webhooks/chat/codex",)
    assert configuration.webhook_paths("chat", "claude") == (
        "/webhooks/chat",
        "/webhooks/chat/claude",
    )
