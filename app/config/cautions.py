"""Lists what could be better in a configuration that is good enough to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from app.config.agents import AgentConfig
from app.config.configuration import Configuration
from app.config.fields import PAGE
from app.config.roster import DEMO_COMMAND
from app.config.sources import everyone_can_write, others_can_read

_DECIDES_CODE: Final = frozenset(
    {"BASH_ENV", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "NODE_OPTIONS", "NODE_PATH", "PATH"}
    | {"PYTHONHOME", "PYTHONPATH"}
)
"""Variables that decide which code a program runs."""
_NETWORKS: Final = ("none", "restricted", "open")
_PRESETS: Final = ("read-only", "careful", "trusted")


@dataclass(frozen=True, slots=True)
class Caution:
    """One thing that could be better."""

    subject: str
    """What it is about."""
    problem: str
    """What is missing, or what the risk is."""
    remedy: str
    """What to do about it."""


def cautions(configuration: Configuration) -> Iterator[Caution]:
    """Yield everything that could be better."""
    if unserved := describe_unserved(configuration):
        yield unserved
    beyond = [service for service in configuration.services if service != PAGE]
    if os.geteuid() == 0 and beyond:
        yield Caution(
            "user",
            f"the bridge runs as root, and people on {', '.join(beyond)} give its agents work",
            "Run it as a separate user.",
        )
    if (
        urlsplit(configuration.base_url).scheme == "https"
        and not configuration.settings.trusted_proxies
    ):
        yield Caution(
            "TRUSTED_PROXIES",
            "not set, so the proxy in front of BRIDGE_BASE_URL and everyone behind it count as one "
            "address where wrong tokens are slowed down and logged",
            "Set it to the address that the proxy connects from, such as 127.0.0.1.",
        )
    files = [configuration.dotenv] if configuration.dotenv is not None else []
    for path in (*files, *configuration.secret_files):
        if others_can_read(path.stat()):
            yield Caution("secrets", f"other users can read {path}", f"chmod 600 {path}")
    if not configuration.loopback and configuration.settings.hooks_port is None:
        yield Caution(
            "HOST",
            "page, API and tools are open to every machine that reaches the webhooks",
            "Set HOOKS_PORT and make only that port public, or put a proxy in front that passes "
            "/webhooks/ alone.",
        )
    for agent in configuration.agents.values():
        yield from _cautions_of(configuration, agent)
    yield from _open_folders(configuration)


def _cautions_of(configuration: Configuration, agent: AgentConfig) -> Iterator[Caution]:
    """Yield what could be better in the entry of an agent."""
    if given := sorted(_DECIDES_CODE & {*agent.env, *agent.env_passthrough}):
        yield Caution(
            agent.name,
            f"{', '.join(given)} in its variables decides which code it runs",
            "Name the program with its absolute path in command instead.",
        )
    beyond = [
        service
        for service, owner in configuration.credentials
        if owner == agent.id and service != PAGE
    ]
    if agent.memory == "auto" and (beyond or configuration.settings.default_repository):
        where = f"on {', '.join(beyond)}" if beyond else "about a repository"
        yield Caution(
            agent.name,
            f'"memory": "auto" keeps notes of conversations {where} that no person has read',
            'Write "memory": "ask" in its entry: then a person decides on each note.',
        )
    for other in configuration.agents.values():
        if other.id != agent.id and (more := _describe_more(agent, other)):
            yield Caution(
                agent.name,
                f"agents_allow names {other.name}, which {more}, so those who use {agent.name} "
                "reach that too",
                f"Remove {other.name} from agents_allow, unless this is meant.",
            )


def _describe_more(agent: AgentConfig, other: AgentConfig) -> str:
    """Say what an agent that another one names can reach beyond it; empty if nothing."""
    named = [glob for glob in agent.agents_allow or () if glob.strip("*?")]
    if not any(fnmatchcase(other.name, glob) for glob in named):
        return ""
    if any(fnmatchcase(other.name, glob) for glob in agent.agents_deny):
        return ""
    if _shares_machine(other) and not _shares_machine(agent):
        return "is not isolated"
    wider = other.network == "restricted" and {*other.network_hosts} - {*agent.network_hosts}
    more = _NETWORKS.index(other.network) - _NETWORKS.index(agent.network)
    if more > 0 or (more == 0 and wider):
        return "can connect to more"
    return "may do more without a question" if _may_more(agent, other) else ""


def _may_more(agent: AgentConfig, other: AgentConfig) -> bool:
    """Tell whether an agent may do more than another; of rules that differ it is not known."""
    one, two = agent.permissions, other.permissions
    if isinstance(one, str) and isinstance(two, str):
        return _PRESETS.index(two) > _PRESETS.index(one)
    return one != two


def _shares_machine(agent: AgentConfig) -> bool:
    return agent.sandbox == "none" or agent.home == "user"


def _open_folders(configuration: Configuration) -> Iterator[Caution]:
    """Yield the folders in place whose files any user of the machine can change."""
    named = [configuration.settings.default_repository or ""]
    for settings in configuration.service_settings.values():
        named += settings.area_repositories().values()
    for text in dict.fromkeys(named):
        path = Path(text.removeprefix("folder:"))
        if path.parts[:1] == ("~",):
            path = configuration.home.joinpath(*path.parts[1:])
        if text.startswith("folder:") and path.is_dir() and everyone_can_write(path.stat()):
            yield Caution(
                "folder", f"every user of this machine can write {path}", f"chmod o-w {path}"
            )


def describe_unserved(configuration: Configuration) -> Caution | None:
    """Say which services wait for an agent; None if none does."""
    if not configuration.unserved:
        return None
    return Caution(
        ", ".join(configuration.unserved),
        "not served, because no agent is set and the demo agent is on the page only",
        "Set AGENTS_JSON, or ACP_AGENT_COMMAND to an agent's command, and restart the bridge. "
        f"ACP_AGENT_COMMAND={DEMO_COMMAND} puts the demo agent there.",
    )
