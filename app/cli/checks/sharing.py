"""Checks SHARED_DIR, which the bridges of several machines share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

from app.children.file_lock import hold
from app.config import Configuration
from app.model.findings import Finding, ok, problem, warning

_LOCK_SECONDS = 5.0


async def check_sharing(configuration: Configuration) -> AsyncIterator[Finding]:
    """Try to write and to lock in SHARED_DIR."""
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


async def _try_folder(folder: Path) -> Finding:
    file = folder / f".doctor-{uuid4().hex}"
    try:
        async with hold(file, _LOCK_SECONDS):
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
