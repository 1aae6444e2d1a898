"""Which repository a place has: its own, the one chosen there, its area's, the default; pure.

A folder of this machine comes from the settings or from whoever is signed in to the page, never
from a platform: who may talk to an agent there must not be able to point it at any folder here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from app.core.keys import PlaceKey
from app.core.workspaces import Repository
from app.errors import Conflict

FOLDER = "folder:"
NONE = "none"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/(?!\.{1,2}$)[A-Za-z0-9._-]+")
_ADDRESS = re.compile(r"(?:https?|ssh|file)://\S+")

Target = Repository | Path | None
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Directory:
    """What the settings say about repositories."""

    git_url: str
    """Where `owner/name` is found."""
    home: Path
    data_dir: Path
    default: str | None = None
    areas: Mapping[PlaceKey, str] = field(default_factory=dict)
    """The repositories of Slack channels and Linear teams."""

    def target(self, place: PlaceKey, chosen: str | None) -> Target:
        """Tell where agents work that are spoken to in a place."""
        return self.read(self._named(place, chosen))

    def read(self, text: str | None) -> Target:
        """Understand what stands in a setting or was chosen in a place."""
        if text is None or text == NONE:
            return None
        if text.startswith(FOLDER):
            path = text.removeprefix(FOLDER)
            return self.home / path[2:] if path.startswith("~/") else Path(path)
        if _ADDRESS.fullmatch(text):
            return Repository(text.rpartition("/")[2].removesuffix(".git"), text)
        return self.repository(text)

    @property
    def host(self) -> str:
        """Whose names `owner/name` are."""
        return urlsplit(self.git_url).netloc

    def repository(self, name: str) -> Repository:
        """Tell where `owner/name` is found."""
        return Repository(name, f"{self.git_url}/{name}.git")

    def renamed(self, target: Repository, now: Callable[[str, str], str]) -> Repository:
        """Tell what a repository of the settings or of a place is called now."""
        if target != self.repository(target.name):
            return target
        return self.repository(now(self.host, target.name))

    def fixes(self, place: PlaceKey) -> bool:
        """Tell whether the settings say it for all places of the same area."""
        return place.area in self.areas

    def chosen(self, place: PlaceKey, text: str, *, always: bool = False) -> str:
        """Check what somebody wants to choose for a place, or for its whole area.

        Raises:
            Conflict: it cannot be chosen there.
        """
        if place.service == "github":
            raise Conflict("On GitHub agents work in the repository they are called in.")
        if always and place.area is None:
            raise Conflict("Here each conversation has its own; leave out `always`.")
        if always and self.fixes(place):
            raise Conflict(
                "For new conversations here the bridge's settings say it "
                "(SLACK_CHANNEL_REPOS, LINEAR_TEAM_REPOS); without `always` this one is changed."
            )
        if text.lower() == NONE:
            return NONE
        if text.startswith(FOLDER):
            if place.service != "web":
                raise Conflict(
                    "A folder of the bridge's machine can be chosen on its own page or in its "
                    "settings, not from here."
                )
            self.check_folder(self.read(text))
            return text
        if not _NAME.fullmatch(text):
            raise Conflict("Write `repo OWNER/NAME`, `repo folder:/PATH` or `repo none`.")
        return text

    def words(self, place: PlaceKey, chosen: str | None) -> str:
        """Say where agents work that are spoken to in a place."""
        match self.target(place, chosen):
            case None:
                return "none, an empty folder for each agent"
            case Repository(name=name):
                return f"{name}, a clone for each agent"
            case folder:
                return f"the folder {folder}, one agent at a time"

    def check_folder(self, path: Target) -> Path:
        """See that a folder may be worked in.

        Raises:
            Conflict: it may not.
        """
        if not isinstance(path, Path) or not path.is_absolute() or not path.is_dir():
            raise Conflict("There is no such folder; write `folder:` and an absolute path.")
        real, own = path.resolve(), self.data_dir.resolve()
        if real.is_relative_to(own) or own.is_relative_to(real):
            raise Conflict("The bridge keeps its own data there; choose another folder.")
        if self.home.resolve().is_relative_to(real):
            raise Conflict("That folder holds a whole HOME; choose one inside it.")
        return real

    def _named(self, place: PlaceKey, chosen: str | None) -> str | None:
        if place.service == "github":
            return place.name.partition(":")[0]
        if chosen is not None:
            return chosen
        return self.default if place.area is None else self.areas.get(place.area, self.default)


class SetFor(Mapping[Target, Value]):
    """What the settings say about single targets, which a repository keeps under a new name."""

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
        # An entry for the new name counts more than what was set under the old one.
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
