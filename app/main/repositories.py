"""Joins the parts that work in repositories and folders; each is built on first use.

Git, mirrors, gates and clones meet here; what decides about them is joined elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property, partial

from app.agents.agent import Agent
from app.agents.catalog import unshared_files
from app.agents.isolation import homes_root, workspaces_root
from app.children.disk import DiskSpace, identify
from app.children.warden import Warden
from app.config import Configuration
from app.core.base import Base
from app.core.feed import Feed
from app.core.repo_provider import RepoProvider
from app.core.repositories.clones import Clones
from app.core.repositories.folders import DiskRoom, Folders
from app.core.repositories.following import WorkProgress
from app.core.repositories.forge import CurrentForge
from app.main.resources import Resources
from app.main.terms import directory_of, fetched_as, variables_of
from app.repos.checkouts import GitCheckouts
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.sandboxed_git import isolate
from app.repos.search import RepositorySearch


class RepositoryParts(ABC):
    """Where the sessions of one bridge work."""

    def __init__(self, base: Resources, forge: CurrentForge) -> None:
        self._base = base
        self._stores = base.stores
        self.forge = forge
        self._disk = DiskSpace(
            base.configuration.data_dir,
            watermark=_in_bytes(base.configuration.settings.disk_free_mb),
        )
        self._directory = directory_of(base.configuration)
        self._variables = variables_of(base.configuration, self._directory, base.stores.names.now)
        self.uploads = base.configuration.shared_dir / "uploads"

    @property
    @abstractmethod
    def _shared(self) -> Base:
        """What all parts are built on."""

    @property
    def _configuration(self) -> Configuration:
        return self._base.configuration

    @cached_property
    def feed(self) -> Feed:
        """Tells followers what happens."""
        return Feed(
            self._stores.transcript,
            self._stores.sessions,
            self._stores.tree.above,
            signals=self._base.signals,
        )

    @cached_property
    def room(self) -> DiskRoom:
        """Keeps room on the disk."""
        warn = _in_bytes(self._configuration.settings.disk_warn_mb)
        return DiskRoom(self._disk, self._base.clock, self.workspaces.unused.shed, warn_bytes=warn)

    @property
    def _names(self) -> Mapping[str, str]:
        """What people call each agent."""
        return self._base.registry.names

    @property
    def _agents(self) -> Mapping[str, Agent]:
        return self._base.registry

    @cached_property
    def checkouts(self) -> GitCheckouts:
        """Runs git: mirrors, clones and the gates that they push to."""
        configuration, person = self._configuration, self._configuration.surroundings
        return GitCheckouts(
            configuration.data_dir / "gates",
            partial(isolate, self._agents, self._base.admission, self.warden),
            self._git,
            self._mirrors,
            tokens=self.forge,
            vault=self._base.vault,
            person=person,
            variables=self._variables,
            guard=self.forge.guard,
            unshared=unshared_files(),
        )

    @cached_property
    def _git(self) -> Git:
        configuration = self._configuration
        return Git(configuration.surroundings, configuration.bridge_id)

    @cached_property
    def _mirrors(self) -> Mirrors:
        configuration, names = self._configuration, self._stores.names
        return Mirrors(
            configuration.shared_dir / "mirrors",
            self._git,
            self.forge,
            configuration.surroundings,
            disk=DiskSpace(configuration.shared_dir),
            shallow=fetched_as("shallow", configuration, self._directory, names.now),
            partial=fetched_as("partial", configuration, self._directory, names.now),
        )

    @cached_property
    def repository_search(self) -> RepositorySearch:
        """Finds texts in the repositories on this disk."""
        return RepositorySearch(self._git, self._mirrors)

    @cached_property
    def warden(self) -> Warden:
        """Watches agents' resource use."""
        return Warden(self._disk)

    def _user_of(self, agent: str) -> int | None:
        shelter = self._base.registry.shelters.get(agent)
        return shelter.user if shelter else None

    @cached_property
    def workspaces(self) -> RepoProvider:
        """Opens the workspaces of sessions."""
        return RepoProvider(
            self._shared,
            self._folders,
            self.clones,
            self.checkouts,
            self._directory,
            forge=self.forge,
            variables=self._variables,
            name_of=self._name_of,
        )

    def _name_of(self, agent: str) -> str:
        """Return what people call an agent, present or removed."""
        return self._base.registry.title(agent)

    @cached_property
    def _folders(self) -> Folders:
        configuration = self._configuration
        return Folders(
            workspaces_root(configuration),
            self.uploads,
            homes_root(configuration),
            self._agents,
        )

    @cached_property
    def clones(self) -> Clones:
        """Manages the clones of sessions."""
        root = self._folders.root
        return Clones(self._shared, root, self.checkouts, forge=self.forge, machine=identify(root))

    @cached_property
    def progress(self) -> WorkProgress:
        """Reads the progress of sessions' work."""
        return WorkProgress(self._shared, self.clones, self.feed, self.forge)


def _in_bytes(mebibytes: int | None) -> int | None:
    return None if mebibytes is None else mebibytes * 2**20
