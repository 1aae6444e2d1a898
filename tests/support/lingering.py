"""What a hostile command leaves in the background: one process, by each way to hide one.

A single file of the standard library, run as `python lingering.py HOW NAME` in a workspace. It ends
as soon as the process that it leaves has written the file NAME, which it goes on doing.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
import time
from pathlib import Path

CLONE_PARENT = 0x00008000
CLONE = {"x86_64": 56, "aarch64": 220}
"""The numbers of the system call."""
SECONDS = 0.01


def linger(name: str) -> None:
    """Change a file for ever."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    while True:
        Path(name).write_text(str(time.monotonic()))
        time.sleep(SECONDS)


def leave_orphan(name: str) -> None:
    """Leave a process of the same session whose parent ends."""
    if os.fork() == 0:
        linger(name)


def leave_session(name: str) -> None:
    """Leave a process that leads a session."""
    if os.fork() == 0:
        os.setsid()
        linger(name)


def leave_daemon(name: str) -> None:
    """Leave a daemon by the book: two forks, a session, and no signal that it can ignore."""
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            linger(name)
        os._exit(0)


def leave_sibling(name: str) -> None:
    """Leave a process that looks as if the agent itself had started it."""
    libc = ctypes.CDLL(None)
    flags = CLONE_PARENT | signal.SIGCHLD
    if libc.syscall(CLONE[platform.machine()], flags, 0, 0, 0, 0) == 0:
        linger(name)


def leave_nested(name: str) -> None:
    """Leave a process that is the first one of a user and a process namespace of its own."""
    command = (sys.executable, __file__, "nothing", name)
    if os.fork() == 0:
        os.setsid()
        words = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--", *command)
        os.execvp(words[0], words)


def leave_nothing(name: str) -> None:
    """Stay instead."""
    linger(name)


if __name__ == "__main__":
    globals()[f"leave_{sys.argv[1]}"](sys.argv[2])
    while not Path(sys.argv[2]).exists():
        time.sleep(SECONDS)
