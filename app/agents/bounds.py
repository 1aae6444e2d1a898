"""Compares what two agents can reach and do, so that none gets through another what it has not.

Pure. In doubt an agent counts as able to do more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from app.config.agents import ToolKind
from app.config.network import HostPattern
from app.model.delegation import Excess
from app.model.policy import Policy, Rule

Network = Literal["none", "restricted", "open", "host"]
"""What an agent can connect to, the least first; `host` is this machine's own network."""

_DENY, _ASK, _ALLOW = range(3)
_RANKS: Final = {"deny": _DENY, "ask": _ASK, "allow": _ALLOW}


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far one agent can go."""

    isolated: bool
    network: Network
    policy: Policy
    hosts: tuple[HostPattern, ...] = ()
    """The hosts on its list; those of its model do not count."""
    asks: bool = True
    """Whether it works in a mode in which it asks; else its policy decides little."""


def find_excess(asking: Bounds, asked: Bounds) -> Excess:
    """Tell what an agent has more of than the one that asks it; empty if nothing."""
    if asking.isolated and not asked.isolated:
        return "isolation"
    if not _connects_within(asked, asking):
        return "network"
    if (asking.asks and not asked.asks) or not _is_within(asked.policy, asking.policy):
        return "permissions"
    return ""


def _connects_within(asked: Bounds, asking: Bounds) -> bool:
    least_first = get_args(Network)
    if asked.network != asking.network or asked.network != "restricted":
        return least_first.index(asked.network) <= least_first.index(asking.network)
    return all(any(_covers(one, each) for one in asking.hosts) for each in asked.hosts)


def _covers(one: HostPattern, other: HostPattern) -> bool:
    below = one.name.startswith("*.") and other.name.endswith(one.name[1:])
    return one.port in (None, other.port) and (one.name == other.name or below)


def _is_within(asked: Policy, asking: Policy) -> bool:
    """Tell whether a policy allows nothing that another one does not allow."""
    kinds = get_args(ToolKind)
    return asked == asking or all(_most(asked, kind) <= _least(asking, kind) for kind in kinds)


def _most(policy: Policy, kind: str) -> int:
    """Return the most that a policy may decide on a call of a kind: every condition may hold."""
    rules = [rule for rule in policy.rules if not rule.kind or kind in rule.kind]
    if any(rule.decision == "deny" and _is_plain(rule) for rule in rules):
        return _DENY
    sure = (rule for rule in rules if rule.decision == "allow" or _is_plain(rule))
    return next((_RANKS[rule.decision] for rule in sure), _ASK)


def _least(policy: Policy, kind: str) -> int:
    """Return the least that a policy may decide on a call of a kind: every condition may fail."""
    rules = [rule for rule in policy.rules if not rule.kind or kind in rule.kind]
    if any(rule.decision == "deny" for rule in rules):
        return _DENY
    sure = (rule for rule in rules if rule.decision == "ask" or _is_plain(rule))
    return next((_RANKS[rule.decision] for rule in sure), _ASK)


def _is_plain(rule: Rule) -> bool:
    return not (rule.title or rule.path or rule.command)
