"""Confines a command with bubblewrap where that works, else not at all, and says so.

A sandbox only rewrites a command. The result must be started in the event loop's thread:
`--die-with-parent` follows the thread that started it, not the process.

Sockets of this machine's daemons are hidden: a read-only file system does not keep a process from
connecting to a socket that it shows. The kernel lists those that were bound in this machine's
network. Those that a container bound in a shared folder are not among them: a bounded search looks
where servers keep their data.
"""

from __future__ import annotations

import inspect
import os
import shutil
import stat
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from app.children import entry
from app.children.environment import visible_prefixes
from app.children.layout import Confinement, arguments, plan, survey
from app.children.spawn import ChildCommand, SandboxWrapper

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

_SESSIONS_OF_USER: Final = 16
"""The default of how many agent processes run at once."""
_LISTED: Final = Path("/proc/net/unix")
_PATH_FIELD: Final = 7
_MOUNTS: Final = Path("/proc/self/mounts")
_ROOTS: Final = ("/var", "/srv", "/opt")
"""What is below /run, /tmp and people's homes is hidden in any case."""
_REMOTE: Final = ("nfs", "cifs", "smb", "fuse", "9p", "autofs", "ceph")
"""File systems that may not answer: a search there could wait for ever."""
_ENTRIES: Final = 20_000
"""Files and folders that are looked at, those with short paths first: some 50 ms."""
_FRESH_SECONDS: Final = 300.0
"""How long the result of a search is used; what the kernel lists is read every time."""


class Sandbox(Protocol):
    """A way to confine a command."""

    @property
    def name(self) -> str:
        """Return the word that people read: `bubblewrap` or `none`."""

    def wrap(self, argv: Sequence[str], confinement: Confinement) -> ChildCommand:
        """Return the command that runs `argv` in this confinement; looks at the disk."""


@dataclass(frozen=True, slots=True)
class Plain:
    """No sandbox: the child sees what the bridge's user sees."""

    name: str = "none"

    def wrap(self, argv: Sequence[str], confinement: Confinement) -> ChildCommand:
        """Return `argv` with its limits, under a reaper: nothing else catches daemons."""
        if not sys.platform.startswith("linux"):
            return ChildCommand(tuple(argv))
        # Here the process count includes the bridge's and its user's processes.
        limits = [limit for limit in confinement.limits if limit[0] != "nproc"]
        words = [f"reap={os.getpid()}", *(f"{name}={value}" for name, value in limits)]
        return ChildCommand((*_PYTHON, _entry_source(), *words, "--", *argv), has_reaper=True)


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

    def wrap(self, argv: Sequence[str], confinement: Confinement) -> ChildCommand:
        """Return the bubblewrap command around `argv`."""
        cwd = (confinement.cwd or confinement.workspace).resolve()
        size = confinement.scratch_bytes
        bounded = ("--size", str(size)) if size is not None and self.can_size else ()
        scratch = ("--perms", "1777", *bounded)
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
        guard = SandboxWrapper(
            self.binary,
            tuple(options),
            frozenset(str(mount.path) for mount in laid if mount.path in fleeting),
        )
        before = (*_PYTHON, _entry_source(), *words, "--") if words else ()
        return ChildCommand((*before, *argv), guard, descriptors=inherited)


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
    remedy = next((remedy for part, remedy in _REMEDIES if part in plain), _ANY_REMEDY)
    return Unavailable(f"bubblewrap does not work here: {plain}", remedy)


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


class DaemonSockets:
    """The sockets that are bound to a path now."""

    def __init__(self) -> None:
        self._searched: frozenset[str] = frozenset()
        self._search_at = 0.0

    def find(self) -> frozenset[Path]:
        """Return the paths of all sockets that are known; reads the disk."""
        now = time.monotonic()
        if now >= self._search_at:
            self._searched = frozenset(_search())
            self._search_at = now + _FRESH_SECONDS
        return frozenset(Path(path) for path in {*self._searched, *_listed()} if _is_socket(path))


_SOCKETS: Final = DaemonSockets()


def _listed() -> Iterator[str]:
    try:
        lines = _LISTED.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return  # there is no /proc
    for line in lines:
        fields = line.split(maxsplit=_PATH_FIELD)
        if len(fields) > _PATH_FIELD and fields[_PATH_FIELD].startswith("/"):
            yield fields[_PATH_FIELD]


def _search() -> Iterator[str]:
    """Look for sockets, those near the root first."""
    remote = set(_remote_mounts())
    waiting = deque(_ROOTS)
    left = _ENTRIES
    while waiting and left > 0:
        folder = waiting.popleft()
        if folder in remote:
            continue
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                        yield entry.path
        except OSError:
            continue  # it was removed meanwhile, or the bridge cannot read it


def _remote_mounts() -> Iterator[str]:
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        _device, folder, kind, *_ = line.split()
        if kind.startswith(_REMOTE):
            yield folder


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False  # it is gone, or neither the bridge nor its children can reach it
