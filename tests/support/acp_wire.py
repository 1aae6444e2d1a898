"""A small blocking ACP client for tests: one subprocess, newline JSON-RPC, every wait bounded.

It keeps all that came in, in order, and never answers anything by itself: the test is the client.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

WAIT_SECONDS = 5.0  # the bound of every wait; a healthy agent needs a hundredth of it


class AnsweredError(Exception):
    """The agent answered a request with a JSON-RPC error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.data: Any = error.get("data")


class AcpWire:
    """A running agent and everything it sent."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self.messages: list[dict[str, Any]] = []
        self.garbage: list[bytes] = []
        self.stderr = b""
        self.closed = False
        self._changed = threading.Condition()
        self._ids = 0
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._readers = [
            threading.Thread(target=read, daemon=True) for read in (self._read, self._drain)
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The agent's process id, which is also its group's."""
        return self._process.pid

    def send_line(self, line: bytes) -> None:
        """Write one line as it is."""
        assert self._process.stdin
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def send(self, **message: object) -> None:
        """Send one JSON-RPC message."""
        self.send_line(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self.send(method=method, params=params)

    def start(self, method: str, params: object) -> int:
        """Send a request without waiting for its answer."""
        self._ids += 1
        self.send(id=self._ids, method=method, params=params)
        return self._ids

    def result(self, request: int) -> Any:
        """Wait for the answer to a request; raise AnsweredError if it is an error."""
        answer = self.wait(lambda m: m.get("id") == request and "method" not in m)
        if "error" in answer:
            raise AnsweredError(answer["error"])
        return answer["result"]

    def request(self, method: str, params: object) -> Any:
        """Send a request and wait for its answer."""
        return self.result(self.start(method, params))

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for the first message, of all that ever came, that is wanted."""
        seen = 0

        def found() -> bool:
            nonlocal seen
            while seen < len(self.messages) and not wanted(self.messages[seen]):
                seen += 1
            return seen < len(self.messages) or self.closed

        with self._changed:
            arrived = self._changed.wait_for(found, WAIT_SECONDS)
        assert arrived, f"nothing came within {WAIT_SECONDS} s; last: {self.messages[-3:]}"
        assert seen < len(self.messages), f"the agent left; stderr: {self.stderr.decode()[-2000:]}"
        return self.messages[seen]

    def updates(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the session updates that came so far, of some kinds or of all."""
        found = [m["params"]["update"] for m in list(self.messages) if is_update(m)]
        return [update for update in found if not kinds or update["sessionUpdate"] in kinds]

    def wait_update(self, kind: str, **fields: object) -> dict[str, Any]:
        """Wait for an update of a kind with such fields."""

        def wanted(message: dict[str, Any]) -> bool:
            update = message["params"]["update"] if is_update(message) else {}
            return {**update, "sessionUpdate": kind, **fields} == update

        update: dict[str, Any] = self.wait(wanted)["params"]["update"]
        return update

    def text(self, kind: str = "agent_message_chunk") -> str:
        """Return the joined text of all chunks of a kind."""
        return "".join(update["content"]["text"] for update in self.updates(kind))

    def ask(self, number: int = 1) -> dict[str, Any]:
        """Wait for the n-th permission request."""
        self.wait(lambda _: len(self.asks()) >= number)
        return self.asks()[number - 1]

    def asks(self) -> list[dict[str, Any]]:
        """Return the permission requests that came so far."""
        asked = "session/request_permission"
        return [message for message in list(self.messages) if message.get("method") == asked]

    def answer(self, ask: dict[str, Any], name: str) -> None:
        """Choose the option that people see under this name."""
        options = ask["params"]["options"]
        chosen = next(option["optionId"] for option in options if option["name"] == name)
        outcome = {"outcome": "selected", "optionId": chosen}
        self.send(id=ask["id"], result={"outcome": outcome})

    def close_stdin(self) -> None:
        """Tell the agent that nothing more will come."""
        assert self._process.stdin
        self._process.stdin.close()

    def wait_exit(self) -> int:
        """Wait until the agent is gone and everything it wrote is read; return its status."""
        status = self._process.wait(WAIT_SECONDS)
        for reader in self._readers:
            reader.join(WAIT_SECONDS)
        return status

    def kill(self) -> None:
        """Kill the agent's group and let go of its pipes."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait_exit()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe
            with suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            with self._changed:
                if isinstance(message, dict):
                    self.messages.append(message)
                else:
                    self.garbage.append(line)
                self._changed.notify_all()
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _drain(self) -> None:
        assert self._process.stderr
        while data := os.read(self._process.stderr.fileno(), 65536):
            self.stderr += data


def is_update(message: dict[str, Any]) -> bool:
    """Tell whether a message is a session/update with a body."""
    body = message.get("params") if message.get("method") == "session/update" else None
    return isinstance(body, dict) and isinstance(body.get("update"), dict)
