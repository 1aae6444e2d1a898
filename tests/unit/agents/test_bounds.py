"""How far two agents can go: presets, rules, networks and hosts compared."""

from __future__ import annotations

import pytest

from app.agents.agent import Bounds, Network, find_excess
from app.config.network import HostPattern
from app.model.policy import PRESETS, Policy, Rule

CAREFUL = PRESETS["careful"]
MAKE = Policy((Rule("allow", kind=("execute",), command=("make *",)), Rule("allow", ("read",))))
DOCS = Policy((Rule("deny", path=("secret/**",)), Rule("allow", kind=("edit",))))


def bounds(policy: Policy = CAREFUL, network: Network = "open", *hosts: HostPattern) -> Bounds:
    """Make the bounds of an isolated agent."""
    return Bounds(isolated=True, network=network, policy=policy, hosts=hosts)


@pytest.mark.parametrize(
    ("asking", "asked", "within"),
    [
        (PRESETS["trusted"], CAREFUL, True),
        (CAREFUL, PRESETS["read-only"], True),
        (PRESETS["read-only"], CAREFUL, False),
        (CAREFUL, PRESETS["trusted"], False),
        (MAKE, MAKE, True),
        (CAREFUL, MAKE, False),
        (PRESETS["trusted"], MAKE, True),
        (MAKE, PRESETS["read-only"], False),
        (DOCS, CAREFUL, False),
        (CAREFUL, Policy((Rule("ask"), Rule("allow"))), True),
        (CAREFUL, Policy((Rule("ask", path=("a",)), Rule("allow"))), False),
        (Policy((Rule("allow"),)), Policy((Rule("allow"),)), True),
        (Policy(), Policy((Rule("deny"), Rule("allow"))), True),
    ],
)
def test_rules_that_allow_no_more_are_within_others(
    asking: Policy, asked: Policy, within: bool
) -> None:
    assert (find_excess(bounds(asking), bounds(asked)) == "") == within


@pytest.mark.parametrize(
    ("asking", "asked", "within"),
    [
        ("*.a.example", "x.a.example", True),
        ("x.a.example", "*.a.example", False),
        ("*.a.example", "*.x.a.example", True),
        ("*.a.example", "xa.example", False),
        ("a.example", "a.example", True),
    ],
)
def test_hosts_are_within_a_list_that_covers_each(asking: str, asked: str, within: bool) -> None:
    one = bounds(CAREFUL, "restricted", HostPattern(asking))
    other = bounds(CAREFUL, "restricted", HostPattern(asked))

    assert (find_excess(one, other) == "") == within


def test_a_port_is_within_all_ports_and_not_the_reverse() -> None:
    every = bounds(CAREFUL, "restricted", HostPattern("a.example"))
    one = bounds(CAREFUL, "restricted", HostPattern("a.example", 443))

    assert find_excess(every, one) == ""
    assert find_excess(one, every) == "network"


def test_the_network_of_the_machine_is_more_than_the_internet() -> None:
    assert find_excess(bounds(), bounds(CAREFUL, "host")) == "network"
