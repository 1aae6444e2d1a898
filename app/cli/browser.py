"""Opens the page in the browser of a person who sits at this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

OPEN_SECONDS: Final = 5.0
"""The shell only starts the browser and ends."""
# In the background of a shell that ends at once: a browser outlives the bridge and belongs to
# the desktop.
_START: Final = '"$0" "$1" >/dev/null 2>&1 </dev/null &'
_ELSEWHERE: Final = ("SSH_CONNECTION", "SSH_TTY", "CI")


def is_desktop(environment: Mapping[str, str]) -> bool:
    """Tell whether a person sits at this machine, in front of a screen."""
    if not sys.stdout.isatty() or any(environment.get(name) for name in _ELSEWHERE):
        return False
    return sys.platform == "darwin" or any(
        environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def open_browser(address: str, environment: Mapping[str, str]) -> bool:
    """Open an address in the default browser; returns whether there is one to start."""
    name = "open" if sys.platform == "darwin" else "xdg-open"
    program = shutil.which(name, path=environment.get("PATH"))
    if program is None:
        return False
    try:
        subprocess.run(
            ["/bin/sh", "-c", _START, program, address],
            env=dict(environment),
            start_new_session=True,
            timeout=OPEN_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return True
