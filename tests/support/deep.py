"""Makes folders deeper than Python's stack, and deeper than a path may be long."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LEVELS: Final = 1300
"""More than Python's stack has."""
BELOW_PATHS: Final = 2100
"""More than a path of 4096 characters has."""


@contextmanager
def dug(root: Path, levels: int, text: str = "") -> Iterator[None]:
    """Make folders named `d` in each other, and a file `found` in the last one.

    They are removed at the end, also of a test that fails: pytest cannot do that.
    """
    try:
        with _last(root, levels, make=True) as folder:
            file = os.open("found", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)
            os.write(file, text.encode())
            os.close(file)
        yield
    finally:
        subprocess.run(["rm", "-rf", root / "d"], check=True)


def reach(root: Path, levels: int) -> str:
    """Read the file in the last folder that was dug."""
    with _last(root, levels) as folder:
        file = os.open("found", os.O_RDONLY, dir_fd=folder)
        found = os.read(file, 1024)
        os.close(file)
    return found.decode()


@contextmanager
def _last(root: Path, levels: int, *, make: bool = False) -> Iterator[int]:
    here = os.open(root, os.O_RDONLY)
    try:
        for _ in range(levels):
            if make:
                os.mkdir("d", 0o700, dir_fd=here)
            above, here = here, os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(above)
        yield here
    finally:
        os.close(here)
