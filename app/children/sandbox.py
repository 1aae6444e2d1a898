"""How a command is confined: by bubblewrap where it works, else not at all, and then said so.

A sandbox only rewrites argv. Whoever starts the result must do so in the thread of the event loop:
`--die-with-parent` follows the thread that started it, not the process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from app.children.layout import Confinement, arguments, plan, survey

_TRIAL_SECONDS: Final = 3.0
"""A start takes about 10 ms; a machine that needs longer than this is not fit for agents."""

_WALLS: Final = (
    *("--ro-bind", "/", "/"),
    *("--dev", "/dev"),
    *("--proc", "/proc"),
    # bubblewrap leaves these open to uid 0, which needs no capability to write them; core_pattern
    # alone would be a way out for an agent of a bridge that runs as root.
    *("--ro-bind-try", "/proc/sys", "/proc/sys"),
    *("--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger"),
    "--unshare-pid",
    "--unshare-ipc",
    # Started by root, bubblewrap keeps every capability, and with them the right to unmount.
    *("--cap-drop", "ALL"),
    "--die-with-parent",
)


class Sandbox(Protocol):
    """A way to confine a command."""

    @property
    def name(self) -> str:
        """Return the word that people read: `bubblewrap` or `none`."""

    def wrap(self, argv: Sequence[str], confinement: Confinement) -> list[str]:
        """Return the command that runs `argv` in this confinement; looks at the disk."""


@dataclass(frozen=True, slots=True)
class Plain:
    """No sandbox: the child sees what the bridge's user sees."""

    name: str = "none"

    def wrap(self, argv: Sequence[str], confinement: Confinement) -> list[str]:  # noqa: ARG002
        """Return `argv` as it is."""
        return list(argv)


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """bubblewrap, with the options it needs on this machine."""

    binary: str
    options: tuple[str, ...] = ()
    name: str = "bubblewrap"

    def wrap(self, argv: Sequence[str], confinement: Confinement) -> list[str]:
        """Return the bubblewrap command around `argv`."""
        cwd = (confinement.cwd or confinement.workspace).resolve()
        view = arguments(plan(survey(confinement)))
        return [self.binary, *_WALLS, *self.options, *view, "--chdir", str(cwd), "--", *argv]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why there is no bubblewrap here, and what an operator can do about it."""

    reason: str
    remedy: str


def is_guarded(argv: Sequence[str]) -> bool:
    """Tell whether the first process of `argv` is bubblewrap's guard and not the agent itself."""
    return bool(argv) and Path(argv[0]).name == "bwrap"


def find_bubblewrap(path: str) -> Bubblewrap | Unavailable:
    """Look for bubblewrap on PATH and try it once; blocking, about 10 ms, at most 6 s."""
    binary = shutil.which("bwrap", path=path)
    if binary is None:
        return Unavailable(
            "bubblewrap is not installed",
            "Install the package `bubblewrap` (apt, dnf, pacman, apk: the same name).",
        )
    words = _try(binary, ())
    if words is None:
        return Bubblewrap(binary)
    # For root it makes no user namespace of its own accord, but a container's root may need one.
    if os.geteuid() == 0 and _try(binary, ("--unshare-user",)) is None:
        return Bubblewrap(binary, ("--unshare-user",))
    return Unavailable(f"bubblewrap does not work here: {words}", _remedy(words))


def _try(binary: str, options: tuple[str, ...]) -> str | None:
    """Return None when bubblewrap ran, else its complaint in one line."""
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
    "Run `bwrap --ro-bind / / --proc /proc --unshare-pid true` to see the fault, "
    'or accept an agent without isolation with "sandbox": "none".'
)
_REMEDIES: Final = (
    (
        "uid map",
        "AppArmor forbids user namespaces (Ubuntu 23.10 and later): install a profile for bwrap "
        "in /etc/apparmor.d, or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`.",
    ),
    (
        "No permissions to create",
        "The kernel forbids user namespaces: `sysctl kernel.unprivileged_userns_clone=1` and "
        "`sysctl user.max_user_namespaces=15000`; in a container, start it with "
        "`--security-opt seccomp=unconfined --security-opt systempaths=unconfined`.",
    ),
    (
        "Creating new namespace failed",
        "The container's seccomp profile forbids namespaces: start it with "
        "`--security-opt seccomp=unconfined --security-opt systempaths=unconfined`.",
    ),
    (
        "mount proc",
        "The container hides parts of /proc: start it with "
        "`--security-opt systempaths=unconfined`.",
    ),
    ("Unknown option", "This bubblewrap is too old: install version 0.4 or later."),
)
