"""Starts bridges and commands quickly: one process imports everything once and forks each of them.

A fork is a process like any other: it has its own number, can be killed, and what it starts has it
as parent. Only the imports are shared, which are most of the time that a start takes.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sys.executable).parent / "agent-bridge")
SECONDS = 60.0
"""Far beyond what any command takes; a test that needs it has failed."""
MESSAGE_BYTES = 64 * 1024
IMPORTED_LATE = (
    "alembic.command",
    "alembic.config",
    "anyio._backends._asyncio",
    "app.acp.launcher",
    "app.features.personas.cli",
    "app.features.agents.cli",
    "app.cli.application",
    "app.cli.ask",
    "app.cli.migrate",
    "app.features.backup.cli",
    "app.cli.embedded",
    "app.cli.manifest",
    "app.cli.serve",
    "app.features.agents.visits",
    "app.features.conversations.cli",
    "app.features.doctor.cli",
    "app.features.grants.cli",
    "app.features.pause.cli",
    "app.features.people.cli",
    "app.features.record.cli",
    "app.features.schedules.cli",
    "app.features.spending.cli",
    "app.mcp_server.protocol",
    "app.services.github.adapter",
    "app.services.linear.adapter",
    "app.services.slack.adapter",
    "certifi",
    "encodings.ascii",
    "encodings.idna",
    "httpcore",
    "importlib.resources.readers",
    "tests.support.observe",
    "tests.support.outside",
    "tests.support.startup",
    "tests.support.tools",
    "typer._click.decorators",
    "uvicorn.lifespan.off",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.auto",
)
"""What bridges and commands import while they start, and what every fork would import again."""


class Fork:
    """A bridge that was forked, with the methods of a `Popen` that tests use."""

    def __init__(self, nursery: Nursery, pid: int, stdout: TextIO | None = None) -> None:
        self._nursery = nursery
        self._handle = os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._handle)
        self._status: int | None = None
        self._lock = threading.Lock()
        self.pid = pid
        self.stdout = stdout

    def poll(self) -> int | None:
        """Return its status, negative for a signal, None while it runs."""
        return self._look(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        status = self._look(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(["bridge"], timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        """Kill it with -9."""
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self._status is None and select.select([self._handle], [], [], timeout)[0]:
            with self._lock:
                if self._status is None:
                    self._status = self._nursery.collect(self.pid)
        return self._status


class Nursery:
    """The process that forks bridges, seen from a test."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.nursery", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        atexit.register(self._close)

    def start(self, startup: str, plan: Path, log: Path) -> Fork:
        """Start a bridge by a plan, with the `main` of a module."""
        reading, writing = os.pipe()
        order = {"call": [startup, "main", str(plan)]}
        with (
            Path(os.devnull).open() as nothing,
            os.fdopen(writing, "w") as output,
            log.open("a") as errors,
        ):
            pid = self._order(order, nothing.fileno(), output.fileno(), errors.fileno())
        return Fork(self, pid, os.fdopen(reading))

    def run(
        self,
        *words: str,
        environment: Mapping[str, str],
        cwd: Path,
        stdin: str = "",
        seconds: float = SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """Run `agent-bridge` with these words to its end, knowing only this environment."""
        with (
            tempfile.TemporaryFile("w+") as said,
            tempfile.TemporaryFile("w+") as output,
            tempfile.TemporaryFile("w+") as errors,
        ):
            said.write(stdin)
            said.seek(0)
            files = (said.fileno(), output.fileno(), errors.fileno())
            fork = self.begin(*words, environment=environment, cwd=cwd, files=files)
            try:
                status = fork.wait(seconds)
            finally:
                fork.kill()
            output.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(words, status, output.read(), errors.read())

    def begin(
        self, *words: str, environment: Mapping[str, str], cwd: Path, files: tuple[int, int, int]
    ) -> Fork:
        """Start `agent-bridge` with these words, input, output and errors."""
        order = {
            "call": ["app.cli", "main"],
            "argv": [COMMAND, *words],
            "environment": dict(environment),
            "cwd": str(cwd),
        }
        return Fork(self, self._order(order, *files))

    def collect(self, pid: int) -> int:
        """Take the status of a bridge that has ended; until then its number stays its own."""
        return self._order({"collect": pid})

    def _order(self, order: Mapping[str, object], *files: int) -> int:
        with self._lock:
            socket.send_fds(self._line, [json.dumps(order).encode()], files)
            answer = self._line.recv(MESSAGE_BYTES)
        if not answer:
            raise RuntimeError("the nursery of the bridges is gone")
        return int(json.loads(answer))

    def _close(self) -> None:
        self._line.close()
        self._process.wait()


@cache
def nursery() -> Nursery:
    """Return the one nursery of this test process."""
    return Nursery()


def _serve(line: socket.socket) -> None:
    """Fork and collect until the test process is gone; nothing outlives it."""
    children: set[int] = set()
    while True:
        message, files, _, _ = socket.recv_fds(line, MESSAGE_BYTES, 3)
        if not message:
            break
        order = json.loads(message)
        if "call" in order:
            answer = _fork(line, order, files)
            children.add(answer)
        else:
            _, status = os.waitpid(order["collect"], 0)
            children.discard(order["collect"])
            answer = os.waitstatus_to_exitcode(status)
        line.send(json.dumps(answer).encode())
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _fork(line: socket.socket, order: dict[str, Any], files: list[int]) -> int:
    pid = os.fork()
    if pid:
        for file in files:
            os.close(file)
        return pid
    status = 1
    try:
        line.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        _surround(order)
        module, function, *arguments = order["call"]
        getattr(import_module(module), function)(*arguments)
        status = 0
    except SystemExit as error:
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
        else:
            status = error.code or 0
    except BaseException:  # noqa: BLE001 - whatever happens, a fork never goes on as the nursery
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _surround(order: dict[str, Any]) -> None:
    """Give a fork the surroundings of a command."""
    if "environment" in order:
        os.environ.clear()
        os.environ.update(order["environment"])
        os.chdir(order["cwd"])
        sys.argv = order["argv"]


def _main() -> None:
    for name in IMPORTED_LATE:
        import_module(name)
    from app.agents.catalog import known_agents
    from app.services import registered_services
    from tests.support.memory import empty_store

    known_agents()
    registered_services()
    empty_store()
    gc.freeze()  # a collection would touch, and thereby copy, every page that a fork shares
    with socket.socket(fileno=int(sys.argv[1])) as line:
        _serve(line)


if __name__ == "__main__":
    _main()
