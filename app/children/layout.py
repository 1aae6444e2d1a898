"""Plans the file system that a confined child sees: which paths are hidden, shown or writable.

The deepest rule for a path wins, and showing a folder never shows what the bridge hides below it:
a secret inside a visible folder stays hidden.

No file with secrets is covered alone: a rename over it in the host's namespace (an editor,
`sed -i`, a rotated secret) would lift the cover. Its whole folder is hidden instead. A daemon's
socket is covered alone only where its folder holds what the child needs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final

from app.children.network.link import PortHandover

_MAX_LINKS: Final = 40
"""Linux follows no more symbolic links than this in one path."""

_SCRATCH: Final = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108
_RUN: Final = Path("/run")
"""Hidden as a whole: docker.sock, the buses of systemd, other people's agents, /run/secrets."""
_RESOLVER: Final = Path("/etc/resolv.conf")
"""Often a link into /run, and without it no name resolves."""
_KERNEL: Final = tuple(map(Path, ("/dev", "/proc", "/sys")))
_SYSTEM: Final = frozenset(
    map(
        Path,
        (
            *("/", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix"),
            *("/etc", "/etc/alternatives", "/etc/pki", "/etc/ssl", "/etc/ssl/certs"),
            *("/usr", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64"),
            *("/usr/include", "/usr/libexec", "/usr/share", "/usr/local", "/usr/local/bin"),
            *("/usr/local/sbin", "/usr/local/lib", "/usr/local/libexec", "/usr/local/share"),
            *("/var", "/var/cache", "/var/lib", "/var/log", "/nix/store"),
        ),
    )
)
"""Folders that programs need: hiding one of them would hide the machine."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What one child may see and write; paths as the operator gave them."""

    home: Path
    workspace: Path
    person: Path | None = None
    """HOME of the user who runs the bridge: hidden, except for the prefixes inside it."""
    masked: tuple[Path, ...] = ()
    """Folders of the bridge and of other agents (DATA_DIR, HOMEs): hidden."""
    secrets: tuple[Path, ...] = ()
    """Files that hold secrets (`.env`, keys): the folders around them are hidden."""
    prefixes: tuple[Path, ...] = ()
    """What the command needs to run; shown wherever only `person` would hide it."""
    visible: tuple[Path, ...] = ()
    """Further paths to read, also inside a masked folder (the mirror of a repository)."""
    writable: tuple[Path, ...] = ()
    """Further paths to write, also inside a masked folder (the gate a branch is pushed to)."""
    readonly: tuple[Path, ...] = ()
    """Paths inside writable ones that can neither be changed nor moved out of the way."""
    cwd: Path | None = None
    """Where the child starts; the workspace if not given."""
    user: int | None = None
    """The user and group that the child of a root bridge becomes; None: the bridge's."""
    limits: tuple[tuple[str, int], ...] = ()
    """Resource limits, by the names of `setrlimit` in lower case; `oom` is `oom_score_adj`."""
    scratch_bytes: int | None = None
    """How large each of /tmp, /var/tmp and /dev/shm may get, if that is limited."""
    handover: PortHandover | None = None
    """The ports of its network that the bridge serves; None: it reaches only itself."""
    shares_network: bool = False
    """Whether it shares this machine's network, as a login in a terminal does."""


class PathRule(IntEnum):
    """What happens at a path; of two rules for one path the greater one wins."""

    LINK = 0
    PREFIX = 1
    PIN = 2
    SCRATCH = 3
    VEIL = 4
    SHOW = 5
    MASK = 6
    WRITE = 7
    COVER = 8


_HIDING: Final = frozenset({PathRule.SCRATCH, PathRule.VEIL, PathRule.MASK})
_VEILING: Final = frozenset({PathRule.SCRATCH, PathRule.VEIL})
_WRITABLE: Final = frozenset({PathRule.WRITE, PathRule.PIN})


@dataclass(frozen=True, slots=True)
class Mount:
    """One rule at one real path."""

    rule: PathRule
    path: Path
    target: str = ""
    """For a link: its target."""


def survey(confinement: Confinement, sockets: Iterable[Path] = ()) -> list[Mount]:
    """Look at the disk and return the rules for what exists there, links resolved.

    `sockets` are those of daemons; the child's own folders keep theirs. A missing workspace or
    HOME is kept, so that the start fails loudly.
    """
    disk = _Disk()
    resolver = disk.follow(str(_RESOLVER))
    people = [_RUN] if confinement.person is None else [_RUN, confinement.person]
    secrets = {real for path in confinement.secrets for real in disk.both(path)}
    veiled = [*people, *(folder for file in secrets if (folder := hiding_folder(file)))]
    prefixes = [
        mount
        for mount in disk.shown(PathRule.PREFIX, (resolver, resolver.parent, *confinement.prefixes))
        if mount.path not in secrets
    ]
    named = (confinement.home, confinement.workspace, *confinement.writable)
    own = [disk.follow(str(path.absolute())) for path in named]
    shown = [*prefixes, *disk.shown(PathRule.SHOW, confinement.visible)]
    return [
        *disk.rules(PathRule.SCRATCH, _SCRATCH),
        *(
            mount
            for mount in disk.rules(PathRule.VEIL, veiled)
            if mount.path != Path("/") and mount.path not in _SCRATCH
        ),
        *disk.rules(PathRule.MASK, confinement.masked),
        *(_hide_closed_folders(prefixes, own) if confinement.user is not None else ()),
        *_hide_secrets(secrets, prefixes, people),
        *shown,
        *disk.rules(PathRule.SHOW, confinement.readonly),
        *_hide_sockets(sockets, own, [mount.path for mount in shown]),
        # A mount point cannot be renamed, but the folders above it can.
        *(
            Mount(PathRule.PIN, folder)
            for path in confinement.readonly
            for folder in disk.follow(str(path.absolute())).parents
            if any(writable in folder.parents for writable in own) and _exists(folder)
        ),
        *(Mount(PathRule.WRITE, path) for path in own),
    ]


def hiding_folder(file: Path) -> Path | None:
    """Return the topmost folder around a file that can be hidden whole; None if there is none.

    The topmost one, so that a folder that is replaced by a new one stays hidden too.
    """
    if any(file.is_relative_to(folder) for folder in _KERNEL):
        return None
    return next((folder for folder in reversed(file.parents) if folder not in _SYSTEM), None)


def _hide_secrets(
    secrets: set[Path], prefixes: Sequence[Mount], people: Sequence[Path]
) -> Iterator[Mount]:
    """Hide the folder of each secret inside a prefix, and show what else is in that folder.

    Entries that begin with a dot or carry the secret's name stay hidden: editors and people keep
    copies under such names.
    """
    shown = {mount.path for mount in prefixes if mount.rule is PathRule.PREFIX}
    shown = {path for path in shown if not any(each.is_relative_to(path) for each in people)}
    for folder in {file.parent for file in secrets}:
        if not any(folder.is_relative_to(path) for path in shown):
            continue
        yield Mount(PathRule.VEIL, folder)
        names = [file.name for file in secrets if file.parent == folder]
        for entry in _entries(folder):
            if not entry.name.startswith(".") and not any(name in entry.name for name in names):
                yield Mount(PathRule.PREFIX, Path(entry.path))


def _hide_sockets(
    sockets: Iterable[Path], own: Sequence[Path], shown: Sequence[Path]
) -> Iterator[Mount]:
    """Hide the folder of each socket, or the socket alone if the folder is needed."""
    for socket in sockets:
        if any(socket.is_relative_to(path) for path in (*own, *_SCRATCH, *_KERNEL, _RUN)):
            continue
        folder = socket.parent
        is_needed = any(path.is_relative_to(folder) for path in (*own, *shown))
        if folder in _SYSTEM or is_needed:
            yield Mount(PathRule.COVER, socket)
        else:
            yield Mount(PathRule.VEIL, folder)


def _hide_closed_folders(prefixes: Sequence[Mount], own: Sequence[Path]) -> Iterator[Mount]:
    """Hide each folder on the way to a needed path that another user may not enter.

    What replaces it can be entered, and the path is shown there.
    """
    needed = [*(mount.path for mount in prefixes if mount.rule is PathRule.PREFIX), *own]
    closed = {
        next(
            (each for each in reversed(path.parents) if not each.stat().st_mode & stat.S_IXOTH),
            None,
        )
        for path in needed
        if _exists(path.parent)
    }
    return (Mount(PathRule.VEIL, folder) for folder in closed if folder is not None)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """List what is in a folder, without links: they would be followed."""
    try:
        with os.scandir(folder) as found:
            return [entry for entry in found if not entry.is_symlink()]
    except OSError:
        return []


def plan(mounts: Iterable[Mount]) -> list[Mount]:
    """Order the rules from the outside in; drop those that change nothing.

    Pure: depends only on its argument.
    """
    strongest: dict[Path, Mount] = {}
    for mount in sorted(mounts, key=lambda mount: mount.rule):
        strongest[mount.path] = mount
    laid: list[Mount] = []
    effective: dict[Path, PathRule] = {}
    for mount in sorted(strongest.values(), key=lambda mount: len(mount.path.parts)):
        around = next((effective[path] for path in mount.path.parents if path in effective), None)
        if mount.rule is PathRule.MASK or _changes(mount, around):
            effective[mount.path] = mount.rule
        if _changes(mount, around):
            laid.append(mount)
    return laid


def arguments(laid: Sequence[Mount], scratch: Sequence[str] = ()) -> list[str]:
    """Write ordered rules as bubblewrap options, with those for scratch folders; pure."""
    options: list[str] = []
    rules = {mount.path: mount.rule for mount in laid}
    for mount in laid:
        options += _path_options(mount.path, rules)
        options += scratch if mount.rule is PathRule.SCRATCH else ()
        options += _option(mount)
    for mount in laid:
        # Hidden folders are empty and read-only: what is written there would be silently lost.
        if mount.rule in (PathRule.VEIL, PathRule.MASK):
            options += ["--remount-ro", str(mount.path)]
    return options


def _path_options(path: Path, rules: dict[Path, PathRule]) -> Iterator[str]:
    """Create the folders that lead through a hidden one to a path, open to every user.

    bubblewrap would create them for root alone.
    """
    above = next((each for each in path.parents if each in rules), None)
    if above is None or rules[above] not in _HIDING:
        return
    for folder in reversed(path.relative_to(above).parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(above / folder))


def _changes(mount: Mount, around: PathRule | None) -> bool:
    match mount.rule:
        case PathRule.LINK | PathRule.PREFIX:
            return around in _VEILING
        case PathRule.SHOW:
            return around in _HIDING or around in _WRITABLE
        case PathRule.PIN:
            return around in _WRITABLE
        case PathRule.MASK | PathRule.VEIL:
            return around not in (PathRule.MASK, PathRule.VEIL)
        case PathRule.COVER:
            return around not in _HIDING
        case _:
            return around is not mount.rule


def _option(mount: Mount) -> list[str]:
    path = str(mount.path)
    match mount.rule:
        case PathRule.LINK:
            return ["--symlink", mount.target, path]
        case PathRule.WRITE | PathRule.PIN:
            return ["--bind", path, path]
        case PathRule.PREFIX | PathRule.SHOW:
            return ["--ro-bind", path, path]
        case PathRule.COVER:
            return ["--ro-bind", "/dev/null", path]
        case _:
            return ["--tmpfs", path]


class _Disk:
    """Follows symbolic links and looks at each step only once: most paths share most steps."""

    def __init__(self) -> None:
        self._targets: dict[str, str] = {}

    def rules(self, rule: PathRule, paths: Iterable[Path]) -> Iterator[Mount]:
        """Yield a rule for each path that exists."""
        for path in paths:
            real = self.follow(str(path.absolute()))
            if _exists(real):
                yield Mount(rule, real)

    def shown(self, rule: PathRule, paths: Iterable[Path]) -> Iterator[Mount]:
        """Yield a rule for each path that exists, and for each link on the way to it."""
        for path in dict.fromkeys(paths):
            links: dict[str, str] = {}
            real = self.follow(str(path.absolute()), links)
            if _exists(real):
                yield Mount(rule, real)
                for link, target in links.items():
                    yield Mount(PathRule.LINK, Path(link), target=target)

    def both(self, file: Path) -> tuple[Path, Path]:
        """Return the real path of a file, and the path of the link to it, which may be replaced."""
        folder = self.follow(str(file.parent.absolute()))
        return self.follow(str(file.absolute())), folder / file.name

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


def _exists(path: Path) -> bool:
    """Tell whether a path exists; what the bridge cannot access, its children cannot either."""
    try:
        path.stat()
    except OSError:
        return False
    return True
