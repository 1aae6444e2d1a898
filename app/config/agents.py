"""An agent's entry in the registry: every key it may have, checked strictly.

A key that is not known refuses: a misspelt `sandbox` must not mean "no sandbox".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    SecretStr,
    ValidationInfo,
    model_validator,
)

from app.config.fields import nothing
from app.config.problems import refusal

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# The longest command line that Linux takes as one argument.
_LONGEST_TEXT = 128 * 1024

Preset = Literal["read-only", "careful", "trusted"]
Decision = Literal["allow", "ask", "deny"]
ToolKind = Literal[
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
]


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """One rule of an agent's policy: what is decided about which tool calls."""

    decision: Decision
    """What happens to a call that the rule fits."""
    kind: tuple[str, ...] = ()
    """The tool kinds it fits; none means all."""
    title: tuple[str, ...] = ()
    """Globs on the title of the call; none means all."""
    path: tuple[str, ...] = ()
    """Globs on the paths the call touches; none means all."""
    command: tuple[str, ...] = ()
    """Globs on the command the call runs; none means all."""


_MATCHERS = tuple(field.name for field in fields(PermissionRule))[1:]
_RULE_REMEDY = (
    'Write a preset (read-only, careful, trusted) or a list of rules such as {"allow": "read"} or '
    '{"ask": {"kind": "edit", "path": "docs/**"}}.'
)


def _command(value: object) -> object:
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError:
            raise refusal("cannot be split into words", "Close every quote in it.") from None
    words = _texts(value)
    if not isinstance(words, tuple) or not words or not words[0] or "\0" in "".join(words):
        raise refusal("is not a command", 'Write "program argument" or ["program", "argument"].')
    return words


def _texts(value: object) -> object:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(value, tuple):
        return value
    raise refusal("is not a list of texts", 'Write it as ["one", "two"].')


def _variables(names: Iterable[str]) -> None:
    names = list(names)
    if not all(VARIABLE.fullmatch(name) for name in names):
        raise refusal("names no environment variable", "Write names such as OPENAI_API_KEY.")
    if "HOME" in names:
        raise refusal("names HOME", "Use the key home instead.")


def _passthrough(names: tuple[str, ...]) -> tuple[str, ...]:
    _variables(names)
    return names


def _environment(table: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    _variables(table)
    if any("\0" in value.get_secret_value() for value in table.values()):
        raise refusal("has a value with a null character", "Remove the character.")
    return MappingProxyType(dict(table))


def _home(value: object, info: ValidationInfo) -> object:
    if value in ("own", "user"):
        return value
    person = Path((info.context or {}).get("home", "/"))
    path = Path(str(value))
    if isinstance(value, str) and value.startswith("~/"):
        path = person / value.removeprefix("~/")
    if not isinstance(value, str) or not path.is_absolute():
        raise refusal("is not a home", 'Write "own", "user" or an absolute path.')
    if path == person or path in person.parents:
        raise refusal("is or holds the person's own home", 'Write "user" if that is meant.')
    return path


def _permissions(value: object) -> object:
    if isinstance(value, str) and value in get_args(Preset):
        return value
    if not isinstance(value, list):
        raise refusal("is neither a preset nor a list of rules", _RULE_REMEDY)
    return tuple(_rule(rule, number) for number, rule in enumerate(value, start=1))


def _rule(rule: object, number: int) -> PermissionRule:
    problem = f"has a rule {number} that does not parse"
    if not isinstance(rule, dict) or len(rule) != 1:
        raise refusal(problem, _RULE_REMEDY)
    (decision, match) = next(iter(rule.items()))
    matchers = match if isinstance(match, dict) else {"kind": match}
    if decision not in get_args(Decision) or not set(matchers) <= set(_MATCHERS):
        raise refusal(problem, _RULE_REMEDY)
    globs = {name: _globs(value) for name, value in matchers.items()}
    if not all(globs.values()) or not set(globs.get("kind", ())) <= set(get_args(ToolKind)):
        raise refusal(problem, f"{_RULE_REMEDY} Kinds are {', '.join(get_args(ToolKind))}.")
    if decision == "allow" and "title" in globs and "kind" not in globs:
        raise refusal(
            f"has a rule {number} that allows by title alone, which is the agent's own words",
            'Name the kind as well, such as {"allow": {"kind": "other", "title": "..."}}.',
        )
    return PermissionRule(decision, **globs)


def _globs(value: object) -> tuple[str, ...]:
    globs = [value] if isinstance(value, str) else value
    if not isinstance(globs, list) or not all(isinstance(glob, str) and glob for glob in globs):
        return ()
    return tuple(globs)


def _options(table: object) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise refusal("is not an object", 'Write it as {"option": "value"}.')
    if not all(isinstance(value, str | bool) for value in table.values()):
        raise refusal("has a value that is neither text nor truth", "Write texts, true or false.")
    return MappingProxyType(dict(table))


Word = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=_LONGEST_TEXT)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Variables = Annotated[tuple[str, ...], BeforeValidator(_texts), AfterValidator(_passthrough)]
Environment = Annotated[Mapping[str, SecretStr], AfterValidator(_environment)]
Options = Annotated[Mapping[str, str | bool], PlainValidator(_options)]
Permissions = Annotated[Preset | tuple[PermissionRule, ...], PlainValidator(_permissions)]
Home = Annotated[Literal["own", "user"] | Path, PlainValidator(_home)]
Minutes = Annotated[float, Field(gt=0, le=365 * 24 * 60)]

_STRICT = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)


class AgentLimits(BaseModel):
    """Limits of one agent, within those of the whole bridge."""

    model_config = _STRICT

    max_turns: Annotated[int, Field(ge=1, le=1000)] | None = None
    """How many of its turns run at once."""
    max_processes: Annotated[int, Field(ge=1, le=1000)] | None = None
    """How many of its processes live at once."""
    turn_minutes: Minutes | None = None
    """After how long a turn of it is stopped."""
    ask_hours: Annotated[float, Field(gt=0, le=365 * 24)] | None = None
    """How long its asks can be answered."""
    budget_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """How many dollars one session of it may spend, where it reports its cost."""
    resume: bool = False
    """Whether what its provider's limit stopped goes on by itself when the limit is over."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, table: object) -> object:
        if isinstance(table, dict) and not table.keys() <= cls.model_fields.keys():
            raise refusal("has an unknown key", f"The keys are {', '.join(cls.model_fields)}.")
        return table


class AgentEntry(BaseModel):
    """One agent as it was configured; nothing about whether it is alive."""

    model_config = _STRICT

    name: str
    """What the agent is called in the registry, in mentions and in suffixes of settings."""
    command: Annotated[tuple[str, ...], PlainValidator(_command)] = ()
    """The program that speaks ACP, with its arguments."""
    driver: str | None = None
    """The known agent it is, if it is one: decides what differs between agents."""
    default: bool = False
    """Whether plain settings and plain webhook paths belong to it."""
    display_name: Word | None = None
    """What people call it."""
    description: Text | None = None
    """What it is good at."""
    emoji: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """Its picture where there is room for one character."""
    prompt: Text | None = None
    """How its first prompt begins when it has no IDENTITY.md."""
    env: Environment = Field(default_factory=nothing)
    """Variables it gets as they stand here."""
    env_passthrough: Variables = ()
    """Variables it gets from the settings, beside those its driver lists."""
    mode: Word | None = None
    """The mode set after every start of a session."""
    model: Word | None = None
    """The model set after every start of a session."""
    options: Options = Field(default_factory=nothing)
    """Further options of the agent, set after every start of a session."""
    auth: Word | None = None
    """The log-in method to choose when it offers several."""
    permissions: Permissions = "careful"
    """What is allowed, asked or denied: a preset, or rules in order."""
    home: Home = "own"
    """Its HOME: its own, the person's, or a folder."""
    sandbox: Literal["auto", "bubblewrap", "none"] = "auto"
    """How it is kept away from the rest of the machine."""
    ship: Literal["pr", "push", "none"] = "pr"
    """What happens to its changes at the end of a turn."""
    idle_minutes: Minutes | None = None
    """After how long its idle sessions are parked, if not as everywhere."""
    limits: AgentLimits = AgentLimits()
    """Limits of its own."""
    visible: bool = True
    """Whether other agents can see it."""
    tool_exposure: Literal["tools", "skills", "mixed"] = "tools"
    """How the bridge's own tools are offered to it."""
    agents_allow: Texts | None = None
    """Globs of agents it may see and speak to."""
    agents_deny: Texts = ()
    """Globs of agents it may not see, whatever is allowed."""
    tools_allow: Texts | None = None
    """Globs of the bridge's tools it may use."""
    tools_deny: Texts = ()
    """Globs of tools it may not use, whatever is allowed."""
    capabilities_allow: Texts | None = None
    """Globs of tool capabilities it may use."""
    capabilities_deny: Texts = ()
    """Globs of capabilities it may not use, whatever is allowed."""

    @model_validator(mode="after")
    def _home_fits_sandbox(self) -> AgentEntry:
        if self.home == "user" and self.sandbox == "bubblewrap":
            raise refusal(
                'has home "user" and sandbox "bubblewrap", which exclude each other',
                'Write home "own", or sandbox "none".',
            )
        return self

    @property
    def suffix(self) -> str:
        """What stands after the two underscores in settings of this agent alone."""
        return suffix(self.name)

    @property
    def isolated(self) -> bool:
        """Whether it shall be kept away from the rest of the machine, if that works here."""
        return self.sandbox != "none"


def suffix(name: str) -> str:
    """Turn an agent's name into the suffix of its settings."""
    return name.upper().replace("-", "_")


KEYS: tuple[str, ...] = tuple(key for key in AgentEntry.model_fields if key != "name")
