"""Runs a command in the user's terminal: it talks to them directly, and the bridge waits."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from app.children.command import Command
from app.errors import AgentNotStarted


def run_in_terminal(command: Command, *, name: str, env: Mapping[str, str], cwd: Path) -> int:
    """Run a command to its end and return its status; Ctrl-C reaches only the command.

    Raises:
        AgentNotStarted: the command or its folder is missing or not accessible.
    """
    # A handler, not SIG_IGN: the command would inherit that.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with command.open() as (argv, inherited):
            return subprocess.run(
                argv, env=dict(env), cwd=cwd, check=False, pass_fds=inherited
            ).returncode
    except OSError as error:
        raise AgentNotStarted(
            name,
            f"{command.argv[0]!r}: {error.strerror or type(error).__name__}",
            "Check its command.",
        ) from error
    finally:
        signal.signal(signal.SIGINT, before)
