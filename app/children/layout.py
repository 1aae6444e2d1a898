"""The file system that a confined child sees: which path is hidden, shown, or its own to write.

The deepest rule for a path wins, and what the bridge hides is never shown again because a folder
above it is: a secret inside a visible folder is hidden inside it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final

_MAX_LINKS: Final = 40
"""Linux follows no more symbolic links than this in one path."""

_SCRATCH: Final = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108
_RUN: Final = Path("/run")
"""Hidden as a whole: docker.sock, the buses of systemd, other people's agents, /run/secrets."""
_RESOLVER: Final = Path("/etc/resolv.conf")
"""Often a link into /run, and without it no name is found."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What one child may see and write; paths as the operator gave them."""

    home: Path
    workspace: Path
    person: Path | None = None
    """HOME of whoever runs the bridge: hidden, but for the prefixes inside it."""
    masked: tuple[Path, ...] = ()
    """Files and folders of the bridge and of other agents (`.env`, DATA_DIR, HOMEs): hidden."""
    prefixes: tuple[Path, ...] = ()
    """What the command needs in order to run; shown wherever only `person` would hide it."""
    visible: tuple[Path, ...] = ()
    """Further paths to read, also inside a masked folder (the mirror of a repository)."""
    writable: tuple[Path, ...] = ()
    """Further paths to write, also inside a masked folder (the gate a branch is pushed to)."""
    cwd: Path | None = None
    """Where the child starts; the workspace if not given."""


class Rule(IntEnum):
    """What happens at a path; of two rules for one path the greater one counts."""

    LINK = 0
    PREFIX = 1
    SCRATCH = 2
    VEIL = 3
    SHOW = 4
    MASK = 5
    WRITE = 6


_HIDING: Final = frozenset({Rule.SCRATCH, Rule.VEIL, Rule.MASK})
_VEILING: Final = frozenset({Rule.SCRATCH, Rule.VEIL})


@dataclass(frozen=True, slots=True)
class Mount:
    """One rule at one real path."""

    rule: Rule
    path: Path
    is_folder: bool = True
    target: str = ""
    """Of a link: where it points to."""


def survey(confinement: Confinement) -> list[Mount]:
    """Look at the disk and return the rules for what exists there, links resolved.

    A missing workspace or HOME is kept, so that the start fails loudly.
    """
    disk = _Disk()
    resolver = disk.follow(str(_RESOLVER))
    veiled = [_RUN] if confinement.person is None else [_RUN, confinement.person]
    own = (confinement.home, confinement.workspace, *confinement.writable)
    return [
        *disk.rules(Rule.SCRATCH, _SCRATCH),
        *(mount for mount in disk.rules(Rule.VEIL, veiled) if mount.path != Path("/")),
        *disk.rules(Rule.MASK, confinement.masked),
        *disk.shown(Rule.PREFIX, (resolver, resolver.parent, *confinement.prefixes)),
        *disk.shown(Rule.SHOW, confinement.visible),
        *(Mount(Rule.WRITE, disk.follow(str(path.absolute()))) for path in own),
    ]


def plan(mounts: Iterable[Mount]) -> list[Mount]:
    """Order the rules so that each is laid upon the one around it; drop those that change nothing.

    Pure: the argument is all it knows.
    """
    strongest: dict[Path, Mount] = {}
    for mount in sorted(mounts, key=lambda mount: mount.rule):
        strongest[mount.path] = mount
    laid: list[Mount] = []
    effective: dict[Path, Rule] = {}
    for mount in sorted(strongest.values(), key=lambda mount: len(mount.path.parts)):
        around = next((effective[path] for path in mount.path.parents if path in effective), None)
        if mount.rule is Rule.MASK or _changes(mount, around):
            effective[mount.path] = mount.rule
        if _changes(mount, around):
            laid.append(mount)
    return laid


def arguments(laid: Sequence[Mount]) -> list[str]:
    """Spell ordered rules as options of bubblewrap; pure."""
    options: list[str] = []
    for mount in laid:
        options += _option(mount)
    for mount in laid:
        # Hidden folders are empty and closed: what is written there would be lost without a word.
        if mount.rule in (Rule.VEIL, Rule.MASK) and mount.is_folder:
            options += ["--remount-ro", str(mount.path)]
    return options


def _changes(mount: Mount, around: Rule | None) -> bool:
    match mount.rule:
        case Rule.LINK | Rule.PREFIX:
            return around in _VEILING
        case Rule.SHOW:
            return around in _HIDING or around is Rule.WRITE
        case Rule.MASK if not mount.is_folder:
            return around not in _HIDING
        case Rule.MASK | Rule.VEIL:
            return around not in (Rule.MASK, Rule.VEIL)
        case _:
            return around is not mount.rule


def _option(mount: Mount) -> list[str]:
    path = str(mount.path)
    match mount.rule:
        case Rule.LINK:
            return ["--symlink", mount.target, path]
        case Rule.WRITE:
            return ["--bind", path, path]
        case Rule.PREFIX | Rule.SHOW:
            return ["--ro-bind", path, path]
        case Rule.MASK if not mount.is_folder:
            # A plain bind forbids devices and reading would fail; so it reads as empty.
            return ["--dev-bind", "/dev/null", path]
        case _:
            return ["--tmpfs", path]


class _Disk:
    """Follows symbolic links and looks at each step only once: most paths share most steps."""

    def __init__(self) -> None:
        self._targets: dict[str, str] = {}

    def rules(self, rule: Rule, paths: Iterable[Path]) -> Iterator[Mount]:
        """Yield a rule for each path that exists."""
        for path in paths:
            real = self.follow(str(path.absolute()))
            if (is_folder := _is_folder(real)) is not None:
                yield Mount(rule, real, is_folder=is_folder)

    def shown(self, rule: Rule, paths: Iterable[Path]) -> Iterator[Mount]:
        """Yield a rule for each path that exists, and for each link on the way to it."""
        for path in dict.fromkeys(paths):
            links: dict[str, str] = {}
            real = self.follow(str(path.absolute()), links)
            if (is_folder := _is_folder(real)) is not None:
                yield Mount(rule, real, is_folder=is_folder)
                for link, target in links.items():
                    yield Mount(Rule.LINK, Path(link), target=target)

    def follow(self, path: str, links: dict[str, str] | None = None) -> Path:
        """Return the real path; note the links that were followed."""
        here, rest, followed = "", path.split("/"), 0
        while rest:
            step, *rest = rest
            if step in ("", "."):
                continue
            here = here.rpartition("/")[0] if step == ".." else f"{here}/{step}"
            target = self._target(here)
            if target and followed < _MAX_LINKS:
                followed += 1
                if links is not None:
                    links[here] = target
                here = "" if target.startswith("/") else here.rpartition("/")[0]
                rest = [*target.split("/"), *rest]
        return Path(here or "/")

    def _target(self, path: str) -> str:
        if path not in self._targets:
            try:
                self._targets[path] = os.readlink(path)  # noqa: PTH115 - twice as fast
            except OSError:
                self._targets[path] = ""
        return self._targets[path]


def _is_folder(path: Path) -> bool | None:
    """Tell folder from file; None for what is missing, or closed to the bridge and its children."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return None
