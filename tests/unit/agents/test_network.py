"""What the network of each agent is, from its entry, its program and its variables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.agents.catalog import known_agents
from app.agents.isolation import Isolation, isolate_all
from app.children.network.access import DestinationRefused, NetworkReach
from app.children.sandbox import Bubblewrap
from app.config import load
from app.config.network import parse_host
from app.errors import ConfigurationError
from app.services import registered_services


def isolated(tmp_path: Path, *, own_network: bool = True, **entry: object) -> Isolation:
    agent = {"command": ["/bin/cat"], **entry}
    environ = {
        "PATH": "/usr/bin:/bin",
        "PORT": "8123",
        "DATA_DIR": str(tmp_path / "data"),
        "HTTPS_PROXY": "http://corporate.example:3128",
        "AGENTS_JSON": json.dumps({"demo": agent}),
    }
    configuration = load(
        environ, known=known_agents(), services=registered_services(), home=tmp_path / "person"
    )
    found = Bubblewrap("/usr/bin/bwrap", own_network=own_network)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.agents.isolation.find_bubblewrap", lambda _path: found)
        return isolate_all(configuration)["demo"]


def reach(isolation: Isolation, host: str, port: int = 443) -> NetworkReach | None:
    assert isolation.network is not None
    try:
        return isolation.network.rules.reach(host, port)
    except DestinationRefused:
        return None


def test_the_internet_is_open_unless_the_entry_says_otherwise(tmp_path: Path) -> None:
    isolation = isolated(tmp_path)

    assert isolation.words == "isolated (bubblewrap), network: internet only"
    assert reach(isolation, "anything.example") is NetworkReach.INTERNET


def test_a_known_agent_brings_the_hosts_of_its_model_and_groups_are_lists(tmp_path: Path) -> None:
    isolation = isolated(
        tmp_path, driver="claude", network="restricted", network_hosts=["@registries", "@github"]
    )

    assert isolation.words == "isolated (bubblewrap), network: only hosts on its list"
    assert reach(isolation, "api.anthropic.com") is NetworkReach.INTERNET
    assert reach(isolation, "pypi.org") is NetworkReach.INTERNET
    assert reach(isolation, "raw.githubusercontent.com") is NetworkReach.INTERNET
    assert reach(isolation, "evil.example") is None


def test_every_host_that_comes_with_the_bridge_can_be_read() -> None:
    hosts = [host for program in known_agents() for host in program.hosts]

    assert hosts
    assert all(parse_host(host) for host in hosts)


def test_an_address_in_an_agents_variables_is_the_operators_word(tmp_path: Path) -> None:
    own = {"ANTHROPIC_BASE_URL": "https://litellm.internal:4000/v1", "NAME": "plain words"}

    isolation = isolated(tmp_path, network="restricted", env=own)

    assert reach(isolation, "litellm.internal", 4000) is NetworkReach.ANYWHERE
    assert reach(isolation, "litellm.internal", 443) is None


def test_a_model_on_this_machine_is_forwarded_to_the_port_where_it_is(tmp_path: Path) -> None:
    own = {"OPENAI_BASE_URL": "http://localhost:4000/v1"}

    isolation = isolated(tmp_path, env=own, network_hosts=["127.0.0.1:11434", "localhost:11434"])

    assert isolation.network is not None
    assert isolation.network.forwards == (4000, 11434)


def test_no_list_leads_to_the_bridge_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="would reach the bridge itself on port 8123"):
        isolated(tmp_path, network_hosts=["127.0.0.1:8123"])


def test_an_unknown_group_refuses(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="The groups are @registries, @github"):
        isolated(tmp_path, network_hosts=["@everything"])


def test_an_agent_is_told_of_its_own_proxy_and_not_of_the_bridges(tmp_path: Path) -> None:
    isolation = isolated(tmp_path, env={"https_proxy": "http://mine.example:1"})

    environment = isolation.environment("marker")

    assert environment["HTTPS_PROXY"] == environment["https_proxy"] == "http://127.0.0.1:18118"
    assert "corporate" not in " ".join(environment.values())
    assert isolation.network is not None
    assert isolation.network.dialer.environment["https_proxy"] == "http://mine.example:1"


def test_an_agent_without_a_network_is_told_of_no_proxy(tmp_path: Path) -> None:
    isolation = isolated(tmp_path, network="none")

    assert isolation.words == "isolated (bubblewrap), network: none"
    assert not any("proxy" in name.lower() for name in isolation.environment("marker"))


def test_a_login_is_in_the_network_of_this_machine(tmp_path: Path) -> None:
    isolation = isolated(tmp_path).on_host_network()

    assert isolation.network is None
    assert isolation.confinement.shares_network
    assert isolation.environment("marker")["HTTPS_PROXY"] == "http://corporate.example:3128"


def test_where_no_network_can_be_made_that_is_said(tmp_path: Path) -> None:
    isolation = isolated(tmp_path, own_network=False)

    assert isolation.words == (
        "isolated (bubblewrap), network shared with this machine: it can reach ports on 127.0.0.1"
    )
    assert isolation.network is None


@pytest.mark.parametrize("network", ["restricted", "none"])
def test_a_limit_that_cannot_be_kept_refuses(tmp_path: Path, network: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be enforced here"):
        isolated(tmp_path, own_network=False, network=network)
