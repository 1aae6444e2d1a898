"""Joins the parts that decide and do the work; each one is made when it is first wanted.

Nothing runs yet: whoever wants that starts the parts, in order, and ends them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property

from app import logs
from app.core.adapters import Adapter, ListeningAdapter
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.files.attachments import Attachments
from app.core.files.outgoing import Outgoing
from app.core.folders import Folders
from app.core.intake.listeners import Listeners
from app.core.intake.reader import Intake
from app.core.intake.reception import Reception
from app.core.outbox import Outbox
from app.core.ports import PullRequests, RepositoryCatalog, TokenSource
from app.core.repo_provider import RepoProvider
from app.core.repositories.clones import Clones, Shipping
from app.core.repositories.proposals import Proposals
from app.core.repositories.renames import Renames
from app.core.session_manager import SessionManager
from app.core.turns.agents import LiveAgents
from app.core.turns.background import Surroundings
from app.core.turns.choice import RepositoryChoice
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.workshop import Workshop
from app.core.types import Session
from app.main.foundation import Foundation, bridge_id
from app.main.launching import LateLauncher, acp_launcher
from app.main.terms import (
    access_of,
    authors_of,
    directory_of,
    fetched_as,
    file_link_of,
    idle_seconds,
    own_limits,
    page_of,
    place_prompts,
    terms_of,
    variables_of,
)
from app.repos.checkouts import GitCheckouts
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.shoes import Shoes


class Joined:
    """The parts of one bridge, each made out of the others."""

    def __init__(
        self,
        base: Foundation,
        adapters: Sequence[Adapter],
        *,
        timeouts: Mapping[str, float],
        tokens: TokenSource | None,
        pulls: PullRequests | None,
        catalog: RepositoryCatalog | None,
    ) -> None:
        self._base = base
        self._configuration = base.configuration
        self._stores = base.stores
        self._timeouts = timeouts
        self._tokens = tokens
        self._pulls = pulls
        self._catalog = catalog
        self._directory = directory_of(base.configuration)
        self._variables = variables_of(base.configuration, self._directory, base.stores.names.now)
        self.adapters = {adapter.service_name: adapter for adapter in adapters}
        self.uploads = base.configuration.data_dir / "uploads"

    @cached_property
    def feed(self) -> Feed:
        """Tells followers what happens."""
        return Feed(self._stores.transcript, self._stores.sessions)

    @cached_property
    def outbox(self) -> Outbox:
        """The way out."""
        base = self._base
        return Outbox(self._stores.posts, self.adapters, base.clock, base.vault, base.metrics)

    @cached_property
    def ledger(self) -> Ledger:
        """What agents ask people."""
        return Ledger(
            self._stores.asks,
            self._stores.sessions,
            self.outbox,
            self.feed,
            self._base.vault,
            clock=self._base.clock,
            submit=lambda session: self.engine.submit(session),
        )

    @cached_property
    def checkouts(self) -> GitCheckouts:
        """What git does: mirrors, clones and the gates that they push to."""
        configuration, person = self._configuration, self._configuration.surroundings
        git, names = Git(person, bridge_id(configuration)), self._stores.names
        shoes = {
            name: Shoes(shelter.sandbox, shelter.confinement, replace(shelter, own={}).environment)
            for name, shelter in self._base.shelters.items()
        }
        return GitCheckouts(
            configuration.data_dir / "gates",
            shoes,
            git,
            Mirrors(
                configuration.data_dir / "mirrors",
                git,
                self._tokens,
                person,
                shallow=fetched_as("shallow", configuration, self._directory, names.now),
                partial=fetched_as("partial", configuration, self._directory, names.now),
            ),
            tokens=self._tokens,
            vault=self._base.vault,
            person=person,
            variables=self._variables,
        )

    @cached_property
    def workspaces(self) -> RepoProvider:
        """Where agents work."""
        configuration, stores = self._configuration, self._stores
        folders = Folders(configuration.data_dir / "workspaces", self.uploads)
        shipping = Shipping(
            {name: entry.ship for name, entry in configuration.agents.items()},
            authors_of(configuration),
            self._tokens,
            self._pulls,
        )
        clones = Clones(
            folders.root,
            self.checkouts,
            stores.checkouts,
            stores.transcript,
            shipping,
            clock=self._base.clock,
            vault=self._base.vault,
        )
        return RepoProvider(
            folders,
            clones,
            self.checkouts,
            stores.decisions,
            stores.sessions,
            directory=self._directory,
            names=stores.names,
            variables=self._variables,
        )

    @cached_property
    def launcher(self) -> LateLauncher:
        """Brings agents to life."""
        return LateLauncher(lambda: acp_launcher(self._base, self.workspaces, self._timeouts))

    @cached_property
    def live(self) -> LiveAgents:
        """The agents that live."""
        return LiveAgents(
            self.launcher,
            self.workspaces,
            self._stores.sessions,
            self._base.clock,
            self._base.vault,
            max_processes=self._configuration.limits.max_processes,
            idle_seconds=idle_seconds(self._configuration),
            of_agent=own_limits(self._configuration, "max_processes"),
        )

    @cached_property
    def engine(self) -> EmbeddedTurnEngine:
        """Runs turns."""
        return EmbeddedTurnEngine(
            self._workshop,
            max_turns=self._configuration.limits.max_turns,
            of_agent=own_limits(self._configuration, "max_turns"),
        )

    @cached_property
    def _workshop(self) -> Workshop:
        configuration, stores, base = self._configuration, self._stores, self._base
        return Workshop(
            turns=stores.turns,
            sessions=stores.sessions,
            transcript=stores.transcript,
            posts=stores.posts,
            live=self.live,
            workspaces=self.workspaces,
            choice=self._choice,
            attachments=Attachments(self.adapters),
            outgoing=self._outgoing,
            surroundings=Surroundings(
                stores.transcript, self.adapters, base.vault, messages=configuration.place_context
            ),
            ledger=self.ledger,
            outbox=self.outbox,
            feed=self.feed,
            clock=base.clock,
            counters=base.metrics,
            vault=base.vault,
            verbosity=lambda place: (
                stores.decisions.place(place).verbosity or configuration.verbosity
            ),
            page=page_of(configuration),
            place_prompt=place_prompts(configuration),
            adapters=self.adapters,
            speaking_of=_speaking_of,
            terms={name: terms_of(configuration, name) for name in configuration.agents},
        )

    @cached_property
    def _choice(self) -> RepositoryChoice:
        return RepositoryChoice(
            self._stores.decisions,
            self._stores.sessions,
            self._directory,
            self._base.clock,
            adapters=self.adapters,
            catalog=self._catalog,
        )

    @cached_property
    def _outgoing(self) -> Outgoing:
        return Outgoing(
            self.workspaces,
            self.uploads,
            self._stores.posts,
            self.adapters,
            self._base.vault,
            link=file_link_of(self._configuration),
        )

    @cached_property
    def manager(self) -> SessionManager:
        """Sessions and commands."""
        return SessionManager(
            self._stores.decisions,
            self._stores.sessions,
            self._stores.turns,
            engine=self.engine,
            live=self.live,
            outbox=self.outbox,
            feed=self.feed,
            clock=self._base.clock,
            directory=self._directory,
        )

    @cached_property
    def reception(self) -> Reception:
        """Decides on what people say."""
        return Reception(
            self._stores.decisions,
            self.manager,
            self.ledger,
            adapters=self.adapters,
            access=access_of(self._configuration),
            untagged=self._configuration.untagged_replies,
            clock=self._base.clock,
        )

    @cached_property
    def intake(self) -> Intake:
        """Reads what comes in."""
        return Intake(
            self._stores.deliveries,
            self.reception,
            adapters=self.adapters,
            clock=self._base.clock,
            proposals=self._proposals,
            renames=self._renames,
        )

    @cached_property
    def _proposals(self) -> Proposals:
        return Proposals(
            self._stores.proposals,
            self.checkouts,
            self.ledger,
            self.outbox,
            self.feed,
            adapters=self.adapters,
            clock=self._base.clock,
            offer_seconds=self._configuration.limits.ask_hours * 3600,
        )

    @cached_property
    def _renames(self) -> Renames:
        return Renames(
            self._stores.names,
            self.checkouts,
            adapters=self.adapters.values(),
            directory=self._directory,
            clock=self._base.clock,
        )

    @cached_property
    def listeners(self) -> Listeners:
        """Hears the platforms that have to be listened to."""
        listening = [each for each in self.adapters.values() if isinstance(each, ListeningAdapter)]
        return Listeners(listening, self.intake, self._base.clock)


def _speaking_of(session: Session) -> AbstractContextManager[None]:
    return logs.bind(agent=session.key.agent, session=str(session.key))
