"""Decides how each agent is isolated, and says honestly when it is not.

As soon as anyone but the user of this machine can reach an agent, it runs isolated or not at all,
unless its entry says `"sandbox": "none"`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from app.agents.catalog import known_agents
from app.agents.network import network_plan, network_words, require_network
from app.children.environment import CERTIFICATES, PROXIES, agent_environment, visible_prefixes
from app.children.homes import Home, SessionHomes, allocate_users, give
from app.children.layout import Confinement, hiding_folder
from app.children.limits import MEBIBYTE, ResourceLimits, default_memory_bytes
from app.children.network.dialing import Internet, Outside
from app.children.network.link import NetworkPlan
from app.children.probe import ProbeResult, probe
from app.children.proc_table import new_marker
from app.children.sandbox import (
    NEEDS_LINUX,
    Bubblewrap,
    Plain,
    Sandbox,
    Unavailable,
    entry_prefixes,
    find_bubblewrap,
)
from app.config import AgentConfig, Configuration
from app.errors import ConfigurationError

NOT_ISOLATED: Final = "not isolated"
NOT_OURS: Final = "not ours"
"""How the isolation of an agent on another machine is described."""
AS_YOU: Final = "runs as you and can read your files and keys"
AS_ROOT: Final = "runs as root and can read every file on this machine"

_SHARED_HOME: Final = ", but its sessions share one home"
_ROOT_REMARK: Final = "; it runs as root"


@dataclass(frozen=True, slots=True)
class Isolation:
    """One agent's HOME, sandbox and environment."""

    agent: str
    home: Path
    """The home that holds its login; with `homes`, the template for its sessions' homes."""
    homes: SessionHomes | None
    """Creates a home for each session; None if they share one."""
    sandbox: Sandbox
    confinement: Confinement
    limits: ResourceLimits
    base: Mapping[str, str]
    own: Mapping[str, str]
    words: str
    """How it is isolated, for people."""
    remark: str = ""
    """What else an isolated agent can reach, for people; begins with a comma."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Variables that its programs need in this isolation; they hold no key."""
    network: NetworkPlan | None = None
    """Its network; None means this machine's."""

    @property
    def user(self) -> int | None:
        """The user that its processes become, if not the bridge's own."""
        return self.confinement.user

    @property
    def limit_words(self) -> str:
        """What one of its sessions may use, and which limit cannot be enforced here."""
        if self.words.startswith(NOT_OURS):
            return "time, output and budget; its processes, memory and files are not ours to limit"
        if not sys.platform.startswith("linux"):
            return "processes, memory and files are not limited here: run the bridge on Linux"
        words = self.limits.description
        if isinstance(self.sandbox, Bubblewrap) and not self.sandbox.can_size:
            words += "; /tmp has no separate limit: install bubblewrap 0.7 or later"
        return words

    def environment(self, marker: str) -> dict[str, str]:
        """Build the whole environment of its process."""
        base, proxies = self.base, {}
        if self.network is not None:
            base = {name: value for name, value in base.items() if name not in PROXIES}
            proxies = self.network.environment
        own = {**self.own, **self.settings}
        return agent_environment(base, home=self.home, own=own, marker=marker) | proxies

    def home_of(self, name: str) -> Home:
        """Return the home of one session, by its name."""
        home = Home(self.home) if self.homes is None else self.homes.ensure(name)
        give(home.path, self.user)
        return home

    def on_host_network(self) -> Isolation:
        """Return the same isolation on this machine's network."""
        confinement = replace(self.confinement, shares_network=True)
        return replace(self, network=None, confinement=confinement)


def isolate_all(
    configuration: Configuration, outside: Outside | None = None
) -> dict[str, Isolation]:
    """Create every agent's isolation and HOME; their proxies connect to `outside`.

    Raises:
        ConfigurationError: an agent must be isolated and cannot be.
    """
    wanted = any(entry.sandbox != "none" for entry in configuration.agents.values())
    found = find_bubblewrap(configuration.path) if wanted else Unavailable("not needed", "")
    users = _users(configuration, found)
    outside = outside or Internet()
    isolations = {
        name: _isolate(configuration, entry, found, users.get(name), outside)
        for name, entry in configuration.agents.items()
    }
    for isolation in isolations.values():
        isolation.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        give(isolation.home, isolation.user)
    return isolations


def must_be_isolated(configuration: Configuration, entry: AgentConfig) -> bool:
    """Tell whether an agent runs isolated or not at all."""
    return not _is_open(entry) and (
        entry.sandbox == "bubblewrap" or configuration.isolation_required
    )


async def try_isolation(configuration: Configuration, isolation: Isolation) -> ProbeResult:
    """Try from inside an agent's sandbox to read what it must not see; without one it can."""
    if isinstance(isolation.sandbox, Plain):
        return ProbeResult((), isolated=False, words=isolation.words)
    workspaces, name = configuration.data_dir / "workspaces", f"probe-{isolation.agent}"
    home = await asyncio.to_thread(isolation.home_of, name)
    other = await asyncio.to_thread(isolation.home_of, f"{name}-other")
    for folder in (workspace := workspaces / name, workspaces / f"{name}-other"):
        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        await asyncio.to_thread(give, folder, isolation.user)
    hidden = {"DATA_DIR": configuration.data_dir, "SHARED_DIR": configuration.shared_dir}
    hidden |= {path.name: path for path in sorted(_secret_files(configuration))}
    others = _homes(configuration) - {isolation.home}
    hidden |= {f"the HOME of {home.name}": home for home in sorted(others) if home.is_dir()}
    if home.path != other.path:
        hidden["the home of another session"] = other.path
    hidden["the workspace of another session"] = workspaces / f"{name}-other"
    result = await probe(
        isolation.sandbox,
        replace(isolation.confinement, home=home.path, workspace=workspace),
        env={**isolation.environment(new_marker("probe")), "HOME": str(home.path)},
        hidden=hidden,
    )
    if result.isolated:
        return replace(result, words=f"{result.words}{isolation.remark}")
    reason, dot, rest = result.words.partition(". ")
    return replace(result, words=f"{reason.removesuffix('.')}{isolation.remark}{dot or '.'}{rest}")


def home_of(configuration: Configuration, entry: AgentConfig) -> Path:
    """Return an agent's HOME."""
    if entry.home == "own":
        return configuration.shared_dir / "homes" / entry.id
    return configuration.home if entry.home == "user" else Path(entry.home)


def _users(configuration: Configuration, found: Bubblewrap | Unavailable) -> Mapping[str, int]:
    """Give each isolated agent its own user, if the bridge is root and can."""
    if os.geteuid() != 0 or not isinstance(found, Bubblewrap) or not found.changes_user:
        return {}
    isolated = [entry.id for entry in configuration.agents.values() if not _is_open(entry)]
    return allocate_users(configuration.shared_dir, isolated)


def _is_open_to_others(entry: AgentConfig, path: str) -> bool:
    """Tell whether another user could run an agent's program; folders above it do not matter."""
    command = shutil.which(entry.command[0], path=path) or entry.command[0]
    needed = visible_prefixes((command, *entry.command[1:]), path="")
    return all(each.stat().st_mode & stat.S_IROTH for each in needed if each.exists())


def _trust_mirrors(file: Path) -> None:
    """Let git read mirrors that belong to the bridge's user, on top of the machine's settings."""
    file.write_text("[include]\n\tpath = /etc/gitconfig\n[safe]\n\tdirectory = *\n")
    file.chmod(0o644)


def _is_open(entry: AgentConfig) -> bool:
    """Tell whether an entry says that its agent is not isolated, or not here."""
    return entry.sandbox == "none" or entry.home == "user" or bool(entry.url)


def homes_root(configuration: Configuration) -> Path:
    """Return the folder of the sessions' homes."""
    return configuration.shared_dir / "session-homes"


def workspaces_root(configuration: Configuration) -> Path:
    """Return the folder of the sessions' workspaces, which every machine of a fleet finds."""
    return configuration.shared_dir / "workspaces"


def _isolate(
    configuration: Configuration,
    entry: AgentConfig,
    found: Bubblewrap | Unavailable,
    user: int | None,
    outside: Outside,
) -> Isolation:
    home = home_of(configuration, entry)
    sandbox, words = _sandbox(configuration, entry, found)
    if isinstance(sandbox, Plain) or not _is_open_to_others(entry, configuration.path):
        user = None
    if isinstance(sandbox, Bubblewrap):
        _check_hidden(configuration, entry.name, home)
    keys = configuration.model_keys(entry.id)
    program = next((each for each in known_agents() if each.name == entry.driver), None)
    files = program.home if program else None
    root = homes_root(configuration)
    has_homes = entry.home == "own" and not entry.url
    homes = SessionHomes(home, root, files, user=user) if has_homes else None
    own = dict(program.defaults) if program else {}
    own |= {name: key.get_secret_value() for name, key in keys.items()}
    own |= program.environment if program else {}
    trust = configuration.data_dir / "git.config"
    if user is not None:
        _trust_mirrors(trust)
    limits = _limits(entry)
    network = None
    if isinstance(sandbox, Bubblewrap) and sandbox.own_network:
        network = network_plan(configuration, entry, program, own, outside)
    else:
        require_network(entry)
    confined = isinstance(sandbox, Bubblewrap)
    remark = f", {network_words(network)}" if confined else ""
    if os.geteuid() == 0 and user is None and confined:
        remark += f"{_ROOT_REMARK} and can read every file that is not hidden"
    if homes is None and confined:
        remark += _SHARED_HOME
    bridge = {configuration.data_dir, configuration.shared_dir}
    masked = bridge | (_homes(configuration) - {home, configuration.home})
    return Isolation(
        agent=entry.id,
        home=home,
        homes=homes,
        sandbox=sandbox,
        confinement=Confinement(
            home=home,
            workspace=home,
            person=configuration.home,
            masked=tuple(sorted(masked)),
            user=user,
            visible=() if user is None else (trust,),
            secrets=tuple(sorted(_secret_files(configuration))),
            prefixes=(
                *visible_prefixes(entry.command, path=configuration.path),
                *entry_prefixes(),
                *_certificates(configuration),
            ),
            limits=limits.words,
            scratch_bytes=limits.scratch_bytes,
        ),
        limits=limits,
        base=configuration.surroundings,
        own=own,
        settings={} if user is None else {"GIT_CONFIG_SYSTEM": str(trust)},
        words=f"{words}{remark}",
        remark=remark,
        network=network,
    )


def _limits(entry: AgentConfig) -> ResourceLimits:
    own = entry.limits
    memory = default_memory_bytes() if own.memory_mb is None else own.memory_mb * MEBIBYTE
    return ResourceLimits(
        processes=own.processes,
        memory_bytes=memory,
        open_files=own.open_files,
        file_bytes=own.file_mb * MEBIBYTE,
        disk_bytes=own.disk_mb * MEBIBYTE,
    )


def _sandbox(
    configuration: Configuration, entry: AgentConfig, found: Bubblewrap | Unavailable
) -> tuple[Sandbox, str]:
    if entry.url:
        return Plain(), describe_elsewhere(entry.host)
    if _is_open(entry):
        return Plain(), describe_exposure("", explain_choice(entry))
    if isinstance(found, Bubblewrap):
        return found, "isolated (bubblewrap)"
    # Threads of the demo agent keep no other agent from starting: it is closed instead.
    if must_be_isolated(configuration, entry) and not entry.is_left_over:
        raise ConfigurationError(
            "AGENTS_JSON",
            f"agent {entry.name!r} cannot be isolated: {found.reason}",
            f'{found.remedy} Or write "sandbox": "none" in its entry to run it without isolation.',
        )
    return Plain(), describe_exposure(found.reason, found.remedy)


def _secret_files(configuration: Configuration) -> set[Path]:
    """List every file outside DATA_DIR that no agent may see."""
    files = {*configuration.secret_files}
    database = configuration.database_file
    if database is not None and not database.is_relative_to(configuration.data_dir):
        files.add(database)
    if configuration.dotenv is not None:
        files.add(configuration.dotenv)
    return files


def _check_hidden(configuration: Configuration, agent: str, home: Path) -> None:
    """Refuse a secret file in a folder that an isolated agent must see."""
    for file in sorted(_secret_files(configuration)):
        if any(hiding_folder(each) is None for each in (file.absolute(), file.resolve())):
            problem = f"{file} holds secrets, but its folder cannot be hidden from agents"
        elif file.resolve().is_relative_to(home.resolve()):
            problem = f"{file} holds secrets, but is inside the home of agent {agent!r}"
        else:
            continue
        raise ConfigurationError(
            str(file.name), problem, "Move it to a separate folder, such as /etc/agent-bridge."
        )


def _certificates(configuration: Configuration) -> tuple[Path, ...]:
    """List the certificates that an agent's environment names."""
    told = (configuration.surroundings.get(name) for name in sorted(CERTIFICATES))
    return tuple(Path(path) for path in told if path and path.startswith("/"))


def _homes(configuration: Configuration) -> set[Path]:
    return {home_of(configuration, entry) for entry in configuration.agents.values()}


def describe_exposure(reason: str, remedy: str) -> str:
    """Say what an agent without isolation can read, why, and how to isolate it.

    The first sentence is the risk, the rest is the remedy.
    """
    risk = AS_ROOT if os.geteuid() == 0 else AS_YOU
    why = f"{NOT_ISOLATED} ({reason})" if reason else NOT_ISOLATED
    return f"{why}: it {risk}. {remedy}"


def describe_elsewhere(host: str) -> str:
    """Say of an agent on another machine that the bridge does not isolate it."""
    return f"{NOT_OURS}: runs at {host}. What it can reach there is set there."


def explain_choice(entry: AgentConfig) -> str:
    """Say how to isolate an agent that its settings leave without isolation."""
    if not sys.platform.startswith("linux"):
        return NEEDS_LINUX.remedy
    key = '"home": "user"' if entry.home == "user" else '"sandbox": "none"'
    if entry.source == "stored":
        return f"To isolate it, remove {key} from its entry."
    if entry.source == "found":
        return (
            "It was found on PATH. To isolate it, press Isolate it on its page, or run "
            f"`agent-bridge agents add {entry.name}`."
        )
    return f"To isolate it, remove {key} from its entry in AGENTS_JSON."


def shorten_isolation(words: str) -> str:
    """Return how an agent is isolated in a few words, without what to do about it."""
    if words.startswith(NOT_OURS):
        return words.partition(". ")[0]
    return NOT_ISOLATED if words.startswith(NOT_ISOLATED) else words
