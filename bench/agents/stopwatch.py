"""The demo agent with a stopwatch: it notes in its HOME when it has read a prompt, and where.

Run as `python stopwatch.py PATH_OF_THE_DEMO_AGENT`. The clock is the machine's monotonic one, the
same in every process.
"""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

TYPE_CHECKING = False  # importing typing would be part of what is measured
if TYPE_CHECKING:
    from collections.abc import Iterator

STAMP = "prompt.stamp"
NETWORK = "/proc/self/ns/net"
"""Names the network of a process: by it an agent shows that it is in another one."""


class Input:
    """Stdin, line by line, with a look at each line before the agent gets it."""

    @property
    def buffer(self) -> Iterator[bytes]:
        """The lines that arrive."""
        for line in sys.__stdin__.buffer:  # type: ignore[union-attr]  # a child always has a stdin
            now = time.monotonic_ns()
            if b'"session/prompt"' in line:
                _note(now)
            yield line


def _note(now: int) -> None:
    """Write the moment where the bench looks for it, all at once."""
    path = f"{os.environ['HOME']}/{STAMP}"
    with open(f"{path}.new", "w") as file:  # noqa: PTH123 - pathlib takes a quarter of the start
        file.write(f"{now} {os.readlink(NETWORK)}")  # noqa: PTH115
    os.replace(f"{path}.new", path)  # noqa: PTH105


def main() -> None:
    """Run the demo agent behind the stopwatch."""
    folder, _, file = sys.argv[1].rpartition("/")
    sys.path[0] = folder
    agent = import_module(file.removesuffix(".py"))
    sys.stdin = Input()
    agent.main()


if __name__ == "__main__":
    main()
