"""Wrong and unsafe configurations refuse to start: setting, remedy, no value."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app.agents.catalog import known_agents
from app.config import load
from app.errors import ConfigurationError
from app.services import registered_services

# Whatever has this in it must not be shown.
CANARY = "canary42"
KEY = f"{CANARY}-nKqR7vZ2tXwB5yLc9mPd4sGh"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{CANARY}\n-----END RSA PRIVATE KEY-----"
SLACK = {"SLACK_BOT_TOKEN": f"xoxb-{CANARY}", "SLACK_APP_TOKEN": f"xapp-{CANARY}"}
GITHUB = {
    "GITHUB_APP_ID": "4711",
    "GITHUB_PRIVATE_KEY": PEM,
    "GITHUB_WEBHOOK_SECRET": f"webhook-secret-{CANARY}",
}
LINEAR = {
    "LINEAR_WEBHOOK_SECRET": f"webhook-secret-{CANARY}",
    "LINEAR_ACCESS_TOKEN": f"lin-{CANARY}",
}


def agents(**entries: Any) -> dict[str, str]:
    """Write entries into AGENTS_JSON."""
    return {"AGENTS_JSON": json.dumps(entries)}


def claude(**keys: Any) -> dict[str, str]:
    """Write one entry with further keys."""
    return agents(claude={"command": f"claude-agent-acp --flag {CANARY}", **keys})


GLOB_KEYS = (
    *("tools_allow", "tools_deny", "capabilities_allow", "capabilities_deny"),
    *("agents_allow", "agents_deny"),
)


def suffixed(settings: Mapping[str, str], agent: str) -> dict[str, str]:
    """Give settings to one agent."""
    return {f"{name}__{agent}": value for name, value in settings.items()}


def without(settings: Mapping[str, str], name: str) -> dict[str, str]:
    """Leave one setting out."""
    return {key: value for key, value in settings.items() if key != name}


TWO = agents(claude={"command": "claude-agent-acp"}, codex={"command": "codex-acp"})


@dataclass(frozen=True)
class Broken:
    """One configuration that must not start."""

    what: str
    environ: Mapping[str, str]
    setting: str
    words: str
    dotenv: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)


TABLE = [
    # Agents
    Broken("no such network", claude(network="lan"), "AGENTS_JSON", "network"),
    Broken("no host", claude(network_hosts=[f"https://{CANARY}/"]), "AGENTS_JSON", "@registries"),
    Broken("hosts as text", claude(network_hosts=CANARY), "AGENTS_JSON", "list"),
    Broken(
        "hosts of no network",
        claude(network="none", network_hosts=["a.example"]),
        "AGENTS_JSON",
        'network "restricted"',
    ),
    Broken(
        "a limited network without isolation",
        claude(network="restricted", sandbox="none"),
        "AGENTS_JSON",
        "not isolated",
    ),
    Broken("no JSON", {"AGENTS_JSON": f"{{'{CANARY}'"}, "AGENTS_JSON", "quotes, commas"),
    Broken("JSON of another kind", {"AGENTS_JSON": f'["{CANARY}"]'}, "AGENTS_JSON", "object"),
    Broken("JSON that is empty", {"AGENTS_JSON": " "}, "AGENTS_JSON", "Give it a value"),
    Broken("JSON without an agent", {"AGENTS_JSON": "{}"}, "AGENTS_JSON", "Name one"),
    Broken("JSON without end", {"AGENTS_JSON": "[" * 100_000}, "AGENTS_JSON", "plain object"),
    Broken(
        "the same agent twice",
        {"AGENTS_JSON": '{"claude": {"command": "a"}, "claude": {"command": "b"}}'},
        "AGENTS_JSON",
        "Remove one of the two",
    ),
    Broken(
        "the same key twice",
        {"AGENTS_JSON": '{"claude": {"sandbox": "auto", "sandbox": "none"}}'},
        "AGENTS_JSON",
        "Remove one of the two",
    ),
    Broken(
        "a name in capitals", agents(Claude={"command": "x"}), "AGENTS_JSON", "lowercase letters"
    ),
    Broken(
        "a secret as name", agents(**{f"sk-{CANARY}!": {"command": "x"}}), "AGENTS_JSON", "letters"
    ),
    Broken("a name of 32 letters", agents(**{"a" * 32: {"command": "x"}}), "AGENTS_JSON", "31"),
    Broken("an entry that is a text", agents(claude=CANARY), "AGENTS_JSON", '{"command"'),
    Broken("a misspelt key", claude(sandox="none"), "AGENTS_JSON", "Did you mean sandbox?"),
    Broken("an unknown key", claude(zzz=CANARY), "AGENTS_JSON", "The keys are command"),
    Broken("a secret as key", claude(**{f"sk-{CANARY}": 1}), "AGENTS_JSON", "The keys are"),
    Broken("the key name", claude(name=CANARY), "AGENTS_JSON", "The keys are"),
    *(
        Broken(
            f"{key} with a sentence", claude(**{key: [f"{CANARY} !"]}), "AGENTS_JSON", "[] means"
        )
        for key in GLOB_KEYS
    ),
    Broken("an unknown exposure", claude(tool_exposure=CANARY), "AGENTS_JSON", "'mixed'"),
    Broken("an unknown voice", claude(delegation_voice=CANARY), "AGENTS_JSON", "'caller'"),
    Broken(
        "no command", agents(claude={"mode": "plan"}), "AGENTS_JSON", "Add command, driver or url"
    ),
    Broken("an empty command", claude(command=[]), "AGENTS_JSON", '["program"'),
    Broken("a blank command", claude(command=" "), "AGENTS_JSON", '["program"'),
    Broken("a command of numbers", claude(command=[1]), "AGENTS_JSON", '["one", "two"]'),
    Broken(
        "a command with an open quote", claude(command=f'x "{CANARY}'), "AGENTS_JSON", "Close every"
    ),
    Broken(
        "an unknown driver", claude(driver=CANARY), "AGENTS_JSON", "Known agents are claude, codex"
    ),
    Broken("a driver of another type", claude(driver=[CANARY]), "AGENTS_JSON", "string in quotes"),
    Broken(
        "two defaults",
        agents(a={"command": "x", "default": True}, b={"command": "y", "default": True}),
        "AGENTS_JSON",
        "Mark only one",
    ),
    Broken("a default in words", claude(default="yes"), "AGENTS_JSON", "true or false"),
    Broken("env as a list", claude(env=[CANARY]), "AGENTS_JSON", "object"),
    Broken("env with a number", claude(env={"A": 1}), "AGENTS_JSON", "string in quotes"),
    Broken("env with an odd name", claude(env={f"A={CANARY}": "x"}), "AGENTS_JSON", "OPENAI_API"),
    Broken("env with HOME", claude(env={"HOME": "/x"}), "AGENTS_JSON", "the key home"),
    Broken("env_passthrough as text", claude(env_passthrough="A"), "AGENTS_JSON", '["one", "two"]'),
    Broken(
        "a platform token for an agent",
        claude(env_passthrough=["SLACK_BOT_TOKEN"]),
        "AGENTS_JSON",
        "no agent gets the bridge's own credentials",
    ),
    Broken("an unknown sandbox", claude(sandbox=CANARY), "AGENTS_JSON", "'auto', 'bubblewrap'"),
    Broken("a relative home", claude(home=CANARY), "AGENTS_JSON", "absolute path"),
    Broken("the person's home as a path", claude(home="~/"), "AGENTS_JSON", '"user"'),
    Broken(
        "the person's home in a sandbox",
        claude(home="user", sandbox="bubblewrap"),
        "AGENTS_JSON",
        'sandbox "none"',
    ),
    Broken("an unknown preset", claude(permissions=CANARY), "AGENTS_JSON", "read-only, careful"),
    Broken("a rule without decision", claude(permissions=[{"kind": "x"}]), "AGENTS_JSON", "preset"),
    Broken(
        "a rule with two decisions",
        claude(permissions=[{"allow": "read", "deny": "edit"}]),
        "AGENTS_JSON",
        "list of rules",
    ),
    Broken(
        "a rule of a wrong kind", claude(permissions=[{"allow": CANARY}]), "AGENTS_JSON", "edit"
    ),
    Broken(
        "a rule on something unknown",
        claude(permissions=[{"allow": {"colour": CANARY}}]),
        "AGENTS_JSON",
        "list of rules",
    ),
    Broken("options of a wrong type", claude(options={"a": [CANARY]}), "AGENTS_JSON", "true or"),
    Broken("options as a list", claude(options=[CANARY]), "AGENTS_JSON", "object"),
    Broken("an unknown way to ship", claude(ship=CANARY), "AGENTS_JSON", "'pr', 'push' or 'none'"),
    Broken("no idle time", claude(idle_minutes=0), "AGENTS_JSON", "greater than 0"),
    Broken(
        "an allowance by title alone",
        claude(permissions=[{"allow": {"title": CANARY}}]),
        "AGENTS_JSON",
        "Add the kind",
    ),
    Broken("an unknown limit", claude(limits={"max_turn": 1}), "AGENTS_JSON", "max_turns"),
    Broken("a limit in words", claude(limits={"max_turns": "4"}), "AGENTS_JSON", "whole number"),
    Broken("an empty mode", claude(mode=""), "AGENTS_JSON", "Give it a value"),
    Broken("a command that is empty", {"ACP_AGENT_COMMAND": ""}, "ACP_AGENT_COMMAND", "remove it"),
    Broken(
        "a command that cannot be split",
        {"ACP_AGENT_COMMAND": f"agent '{CANARY}"},
        "ACP_AGENT_COMMAND",
        "Close every quote",
    ),
    Broken(
        "a suffix that two agents share with a file",
        agents(codex={"command": "x"}, **{"codex-file": {"command": "y"}}),
        "AGENTS_JSON",
        "Rename one of the agents",
    ),
    # Services and their credentials
    Broken(
        "an unknown service", {"ENABLED_SERVICES": f"web,{CANARY}"}, "ENABLED_SERVICES", "linear"
    ),
    Broken("no service", {"ENABLED_SERVICES": ","}, "ENABLED_SERVICES", "Choose from"),
    Broken(
        "a service without credentials", {"ENABLED_SERVICES": "slack"}, "ENABLED_SERVICES", "SLACK_"
    ),
    Broken("half of Slack", without(SLACK, "SLACK_APP_TOKEN"), "SLACK_APP_TOKEN", "Add it"),
    Broken(
        "half of Slack for another agent",
        {**TWO, **suffixed(without(SLACK, "SLACK_BOT_TOKEN"), "CODEX")},
        "SLACK_BOT_TOKEN__CODEX",
        "Add it",
    ),
    Broken(
        "an app token as bot token",
        {**SLACK, "SLACK_BOT_TOKEN": f"xapp-{CANARY}"},
        "SLACK_BOT_TOKEN",
        "begins with xoxb-",
    ),
    Broken(
        "a bot token as app token",
        {**SLACK, "SLACK_APP_TOKEN": f"xoxb-{CANARY}"},
        "SLACK_APP_TOKEN",
        "begins with xapp-",
    ),
    Broken(
        "an App without key", without(GITHUB, "GITHUB_PRIVATE_KEY"), "GITHUB_PRIVATE_KEY", "Add"
    ),
    Broken("an App's login alone", {"GITHUB_BOT_LOGIN": "x"}, "GITHUB_APP_ID", "Add it"),
    Broken(
        "a key that is none",
        {**GITHUB, "GITHUB_PRIVATE_KEY": CANARY},
        "GITHUB_PRIVATE_KEY",
        "whole PEM file",
    ),
    Broken(
        "an empty webhook secret",
        {**GITHUB, "GITHUB_WEBHOOK_SECRET": ""},
        "GITHUB_WEBHOOK_SECRET",
        "Give it a value",
    ),
    Broken(
        "an empty webhook secret of another agent",
        {**TWO, **suffixed({**GITHUB, "GITHUB_WEBHOOK_SECRET": ""}, "CODEX")},
        "GITHUB_WEBHOOK_SECRET__CODEX",
        "Give it a value",
    ),
    Broken(
        "a blank webhook secret",
        {**LINEAR, "LINEAR_WEBHOOK_SECRET": " \n"},
        "LINEAR_WEBHOOK_SECRET",
        "Give it a value",
    ),
    Broken(
        "a webhook secret with a space at its end",
        {**LINEAR, "LINEAR_WEBHOOK_SECRET": f"{CANARY} "},
        "LINEAR_WEBHOOK_SECRET",
        "Copy it again",
    ),
    Broken("an App's name as id", {**GITHUB, "GITHUB_APP_ID": CANARY}, "GITHUB_APP_ID", "number"),
    Broken(
        "an installation in words",
        {**GITHUB, "GITHUB_INSTALLATION_ID": CANARY},
        "GITHUB_INSTALLATION_ID",
        "number",
    ),
    Broken(
        "a login with a space",
        {**GITHUB, "GITHUB_BOT_LOGIN": f"a {CANARY}"},
        "GITHUB_BOT_LOGIN",
        "my-app[bot]",
    ),
    Broken(
        "Linear without a token",
        without(LINEAR, "LINEAR_ACCESS_TOKEN"),
        "LINEAR_ACCESS_TOKEN",
        "Add it",
    ),
    Broken(
        "a Linear client without secret",
        {**LINEAR, "LINEAR_CLIENT_ID": CANARY},
        "LINEAR_CLIENT_SECRET",
        "Add it",
    ),
    Broken(
        "one Slack app for two agents",
        {**TWO, **SLACK, **suffixed(SLACK, "CODEX")},
        "SLACK_BOT_TOKEN",
        "its own identity",
    ),
    Broken(
        "one socket for two agents",
        {
            **TWO,
            **SLACK,
            **suffixed({**SLACK, "SLACK_BOT_TOKEN": f"xoxb-2-{CANARY}"}, "CODEX"),
        },
        "SLACK_APP_TOKEN",
        "its own identity",
    ),
    Broken(
        "one App for two agents",
        {**TWO, **GITHUB, **suffixed(GITHUB, "CODEX")},
        "GITHUB_APP_ID",
        "its own identity",
    ),
    Broken(
        "credentials of an agent that does not exist",
        {**TWO, **suffixed(SLACK, "GEMINI")},
        "SLACK_BOT_TOKEN__GEMINI",
        "SLACK_BOT_TOKEN__CODEX",
    ),
    Broken(
        "a misspelt credential of an agent",
        {**TWO, "SLACK_BOT_TOKN__CODEX": CANARY},
        "SLACK_BOT_TOKN__CODEX",
        "Did you mean SLACK_BOT_TOKEN__CODEX?",
    ),
    Broken(
        "a model key of an agent that does not take it",
        {**TWO, "ANTHROPIC_API_KEY__CODEX": CANARY},
        "ANTHROPIC_API_KEY__CODEX",
        "env_passthrough",
    ),
    # Secrets in files
    Broken(
        "a secret given twice",
        {**SLACK, "SLACK_BOT_TOKEN_FILE": f"/run/{CANARY}"},
        "SLACK_BOT_TOKEN",
        "Remove one of the two",
    ),
    Broken(
        "a file that is not there",
        {**SLACK, "SLACK_BOT_TOKEN": "", "SLACK_BOT_TOKEN_FILE": f"/run/{CANARY}"},
        "SLACK_BOT_TOKEN_FILE",
        "readable file",
    ),
    Broken(
        "an empty file",
        {"BRIDGE_ADMIN_TOKEN_FILE": "{tmp}/empty"},
        "BRIDGE_ADMIN_TOKEN_FILE",
        "readable file",
        files={"empty": b"\n"},
    ),
    Broken(
        "a file that is not text",
        {"BRIDGE_ADMIN_TOKEN_FILE": "{tmp}/odd"},
        "BRIDGE_ADMIN_TOKEN_FILE",
        "readable file",
        files={"odd": b"\xff\xfe\x00"},
    ),
    Broken(
        "a file that is huge",
        {"BRIDGE_ADMIN_TOKEN_FILE": "{tmp}/huge"},
        "BRIDGE_ADMIN_TOKEN_FILE",
        "readable file",
        files={"huge": b"x" * 100_000},
    ),
    # Unknown names
    Broken(
        "a misspelt name", {}, "AGENT_JSON", "Did you mean AGENTS_JSON?", dotenv="AGENT_JSON={}"
    ),
    Broken(
        "a misspelt name before suffixes it would explain",
        {},
        "AGENT_JSON",
        "Did you mean",
        dotenv=f"SLACK_BOT_TOKEN__CODEX={CANARY}\nAGENT_JSON={{}}",
    ),
    Broken("an unknown name", {}, "ZZZ", ".env.example", dotenv=f"ZZZ={CANARY}"),
    Broken("a name in small letters", {}, ".env", "Did you mean PORT?", dotenv="\nport=80"),
    Broken("a file for what is no secret", {}, "PORT_FILE", "Write PORT", dotenv="PORT_FILE=/x"),
    Broken(
        "a suffix where none is possible", {}, "PORT__DEMO", "Write PORT", dotenv="PORT__DEMO=1"
    ),
    Broken("a line that is no setting", {}, ".env", "line 3", dotenv=f"PORT=1\n\n{CANARY}\n"),
    Broken("a line with an open quote", {}, ".env", "NAME=value", dotenv=f'PORT="{CANARY}\n'),
    Broken(
        "a misspelt name of our own in the environment",
        {"BRIDGE_ADMIN_TOKN": CANARY},
        "BRIDGE_ADMIN_TOKN",
        "Did you mean BRIDGE_ADMIN_TOKEN?",
    ),
    # Access
    Broken("a public address without token", {"HOST": "0.0.0.0"}, "HOST", "Set BRIDGE_ADMIN_TOKEN"),
    Broken("another machine's name", {"HOST": f"{CANARY}.example"}, "HOST", "BRIDGE_ADMIN_TOKEN"),
    Broken("an address with a scheme", {"HOST": f"http://{CANARY}"}, "HOST", "without a port"),
    Broken("a short token", {"BRIDGE_ADMIN_TOKEN": CANARY}, "BRIDGE_ADMIN_TOKEN", "at least 16"),
    Broken("an empty token", {"BRIDGE_ADMIN_TOKEN": ""}, "BRIDGE_ADMIN_TOKEN", "Give it a value"),
    Broken(
        "a token with a space",
        {"BRIDGE_ADMIN_TOKEN": f"{CANARY} {CANARY} {CANARY}"},
        "BRIDGE_ADMIN_TOKEN",
        "Remove them",
    ),
    Broken("a short key", {"BRIDGE_SECRET_KEY": CANARY * 2}, "BRIDGE_SECRET_KEY", "at least 32"),
    Broken("a user without service", {"ALLOWED_USERS": CANARY}, "ALLOWED_USERS", "github:octocat"),
    Broken("a user by name", {"ALLOWED_USERS": f"slack:@{CANARY}"}, "ALLOWED_USERS", "slack:U"),
    Broken("a user elsewhere", {"ALLOWED_USERS": f"irc:{CANARY}"}, "ALLOWED_USERS", "github:"),
    Broken("a bot by name", {"ALLOWED_BOTS": f"github:{CANARY}"}, "ALLOWED_BOTS", "github:4189"),
    Broken("nobody at all", {"ALLOWED_USERS_ONLY": "true"}, "ALLOWED_USERS_ONLY", "Name people"),
    Broken(
        "neither true nor false", {"ALLOWED_USERS_ONLY": CANARY}, "ALLOWED_USERS_ONLY", "true or"
    ),
    Broken(
        "an agent without isolation that nobody asked for",
        {**claude(home="user"), **SLACK},
        "AGENTS_JSON",
        '"sandbox": "none"',
    ),
    # Addresses, places, numbers
    Broken("Slack without /api/", {"SLACK_API_URL": f"https://{CANARY}"}, "SLACK_API_URL", "/api/"),
    Broken("a slash too many", {"GITHUB_API_URL": f"https://{CANARY}/"}, "GITHUB_API_URL", "slash"),
    Broken("another scheme", {"GITHUB_GIT_URL": f"ssh://{CANARY}"}, "GITHUB_GIT_URL", "https://"),
    Broken(
        "a password in an address",
        {"LINEAR_API_URL": f"https://a:{CANARY}@host/graphql"},
        "LINEAR_API_URL",
        "https://host/path",
    ),
    Broken("no address", {"BRIDGE_BASE_URL": CANARY}, "BRIDGE_BASE_URL", "https://"),
    Broken("an address cut off", {"BRIDGE_BASE_URL": "http://[::1"}, "BRIDGE_BASE_URL", "https://"),
    Broken("no repository", {"GITHUB_REPO": CANARY}, "GITHUB_REPO", "owner/name"),
    Broken(
        "a channel without repository",
        {"SLACK_CHANNEL_REPOS": f"C1={CANARY}"},
        "SLACK_CHANNEL_REPOS",
        "owner/name",
    ),
    Broken(
        "a repository without channel",
        {"SLACK_CHANNEL_REPOS": f"owner/{CANARY}"},
        "SLACK_CHANNEL_REPOS",
        "C1=owner/name",
    ),
    Broken(
        "prompts that are no JSON",
        {"SLACK_CHANNEL_PROMPTS": f"C1={CANARY}"},
        "SLACK_CHANNEL_PROMPTS",
        "quotes, commas",
    ),
    Broken(
        "teams of a wrong type",
        {"LINEAR_TEAM_REPOS": '{"ENG": 4711}'},
        "LINEAR_TEAM_REPOS",
        "string in quotes",
    ),
    Broken("a port in words", {"PORT": CANARY}, "PORT", "whole number"),
    Broken("a port beyond", {"PORT": "70000"}, "PORT", "at most 65535"),
    Broken("no port", {"PORT": "0"}, "PORT", "at least 1"),
    Broken(
        "a proxy by name", {"TRUSTED_PROXIES": f"::1,{CANARY}"}, "TRUSTED_PROXIES", "10.0.0.0/8"
    ),
    Broken("one port for all", {"HOOKS_PORT": "8000"}, "HOOKS_PORT", "Choose another one"),
    Broken("no turns", {"MAX_TURNS": "0"}, "MAX_TURNS", "at least 1"),
    Broken("half a process", {"MAX_PROCESSES": "1.5"}, "MAX_PROCESSES", "whole number"),
    Broken("a time in words", {"IDLE_MINUTES": CANARY}, "IDLE_MINUTES", "Write a number"),
    Broken("a time before now", {"TURN_MINUTES": "-1"}, "TURN_MINUTES", "greater than 0"),
    Broken("no time at all", {"ASK_HOURS": "inf"}, "ASK_HOURS", "at most"),
    Broken("a budget beyond measure", {"BUDGET_USD": "inf"}, "BUDGET_USD", "Write a number"),
    Broken("a memory too short", {"RETENTION_DAYS": "1"}, "RETENTION_DAYS", "at least 7"),
    Broken("an unknown verbosity", {"VERBOSITY": CANARY}, "VERBOSITY", "'quiet', 'normal'"),
    Broken("an unknown listener", {"UNTAGGED_REPLIES": CANARY}, "UNTAGGED_REPLIES", "'mention'"),
    Broken("an unknown level", {"LOG_LEVEL": CANARY}, "LOG_LEVEL", "'debug'"),
    Broken("an unknown format", {"LOG_FORMAT": CANARY}, "LOG_FORMAT", "'console'"),
    Broken(
        "another database",
        {"DATABASE_URL": f"mysql://bridge:{CANARY}@db/bridge"},
        "DATABASE_URL",
        "postgresql:",
    ),
    Broken(
        "a server without a database",
        {"DATABASE_URL": f"postgresql://bridge:{CANARY}@db"},
        "DATABASE_URL",
        "host/name",
    ),
    Broken("a database in memory", {"DATABASE_URL": "sqlite://"}, "DATABASE_URL", "four slashes"),
    Broken("a relative folder", {"DATA_DIR": CANARY}, "DATA_DIR", "~/"),
    Broken("a bucket", {"SHARED_BUCKET": CANARY}, "SHARED_BUCKET", "SHARED_DIR"),
    Broken("a relative shared folder", {"SHARED_DIR": CANARY}, "SHARED_DIR", "~/"),
    Broken(
        "a shared folder in the machine's own",
        {"DATA_DIR": "{tmp}/data", "SHARED_DIR": "{tmp}/data/shared"},
        "SHARED_DIR",
        "two folders",
    ),
    Broken("a folder around the home", {"DATA_DIR": "{tmp}"}, "DATA_DIR", "its own folder"),
    Broken(
        "a folder that is a file",
        {"DATA_DIR": "{tmp}/taken/data"},
        "DATA_DIR",
        "the bridge owns",
        files={"taken": b""},
    ),
]


def refusal(broken: Broken, tmp_path: Path) -> ConfigurationError:
    """Try to load a broken configuration."""
    for name, content in broken.files.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o755)
    dotenv = tmp_path / ".env" if broken.dotenv is not None else None
    if dotenv:
        dotenv.write_text(broken.dotenv or "")
    environ = {
        name: value.replace("{tmp}", str(tmp_path)) for name, value in broken.environ.items()
    }
    with pytest.raises(ConfigurationError) as caught:
        load(
            {"PATH": "", **environ},
            known=known_agents(),
            dotenv=dotenv,
            services=registered_services(),
            home=tmp_path / "home",
        )
    return caught.value


@pytest.mark.parametrize("broken", TABLE, ids=lambda broken: broken.what)
def test_a_broken_configuration_refuses_with_one_line(broken: Broken, tmp_path: Path) -> None:
    error = refusal(broken, tmp_path)

    assert error.setting == broken.setting
    assert str(error).startswith(f"{broken.setting}: ")
    assert broken.words in str(error)
    assert "\n" not in str(error)
    assert str(error).isprintable()
    # Not even a traceback with its causes shows what was given.
    assert CANARY not in str(error)
    assert not any(CANARY in line for line in traceback.format_exception_only(error))
    assert error.__cause__ is None
    assert error.__context__ is None


def test_the_table_is_long_enough_and_says_nothing_twice() -> None:
    assert len({broken.what for broken in TABLE}) == len(TABLE) >= 40


def test_every_given_value_is_a_canary_somewhere() -> None:
    assert sum(CANARY in str(broken.environ) + str(broken.dotenv) for broken in TABLE) > 60


@pytest.mark.parametrize("content", [b"PORT=\xff", None], ids=["not UTF-8", "a folder"])
def test_an_unreadable_file_of_settings_refuses(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.mkdir() if content is None else path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=r"/\.env: .* text file"):
        load({}, dotenv=path, services=registered_services(), home=tmp_path / "home")
