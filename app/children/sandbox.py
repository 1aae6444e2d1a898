"""Confines a command with bubblewrap where that works, else not at all, and says so.

A sandbox only rewrites a command. The result must be started in the event loop's thread:
`--die-with-parent` follows the thread that started it, not the process.
"""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from app.children import entry
from app.children.command import Command, Guard
from app.children.layout import Confinement, arguments, plan, survey
from app.children.prefixes import visible_prefixes
from app.children.sockets import DaemonSockets

_TRIAL_SECONDS: Final = 3.0
"""A start takes about 10 ms; a machine that needs longer than this is not fit for agents."""

_WALLS: Final = (
    *("--ro-bind", "/", "/"),
    *("--dev", "/dev"),
    *("--proc", "/proc"),
    # bubblewrap leaves these open to uid 0, which needs no capability to write them; core_pattern
    # alone would be an escape for an agent of a bridge that runs as root.
    *("--ro-bind-try", "/proc/sys", "/proc/sys"),
    *("--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger"),
    "--unshare-pid",
    "--unshare-ipc",
    # Started by root, bubblewrap keeps every capability, and with them the right to unmount.
    *("--cap-drop", "ALL"),
    "--die-with-parent",
)

_NETWORK: Final = "--unshare-net"

# The interpreter itself and not the one of a virtual environment; without site it starts in 10 ms.
_PYTHON: Final = (os.path.realpath(sys.executable), "-I", "-S", "-c")

_SOCKETS: Final = DaemonSockets()

_SESSIONS_OF_USER: Final = 16
"""The default of how many agent processes run at once."""


class Sandbox(Protocol):
    """A way to confine a command."""

    @property
    def name(self) -> str:
        """Return the word that people read: `bubblewrap` or `none`."""

    def wrap(self, argv: Sequence[str], confinement: Confinement) -> Command:
        """Return the command that runs `argv` in this confinement; looks at the disk."""


@dataclass(frozen=True, slots=True)
class Plain:
    """No sandbox: the child sees what the bridge's user sees."""

    name: str = "none"

    def wrap(self, argv: Sequence[str], confinement: Confinement) -> Command:
        """Return `argv` with its limits, under a reaper: nothing else catches daemons."""
        if not sys.platform.startswith("linux"):
            return Command(tuple(argv))
        # Here the process count includes the bridge's and its user's processes.
        limits = [limit for limit in confinement.limits if limit[0] != "nproc"]
        words = [f"reap={os.getpid()}", *(f"{name}={value}" for name, value in limits)]
        return Command((*_PYTHON, _entry_source(), *words, "--", *argv), has_reaper=True)


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """bubblewrap, with the options it needs on this machine."""

    binary: str
    options: tuple[str, ...] = ()
    can_size: bool = True
    """Whether it can limit the size of /tmp; version 0.7 and later can."""
    name: str = "bubblewrap"
    own_network: bool = True
    """Whether it can give a child its own network here."""

    @property
    def changes_user(self) -> bool:
        """Whether root can become another user inside: a user namespace has only one."""
        return "--unshare-user" not in self.options

    def wrap(self, argv: Sequence[str], confinement: Confinement) -> Command:
        """Return the bubblewrap command around `argv`."""
        cwd = (confinement.cwd or confinement.workspace).resolve()
        scratch = self._scratch(confinement.scratch_bytes)
        sockets = _SOCKETS.find()
        laid = plan(survey(confinement, sockets))
        fleeting = {*sockets, *(socket.parent for socket in sockets)}
        view = arguments(laid, scratch)
        options = [*_WALLS, *self.options]
        # Otherwise /dev is one writable file system in memory, without a limit.
        options += [*scratch, "--tmpfs", "/dev/shm", "--remount-ro", "/dev", *view]  # noqa: S108
        limits = dict(confinement.limits)
        if confinement.user is not None and "nproc" in limits:
            # A user's processes are counted over all its agent's sessions; each session is watched.
            limits["nproc"] *= _SESSIONS_OF_USER
        words = [f"{name}={value}" for name, value in limits.items()]
        if confinement.user is None:
            options += ["--chdir", str(cwd)]
        else:
            # Root without capabilities may enter no folder of another user: `entry` does it, as
            # that user. These two it needs for becoming that user, and loses by it.
            options += ["--chdir", "/", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
            words += [f"user={confinement.user}", f"folder={cwd}"]
        if self.own_network and not confinement.shares_network:
            options.append(_NETWORK)
        inherited: tuple[int, ...] = ()
        if (handover := confinement.handover) is not None:
            # First: an unprivileged user may not open every port.
            words.insert(0, f"listen={handover.channel}:{','.join(map(str, handover.ports))}")
            inherited = (handover.channel,)
        guard = Guard(
            self.binary,
            tuple(options),
            frozenset(str(mount.path) for mount in laid if mount.path in fleeting),
        )
        return Command(_with_entry(argv, words), guard, descriptors=inherited)

    def _scratch(self, size: int | None) -> tuple[str, ...]:
        """Return the options in front of a file system for temporary files."""
        bounded = ("--size", str(size)) if size is not None and self.can_size else ()
        return ("--perms", "1777", *bounded)


def _with_entry(argv: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """Put `entry` in front of a command, if it has something to do."""
    if not words:
        return tuple(argv)
    return (*_PYTHON, _entry_source(), *words, "--", *argv)


@cache
def _entry_source() -> str:
    return inspect.getsource(entry)


def entry_prefixes() -> tuple[Path, ...]:
    """Return the folders that `entry` needs to see."""
    return visible_prefixes(_PYTHON[:1], path="")


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why bubblewrap does not work here, and what an operator can do about it."""

    reason: str
    remedy: str


NEEDS_LINUX: Final = Unavailable(
    "bubblewrap needs Linux",
    "To isolate it, run the bridge in a Linux container or virtual machine.",
)
"""On macOS and everywhere else."""


def find_bubblewrap(path: str) -> Bubblewrap | Unavailable:
    """Find bubblewrap on PATH and try it once; blocks for about 10 ms, at most 12 s."""
    if not sys.platform.startswith("linux"):
        return NEEDS_LINUX
    binary = shutil.which("bwrap", path=path)
    if binary is None:
        return Unavailable(
            "bubblewrap is not installed",
            "To isolate it, install the package `bubblewrap` with apt, dnf, pacman or apk.",
        )
    # For root it creates no user namespace by default, but a container's root may need one.
    ways: list[tuple[str, ...]] = [(), ("--unshare-user",)] if os.geteuid() == 0 else [()]
    complaints: list[str] = []
    for network in ((_NETWORK,), ()):
        for options in ways:
            words = _try(binary, (*options, *network))
            if words is None:
                return Bubblewrap(
                    binary, options, own_network=bool(network), can_size=_can_size(binary)
                )
            complaints.append(words)
    plain = complaints[-len(ways)]
    return Unavailable(f"bubblewrap does not work here: {plain}", _remedy(plain))


def _can_size(binary: str) -> bool:
    usage = subprocess.run([binary, "--help"], env={}, capture_output=True, timeout=_TRIAL_SECONDS)
    return b"--size" in usage.stdout + usage.stderr


def _try(binary: str, options: tuple[str, ...]) -> str | None:
    """Return None if bubblewrap ran, else its error in one line."""
    command = [binary, *_WALLS, *options, "--tmpfs", "/tmp", "--", "/bin/sh", "-c", ":"]  # noqa: S108
    try:
        trial = subprocess.run(
            command, env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_TRIAL_SECONDS:g} s"
    except OSError as error:
        return error.strerror or type(error).__name__
    if trial.returncode == 0:
        return None
    lines = trial.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("bwrap: ") if lines else f"exit status {trial.returncode}"


def _remedy(words: str) -> str:
    return next((remedy for part, remedy in _REMEDIES if part in words), _ANY_REMEDY)


_ANY_REMEDY: Final = (
    "Run `bwrap --ro-bind / / --proc /proc --unshare-pid true` to see the error, "
    'or run the agent without isolation with "sandbox": "none".'
)
_REMEDIES: Final = (
    (
        "uid map",
        "AppArmor blocks user namespaces (Ubuntu 23.10 and later): install a profile for bwrap "
        "in /etc/apparmor.d, or run `sysctl kernel.apparmor_restrict_unprivileged_userns=0`.",
    ),
    (
        "No permissions to create",
        "The kernel blocks user namespaces: run `sysctl kernel.unprivileged_userns_clone=1` and "
        "`sysctl user.max_user_namespaces=15000`; in a container, start it with "
        "`--security-opt seccomp=deploy/seccomp.json --security-opt systempaths=unconfined`.",
    ),
    (
        "Creating new namespace failed",
        "The container's seccomp profile blocks namespaces: start it with "
        "`--security-opt seccomp=deploy/seccomp.json --security-opt systempaths=unconfined`.",
    ),
    (
        "mount proc",
        "The container hides parts of /proc: start it with "
        "`--security-opt systempaths=unconfined`.",
    ),
    ("Unknown option", "This bubblewrap is too old: install version 0.5 or later."),
)
