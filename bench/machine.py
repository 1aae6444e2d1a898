"""The machine as the bench uses it: cores, ports, and servers in processes of their own.

What is measured has one core to itself and what makes the load has another, where there are two.
"""

from __future__ import annotations

import os
import platform
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[1]
START_SECONDS = 60.0
"""How long a server may take until it listens; a busy machine is slow, not broken."""
STOP_SECONDS = 30.0
"""How long it may take to end."""
LAST_WORDS = 2000
"""Characters of a server's log that are shown when it does not start."""
LOOK_SECONDS = 0.002
"""Between two looks at whether something has happened."""
LISTENING = "listening"
"""The line by which a server says that it is there."""
_TICKS = os.sysconf("SC_CLK_TCK")

_CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE = _CORES[0] if len(_CORES) > 1 else -1
"""Where servers run; -1 leaves it to the machine."""
LOAD_CORE = _CORES[1] if len(_CORES) > 1 else -1
"""Where the load comes from."""


class ProgramFailed(Exception):
    """One of the bench's own programs did not do what it was started for."""


def pin(core: int) -> None:
    """Keep this process on one core."""
    if core >= 0:
        os.sched_setaffinity(0, {core})


def free_port() -> int:
    """Find a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def exchange(port: int, request: bytes, *, patient: bool = False) -> int:
    """Send one request over a connection of its own and return the status.

    WorkTimer is for a server that may not be there yet.
    """
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(request)
                answer = connection.recv(65536)
            return int(answer.split(b" ", 2)[1])
        except ConnectionError:
            if not patient or time.monotonic() > deadline:
                raise
            time.sleep(LOOK_SECONDS)


class Server:
    """A server in a process of its own, started by a command that says when it listens."""

    def __init__(self, module: str, *arguments: str, port: int, log: Path | None = None) -> None:
        self.port = port
        self._command = [sys.executable, "-m", module, *arguments]
        self._log = log or Path(os.devnull)
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> float:
        """Start it, wait until it says that it listens, and return how long that took."""
        began = time.perf_counter()
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                self._command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        took = time.perf_counter() - began
        if not ready or self.process.stdout.readline().strip() != LISTENING:
            self.kill()
            words = self._log.read_text()[-LAST_WORDS:]
            raise ProgramFailed(f"{self._command[2]} did not start:\n{words}")
        return took

    def kill(self) -> None:
        """Kill it with -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it politely."""
        self._end(signal.SIGTERM)

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.process is not None
        return self.process.pid

    def cpu_seconds(self) -> float:
        """Tell how much time its threads have spent on a core."""
        return sum(_cpu_ticks(self.pid)[:2]) / _TICKS

    def own_bytes(self) -> int:
        """Tell how much memory is its own: neither program text nor mapped files."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("this kernel does not say RssAnon")

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None


def family_cpu_seconds(pid: int) -> float:
    """Tell how much time a process and its children have spent on a core, ended ones too."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    spent = sum(_cpu_ticks(pid))
    for child in children:
        with suppress(FileNotFoundError):  # it has ended meanwhile
            spent += sum(_cpu_ticks(int(child))[:2])
    return spent / _TICKS


def _cpu_ticks(pid: int) -> list[int]:
    """Read the time in user mode and in the kernel, then both for children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in fields[11:15]]


def output_of(module: str, *arguments: str) -> str:
    """Run one of the bench's own programs and return what it prints.

    Raises:
        ProgramFailed: it failed, for the reason it gave.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ProgramFailed(f"{module} failed:\n{done.stderr[-LAST_WORDS:]}")
    return done.stdout


def busy() -> bool:
    """Tell whether the machine did much besides the bench, which keeps about one core busy."""
    return os.getloadavg()[0] > 1.5 * len(_CORES)


def description(packages: Sequence[tuple[str, str]]) -> str:
    """Describe the machine in general terms."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {version}" for name, version in packages)
    return (
        f"{platform.system()} on {platform.machine()}, {len(_CORES)} cores, "
        f"{memory:.0f} GiB of memory, Python {platform.python_version()}, {versions}"
    )
