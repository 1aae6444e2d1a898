"""Checks this machine, what the bridge keeps on it and what it shares with others.

What a check creates, it removes again.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import stat
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from app.agents.registry import label_origin
from app.children.file_lock import hold
from app.config import Configuration, cautions, ensure_secrets
from app.config.process import SECRETS
from app.errors import ConfigurationError, StoreUnavailable
from app.model.gap_wording import gap_words
from app.model.inbound import Gap
from app.services.service import Finding, ok, problem, warning
from app.terminal.api import local_address
from app.terminal.framing import when

LITTLE_DISK: Final = 1024**3
"""One build of a project can fill this."""
NO_DISK: Final = 64 * 1024**2
"""Below this the store itself soon cannot write any more."""
LOCK_SECONDS: Final = 5.0
"""To lock a file on a network file system."""
DAY_SECONDS: Final = 86_400.0
"""How far back gaps are told: what people may still wonder about."""
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def python() -> Finding:
    """Check the interpreter."""
    return ok("Python", f"{platform.python_version()}, {sys.executable}")


def refused(error: ConfigurationError) -> Finding:
    """Report a configuration that the bridge refuses."""
    return problem("configuration", f"{error.setting}: {error.problem}", error.remedy)


def configuration_of(configuration: Configuration) -> Iterator[Finding]:
    """Report what is configured."""
    setting = configuration.agents_source
    names = ", ".join(
        f"{entry.name} ({label_origin(entry.source, setting)})"
        for entry in configuration.agents.values()
    )
    default = configuration.agents[configuration.default_agent].name
    yield ok("configuration", f"agents: {names}; default: {default}")
    yield ok("settings", f"from {configuration.dotenv or 'the environment only'}")
    for caution in cautions(configuration):
        yield warning(caution.subject, caution.problem, caution.remedy)


def folder(configuration: Configuration) -> Iterator[Finding]:
    """Check DATA_DIR, the disk below it and the secrets in it."""
    path = configuration.data_dir
    place = next(each for each in (path, *path.parents) if each.exists())
    free = shutil.disk_usage(place).free
    room = f"{free / 1024**3:.1f} GiB free"
    remedy = "Free some disk space, or set DATA_DIR to a folder on another disk."
    if not os.access(place, os.W_OK | os.X_OK):
        yield problem("DATA_DIR", f"{path} cannot be written", "Choose a folder that you own.")
    elif free < NO_DISK:
        yield problem("DATA_DIR", f"{path}, only {free // 1024**2} MiB free", remedy)
    elif free < LITTLE_DISK:
        yield warning("DATA_DIR", f"{path}, only {room}", remedy)
    elif not path.exists():
        yield ok("DATA_DIR", f"{path}, created at the first start, {room}")
    elif path.stat().st_mode & OTHERS:
        yield warning("DATA_DIR", f"other users can read {path}", f"chmod 700 {path}")
    else:
        yield ok("DATA_DIR", f"{path}, {room}")
    yield from _secrets(configuration)


def store(configuration: Configuration) -> Finding:
    """Check the database."""
    # 0.5 s that only this check needs.
    from app.store.database.schema import HEAD_REVISION  # noqa: PLC0415
    from app.store.stores import name_store, revision, was_cut_off  # noqa: PLC0415

    name = name_store(configuration.database_url)
    try:
        found = revision(configuration.database_url)
        is_older = found is None or found < HEAD_REVISION
        cut_off = is_older and was_cut_off(configuration.database_url)
    except StoreUnavailable as error:
        return problem(
            "database",
            f"{name}: {error.cause}" if error.remedy else error.cause,
            error.remedy or "Move the file away, then restore a backup or start with a new one.",
        )
    if cut_off:
        return warning(
            "database",
            f"{name} was cut off while it was created or upgraded",
            "Start the bridge: it does that again, and keeps what is stored.",
        )
    if found is None:
        return ok("database", f"{name}, created at the first start")
    if found == HEAD_REVISION:
        return ok("database", f"{name}, schema {found}")
    if found > HEAD_REVISION:
        return problem(
            "database",
            f"{name} was written by a newer version (schema {found}, here {HEAD_REVISION})",
            "Install that version again, or restore an older backup.",
        )
    return ok("database", f"{name}, schema {found}, upgraded to {HEAD_REVISION} at the next start")


def port(configuration: Configuration) -> Finding:
    """Check whether the port is free; only while no bridge runs."""
    address = local_address(configuration)
    host = configuration.settings.host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, configuration.settings.port), family=family).close()
    except OSError as error:
        return problem(
            "port",
            f"cannot listen on {address}: {error.strerror or error}",
            "Stop the program that uses it, or choose another PORT.",
        )
    return ok("port", f"{address} is free")


def git(configuration: Configuration) -> Finding:
    """Check for git."""
    found = shutil.which("git", path=configuration.path)
    if found is None:
        return warning("git", "not found on PATH", "Install it: agents work in git clones.")
    return ok("git", found)


def _secrets(configuration: Configuration) -> Iterator[Finding]:
    file: Path = configuration.shared_dir / SECRETS
    settings = configuration.settings
    if settings.bridge_admin_token is not None and settings.bridge_secret_key is not None:
        yield ok("admin token", "set by BRIDGE_ADMIN_TOKEN")
    elif not file.exists():
        yield ok("admin token", f"created in {file} at the first start")
    else:
        try:
            ensure_secrets(configuration)
        except ConfigurationError as error:
            yield problem("admin token", error.problem, error.remedy)
        else:
            yield ok("admin token", f"in {file}")


async def check_sharing(configuration: Configuration) -> AsyncIterator[Finding]:
    """Try to write and to lock in SHARED_DIR, which the bridges of several machines share."""
    is_shared = configuration.shared_dir != configuration.data_dir
    if is_shared:
        yield await _try_folder(configuration.shared_dir)
    elif configuration.settings.role != "all":
        yield warning(
            "SHARED_DIR",
            f"not set, but ROLE is {configuration.settings.role}: on several machines, workspaces, "
            "uploads and files of agents stay where they were written, and are lost with that "
            "machine",
            "Set SHARED_DIR to a folder on a network file system that all machines mount.",
        )


async def check_shared_and_heard(
    configuration: Configuration, now: float
) -> AsyncIterator[Finding]:
    """Check what is shared with other machines, and whether services were heard."""
    async for finding in check_sharing(configuration):
        yield finding
    async for finding in check_gaps(configuration, now):
        yield finding


async def check_gaps(configuration: Configuration, now: float) -> AsyncIterator[Finding]:
    """Report when services were not heard during the last day."""
    # Imported here: that takes 0.4 s, and the help of the command does not need it.
    from app.store.stores import reading  # noqa: PLC0415

    gaps: Sequence[Gap] = ()
    with suppress(StoreUnavailable), reading(configuration.database_url) as stores:
        gaps = () if stores is None else await stores.gaps.since(now - DAY_SECONDS)
    for gap in gaps:
        yield warning(
            gap.adapter,
            f"events were not heard: {gap_words(gap, when)}",
            "What was sent meanwhile is looked for. `agent-bridge why LINK` tells of a message.",
        )


async def _try_folder(folder: Path) -> Finding:
    file = folder / f".doctor-{uuid4().hex}"
    try:
        async with hold(file, LOCK_SECONDS):
            pass
    except (OSError, TimeoutError) as error:
        return problem(
            "SHARED_DIR",
            f"files in {folder} cannot be written and locked: {error}",
            "Mount it writable, with locks: NFS 4 has them, NFS 3 needs its lock service.",
        )
    finally:
        file.unlink(missing_ok=True)
    return ok("SHARED_DIR", str(folder))
