"""Refuses what is unsafe as a whole, though each setting is well-formed; settles where data is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from pydantic import SecretStr

from app.config.fields import PAGE, is_loopback, is_plain_and_remote
from app.config.roster import STORED, ConfiguredAgents
from app.config.services import Credentials
from app.config.settings import Settings
from app.config.sources import (
    everyone_can_write,
    find_open_folder,
    is_others,
    others_can_write,
)
from app.errors import ConfigurationError

_DATA_DIR = "~/.local/share/agent-bridge"
_POSTGRESQL = ("postgresql://", "postgres://")


def check_access(settings: Settings, roster: ConfiguredAgents, services: tuple[str, ...]) -> None:
    """Refuse to be open to more people than the operator chose.

    Raises:
        ConfigurationError: for the first thing that is wrong.
    """
    public = not is_loopback(settings.host)
    token, key = settings.bridge_admin_token, settings.bridge_secret_key
    if public and token is None:
        raise ConfigurationError(
            "HOST",
            "is open to other machines, but BRIDGE_ADMIN_TOKEN is not set",
            "Set BRIDGE_ADMIN_TOKEN to a long random string, or HOST to 127.0.0.1.",
        )
    if token is not None and token == key:
        raise ConfigurationError(
            "BRIDGE_SECRET_KEY",
            "is the same as BRIDGE_ADMIN_TOKEN",
            "Set it to a different random string: the token must not be able to sign.",
        )
    if settings.hooks_port == settings.port:
        raise ConfigurationError(
            "HOOKS_PORT", "is the same as PORT", "Choose another one, or remove it."
        )
    if settings.allowed_users_only and not settings.allowed_users:
        raise ConfigurationError(
            "ALLOWED_USERS_ONLY",
            "is true, but ALLOWED_USERS is empty",
            "Name people in ALLOWED_USERS, or remove it.",
        )
    if is_open_to_others(settings, services) and roster.unasked:
        agent = roster.agents[roster.unasked[0]]
        reached = next((each for each in services if each != PAGE), "a public HOST")
        raise ConfigurationError(
            STORED if agent.source == "stored" else "AGENTS_JSON",
            f"agent {agent.name!r} would run without isolation, open to {reached}",
            'Write "home": "own" in its entry, or "sandbox": "none" to run it without isolation.',
        )


def is_open_to_others(settings: Settings, services: tuple[str, ...]) -> bool:
    """Tell whether anyone but the user of this machine can reach the agents."""
    return not is_loopback(settings.host) or set(services) != {PAGE}


def check_secrets(settings: Settings, credentials: Credentials) -> None:
    """Refuse a secret that a platform knows as the one that opens the bridge.

    Raises:
        ConfigurationError: for the first such secret.
    """
    own = {"BRIDGE_ADMIN_TOKEN": settings.bridge_admin_token}
    own["BRIDGE_SECRET_KEY"] = settings.bridge_secret_key
    for given in credentials.values():
        for field, name in given.names().items():
            value = getattr(given, field)
            for setting, secret in own.items():
                if isinstance(value, SecretStr) and value == secret:
                    raise ConfigurationError(
                        name,
                        f"is the same as {setting}, so the platform could open the page",
                        "Set one of the two to a different random string.",
                    )


def check_commands(roster: ConfiguredAgents, path: str) -> None:
    """Refuse programs of agents that other users of this machine could replace.

    Raises:
        ConfigurationError: for the first such program.
    """
    for agent in roster.agents.values():
        if not agent.command:
            continue
        program = shutil.which(agent.command[0], path=path) or agent.command[0]
        setting = STORED if agent.source == "stored" else roster.source
        if "/" in program and not Path(program).is_absolute():
            raise ConfigurationError(
                setting,
                f"the command of agent {agent.name!r} depends on the folder the bridge starts in",
                "Write its absolute path, or a name that is on PATH.",
            )
        file = Path(program)
        if not file.is_absolute() or not file.exists():
            continue
        found = file if everyone_can_write(file.stat()) else find_open_folder(file)
        if found is not None:
            raise ConfigurationError(
                setting,
                f"every user of this machine can replace the program of agent {agent.name!r}",
                f"Check it, then run chmod o-w {found}, or install it elsewhere.",
            )


def check_transport(settings: Settings, base_url: str) -> None:
    """Refuse logins over plain HTTP unless the operator allows them, and keys in any case.

    Raises:
        ConfigurationError: others could read logins or a key on the network.
    """
    collector = settings.traces_url
    if collector and settings.traces_headers is not None and is_plain_and_remote(collector):
        raise ConfigurationError(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "uses plain http to another machine, so others could read the key in "
            "OTEL_EXPORTER_OTLP_HEADERS",
            "Write an https:// address, a collector on this machine, or remove the headers.",
        )
    if is_plain_and_remote(base_url) and not settings.allow_plain_http:
        raise ConfigurationError(
            "BRIDGE_BASE_URL",
            "uses plain http to another machine, so others could read logins on the network",
            "Write an https address that leads here, or set ALLOW_PLAIN_HTTP=true if the "
            "network itself is private.",
        )


def check_homes(roster: ConfiguredAgents, *own: Path) -> None:
    """Refuse homes in which an agent would read the bridge's files or another agent's.

    Raises:
        ConfigurationError: for the first such home.
    """
    seen: dict[Path, str] = {}
    bridge = [each.resolve() for each in own]
    for name, agent in roster.agents.items():
        if not isinstance(agent.home, Path):
            continue
        home = agent.home.resolve()
        if any(_overlap(home, each) for each in bridge):
            raise ConfigurationError(
                "AGENTS_JSON",
                f"agent {name!r}: home overlaps with DATA_DIR, where the bridge keeps its secrets",
                'Write "own", or a folder outside DATA_DIR and SHARED_DIR.',
            )
        other = next((seen[each] for each in seen if _overlap(home, each)), None)
        if other is not None:
            raise ConfigurationError(
                "AGENTS_JSON",
                f"the agents {other!r} and {name!r} would share a home, with logins and history",
                'Write "own", or a separate folder for each.',
            )
        seen[home] = name


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def data_folder(settings: Settings, home: Path) -> Path:
    """Return DATA_DIR.

    Raises:
        ConfigurationError: it is not a folder that the bridge alone can use.
    """
    wanted = _DATA_DIR if settings.data_dir is None else settings.data_dir
    return _own_folder("DATA_DIR", wanted, home)


def shared_folder(settings: Settings, home: Path, data_dir: Path) -> Path:
    """Return SHARED_DIR, which is DATA_DIR if it is not set.

    Raises:
        ConfigurationError: it is not a folder that bridges alone can use.
    """
    if settings.shared_dir is None:
        return data_dir
    path = _own_folder("SHARED_DIR", settings.shared_dir, home)
    if path.resolve() != data_dir.resolve() and _overlap(path.resolve(), data_dir.resolve()):
        raise ConfigurationError(
            "SHARED_DIR",
            "overlaps with DATA_DIR, which every machine has for itself",
            "Choose two folders of which none is inside the other.",
        )
    return path


def _own_folder(name: str, wanted: str, home: Path) -> Path:
    path = home / wanted.removeprefix("~/") if wanted.startswith("~/") else Path(wanted)
    if not path.is_absolute():
        raise ConfigurationError(
            name,
            "is not an absolute path, so it would depend on the folder the bridge starts in",
            "Start it with / or ~/.",
        )
    # Agents see nothing of it, so it cannot be a folder that is used for anything else.
    if path == home or path in home.parents:
        raise ConfigurationError(
            name, "is or contains your home", "Give the bridge its own folder."
        )
    if not _can_be_written(path):
        raise ConfigurationError(
            name, "is not a writable folder", "Choose one that the bridge owns."
        )
    if path.exists():
        _check_owner(name, path)
    if (folder := find_open_folder(path)) is not None:
        raise ConfigurationError(
            name,
            f"is in {folder}, where other users could replace it",
            f"Run chmod o-w {folder}, or choose another folder.",
        )
    return path


def _check_owner(name: str, path: Path) -> None:
    about = path.stat()
    if is_others(about, os.geteuid()):
        raise ConfigurationError(
            name,
            "belongs to another user, who could replace its content",
            "Choose a folder that the bridge's user owns, or one that does not exist yet.",
        )
    if others_can_write(about):
        raise ConfigurationError(
            name,
            "is writable by other users, who could replace its content",
            "Run chmod 700 on it, or choose a folder that does not exist yet.",
        )


def _can_be_written(path: Path) -> bool:
    try:
        existing = next(folder for folder in (path, *path.parents) if folder.exists())
    except OSError:
        return False
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def read_database_url(given: SecretStr | None, data_dir: Path) -> str:
    """Return the address of the store; by default a file in DATA_DIR.

    Raises:
        ConfigurationError: it is not an address of a database that the bridge can use.
    """
    if given is None:
        return f"sqlite:///{quote(str(data_dir / 'bridge.db'))}"
    address = given.get_secret_value()
    if address.startswith(_POSTGRESQL):
        try:
            parts = urlsplit(address)
            valid = (parts.port is None or parts.port > 0) and bool(parts.path.strip("/"))
        except ValueError:
            valid = False
        if valid:
            return f"{_POSTGRESQL[0]}{address.partition('://')[2]}"
        raise ConfigurationError(
            "DATABASE_URL",
            "is not an address of a PostgreSQL database",
            "Write postgresql://user:password@host/name; a special character of the password as"
            " %40 and the like.",
        )
    if not address.startswith("sqlite:"):
        raise ConfigurationError(
            "DATABASE_URL",
            "is not an address of PostgreSQL or SQLite",
            "Write postgresql://user:password@host/name or sqlite:////path.",
        )
    if not address.startswith("sqlite:////"):
        raise ConfigurationError(
            "DATABASE_URL",
            "does not name a file by its absolute path",
            "Write sqlite:////path with four slashes, or remove it.",
        )
    return address


def check_role(role: str, address: str) -> None:
    """Refuse to share the work where there is no one to share it with.

    Raises:
        ConfigurationError: the database is a file.
    """
    if role != "all" and not address.startswith(_POSTGRESQL):
        raise ConfigurationError(
            "ROLE", "needs a PostgreSQL", "Set DATABASE_URL=postgresql://..., or remove ROLE."
        )


def find_database_passwords(given: SecretStr | None) -> Iterator[SecretStr]:
    """Yield the password in an address, as it is written there and as it is sent."""
    if given is None or not (address := given.get_secret_value()).startswith(_POSTGRESQL):
        return
    parts = urlsplit(address)
    for password in (parts.password, *parse_qs(parts.query).get("password", ())):
        if password:
            yield from map(SecretStr, {password, unquote(password)})
