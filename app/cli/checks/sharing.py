"""Checks what the bridges of several machines share: SHARED_DIR, and the bucket."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

from app.children.file_lock import hold
from app.config import Configuration
from app.errors import ConfigurationError
from app.model.findings import Finding, ok, problem, warning
from app.shelf.bucket import BucketShelf

_LOCK_SECONDS = 5.0


async def check_sharing(configuration: Configuration) -> AsyncIterator[Finding]:
    """Try to write and to lock in SHARED_DIR, and to store in the bucket."""
    is_shared = configuration.shared_dir != configuration.data_dir
    if is_shared:
        yield await _try_folder(configuration.shared_dir)
    elif configuration.settings.role != "all":
        yield warning(
            "SHARED_DIR",
            f"not set, but ROLE is {configuration.settings.role}: on several machines, uploads and "
            "files of agents stay where they were written",
            "Set SHARED_DIR to a folder on a network file system that all machines mount.",
        )
    if configuration.bucket is not None:
        yield await _try_bucket(configuration)


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


async def _try_bucket(configuration: Configuration) -> Finding:
    bucket = configuration.bucket
    assert bucket is not None
    name = f".doctor-{uuid4().hex}"
    try:
        shelf = BucketShelf(bucket)
        with tempfile.TemporaryDirectory() as spare:
            file = Path(spare) / "file"
            file.write_bytes(os.urandom(16))
            await shelf.put(name, file)
            found = await shelf.get(name, file)
            await shelf.remove(name)
    except ConfigurationError as error:
        return problem("SHARED_BUCKET", error.problem, error.remedy)
    except OSError as error:
        return problem(
            "SHARED_BUCKET",
            f"{bucket.name}: {error}",
            "Check S3_ENDPOINT_URL, S3_REGION and the key: it must be allowed to list, read, "
            "write and delete.",
        )
    if not found:
        return problem(
            "SHARED_BUCKET", f"{bucket.name} forgets what is stored", "Choose another server."
        )
    return ok("SHARED_BUCKET", f"s3://{bucket.name}/{bucket.prefix}")
