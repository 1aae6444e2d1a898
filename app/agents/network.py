"""Decides what each agent can connect to, and describes it for people."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from app.agents.catalog import AgentProgram
from app.children.environment import PROXIES
from app.children.network.access import NetworkRules
from app.children.network.dialing import Dialer, Outside
from app.children.network.link import NetworkPlan
from app.config import AgentConfig, Configuration
from app.config.network import HostPattern, normalise_host, parse_host
from app.errors import ConfigurationError

_GROUPS: Final = Path(__file__).with_name("hosts.toml")
_PORTS: Final = {"http": 80, "https": 443}
_UNPRIVILEGED: Final = 1024
"""Below this only root may listen, also inside: agents reach such a port through the proxy only."""

SHARED: Final = "network shared with this machine: it can reach ports on 127.0.0.1"
_WORDS: Final = {
    "open": "network: internet only",
    "restricted": "network: only hosts on its list",
    "none": "network: none",
}


def network_plan(
    configuration: Configuration,
    entry: AgentConfig,
    program: AgentProgram | None,
    own: Mapping[str, str],
    outside: Outside,
) -> NetworkPlan:
    """Plan the network of an agent that has its own; `own` are the agent's variables.

    Raises:
        ConfigurationError: its list names an unknown group, or the bridge itself.
    """
    hosts = tuple(
        dict.fromkeys(
            (
                *read_hosts(entry),
                *(HostPattern(host) for host in (program.hosts if program else ())),
                *_addresses(own),
            )
        )
    )
    forwards = {each.port for each in hosts if each.is_loopback and each.port is not None}
    if reached := forwards & configuration.own_ports:
        raise ConfigurationError(
            "AGENTS_JSON",
            f"agent {entry.name!r} would reach the bridge itself on port {min(reached)}",
            "Remove that address from its network_hosts and variables, or change the port.",
        )
    proxies = {name: value for name, value in configuration.surroundings.items() if name in PROXIES}
    proxies |= {name: value for name, value in own.items() if name in PROXIES}
    return NetworkPlan(
        NetworkRules(entry.network, hosts),
        Dialer(outside, configuration.own_ports, proxies),
        tuple(sorted(port for port in forwards if port >= _UNPRIVILEGED)),
    )


def network_words(plan: NetworkPlan | None) -> str:
    """Describe what an isolated agent can connect to."""
    return SHARED if plan is None else _WORDS[plan.rules.mode]


def require_network(entry: AgentConfig) -> None:
    """Refuse a limit that cannot be enforced, where agents share the machine's network.

    Raises:
        ConfigurationError: the agent's network is limited.
    """
    if entry.network != "open":
        raise ConfigurationError(
            "AGENTS_JSON",
            f"agent {entry.name!r} has network {entry.network!r}, which cannot be enforced here: "
            "it would share this machine's network",
            "Make bubblewrap work with `--unshare-net` (`agent-bridge doctor` shows how agents are "
            'isolated), or write network "open".',
        )


def read_hosts(entry: AgentConfig) -> Iterator[HostPattern]:
    """Yield the hosts on an agent's list, with those of its groups.

    Raises:
        ConfigurationError: there is no such group.
    """
    for text in entry.network_hosts:
        if not text.startswith("@"):
            yield from _parse_hosts([text])
        elif (group := _groups().get(text[1:])) is not None:
            yield from _parse_hosts(group)
        else:
            known = ", ".join(f"@{name}" for name in _groups())
            raise ConfigurationError(
                "AGENTS_JSON",
                f"agent {entry.name!r} has an unknown group in network_hosts",
                f"The groups are {known}.",
            )


def _parse_hosts(texts: Iterable[str]) -> Iterator[HostPattern]:
    return (pattern for text in texts if (pattern := parse_host(text)) is not None)


def _addresses(own: Mapping[str, str]) -> Iterator[HostPattern]:
    """Find the addresses in an agent's variables: the operator gave them to be used."""
    for name, value in own.items():
        scheme = value.partition("://")[0]
        if name in PROXIES or scheme not in _PORTS:
            continue
        try:
            parts = urlsplit(value)
            host, port = normalise_host(_add_brackets(parts.hostname or "")), parts.port
        except ValueError:
            continue
        if host is not None:
            yield HostPattern(host, port or _PORTS[scheme])


def _add_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@cache
def _groups() -> Mapping[str, list[str]]:
    return tomllib.loads(_GROUPS.read_text(encoding="utf-8"))
