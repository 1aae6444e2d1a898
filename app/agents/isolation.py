"""Decides how each agent is kept apart, and says honestly when it is not.

As soon as others than the person at this machine reach an agent, it runs isolated or not at all,
unless its entry says `"sandbox": "none"` in words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from app.agents.catalog import known_agents
from app.children.census import new_marker
from app.children.environment import agent_environment
from app.children.layout import Confinement
from app.children.prefixes import visible_prefixes
from app.children.probe import probe
from app.children.sandbox import Bubblewrap, Plain, Sandbox, Unavailable, find_bubblewrap
from app.config import AgentEntry, Configuration
from app.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Shelter:
    """How one agent lives: its HOME, its sandbox, its environment."""

    agent: str
    home: Path
    sandbox: Sandbox
    confinement: Confinement
    base: Mapping[str, str]
    own: Mapping[str, str]
    words: str
    """How it is kept apart, for people."""
    remedy: str = ""

    def environment(self, marker: str) -> dict[str, str]:
        """Make the whole environment of its process."""
        return agent_environment(self.base, home=self.home, own=self.own, marker=marker)


def shelter_all(configuration: Configuration) -> dict[str, Shelter]:
    """Give every agent its shelter; makes their HOMEs.

    Raises:
        ConfigurationError: an agent must be isolated and cannot be.
    """
    wanted = any(entry.sandbox != "none" for entry in configuration.agents.values())
    found = find_bubblewrap(configuration.path) if wanted else Unavailable("nobody wants it", "")
    shelters = {
        name: _shelter(configuration, entry, found) for name, entry in configuration.agents.items()
    }
    for shelter in shelters.values():
        shelter.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return shelters


async def try_shelter(configuration: Configuration, shelter: Shelter) -> Shelter:
    """Try from inside an agent's shoes to read what it must not; says what came of it."""
    workspace = configuration.data_dir / "workspaces" / f"probe-{shelter.agent}"
    await asyncio.to_thread(workspace.mkdir, mode=0o700, parents=True, exist_ok=True)
    hidden = {"DATA_DIR": configuration.data_dir}
    elsewhere = _secret_paths(configuration) - {configuration.data_dir}
    hidden |= {path.name: path for path in sorted(elsewhere)}
    others = _homes(configuration) - {shelter.home}
    hidden |= {f"the HOME of {home.name}": home for home in sorted(others) if home.is_dir()}
    result = await probe(
        shelter.sandbox,
        replace(shelter.confinement, workspace=workspace),
        env=shelter.environment(new_marker("probe")),
        hidden=hidden,
        remedy=shelter.remedy,
    )
    return replace(shelter, words=result.words)


def home_of(configuration: Configuration, entry: AgentEntry) -> Path:
    """Tell where an agent lives."""
    if entry.home == "own":
        return configuration.data_dir / "homes" / entry.name
    return configuration.home if entry.home == "user" else Path(entry.home)


def _shelter(
    configuration: Configuration, entry: AgentEntry, found: Bubblewrap | Unavailable
) -> Shelter:
    home = home_of(configuration, entry)
    sandbox, words, remedy = _sandbox(configuration, entry, found)
    keys = configuration.model_keys(entry.name)
    program = next((each for each in known_agents() if each.name == entry.driver), None)
    own = {name: key.get_secret_value() for name, key in keys.items()}
    own |= program.environment if program else {}
    masked = _secret_paths(configuration) | (_homes(configuration) - {home, configuration.home})
    return Shelter(
        agent=entry.name,
        home=home,
        sandbox=sandbox,
        confinement=Confinement(
            home=home,
            workspace=home,
            person=configuration.home,
            masked=tuple(sorted(masked)),
            prefixes=visible_prefixes(entry.command, path=configuration.path),
        ),
        base=configuration.surroundings,
        own=own,
        words=words,
        remedy=remedy,
    )


def _sandbox(
    configuration: Configuration, entry: AgentEntry, found: Bubblewrap | Unavailable
) -> tuple[Sandbox, str, str]:
    if entry.sandbox == "none" or entry.home == "user":
        return Plain(), "not isolated, as its entry says", ""
    if isinstance(found, Bubblewrap):
        return found, "isolated (bubblewrap)", ""
    if entry.sandbox == "bubblewrap" or configuration.isolation_required:
        raise ConfigurationError(
            "AGENTS_JSON",
            f"agent {entry.name!r} cannot be isolated: {found.reason}",
            f'{found.remedy} Or write "sandbox": "none" in its entry if that is meant.',
        )
    return Plain(), f"not isolated: {found.reason}", found.remedy


def _secret_paths(configuration: Configuration) -> set[Path]:
    """List what no agent may see: the bridge's data, wherever it is, and every secret in a file."""
    paths = {configuration.data_dir, *configuration.secret_files}
    database = Path(unquote(configuration.database_url.removeprefix("sqlite:///")))
    if not database.is_relative_to(configuration.data_dir):
        paths |= {
            database,
            *(database.with_name(f"{database.name}{end}") for end in ("-wal", "-shm")),
        }
    if configuration.dotenv is not None:
        paths.add(configuration.dotenv)
    return paths


def _homes(configuration: Configuration) -> set[Path]:
    return {home_of(configuration, entry) for entry in configuration.agents.values()}
