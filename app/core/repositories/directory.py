"""Resolves a place's repository: its own, the chosen one, its area's, the default; pure.

A folder on this machine comes from the settings or from a person signed in to the page, never from
a platform: people who may talk to an agent there must not be able to point it at a folder here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from app.errors import Conflict
from app.model import repository_wording as wording
from app.model.keys import AreaOf, PlaceKey, no_area
from app.model.workspaces import FOLDER, NONE, Repository, Target

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/(?!\.{1,2}$)[A-Za-z0-9._-]+")
_ADDRESS = re.compile(r"(?:https?|ssh|file)://\S+")
_HOMES = frozenset({Path("/home"), Path("/Users")})
_SYSTEM = tuple(
    Path("/", name)
    for name in ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr")
)
"""Nothing in these is a project."""
_SHARED = frozenset(
    Path("/", name)
    for name in ("", "home", "root", "opt", "srv", "mnt", "media", "tmp", "var", "Users")
) | {Path("/var", name) for name in ("cache", "lib", "log", "mail", "opt", "spool", "tmp")}
"""Shared folders; a project may be inside."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Directory:
    """What the settings say about repositories."""

    git_url: str
    """Where `owner/name` is found."""
    home: Path
    data_dir: Path
    default: str | None = None
    own: tuple[Path, ...] = ()
    """Other files and folders of the bridge: its settings, its secrets, its program."""
    areas: Mapping[PlaceKey, str] = field(default_factory=dict)
    """The repositories that the settings give to areas."""
    area_settings: Mapping[str, str] = field(default_factory=dict)
    """The setting that does so, by service."""
    area_of: AreaOf = no_area
    own_repository: Callable[[PlaceKey], str | None] = lambda _place: None
    """Names the repository that a place belongs to, where it is not a choice."""

    def target(self, place: PlaceKey, chosen: str | None) -> Target:
        """Tell where the agents of a place work."""
        return self.read(self._find_name(place, chosen))

    def read(self, text: str | None) -> Target:
        """Parse a target from a setting or from a choice in a place."""
        if text is None or text == NONE:
            return None
        if text.startswith(FOLDER):
            path = text.removeprefix(FOLDER)
            return self.home / path[2:] if path.startswith("~/") else Path(path)
        if _ADDRESS.fullmatch(text):
            return Repository(text.rpartition("/")[2].removesuffix(".git"), text)
        return self.repository(text)

    def write(self, target: Target) -> str:
        """Write a target so that `read` finds the same."""
        if target is None:
            return NONE
        if isinstance(target, Path):
            return f"{FOLDER}{target}"
        return target.name if target == self.repository(target.name) else target.url

    @property
    def host(self) -> str:
        """The host that `owner/name` belongs to."""
        return urlsplit(self.git_url).netloc

    def repository(self, name: str) -> Repository:
        """Tell where `owner/name` is found."""
        return Repository(name, f"{self.git_url}/{name}.git")

    def renamed(self, target: Repository, now: Callable[[str, str], str]) -> Repository:
        """Apply renames to a repository from the settings or a place."""
        if target != self.repository(target.name):
            return target
        return self.repository(now(self.host, target.name))

    def fixes(self, place: PlaceKey) -> bool:
        """Tell whether the settings fix the repository for the whole area."""
        return self.area_of(place) in self.areas

    def chosen(self, place: PlaceKey, text: str, *, always: bool = False) -> str:
        """Check a person's choice for a place, or for its whole area.

        Raises:
            Conflict: it cannot be chosen there.
        """
        if self.own_repository(place) is not None:
            raise Conflict("Here agents work in the repository they are called in.")
        if always and self.area_of(place) is None:
            raise Conflict("Each conversation here has its own repository; leave out `always`.")
        if always and self.fixes(place):
            raise Conflict(
                f"{self.area_settings[place.service]} sets the repository for new conversations. "
                "Leave out `always` to change only this one."
            )
        if text.lower() == NONE:
            return NONE
        if text.startswith(FOLDER):
            if place.service != "web":
                raise Conflict(
                    "A folder on the bridge's machine can be chosen only on its page or in its "
                    "settings."
                )
            path = self.read(text)
            self.check_folder(path)
            return f"{FOLDER}{path}"
        if not _NAME.fullmatch(text):
            raise Conflict("Write `repo OWNER/NAME`, `repo folder:/PATH` or `repo none`.")
        return text

    def words(self, place: PlaceKey, chosen: str | None) -> str:
        """Say where the agents of a place work."""
        match self.target(place, chosen):
            case None:
                return wording.IN_EMPTY_FOLDER
            case Repository(name=name):
                return wording.IN_CLONE.format(name=name)
            case folder:
                return wording.IN_FOLDER.format(folder=folder)

    def check_folder(self, path: Target) -> Path:
        """Check that agents may work in a folder.

        Raises:
            Conflict: it may not.
        """
        if not isinstance(path, Path) or not path.is_absolute() or not path.is_dir():
            raise Conflict(
                f"No such folder on the bridge's machine: {path}. Write its whole path, such as "
                "/home/me/project or ~/project."
            )
        if objection := self.objection(path):
            raise Conflict(objection)
        return path.resolve()

    def objection(self, path: Path) -> str:
        """Say why agents must not work in a folder, existing or not; empty if they may."""
        real = path.resolve()
        for own in (each.resolve() for each in (self.data_dir, *self.own)):
            if real.is_relative_to(own) or own.is_relative_to(real):
                return wording.FOLDER_OF_BRIDGE
        if self.home.resolve().is_relative_to(real) or real.parent in _HOMES:
            return wording.FOLDER_OF_HOME
        if real in _SHARED or any(real.is_relative_to(each) for each in _SYSTEM):
            return wording.FOLDER_OF_SYSTEM
        return ""

    def _find_name(self, place: PlaceKey, chosen: str | None) -> str | None:
        own = self.own_repository(place)
        if own is not None or chosen is not None:
            return own or chosen
        area = self.area_of(place)
        return self.default if area is None else self.areas.get(area, self.default)


class SetFor(Mapping[Target, Value]):
    """Settings of single targets, which a repository keeps under a new name."""

    def __init__(
        self,
        entries: Mapping[Target, Value],
        directory: Directory,
        now: Callable[[str, str], str],
    ) -> None:
        self._entries = entries
        self._directory = directory
        self._now = now

    def __getitem__(self, target: Target) -> Value:
        # An entry for the new name wins over one for the old name.
        for named in sorted(self._entries, key=lambda each: each != target):
            if self._current(named) == target:
                return self._entries[named]
        raise KeyError(target)

    def __iter__(self) -> Iterator[Target]:
        return iter(dict.fromkeys(self._current(named) for named in self._entries))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _current(self, named: Target) -> Target:
        if isinstance(named, Repository):
            return self._directory.renamed(named, self._now)
        return named
