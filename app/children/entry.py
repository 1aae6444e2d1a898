"""Runs first in a child: sets limits, hands over ports, drops root, then execs the command.

A single stdlib file that imports nothing from the package: it is passed to `python -c` as text. It
gets words `name=value`, then `--`, then the command that replaces it.

Every agent waits for it, so it imports only modules that need no others: `signal` and `ctypes`
would take longer than the start of the interpreter.

Without a sandbox it also stays as the parent of the command, and kills all its descendants: a
sandbox has a pid namespace for that.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # it has no stubs
import os
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
PAUSE_SECONDS = 0.002
"""Between two checks for remaining processes: about what the kernel needs to end one."""


def main(words: list[str]) -> None:
    """Do what each word says, in order, and become the command."""
    end = words.index("--")
    for word in words[:end]:
        name, _, value = word.partition("=")
        if name == "listen":
            listen(value)
        elif name == "user":
            drop(int(value))
        elif name == "folder":
            os.chdir(value)
        elif name == "reap":
            reap(int(value))
        elif name == "oom":
            prefer_as_victim(value)
        else:
            limit(name, int(value))
    command = words[end + 1 :]
    try:
        os.execvp(command[0], command)  # noqa: S606 - that is what it is for
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


def listen(value: str) -> None:
    """Listen on loopback ports of this network and send the sockets out: `CHANNEL:PORT,PORT`."""
    import _socket as plain  # noqa: PLC0415

    channel, _, ports = value.partition(":")
    sockets = [plain.socket(plain.AF_INET, plain.SOCK_STREAM) for _ in ports.split(",")]
    for each, port in zip(sockets, ports.split(","), strict=True):
        each.bind(("127.0.0.1", int(port)))
        each.listen(128)
    descriptors = b"".join(each.fileno().to_bytes(4, sys.byteorder) for each in sockets)
    out = plain.socket(fileno=int(channel))
    out.sendmsg([b"listening"], [(plain.SOL_SOCKET, plain.SCM_RIGHTS, descriptors)])
    out.close()


def drop(user: int) -> None:
    """Become an unprivileged user for good."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def limit(name: str, value: int) -> None:
    """Set a resource limit, never above the one there is."""
    import resource  # noqa: PLC0415 - not on every system

    kind = getattr(resource, f"RLIMIT_{name.upper()}")
    _, hard = resource.getrlimit(kind)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (bound, bound))


def prefer_as_victim(score: str) -> None:
    """Let the kernel kill this process before others when memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - pathlib is slow to load
            file.write(score)
    except OSError:
        pass  # a kernel without it, or a bridge that is a more likely victim already


def reap(parent: int) -> None:
    """Continue in a child, and kill its descendants when it ends or when the parent dies.

    SIGUSR1 kills everything at once. The other catchable signals are for the command: it is in the
    same group and gets them too.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Before the fork, and gone in the command: an exec forgets handlers, but not SIG_IGN.
    signal.signal(signal.SIGUSR1, _interrupt)
    prctl(PR_SET_PDEATHSIG, signal.SIGUSR1)
    if os.getppid() != parent:
        os._exit(1)
    reaper = os.getpid()
    command = os.fork()
    if command == 0:
        # Nothing else would kill what the command leaves behind, so it dies with its reaper.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != reaper:
            os._exit(1)
        return
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    _close_descriptors()
    statuses: dict[int, int] = {}
    try:
        while command not in statuses:
            _record(statuses, os.wait())
    except InterruptedError:
        pass
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    _kill_descendants(statuses)
    status = os.waitstatus_to_exitcode(statuses.get(command, signal.SIGKILL))
    os._exit(status if status >= 0 else 128 - status)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    import _ctypes  # noqa: PLC0415 - only without a sandbox

    program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # as ctypes does for the C library
    _ctypes.call_function(_ctypes.dlsym(program, "prctl"), (option, value, 0, 0, 0))


def _interrupt(_number: int, _frame: object) -> None:
    raise InterruptedError


def _close_descriptors() -> None:
    """Close our copies of the command's pipes: readers wait until the last one is closed."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _record(statuses: dict[int, int], ended: tuple[int, int]) -> None:
    statuses[ended[0]] = ended[1]


def _kill_descendants(statuses: dict[int, int]) -> None:
    """Kill until none is left: orphans become children of this process, so none is missed."""
    import time  # noqa: PLC0415

    while True:
        for pid in _descendants(os.getpid()):
            try:  # noqa: SIM105 - contextlib is slow to load
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # gone, or another user's
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                _record(statuses, ended)
        except ChildProcessError:
            return
        time.sleep(PAUSE_SECONDS)


def _descendants(ancestor: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib is slow to load
        if name.isdigit():
            children.setdefault(_parent(name), []).append(int(name))
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        more = children.get(waiting.pop(), [])
        found += more
        waiting += more
    return found


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib is slow to load
            # The program's name is in parentheses and may itself contain parentheses.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


if __name__ == "__main__":
    main(sys.argv[1:])
