"""Reads what is known of agent programs and of the prices of models, which are data.

What differs between agents is in these files and nowhere in code. Every statement in them was
measured or read (the project's docs, the ACP reference); unknown facts are left out.
"""

from __future__ import annotations

import functools
import logging
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from app.children.homes import HomeFiles
from app.config import Configuration
from app.errors import ConfigurationError
from app.model.agents import ToolExposure
from app.model.updates import Tokens

_FOLDER = Path(__file__).parent / "known"

# The order in which agents are offered when they are found on PATH.
_ORDER = ("claude", "codex", "codex-zed", "gemini", "opencode", "qwen", "copilot", "demo")

_CHECKED = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """How a program differs from the others."""

    __pydantic_config__: ClassVar[ConfigDict] = _CHECKED

    load_after_seconds: int = 0
    """How long after its start a session can be loaded again without loss."""
    reject_ends_turn: bool = False
    """Whether a refused permission ends the turn as cancelled."""
    confines_commands: bool = False
    """Whether it runs commands in its own sandbox, where they can change nothing, and asks before
    one leaves it."""
    notes: tuple[str, ...] = ()
    """What else people should know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProgram:
    """One agent program: how to get it, start it, and what to expect of it."""

    __pydantic_config__: ClassVar[ConfigDict] = _CHECKED

    name: str
    """Its name in `driver`: the name of its file."""
    title: str
    """The name people see."""
    description: str = ""
    """What it is, if its title does not say so."""
    command: tuple[str, ...]
    """The command that starts it as an ACP agent."""
    match: tuple[str, ...]
    """File names of programs that are this agent, older names too."""
    packages: tuple[str, ...] = ()
    """Packages that are this agent when a runner such as npx starts it, older names too."""
    install: str
    """The command that installs it."""
    node: int | None = None
    """The oldest version of node it runs on."""
    version: tuple[str, ...] = ()
    """The command that prints its version; empty if only initialize reports it."""
    env: tuple[str, ...] = ()
    """Variables it may receive from the settings."""
    auth: tuple[str, ...] = ()
    """The login methods it offers."""
    login: str
    """How it gets access to its model, in one sentence."""
    login_command: tuple[str, ...] = ()
    """Its own login command for a terminal; empty if it has none that works without a screen."""
    ask_mode: str | None = None
    """The id of the mode that asks before it acts; None if no mode decides that."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables its process always gets, to keep it asking and to keep the checkout's settings,
    hooks and servers out."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables its process gets unless its entry sets them."""
    session_meta: Mapping[str, Any] = field(default_factory=dict)
    """Sent as `_meta` when a session starts, to keep it from loading settings, hooks and servers
    from the checkout."""
    trailing_slash: bool = False
    """Whether it gets its folder with a trailing slash: it trusts the checkout only under the exact
    name it was given, and looks it up without the slash."""
    obeys: tuple[str, ...] = ()
    """Files in a checkout that it obeys and that cannot be disabled: it is not started where one
    of them exists."""
    project: tuple[str, ...] = ()
    """Its settings in a folder that it works in; a folder ends with a slash."""
    unshared: tuple[str, ...] = ()
    """Those of them that it writes for itself: they are never committed for it."""
    home: HomeFiles = HomeFiles()  # noqa: RUF009 - frozen
    """Which files in its home are logins, settings and conversations."""
    tool_exposure: ToolExposure = "tools"
    """How it gets the bridge's tools, unless its entry says otherwise."""
    tool_seconds: float = 60.0
    """How long it waits for the result of a tool before it gives up."""
    hosts: tuple[str, ...] = ()
    """The hosts of its model and its account there, for an agent with a list of hosts."""
    discover: bool = True
    """Whether it is offered when it is found on PATH."""
    examples: tuple[str, ...] = ()
    """Prompts to try it with."""
    quirks: Quirks = Quirks()
    """How it differs from the others."""


def checkout_words(program: AgentProgram | None) -> str:
    """Describe what settings, hooks and servers in a checkout can do to an agent."""
    if program is None:
        return "a checkout's settings may turn off asking: this agent is unknown"
    if program.obeys:
        return f"does not start in a checkout with {', '.join(program.obeys)}"
    return "ignores agent settings inside repositories"


def settings_owner(path: str) -> str:
    """Name the agent program whose own settings a file in a work tree is; empty if it is none."""
    for program in known_agents():
        for own in program.project:
            if f"/{path}".endswith(f"/{own}") or (own.endswith("/") and f"/{own}" in f"/{path}"):
                return program.title
    return ""


def find_missing(configuration: Configuration) -> list[AgentProgram]:
    """List the known agents that are not installed on this machine."""
    present = {entry.driver for entry in configuration.agents.values()}
    return [
        program
        for program in known_agents()
        if program.discover
        and program.name not in present
        and not any(shutil.which(name, path=configuration.path) for name in program.match)
    ]


def unshared_files() -> tuple[str, ...]:
    """List the files that agents write for themselves into a work tree."""
    return tuple(each for program in known_agents() for each in program.unshared)


_SCHEMA = TypeAdapter(AgentProgram)


@functools.cache
def known_agents() -> tuple[AgentProgram, ...]:
    """Return every known agent program, in the order in which they are offered."""
    return tuple(read_program(_FOLDER / f"{name}.toml") for name in _ORDER)


def read_program(path: Path) -> AgentProgram:
    """Read one file about an agent program.

    Raises:
        ConfigurationError: the file does not follow the schema.
    """
    try:
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
        return _SCHEMA.validate_python({"name": path.stem, **facts})
    except tomllib.TOMLDecodeError as error:
        problem = f"is not TOML: {error}"
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except OSError:
        problem = "cannot be read"
    raise ConfigurationError(f"known/{path.name}", problem, "Fix the file, or reinstall.")


logger = logging.getLogger(__name__)

KNOWN: Final = Path(__file__).with_name("prices.toml")
OWN: Final = "prices.toml"
"""The operator's file in DATA_DIR."""
MILLION: Final = 1_000_000


class Price(BaseModel):
    """What one model costs, in dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    """By default as much as input."""
    cache_write: float | None = Field(default=None, ge=0)


class PriceList(BaseModel):
    """Prices as a file has them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: str = ""
    models: Mapping[str, Price] = Field(default_factory=dict)


class Prices:
    """What models cost."""

    def __init__(self, models: Mapping[str, Price]) -> None:
        self._models = models

    def estimate(self, model: str, tokens: Tokens) -> float | None:
        """Estimate what tokens of a model cost, in dollars; None if its price is not known."""
        named = [name for name in self._models if name in model.lower()]
        if not named:
            return None
        price = self._models[max(named, key=len)]
        read = price.input if price.cache_read is None else price.cache_read
        write = price.input if price.cache_write is None else price.cache_write
        return (
            tokens.input * price.input
            + tokens.output * price.output
            + tokens.cache_read * read
            + tokens.cache_write * write
        ) / MILLION


def read_prices(shared_dir: Path) -> Prices:
    """Read the known prices and the operator's own, which win; a broken file is left out."""
    models = dict(PriceList.model_validate(tomllib.loads(KNOWN.read_text())).models)
    own = shared_dir / OWN
    try:
        models |= PriceList.model_validate(tomllib.loads(own.read_text())).models
    except FileNotFoundError:
        pass
    except (OSError, ValueError, ValidationError) as error:
        logger.warning("%s is not used: %s", own, str(error).splitlines()[0])
    return Prices({name.lower(): price for name, price in models.items()})
