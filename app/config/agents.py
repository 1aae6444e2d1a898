"""Checks an agent's entry in the registry, key by key.

An unknown key is refused: a misspelt `sandbox` must not mean "no sandbox".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    model_validator,
)

from app.config.fields import Emoji, Environment, Variables, nothing, text_list
from app.config.network import GROUP, parse_host
from app.config.permissions import Permissions
from app.config.remote import (
    AGENT_TOKEN,
    Url,
    parse_remote,
    refuse_keys_of_local,
    refuse_keys_of_remote,
    require_tls,
)
from app.config.sources import refusal

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_ACCOUNT = re.compile(r"[a-z][a-z0-9_]*:[\w./-]{1,100}")
_GLOB = re.compile(r"[A-Za-z0-9_.*?-]{1,100}")

# The longest command line that Linux takes as one argument.
_LONGEST_TEXT = 128 * 1024
# A pebibyte: beyond any machine, and in bytes still far below what the kernel can count.
_MOST_MB = 1024**3


def _command(value: object) -> object:
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError:
            raise refusal("has a quote that is not closed", "Close every quote.") from None
    words = text_list(value)
    if not isinstance(words, tuple) or not words or not words[0] or "\0" in "".join(words):
        raise refusal("is not a command", 'Write "program argument" or ["program", "argument"].')
    return words


def _home(value: object, info: ValidationInfo) -> object:
    if value in ("own", "user"):
        return value
    person = Path((info.context or {}).get("home", "/"))
    path = Path(str(value))
    if isinstance(value, str) and value.startswith("~/"):
        path = person / value.removeprefix("~/")
    if not isinstance(value, str) or not path.is_absolute():
        raise refusal("is not a valid home", 'Write "own", "user" or an absolute path.')
    if path == person or path in person.parents:
        raise refusal("is or contains your own home", 'Write "user" if you mean that.')
    return path


def _network_hosts(value: object) -> object:
    hosts = text_list(value)
    if not isinstance(hosts, tuple) or not all(
        GROUP.fullmatch(host) or parse_host(host) for host in hosts
    ):
        raise refusal(
            "has an entry that is not a host",
            "Write api.example.com, *.example.com, host:port, or a group such as @registries.",
        )
    return hosts


def _options(table: object) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise refusal("is not an object", 'Write it as {"option": "value"}.')
    if not all(isinstance(value, str | bool) for value in table.values()):
        raise refusal(
            "has a value that is not a string or a boolean", "Write strings, true or false."
        )
    return MappingProxyType(dict(table))


def _name_globs(value: object) -> object:
    globs = text_list(value)
    if not isinstance(globs, tuple) or not all(_GLOB.fullmatch(glob) for glob in globs):
        raise refusal(
            "has an entry that is not a name with wildcards",
            'Write names such as "memory_read" or "agents_*"; [] means none.',
        )
    return globs


def _accounts(value: object) -> object:
    accounts = text_list(value)
    if not isinstance(accounts, tuple) or not all(map(_ACCOUNT.fullmatch, accounts)):
        raise refusal(
            "has an entry that is not an account",
            'Write accounts such as "slack:U0123", "slack:S0123" (a user group) or "github:ann".',
        )
    return accounts


Globs = Annotated[tuple[str, ...], BeforeValidator(_name_globs)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=_LONGEST_TEXT)]
Options = Annotated[Mapping[str, str | bool], PlainValidator(_options)]
Home = Annotated[Literal["own", "user"] | Path, PlainValidator(_home)]
Minutes = Annotated[float, Field(gt=0, le=365 * 24 * 60)]

_STRICT = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)


class AgentLimits(BaseModel):
    """One agent's limits, within those of the whole bridge."""

    model_config = _STRICT

    max_turns: Annotated[int, Field(ge=1, le=1000)] | None = None
    """How many of its turns run at once."""
    max_processes: Annotated[int, Field(ge=1, le=1000)] | None = None
    """How many of its processes live at once."""
    turn_minutes: Minutes | None = None
    """After how long one of its turns is stopped."""
    ask_hours: Annotated[float, Field(gt=0, le=365 * 24)] | None = None
    """How long its asks can be answered."""
    budget_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """How many dollars one of its sessions may spend, if it reports its cost."""
    resume: bool = False
    """Whether a turn that a provider's limit stopped resumes when the limit is over."""
    processes: Annotated[int, Field(ge=32, le=1_000_000)] = 2000
    """How many processes and threads one of its sessions may have."""
    memory_mb: Annotated[int, Field(ge=128, le=_MOST_MB)] | None = None
    """How much memory one of its sessions may use, /tmp included; by default half of the
    machine's."""
    open_files: Annotated[int, Field(ge=256, le=1_000_000)] = 16384
    """How many files and sockets each of its processes may have open."""
    file_mb: Annotated[int, Field(ge=16, le=_MOST_MB)] = 8192
    """How large a file it may write."""
    disk_mb: Annotated[int, Field(ge=64, le=_MOST_MB)] = 20480
    """How much one of its sessions may write to its workspace and its home."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, table: object) -> object:
        if isinstance(table, dict) and not table.keys() <= cls.model_fields.keys():
            raise refusal("has an unknown key", f"The keys are {', '.join(cls.model_fields)}.")
        return table


EntrySource = Literal["environment", "found", "demo", "stored"]


class AgentConfig(BaseModel):
    """One agent as it was configured; says nothing about whether it runs.

    A field with a title is a key of an entry: title and description are its words wherever people
    see it, in the form on the page and elsewhere.
    """

    model_config = _STRICT

    name: str
    """The agent's name in the registry, in mentions and in the suffixes of settings."""
    id: str = ""
    """What its sessions, homes and stored rows refer to: stays when it is renamed, and no later
    agent gets it."""
    source: EntrySource = "environment"
    """Where its entry is: in the settings, which only the operator changes, or in the store; it has
    none if its program was found on PATH, or came with the bridge."""
    former: tuple[str, ...] = ()
    """Names it had: their webhook paths still lead to it."""
    own_name: str = ""
    """The name in its IDENTITY.md; the entry's counts more."""
    own_emoji: str = ""
    """The emoji there; the entry's counts more."""
    own_colour: str = ""
    """The colour there."""
    command: Annotated[tuple[str, ...], PlainValidator(_command)] = Field(
        (), title="Command", description="The program that speaks ACP, with its arguments."
    )
    url: Url = Field(
        "",
        title="Address",
        description="Of an agent on another machine, instead of a command. AGENT_TOKEN among its "
        "variables is its token.",
    )
    """`wss://` of a relay, or `wss://` or `https://` of an agent that serves ACP itself."""
    remote_folder: Annotated[str, Field(pattern=r"^/")] = Field(
        "", title="Folder there", description="Where it works on its machine; else the relay's own."
    )
    tls: Literal["required", "off"] = Field(
        "required", title="TLS", description="Off, others can read its token and every word."
    )
    driver: str | None = Field(None, title="Driver", description="The known agent it is.")
    default: bool = Field(
        False,
        title="Default",
        description="Whether plain settings and plain webhook paths belong to it.",
    )
    display_name: Word | None = Field(
        None, title="Display name", description="The name in threads and lists."
    )
    emoji: Emoji | None = Field(
        None, title="Emoji", description="Its picture. Without one, the first letters."
    )
    description: Text | None = Field(None, title="Description", description="What it is good at.")
    prompt: Text | None = Field(
        None,
        title="Prompt",
        description="What it is told about itself, unless it has an IDENTITY.md.",
    )
    visible: bool = Field(
        True,
        title="Offered",
        description="People can choose it. Hidden, it still answers to its name.",
    )
    env: Environment = Field(
        default_factory=nothing,
        title="Variables",
        description="Variables it gets with these values.",
    )
    env_passthrough: Variables = Field(
        (),
        title="Variables of the bridge",
        description="Names of variables that it gets from the settings, and those of its driver.",
    )
    mode: Word | None = Field(None, title="Mode", description="Set each time a session starts.")
    model: Word | None = Field(None, title="Model", description="Set each time a session starts.")
    options: Options = Field(
        default_factory=nothing,
        title="Options",
        description="Further options of the agent, set each time a session starts.",
    )
    auth: Word | None = Field(None, title="Login method", description="If it offers several.")
    permissions: Permissions = Field(
        "careful", title="Permissions", description="What it may do without asking people."
    )
    approvers: Annotated[tuple[str, ...], BeforeValidator(_accounts)] = Field(
        (),
        title="Approvers",
        description="Who is reminded of its questions that the person who asked did not answer.",
    )
    unasked: Literal["stop", "tell"] | None = Field(
        None,
        title="Acts without asking",
        description="When it does something that the rules leave to people.",
    )
    """Its turn ends, or people are told. By default `stop` with services beyond the page and `tell`
    with the page alone, unless the entry names a mode in which it does not ask."""
    memory: Literal["off", "ask", "auto"] = Field(
        "off",
        title="Memory",
        description="Whether it notes after a turn what is worth keeping for other conversations.",
    )
    """`ask` lets people decide on each note, `auto` keeps notes of conversations in which it read
    only people's words."""
    home: Home = Field("own", title="Home", description="own, user, or an absolute path.")
    sandbox: Literal["auto", "bubblewrap", "none"] = Field(
        "auto", title="Sandbox", description="How it is isolated from the rest of the machine."
    )
    network: Literal["open", "restricted", "none"] = Field(
        "open", title="Network", description="What it can connect to."
    )
    network_hosts: Annotated[tuple[str, ...], BeforeValidator(_network_hosts)] = Field(
        (),
        title="Hosts",
        description="In addition to its model's; with a port, private ones too.",
    )
    ship: Literal["pr", "push", "none"] = Field(
        "pr", title="Changes", description="What happens to its commits at the end of a turn."
    )
    while_busy: Literal["steer", "queue"] = Field(
        "steer",
        title="Messages while it works",
        description="Whether they go into its running turn, where it takes them, or wait.",
    )
    idle_minutes: Minutes | None = Field(
        None, title="Idle minutes", description="After how long an idle session is parked."
    )
    limits: AgentLimits = Field(
        AgentLimits(), title="Limits", description="Its own limits, within those of the bridge."
    )
    tool_exposure: Literal["tools", "skills", "mixed"] | None = Field(
        None, title="Tools of the bridge", description="How it gets them."
    )
    tools_allow: Globs | None = Field(
        None, title="Tools it may use", description="No list means all, an empty one none."
    )
    tools_deny: Globs = Field(
        (), title="Tools it may not use", description="Counts more than the above."
    )
    capabilities_allow: Globs | None = Field(
        None,
        title="Capabilities it may use",
        description="A tool needs all that it has; no list means all, an empty one none.",
    )
    capabilities_deny: Globs = Field(
        (), title="Capabilities it may not use", description="Refuses every tool with one of them."
    )
    agents_allow: Globs | None = Field(
        None,
        title="Agents it may ask",
        description="No list means all that can do no more than it, an empty one none.",
    )
    agents_deny: Globs = Field(
        (), title="Agents it may not ask", description="Counts more than the above."
    )
    delegation_voice: Literal["own", "caller"] = Field(
        "caller", title="Voice", description="Who tells people what it did for another agent."
    )

    @model_validator(mode="before")
    @classmethod
    def _named_by_itself(cls, table: Any) -> Any:
        if isinstance(table, dict) and not table.get("id"):
            return {**table, "id": table.get("name", "")}
        return table

    @model_validator(mode="after")
    def _fits_sandbox(self) -> AgentConfig:
        if self.home == "user" and self.sandbox == "bubblewrap":
            raise refusal(
                'has home "user" and sandbox "bubblewrap", which exclude each other',
                'Write home "own", or sandbox "none".',
            )
        if self.network == "none" and self.network_hosts:
            raise refusal(
                'has network "none" and network_hosts, which exclude each other',
                'Write network "restricted", or no hosts.',
            )
        shares = self.sandbox == "none" or self.home == "user"
        if shares and (self.network != "open" or self.network_hosts):
            raise refusal(
                "limits the network, but the agent is not isolated",
                'Write home "own" and remove sandbox "none", or remove its network settings.',
            )
        return self

    @model_validator(mode="after")
    def _fits_where_it_runs(self) -> AgentConfig:
        given = self.model_fields_set | {f"limits.{key}" for key in self.limits.model_fields_set}
        if not self.url:
            refuse_keys_of_remote(given)
            return self
        if self.ship == "none":
            given -= {"ship"}
        if not set(self.env) - {AGENT_TOKEN}:
            given -= {"env"}
        refuse_keys_of_local(given)
        if self.tls == "required":
            require_tls(self.url)
        return self

    @property
    def host(self) -> str:
        """The machine of an agent that runs elsewhere; empty for the bridge's own."""
        remote = parse_remote(self.url)
        return remote.host if remote is not None else ""

    @property
    def argv(self) -> tuple[str, ...]:
        """What is started, or the address of what runs elsewhere."""
        return self.command or (self.url,)

    @property
    def program(self) -> str:
        """What runs, in a word: its program, or the machine that it runs on."""
        return self.host or self.command[0]

    @property
    def is_left_over(self) -> bool:
        """Whether it is the demo agent, which is here only for the threads that it has."""
        return self.source == "demo" and not self.visible

    @property
    def suffix(self) -> str:
        """The part after the two underscores in this agent's own settings."""
        return self.name.upper().replace("-", "_")

    def setting(self, name: str) -> str:
        """Return this agent's name for a setting: plain names are the default agent's."""
        return name if self.default else f"{name}__{self.suffix}"


EXTENDS = "extends"
"""The key that names an entry to take other keys from."""
KEYS: tuple[str, ...] = (
    *(key for key, about in AgentConfig.model_fields.items() if about.title),
    EXTENDS,
)
"""The keys of an entry; the bridge itself adds the fields without a title."""
