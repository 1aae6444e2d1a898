"""The demo agent behind a proxy that kills the bridge when a certain message passes.

Run as `deadly_agent.py ARMED REACHED COMMAND...`; a single stdlib file, as any agent of the tests.
Steps are `agent.<method>` for what the bridge says (`agent.session/prompt`), `agent.update.<kind>`
and `agent.ask` for what the agent says, and `agent.answer` for the end of a prompt; `before` means
that the message was not passed on, `after` that it was. With the act `mute` the bridge lives, and
the agent is never heard again; with `ignore` only this message is kept from whom it was meant for.

After the kill neither the proxy nor the agent leaves by itself: somebody has to end them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

STAY_SECONDS = 300.0
"""Longer than any test, so that only a test that failed sees it leave."""


def _bridge() -> int:
    """Find the bridge: the parent, or the parent of the reaper between them."""
    parent = os.getppid()
    if b"\0reap=" not in Path(f"/proc/{parent}/cmdline").read_bytes():
        return parent
    return int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])


class Proxy:
    """What passes between a bridge and an agent."""

    def __init__(self, armed: Path, reached: Path, command: list[str]) -> None:
        self._armed = armed
        self._reached = reached
        self._bridge = _bridge()
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        self._prompts: set[Any] = set()
        self._agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self) -> None:
        """Pass everything on until the bridge or the agent ends."""
        assert self._agent.stdin is not None
        assert self._agent.stdout is not None
        threading.Thread(
            target=self._pump, args=(self._agent.stdout, sys.stdout.buffer), daemon=True
        ).start()
        self._pump(sys.stdin.buffer, self._agent.stdin)
        with self._lock:  # held for ever after a kill
            self._agent.stdin.close()
        self._agent.wait()

    def _pump(self, source: IO[bytes], sink: IO[bytes]) -> None:
        for line in source:
            step = self._step(line)
            # Together: an answer that overtakes the kill would let the bridge go on.
            with self._lock:
                if self._passes(step, "before"):
                    sink.write(line)
                    sink.flush()
                    self._passes(step, "after")
        if source is not sys.stdin.buffer:
            os._exit(self._agent.wait())

    def _step(self, line: bytes) -> str:
        try:
            return self._name(json.loads(line))
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            return ""  # garbage is passed on as well

    def _name(self, message: dict[str, Any]) -> str:
        method = message.get("method")
        if method == "session/update":
            return f"agent.update.{message['params']['update'].get('sessionUpdate')}"
        if method == "session/request_permission":
            return "agent.ask"
        if method == "session/prompt":
            self._prompts.add(message["id"])
        if method is None and message.get("id") in self._prompts:
            return "agent.answer"
        return f"agent.{method}"

    def _passes(self, step: str, when: str) -> bool:
        act = self._act(step, when)
        if act == "kill":
            os.kill(self._bridge, signal.SIGKILL)
        if act in ("kill", "mute"):
            threading.Event().wait(STAY_SECONDS)
            os._exit(1)
        return act is None

    def _act(self, step: str, when: str) -> str | None:
        try:
            point = json.loads(self._armed.read_bytes())
        except FileNotFoundError:
            return None
        if (point["step"], point["when"]) != (step, when):
            return None
        self._counts[step] = self._counts.get(step, 0) + 1
        if self._counts[step] < point["nth"]:
            return None
        self._armed.rename(self._reached)
        return str(point["act"])


if __name__ == "__main__":
    Proxy(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]).run()
