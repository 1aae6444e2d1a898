"""The agent programs that the bridge knows, as data: one file in `known/` each.

What differs between agents stands in these files and nowhere in code. Every statement in them was
measured or read (docs of the project, reference on ACP); what is not known is left out.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from app.errors import ConfigurationError

_FOLDER = Path(__file__).parent / "known"

# The order in which agents are offered when they are found on PATH.
_ORDER = ("claude", "codex", "codex-zed", "gemini", "opencode", "qwen", "copilot", "demo")

_CHECKED = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """Where a program behaves unlike the others."""

    __pydantic_config__: ClassVar[ConfigDict] = _CHECKED

    load_after_seconds: int = 0
    """How long after the start of a session it can be loaded again without loss."""
    reject_ends_turn: bool = False
    """Whether a refused permission ends the turn as cancelled."""
    notes: tuple[str, ...] = ()
    """What else people should know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProgram:
    """One agent program: how to get it, start it, and what to expect of it."""

    __pydantic_config__: ClassVar[ConfigDict] = _CHECKED

    name: str
    """What `driver` calls it: the name of its file."""
    title: str
    """What people call it."""
    description: str = ""
    """What it is, where its title does not say that."""
    command: tuple[str, ...]
    """How it is started as an ACP agent."""
    match: tuple[str, ...]
    """File names of programs that are this agent, older names too."""
    packages: tuple[str, ...] = ()
    """Packages that are this agent when a runner such as npx starts it, older names too."""
    install: str
    """The command that installs it."""
    node: int | None = None
    """The oldest version of node it runs on."""
    version: tuple[str, ...] = ()
    """The command that prints its version; empty where only initialize tells it."""
    env: tuple[str, ...] = ()
    """Variables it may receive from the settings."""
    auth: tuple[str, ...] = ()
    """The log-in methods it offers."""
    login: str
    """How it gets access to its model, in one sentence."""
    login_command: tuple[str, ...] = ()
    """Its own login for a terminal; empty where it has none that works without a screen."""
    ask_mode: str | None = None
    """The id of the mode that asks before it acts; None if no mode decides that."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What its process is given whatever the settings say, to keep it asking and to keep settings,
    hooks and servers of the checkout out."""
    session_meta: Mapping[str, Any] = field(default_factory=dict)
    """What goes along as `_meta` when a session starts, to keep it from loading settings, hooks
    and servers out of the checkout."""
    trailing_slash: bool = False
    """Whether it is told its folder with a slash at the end: it takes the checkout for trusted
    only under the exact name that it was given, and looks it up without the slash."""
    obeys: tuple[str, ...] = ()
    """What it obeys in a checkout and cannot be kept from: where one of these is, it is not
    started."""
    discover: bool = True
    """Whether it is offered when it is found on PATH."""
    examples: tuple[str, ...] = ()
    """What a newcomer may say to it to see what happens."""
    quirks: Quirks = Quirks()
    """Where it behaves unlike the others."""


def checkout_words(program: AgentProgram | None) -> str:
    """Say what settings, hooks and servers in a checkout can do to an agent."""
    if program is None:
        return "settings of a checkout may switch off asking: nothing is known about this agent"
    if program.obeys:
        return f"does not start where a checkout holds {', '.join(program.obeys)}"
    return "settings of a checkout are kept out"


_SCHEMA = TypeAdapter(AgentProgram)


@functools.cache
def known_agents() -> tuple[AgentProgram, ...]:
    """Return every agent program the bridge knows, in the order in which they are offered."""
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
    raise ConfigurationError(f"known/{path.name}", problem, "Correct the file, or reinstall.")
