"""Runs the command line as on a system without bubblewrap, pidfd and the like, such as macOS.

What Linux alone has is removed before anything of `app` is imported; /proc stays.
"""

from __future__ import annotations

import os
import sys

# Other packages look at the platform when they are imported: first, as on Linux.
import fastapi  # noqa: F401
import httpx  # noqa: F401
import sqlalchemy  # noqa: F401
import uvicorn  # noqa: F401
import uvloop  # noqa: F401

LINUX_ONLY = ("posix_fallocate", "pidfd_open", "memfd_create")


def refuse(fd: int, mode: int) -> None:
    """Refuse, as macOS does for the mode of a socket."""
    raise OSError(22, "Invalid argument")


if __name__ == "__main__":
    for name in LINUX_ONLY:
        delattr(os, name)
    os.fchmod = refuse
    sys.platform = "darwin"
    from app.cli import main

    main()
