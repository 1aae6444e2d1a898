"""A command in the person's own terminal: it talks to them directly, and the bridge waits."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.errors import AgentNotStarted


def run_in_terminal(argv: Sequence[str], *, name: str, env: Mapping[str, str], cwd: Path) -> int:
    """Run a command to its end and return its status; Ctrl-C is for the command alone.

    Raises:
        AgentNotStarted: the command or its folder is missing or may not be used.
    """
    # A handler, not SIG_IGN: that the command would inherit.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run(argv, env=dict(env), cwd=cwd, check=False).returncode
    except OSError as error:
        raise AgentNotStarted(
            name, f"{argv[0]!r}: {error.strerror or type(error).__name__}", "Check its command."
        ) from error
    finally:
        signal.signal(signal.SIGINT, before)
