"""Holds everything that is configured of one agent, as one value that every part reads.

It is built when the configuration changes and never changed: a new configuration gives new values.
Two agents can be compared by what they can reach and do, so that none gets through another what it
has not; in doubt an agent counts as able to do more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from app.agents.catalog import AgentProgram
from app.agents.isolation import Isolation
from app.agents.network import read_hosts
from app.children.sandbox import Plain
from app.config import AgentConfig, Configuration
from app.config.fields import PAGE
from app.config.network import HostPattern
from app.config.permissions import ToolKind
from app.model.agents import COMMAND, WAITS_SECONDS, Scope, ToolExposure
from app.model.delegation import Excess
from app.model.policy import PRESETS, Policy, Rule
from app.model.workspaces import Author

Network = Literal["none", "restricted", "open", "host"]
"""What an agent can connect to, the least first; `host` is this machine's own network."""

_DENY, _ASK, _ALLOW = range(3)
_RANKS: Final = {"deny": _DENY, "ask": _ASK, "allow": _ALLOW}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent of this bridge."""

    config: AgentConfig
    program: AgentProgram | None = None
    """The known program that it is, if it is one."""
    isolation: Isolation | None = None
    """Its HOME, sandbox and environment; None where nothing is started."""
    display_name: str = ""
    """The name people see."""
    policy: Policy = PRESETS["careful"]
    turn_seconds: float = 7200.0
    """How long it may work on one turn; waiting for people does not count."""
    idle_seconds: float = 1800.0
    """How long it lives while idle, or while it waits only for an answer."""
    ask_seconds: float = 168 * 3600.0
    """How long its asks can be answered."""
    budget_usd: float | None = None
    """What one session may spend before a person must say go on; None: no limit."""
    unasked: Literal["stop", "tell"] | None = None
    """What follows when it does unasked what the rules leave to people; None: nothing."""
    tool_seconds: float = WAITS_SECONDS
    """How long it waits for the result of a tool."""

    @property
    def id(self) -> str:
        """What its sessions, homes and rows refer to; stays when it is renamed."""
        return self.config.id or self.config.name

    @property
    def name(self) -> str:
        """What commands and settings call it."""
        return self.config.name

    @property
    def title(self) -> str:
        """The name people see."""
        return self.display_name or self.config.name

    @property
    def description(self) -> str:
        """What it is for."""
        return self.config.description or (self.program.description if self.program else "")

    @property
    def host(self) -> str:
        """The machine that it runs on, with files of its own; empty for the bridge's own."""
        return self.config.host

    @property
    def emoji(self) -> str:
        """What is shown before its name; empty if it has none."""
        return self.config.emoji or self.config.own_emoji

    @property
    def visible(self) -> bool:
        """Whether it is offered where people choose an agent."""
        return self.config.visible

    @property
    def memory(self) -> Literal["off", "ask", "auto"]:
        """Whether it is asked after a turn what to remember, and whether people decide on that."""
        return self.config.memory

    @property
    def voice(self) -> Literal["own", "caller"]:
        """Who tells people what it did for another agent."""
        return self.config.delegation_voice

    @property
    def resume(self) -> bool:
        """Whether turns stopped by its provider's limit resume by themselves afterwards."""
        return self.config.limits.resume

    @property
    def ship(self) -> Literal["pr", "push", "none"]:
        """What happens to its changes."""
        return self.config.ship

    @property
    def author(self) -> Author:
        """The author of its commits where no platform gives it an identity."""
        return Author(self.title, f"{self.name}@noreply.agent-bridge.invalid")

    @property
    def mode(self) -> str | None:
        """The mode in which it works unless people choose another one; it is one that asks."""
        return self.config.mode or (self.program.ask_mode if self.program else None)

    @property
    def confines_commands(self) -> bool:
        """Whether it runs commands in its own sandbox, and asks before one leaves it."""
        return self.program.quirks.confines_commands if self.program else False

    @property
    def max_turns(self) -> int | None:
        """How many of its turns may run at once, if it has a limit of its own."""
        return self.config.limits.max_turns

    @property
    def max_processes(self) -> int | None:
        """How many processes it may have, if it has a limit of its own."""
        return self.config.limits.max_processes

    @property
    def scope(self) -> Scope:
        """Which of the bridge's tools, and which other agents, it may use."""
        config = self.config
        if config.url:  # its tools would have to be reached from its machine
            return Scope(tools_allow=(), agents_allow=())
        return Scope(
            tools_allow=config.tools_allow,
            tools_deny=config.tools_deny,
            capabilities_allow=config.capabilities_allow,
            capabilities_deny=config.capabilities_deny,
            agents_allow=config.agents_allow,
            agents_deny=config.agents_deny,
        )

    @property
    def tool_exposure(self) -> ToolExposure:
        """How it gets the bridge's tools: as its entry says, else as is known of it."""
        known: ToolExposure = self.program.tool_exposure if self.program else "tools"
        return self.config.tool_exposure or known

    @property
    def bounds(self) -> Bounds:
        """How far it can go, in the isolation that it has."""
        isolation = self.isolation
        return Bounds(
            isolated=isolation is not None and not isinstance(isolation.sandbox, Plain),
            network=(
                "host"
                if isolation is None or isolation.network is None
                else isolation.network.rules.mode
            ),
            hosts=tuple(read_hosts(self.config)),
            # Without the rule for the bridge's tools, which every agent may call in its own form.
            policy=Policy(tuple(_own_rules(self.config))),
            asks=self.unasked is not None,
        )


def build_agent(
    configuration: Configuration,
    config: AgentConfig,
    program: AgentProgram | None,
    isolation: Isolation | None,
) -> Agent:
    """Build an agent's value: what its entry says, else what the bridge's settings say."""
    own, shared = config.limits, configuration.settings
    minutes = shared.idle_minutes if config.idle_minutes is None else config.idle_minutes
    exposure = config.tool_exposure or (program.tool_exposure if program else "tools")
    # The command of the bridge's tools, last: the bridge itself checks each call.
    tools = Rule("allow", kind=("execute",), command=(COMMAND, f"{COMMAND} *"))
    return Agent(
        config=config,
        program=program,
        isolation=isolation,
        display_name=_display_name(configuration, config, program),
        policy=Policy((*_own_rules(config), *(() if exposure == "tools" else (tools,)))),
        turn_seconds=60.0 * (own.turn_minutes or shared.turn_minutes),
        idle_seconds=60.0 * minutes,
        ask_seconds=3600.0 * (own.ask_hours or shared.ask_hours),
        budget_usd=own.budget_usd or shared.budget_usd,
        unasked=_unasked(configuration, config, program),
        tool_seconds=program.tool_seconds if program else WAITS_SECONDS,
    )


def _display_name(
    configuration: Configuration, config: AgentConfig, program: AgentProgram | None
) -> str:
    """Return the name people see; two agents of one program keep their own names."""
    if given := config.display_name or config.own_name:
        return given
    drivers = Counter(other.driver for other in configuration.agents.values())
    return program.title if program and drivers[config.driver] == 1 else config.name


def _own_rules(config: AgentConfig) -> Sequence[Rule]:
    if isinstance(config.permissions, str):
        return PRESETS[config.permissions].rules
    return [
        Rule(rule.decision, rule.kind, rule.title, rule.path, rule.command)
        for rule in config.permissions
    ]


def _unasked(
    configuration: Configuration, config: AgentConfig, program: AgentProgram | None
) -> Literal["stop", "tell"] | None:
    """Return what happens when an agent does not ask; None if the operator chose such a mode."""
    if config.unasked is not None:
        return config.unasked
    if config.mode not in (None, program.ask_mode if program else None):
        return None
    reached = any(
        agent == config.id for service, agent in configuration.credentials if service != PAGE
    )
    return "stop" if reached else "tell"


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
