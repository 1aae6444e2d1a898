"""Finds out whether a bridge is running, and where; every command needs this first.

Light on purpose: the store is not opened and nothing is sent.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from app.config import Configuration

LOCK_NAME: Final = "bridge.lock"
"""The store's name of it; importing the store for one name would cost 0.4 s. A test compares."""


def is_running(data_dir: Path) -> bool:
    """Tell whether a process holds the lock of a data folder; creates and keeps nothing."""
    try:
        handle = os.open(data_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def local_address(configuration: Configuration) -> str:
    """Return the address of a bridge with this configuration, as seen from this machine."""
    settings = configuration.settings
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - read, not bound
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"
