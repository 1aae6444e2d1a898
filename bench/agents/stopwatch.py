"""The demo agent with a stopwatch: it notes when it has read a prompt, or words for its turn.

Run as `python stopwatch.py PATH_OF_THE_DEMO_AGENT [FILE]`. The clock is the machine's monotonic
one, the same in every process. The last prompt is noted in its HOME, with the network of the agent.
With a file, each message of the form `load-NAME-` in a prompt becomes a line in it.
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
NAME = b"load-"


class Input:
    """Stdin, line by line, with a look at each line before the agent gets it."""

    @property
    def buffer(self) -> Iterator[bytes]:
        """The lines that arrive."""
        for line in sys.__stdin__.buffer:  # type: ignore[union-attr]  # a child always has a stdin
            now = time.monotonic_ns()
            if b'"session/prompt"' in line or b'"_session/steering"' in line:
                if len(sys.argv) == 2:
                    _note(now)
                else:
                    _note_names(now, line.split(NAME)[1:])
            yield line


def _note(now: int) -> None:
    """Write the moment where the bench looks for it, all at once."""
    path = f"{os.environ['HOME']}/{STAMP}"
    with open(f"{path}.new", "w") as file:  # noqa: PTH123 - pathlib takes a quarter of the start
        file.write(f"{now} {os.readlink(NETWORK)}")  # noqa: PTH115
    os.replace(f"{path}.new", path)  # noqa: PTH105


def _note_names(now: int, named: list[bytes]) -> None:
    names = [each.partition(b"-")[0].decode() for each in named]
    text = "".join(f"{name} {now / 1e9}\n" for name in names if name.isalnum()).encode()
    # One write in append mode: lines of several agents do not mix.
    file = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, text)
    os.close(file)


def main() -> None:
    """Run the demo agent behind the stopwatch."""
    folder, _, file = sys.argv[1].rpartition("/")
    sys.path[0] = folder
    agent = import_module(file.removesuffix(".py"))
    sys.stdin = Input()
    agent.main()


if __name__ == "__main__":
    main()
