"""Checks of this machine and of what the bridge keeps on it; nothing is made or changed."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from app.cli.checks import Finding, ok, problem, warning
from app.cli.running import local_address
from app.config import Configuration, ensure_secrets
from app.config.bridge_secrets import FILE_NAME
from app.errors import ConfigurationError, StoreUnavailable

LITTLE_DISK: Final = 1024**3
"""One build of a project fills that much."""
NO_DISK: Final = 64 * 1024**2
"""Below this the store itself soon cannot write."""
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def python() -> Finding:
    """Check the interpreter."""
    return ok("Python", f"{platform.python_version()}, {sys.executable}")


def refused(error: ConfigurationError) -> Finding:
    """Put a configuration that does not start into a finding."""
    return problem("configuration", f"{error.setting}: {error.problem}", error.remedy)


def configuration_of(configuration: Configuration) -> Iterator[Finding]:
    """Tell what was configured."""
    names = ", ".join(configuration.agents)
    source = {"path": "found on PATH", "demo": "nothing else was found"}.get(
        configuration.agents_source, f"from {configuration.agents_source}"
    )
    yield ok("configuration", f"agents: {names} ({source}); default: {configuration.default_agent}")
    dotenv = configuration.dotenv
    if dotenv is not None and dotenv.stat().st_mode & OTHERS:
        yield warning(".env", f"others can read {dotenv}", f"chmod 600 {dotenv}")


def folder(configuration: Configuration) -> Iterator[Finding]:
    """Check DATA_DIR, the disk below it and the secrets in it."""
    path = configuration.data_dir
    place = next(each for each in (path, *path.parents) if each.exists())
    free = shutil.disk_usage(place).free
    room = f"{free / 1024**3:.1f} GiB free"
    remedy = "Free some disk space, or set DATA_DIR to a folder on another disk."
    if not os.access(place, os.W_OK | os.X_OK):
        yield problem("DATA_DIR", f"{path} cannot be written", "Choose one that you own.")
    elif free < NO_DISK:
        yield problem("DATA_DIR", f"{path}, only {free // 1024**2} MiB free", remedy)
    elif free < LITTLE_DISK:
        yield warning("DATA_DIR", f"{path}, only {room}", remedy)
    elif not path.exists():
        yield ok("DATA_DIR", f"{path}, made at the first start, {room}")
    elif path.stat().st_mode & OTHERS:
        yield warning("DATA_DIR", f"others can look into {path}", f"chmod 700 {path}")
    else:
        yield ok("DATA_DIR", f"{path}, {room}")
    yield from _secrets(configuration)


def store(configuration: Configuration) -> Finding:
    """Check the database."""
    # 0.5 s that only this check needs.
    from app.store.database import HEAD_REVISION  # noqa: PLC0415
    from app.store.reading import file_of, revision  # noqa: PLC0415

    file = file_of(configuration.database_url)
    try:
        found = revision(configuration.database_url)
    except StoreUnavailable as error:
        return problem(
            "database", error.cause, "Move the file away and restore a copy, or start afresh."
        )
    if found is None:
        return ok("database", f"{file}, made at the first start")
    if found == HEAD_REVISION:
        return ok("database", f"{file}, schema {found}")
    if found > HEAD_REVISION:
        return problem(
            "database",
            f"{file} was made by a newer version (schema {found}, here {HEAD_REVISION})",
            "Install that version again, or restore a copy from before.",
        )
    return ok("database", f"{file}, schema {found}, brought to {HEAD_REVISION} at the next start")


def port(configuration: Configuration) -> Finding:
    """Check whether somebody else has the port; only while no bridge runs."""
    address = local_address(configuration)
    host = configuration.host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, configuration.port), family=family).close()
    except OSError as error:
        return problem(
            "port",
            f"{address} cannot be listened on: {error.strerror or error}",
            "Stop whoever uses it, or choose another PORT.",
        )
    return ok("port", f"{address} is free")


def git(configuration: Configuration) -> Finding:
    """Check for git."""
    found = shutil.which("git", path=configuration.path)
    if found is None:
        return warning("git", "it was not found on PATH", "Install it: agents work in clones.")
    return ok("git", found)


def _secrets(configuration: Configuration) -> Iterator[Finding]:
    file: Path = configuration.data_dir / FILE_NAME
    if configuration.admin_token is not None and configuration.secret_key is not None:
        yield ok("admin token", "set by BRIDGE_ADMIN_TOKEN")
    elif not file.exists():
        yield ok("admin token", f"made at the first start into {file}")
    else:
        try:
            ensure_secrets(configuration)
        except ConfigurationError as error:
            yield problem("admin token", error.problem, error.remedy)
        else:
            yield ok("admin token", f"in {file}")
