"""Defines the hook of a gate and the two named pipes over which it asks the bridge."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CHUNK_BYTES: Final = 65536
HOOK: Final = """\
#!/bin/sh
# Asks the bridge about a push and does as it says.
{ echo "$GIT_QUARANTINE_PATH"; cat; echo end; } >"$AGENT_BRIDGE_GATE/question" || exit 1
while read -r word rest; do
    case $word in
        taken) exit 0 ;;
        refused) exit 1 ;;
        say) printf '%s\\n' "$rest" >&2 ;;
    esac
done <"$AGENT_BRIDGE_GATE/answer"
exit 1
"""


@dataclass(frozen=True, slots=True)
class Pipes:
    """The two named pipes of one push."""

    folder: Path
    asking: int
    answering: int

    async def question(self) -> list[str]:
        """Wait for what the hook asks."""
        loop = asyncio.get_running_loop()
        asked = bytearray()
        ready = asyncio.Event()
        loop.add_reader(self.asking, ready.set)
        try:
            while not asked.endswith(b"\nend\n"):
                await ready.wait()
                ready.clear()
                with contextlib.suppress(BlockingIOError):
                    asked += os.read(self.asking, _CHUNK_BYTES)
        finally:
            loop.remove_reader(self.asking)
        # Not splitlines: names of refs may hold other characters that Python takes for line ends.
        return asked.decode(errors="replace").split("\n")[:-2]

    def answer(self, refusal: str) -> None:
        """Tell the hook what to say and do; a reason fits into the pipe."""
        said = "".join(f"say {line}\n" for line in refusal[:4000].splitlines() if line)
        os.write(self.answering, f"{said}{'refused' if refusal else 'taken'}\n".encode())


@contextlib.contextmanager
def pipes() -> Iterator[Pipes]:
    """Create the pipes of one push; they are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="agent-bridge-push-") as name:
        folder = Path(name)
        ends = []
        for pipe in ("question", "answer"):
            os.mkfifo(folder / pipe, 0o600)
            # Open for reading and writing: neither side blocks, and what was written is not lost.
            ends.append(os.open(folder / pipe, os.O_RDWR | os.O_NONBLOCK))
        try:
            yield Pipes(folder, *ends)
        finally:
            for end in ends:
                os.close(end)
