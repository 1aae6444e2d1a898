"""Agents as the suite of sessions takes them: where each is, and how it is led to the model.

A kit says only what a person who sets the agent up would say: its command, its key, its provider.
How it is kept from acting unasked is the catalog's business, and that is what is tested.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.agents.catalog import AgentProgram, known_agents
from tests.agents.install import command_of, node_folder

ROOT = Path(__file__).parents[2]
KEY = "key-of-the-tests"
Texts = Mapping[str, str]


def _nothing(_url: str) -> Texts:
    return {}


@dataclass(frozen=True, slots=True)
class Kit:
    """One agent, ready to be configured for a model at some address."""

    name: str
    """What the catalog calls it."""
    command: tuple[str, ...]
    environment: Callable[[str], Texts] = _nothing
    """Its variables, given the address of the model."""
    files: Callable[[str], Texts] = _nothing
    """Files in its HOME, given the same."""
    free_mode: str | None = None
    """A mode in which it makes a file in its workspace without asking, if it has one."""
    resumes: bool = True
    """Whether it offers to resume a conversation; all of them offer to load one."""
    instructed: bool = False
    """Whether it takes a system prompt over ACP."""
    steered: bool = False
    """Whether it takes words into a running turn."""
    pulls: bool = False
    """Whether it asks for words in its turns."""
    waits_for_subagents: bool = False
    """Whether it runs sub-agents as sessions, and its turns wait for them."""
    leaves_subagents: bool = False
    """Whether it runs sub-agents as sessions, and its turns end without them."""
    frees: tuple[str, str] = (".no-such-settings", "")
    """A file in its HOME, and what it says to make commands run unasked."""
    is_relayed: bool = False
    """Whether it runs behind a relay, as on another machine."""
    unguarded: tuple[str, ...] = ()
    """The traps of a hostile checkout that go off where nothing keeps them out."""

    @property
    def program(self) -> AgentProgram:
        """What is known about it."""
        return next(program for program in known_agents() if program.name == self.name)

    def entry(self, url: str) -> dict[str, Any]:
        """Write its entry in the registry, for a model at some address."""
        own = self.environment(url)
        entry = {"driver": self.name, "command": list(self.command), "env": dict(own)}
        if any(url in value for value in own.values()):
            return entry
        # Nothing but a file in its HOME tells it where its model is.
        listed = f"{urlsplit(url).hostname}:{urlsplit(url).port or 443}"
        return {**entry, "network_hosts": [listed]}

    @property
    def obeys(self) -> tuple[str, ...]:
        """What it obeys in a checkout and cannot be kept from."""
        return self.program.obeys

    @property
    def asks_a_model(self) -> bool:
        """Whether there is a model behind it."""
        return self not in {DEMO, RELAYED, PULLING}

    @property
    def is_deaf_to_steering(self) -> bool:
        """Whether it takes no words into a running turn."""
        return not self.steered

    @property
    def missing(self) -> str:
        """Why it cannot be used here; empty if it can."""
        present = Path(self.command[0]).exists()
        return "" if present else f"{self.name} is not installed: make test-agents"

    @property
    def path(self) -> str:
        """Return the PATH it runs with: the node of the tests before any other."""
        return f"{node_folder()}:/usr/local/bin:/usr/bin:/bin"


def _claude(url: str) -> Texts:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }


def _codex(_url: str) -> Texts:
    return {"OPENAI_API_KEY": KEY}


def _codex_files(url: str) -> Texts:
    return {
        ".codex/config.toml": f"""
model = "scripted"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
    }


def _gemini(url: str) -> Texts:
    # Without a model by name a router asks another model first which one to take.
    return {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": KEY,
        "GEMINI_MODEL": "gemini-2.5-flash",
    }


def _gemini_files(_url: str) -> Texts:
    # Its folders count as trusted: whoever lives with it may have set that.
    security = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    settings = {
        "security": security,
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    return {".gemini/settings.json": json.dumps(settings)}


def _opencode(_url: str) -> Texts:
    return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}


def _opencode_files(url: str) -> Texts:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted": {"name": "Scripted"}},
    }
    settings = {"model": "scripted/scripted", "provider": {"scripted": provider}}
    return {".config/opencode/opencode.json": json.dumps(settings)}


def _qwen(url: str) -> Texts:
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": KEY,
        "OPENAI_MODEL": "scripted",
    }


def _qwen_files(_url: str) -> Texts:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
    }
    return {".qwen/settings.json": json.dumps(settings)}


def _copilot(url: str) -> Texts:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "scripted",
        "COPILOT_OFFLINE": "true",
    }


_CODEX_FREE = (
    ".codex/rules/default.rules",
    'prefix_rule(pattern=["touch"], decision="allow")\n',
)
DEMO = Kit(
    "demo",
    (sys.executable, str(ROOT / "app" / "demo_agent.py")),
    free_mode="free",
    steered=True,
    waits_for_subagents=True,
    frees=(".agent-bridge-demo/settings.json", '{"allow": ["execute"]}'),
)
RELAYED = replace(DEMO, is_relayed=True)
"""The demo agent behind a relay: what holds for a session holds there too."""
PULLING = replace(
    DEMO, environment=lambda _url: {"AGENT_BRIDGE_DEMO_FAULTS": "pulls"}, steered=False, pulls=True
)
"""The demo agent as one that asks for words."""
REAL = (
    Kit(
        "claude",
        command_of("claude", "claude-agent-acp"),
        _claude,
        free_mode="acceptEdits",
        steered=True,
        waits_for_subagents=True,
        instructed=True,
        frees=(".claude/settings.json", '{"permissions": {"allow": ["Bash"]}}'),
        unguarded=("canary-command", "canary-helper", "canary-hook", "canary-server"),
    ),
    Kit(
        "codex",
        command_of("codex", "codex-acp"),
        _codex,
        _codex_files,
        free_mode="agent-full-access",
        instructed=True,
        steered=True,
        leaves_subagents=True,
        frees=_CODEX_FREE,
        unguarded=("canary-command", "canary-server"),
    ),
    Kit(
        "codex-zed",
        command_of("codex-zed", "codex-acp"),
        _codex,
        _codex_files,
        free_mode="full-access",
        frees=(".codex/config.toml", 'approval_policy = "never"\n'),
    ),
    Kit(
        "gemini",
        command_of("gemini", "gemini", "--acp"),
        _gemini,
        _gemini_files,
        frees=(".gemini/settings.json", '{"tools": {"allowed": ["run_shell_command"]}}'),
        resumes=False,
        unguarded=("canary-command", "canary-hook", "canary-server"),
    ),
    Kit(
        "opencode",
        command_of("opencode", "opencode", "acp"),
        _opencode,
        _opencode_files,
        frees=(".config/opencode/opencode.json", '{"permission": {"bash": "allow"}}'),
        unguarded=("canary-plugin",),
    ),
    Kit(
        "qwen",
        command_of("qwen", "qwen", "--acp"),
        _qwen,
        _qwen_files,
        free_mode="yolo",
        pulls=True,
        frees=(".qwen/settings.json", '{"permissions": {"allow": ["run_shell_command"]}}'),
        unguarded=("canary-command", "canary-hook", "canary-server"),
    ),
    Kit(
        "copilot",
        command_of("copilot", "copilot", "--acp"),
        _copilot,
        resumes=False,
        unguarded=("canary-hook",),
    ),
)
