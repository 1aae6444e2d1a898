"""The demo agent that notes which messages it has read, and when.

Run as `python stamping.py PATH_OF_THE_DEMO_AGENT FILE`. A message is named `load-NUMBER-`; each
name in a prompt becomes a line in the file, with the machine's monotonic time.
"""

from __future__ import annotations

import os
import re
import sys
import time
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = re.compile(rb"load-([0-9a-z]+)-")


class Input:
    """Stdin, line by line, with a look at each line before the agent gets it."""

    @property
    def buffer(self) -> Iterator[bytes]:
        """The lines that arrive."""
        for line in sys.__stdin__.buffer:  # type: ignore[union-attr]  # a child always has a stdin
            if b'"session/prompt"' in line:
                _note(time.monotonic(), NAME.findall(line))
            yield line


def _note(now: float, names: list[bytes]) -> None:
    text = "".join(f"{name.decode()} {now}\n" for name in names).encode()
    # One write in append mode: lines of several agents do not mix.
    file = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, text)
    os.close(file)


def main() -> None:
    """Run the demo agent."""
    folder, _, file = sys.argv[1].rpartition("/")
    sys.path[0] = folder
    agent = import_module(file.removesuffix(".py"))
    sys.stdin = Input()
    agent.main()


if __name__ == "__main__":
    main()
