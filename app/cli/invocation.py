"""Names this command as the person at the terminal can run it again.

After `make run` it is not on PATH: then hints name its path, seen from the current folder.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

NAME: Final = "agent-bridge"


def command_name(argv0: str | None = None, path: str | None = None) -> str:
    """Return the shortest way to run this command from the current folder."""
    script = Path(sys.argv[0] if argv0 is None else argv0)
    if script.name != NAME or not script.exists():
        return NAME
    on_path = shutil.which(NAME, path=path)
    if on_path is not None and script.samefile(on_path):
        return NAME
    absolute = Path(os.path.abspath(script))  # noqa: PTH100 - a link stays what it is
    folder = Path.cwd()
    return str(absolute.relative_to(folder) if absolute.is_relative_to(folder) else absolute)


def hint(text: str) -> str:
    """Put the real name of this command into every command that a text quotes."""
    return text.replace(f"`{NAME} ", f"`{command_name()} ")
