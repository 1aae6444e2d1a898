"""Resolves where a place works, lists what can be chosen, and checks a choice.

A place works in its own repository, the chosen one, its area's, or the default. A folder on this
machine comes from the settings or from a person signed in to the page, never from a platform:
people who may talk to an agent there must not be able to point it at a folder here.

A list may be late or incomplete; a choice that only the remote can judge is passed on if the remote
does not answer in time.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import app
from app.config import Configuration
from app.errors import ConfigurationError, Conflict, RepositoryError, RepositoryGone
from app.model.inbound import Effect
from app.model.keys import AreaOf, PlaceKey, no_area
from app.model.workspaces import FOLDER, NONE, Repository, Target
from app.repos import wording as wording
from app.store.sessions import SessionStore

logger = logging.getLogger(__name__)

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
    find_area: AreaOf = no_area
    own_repository: Callable[[PlaceKey], str | None] = lambda _place: None
    """Names the repository that a place belongs to, where it is not a choice."""

    def target(self, place: PlaceKey, chosen: str | None) -> Target:
        """Tell where the agents of a place work."""
        name = self.own_repository(place) or chosen
        if name is None:
            area = self.area_of(place)
            name = self.default if area is None else self.areas.get(area, self.default)
        return self.read(name)

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

    def area_of(self, place: PlaceKey) -> PlaceKey | None:
        """Return the area of a place, such as the channel of a thread; None if it has none."""
        return self.find_area(place)

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


RECENT = 8
"""Recent repositories and folders that are offered: what people remember."""
LISTED = 500
"""Repositories in one list: more than people look through, and few enough to send at once."""
LIST_SECONDS = 10.0
"""How long a person waits for the list; without it names can still be typed."""
REACH_SECONDS = 10.0
"""How long a person waits for a remote's answer; a later one is told by the turn."""


def read_directory(
    configuration: Configuration,
    find_area: AreaOf,
    own_repository: Callable[[PlaceKey], str | None],
) -> Directory:
    """Build the directory of each place's repository.

    Raises:
        ConfigurationError: a folder is set that agents must not work in.
    """
    files = filter(None, (configuration.database_file, configuration.dotenv))
    area_settings = {
        service: settings.names()[settings.repositories_by_area]
        for service, settings in configuration.service_settings.items()
        if settings.repositories_by_area is not None
    }
    directory = Directory(
        git_url=configuration.settings.git_url,
        home=configuration.home,
        data_dir=configuration.data_dir,
        default=configuration.settings.default_repository,
        areas={
            PlaceKey(service, name): repository
            for service, settings in configuration.service_settings.items()
            for name, repository in settings.area_repositories().items()
        },
        area_settings=area_settings,
        find_area=find_area,
        own_repository=own_repository,
        own=(
            configuration.shared_dir,
            *configuration.secret_files,
            *files,
            Path(app.__file__).parent,
        ),
    )
    named = [("GITHUB_REPO", configuration.settings.default_repository)]
    named += [(area_settings[area.service], text) for area, text in directory.areas.items()]
    for setting, text in named:
        folder = directory.read(text)
        if isinstance(folder, Path) and (objection := directory.objection(folder)):
            raise ConfigurationError(
                setting, "names a folder that agents must not work in", objection
            )
    return directory


def variables_of(
    configuration: Configuration, directory: Directory, now: Callable[[str, str], str]
) -> Mapping[Target, Mapping[str, str]]:
    """Return the additional variables for work in each repository or folder."""
    entries = {
        directory.read(name): {
            variable: value.get_secret_value() for variable, value in entry.env.items()
        }
        for name, entry in configuration.repositories.items()
    }
    return SetFor(entries, directory, now)


def fetched_as(
    how: Literal["shallow", "partial"],
    configuration: Configuration,
    directory: Directory,
    now: Callable[[str, str], str],
) -> Collection[Target]:
    """Return the repositories that are fetched in this way."""
    entries = {
        directory.read(name): entry.clone
        for name, entry in configuration.repositories.items()
        if entry.clone == how
    }
    return SetFor(entries, directory, now)


@dataclass(frozen=True, slots=True)
class Offered:
    """Where a new conversation can work."""

    recent: tuple[str, ...]
    """What was chosen last, the latest first: `owner/name` or `folder:<path>`."""
    listed: tuple[str, ...]
    """What the agent's credentials open."""
    problem: str = ""
    """Why there is no list, if so."""


class RepositoryPicker:
    """Offers and checks repositories and folders."""

    def __init__(
        self,
        directory: Directory,
        sessions: SessionStore,
        *,
        choose: Callable[[PlaceKey, str], tuple[Effect, ...]],
        list_repositories: Callable[[str], Awaitable[Sequence[str]]] | None,
        reach: Callable[[Repository, str], Awaitable[None]],
    ) -> None:
        """Take the rules for a place from `choose`; `reach` raises if a remote refuses."""
        self._directory = directory
        self._sessions = sessions
        self._choose = choose
        self._list = list_repositories
        self._reach = reach

    def default(self, place: PlaceKey) -> str:
        """Return where a place works if nothing is chosen; empty for a folder of its own."""
        match self._directory.target(place, None):
            case Repository(name=name):
                return name
            case Path() as folder:
                return f"{FOLDER}{folder}"
            case _:
                return ""

    async def offer(self, agent: str) -> Offered:
        """List what can be chosen for an agent."""
        recent = tuple(await self._sessions.repositories(limit=RECENT))
        try:
            return Offered(recent, (await self._names(agent))[:LISTED])
        except (RepositoryError, TimeoutError) as error:
            logger.info("no list of repositories for %s: %s", agent, error)
            return Offered(recent, (), wording.NOT_LISTED)

    async def check(self, place: PlaceKey, agent: str, text: str) -> str:
        """Check a choice for a conversation that begins; returns how it is written.

        Raises:
            Conflict: it cannot be used; says what to do.
        """
        if not text:
            return ""
        self._choose(place, text)
        target = self._directory.read(text)
        if isinstance(target, Path):
            return f"{FOLDER}{target}"
        if text.lower() == NONE or not isinstance(target, Repository):
            return text
        try:
            names = {name.casefold(): name for name in await self._names(agent)}
        except (RepositoryError, TimeoutError) as error:
            logger.info("%s is not checked for %s: %s", text, agent, error)
            return text
        if names and text.casefold() not in names:
            raise Conflict(
                f"This agent's GitHub App can't open {text}. Install it there, or choose another "
                "repository."
            )
        if not names:
            await self._try_to_reach(target, agent)
        return names.get(text.casefold(), text)

    async def _names(self, agent: str) -> tuple[str, ...]:
        if self._list is None:
            return ()
        async with asyncio.timeout(LIST_SECONDS):
            return tuple(await self._list(agent))

    async def _try_to_reach(self, repository: Repository, agent: str) -> None:
        try:
            async with asyncio.timeout(REACH_SECONDS):
                await self._reach(repository, agent)
        except RepositoryGone as gone:
            raise Conflict(
                f"{repository.name} can't be opened: {gone.words}. Check the name. For a private "
                "repository, give this agent a GitHub App: `agent-bridge manifest github`."
            ) from gone
        except RepositoryError as error:
            raise Conflict(str(error)) from error
        except TimeoutError:
            logger.info("no answer about %s in time", repository.name)
