"""Runs the gates next to the tests: a line for each gate, and a failed one ends the tests.

Run as `python -m tests.support.gates COMMAND...`, where COMMAND runs the tests.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BIN = Path(sys.prefix) / "bin"
GATES = {
    "format": [f"{BIN}/ruff", "format", "--check", "."],
    "lint": [f"{BIN}/ruff", "check", "."],
    "types": [f"{BIN}/mypy"],
    "layers": [f"{BIN}/lint-imports", "--no-logo"],
}

END_SECONDS = 30.0
"""How long fixtures get to clean up when a gate has failed."""


def run(tests: Sequence[str], gates: Mapping[str, Sequence[str]] = GATES) -> int:
    """Run gates and tests at the same time; returns 0 if all of them pass."""
    # Where it is ignored, as for jobs in the background, the tests would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(tests) as process, ThreadPoolExecutor(len(gates)) as pool:
        passed = [pool.submit(_passes, name, command, process) for name, command in gates.items()]
        status = process.wait()
        return status if all(gate.result() for gate in passed) else status or 1


def _passes(name: str, command: Sequence[str], tests: subprocess.Popen[bytes]) -> bool:
    """Run a gate, print its line, and its output too if it fails."""
    start = time.monotonic()
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    seconds = time.monotonic() - start
    if done.returncode == 0:
        _say(f"{name:8}ok {seconds:.0f} s\n")
        return True
    _say(f"{name:8}failed\n{done.stdout}")
    _end(tests)
    return False


def _end(tests: subprocess.Popen[bytes]) -> None:
    """End the tests as Ctrl-C does, or at once if that takes too long."""
    tests.send_signal(signal.SIGINT)
    try:
        tests.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        tests.kill()


def _say(words: str) -> None:
    sys.stdout.write(words)
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
