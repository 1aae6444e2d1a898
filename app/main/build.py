"""Builds the parts of one bridge, each from those before it: where sessions work, turns, the pipe.

Nothing runs yet: the caller starts the parts in order, and stops them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from app.acp.late import LateLauncher, build_launcher
from app.agents.catalog import read_prices, unshared_files
from app.agents.isolation import homes_root, workspaces_root
from app.children.kept_files import Traces
from app.children.limits import DiskSpace, identify
from app.children.warden import Warden
from app.core.adapters import Adapter
from app.core.base import Base
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.files.attachments import Attachments
from app.core.files.outgoing import OutgoingFiles
from app.core.hooks import Hooks
from app.core.intake.dispatch import Dispatcher
from app.core.intake.floor import Access
from app.core.intake.listeners import Listeners
from app.core.intake.reader import Intake
from app.core.outbox import Outbox
from app.core.repo_provider import RepoProvider
from app.core.repositories.clones import Clones
from app.core.repositories.directory import (
    Directory,
    RepositoryPicker,
    fetched_as,
    read_directory,
    variables_of,
)
from app.core.repositories.folders import DiskRoom, Folders
from app.core.repositories.following import Proposals, Renames, WorkProgress
from app.core.repositories.forge import CurrentForge, Forge
from app.core.roster import Availabilities, Roster
from app.core.runtime import Addresses, Presences, Runtime
from app.core.session_manager import SessionManager
from app.core.tools.people import PeopleTools, PlaceTools
from app.core.tools.proposals import ProposalTools
from app.core.tools.toolbox import Toolbox
from app.core.turns.agents import LiveAgents
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.limits import DailyLimits
from app.core.turns.place import ContextFinder, RepositoryChoice, operator_prompt
from app.core.turns.reach import Reach
from app.core.turns.turn_context import TurnContext
from app.main.resources import Resources
from app.mcp_server.endpoints import McpEndpoints
from app.model.agents import Tool
from app.repos.checkouts import GitCheckouts
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.sandboxed_git import isolate
from app.repos.search import RepositorySearch
from app.services import find_area, find_repository
from app.services.web.adapter import AgentsAdapter
from app.store.commits.own_turns import OwnTurnLimits

if TYPE_CHECKING:
    from app.main.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Machinery:
    """The parts of one bridge, with those that features do not see."""

    runtime: Runtime
    launcher: LateLauncher
    endpoints: McpEndpoints
    warden: Warden


@dataclass(frozen=True, slots=True)
class Ground:
    """Where the sessions of one bridge work, and what git does there."""

    directory: Directory
    folders: Folders
    warden: Warden
    checkouts: GitCheckouts
    search: RepositorySearch
    clones: Clones
    workspaces: RepoProvider
    room: DiskRoom


def build_parts(
    base: Resources,
    adapters: Sequence[Adapter],
    *,
    forge: Forge | None,
    fleet: Fleet | None,
    timeouts: Mapping[str, float],
    starts_agents: bool,
    go_on: Callable[[], Awaitable[None]],
    connect: Callable[[Collection[str]], Presences],
    accept: Callable[[Iterable[Adapter]], None],
) -> Machinery:
    """Build everything; `fleet` is there if several bridges share the database."""
    configuration, settings = base.configuration, base.configuration.settings
    addresses, uploads = Addresses(configuration), configuration.shared_dir / "uploads"
    apart = map(AgentsAdapter, configuration.agents)
    present = {each.service_name: each for each in (*adapters, *apart)}
    shared = Base(
        clock=base.clock,
        vault=base.vault,
        stores=base.stores,
        metrics=base.metrics,
        signals=base.signals,
        agents=base.registry,
        adapters=present,
        hooks=Hooks(),
        page=addresses.page,
    )
    if fleet is not None:
        shared = replace(shared, ensure=fleet.membership.ensure)
    current = CurrentForge(forge)
    ground = _build_ground(base, shared, current)

    # What people see of the work, and the work itself.
    feed = Feed(
        base.stores.transcript,
        base.stores.sessions,
        base.stores.tree.above,
        signals=base.signals,
    )
    outbox = Outbox(shared)
    ledger = Ledger(shared, outbox, feed, submit=lambda session: engine.submit(session))
    launcher = LateLauncher(
        lambda: build_launcher(
            base.registry,
            base.admission,
            base.stores.processes,
            base.clock,
            base.metrics,
            bridge=configuration.bridge_id,
            warden=ground.warden,
            endpoints=endpoints,
            timeouts=timeouts,
        )
    )
    live = LiveAgents(shared, launcher, ground.workspaces, max_processes=settings.max_processes)
    live.on_change = feed.notify
    progress = WorkProgress(shared, ground.clones, feed, current)
    availability = Availabilities(
        base.clock, base.vault.redact, name_of=base.registry.name, signals=base.signals
    )
    context = shared.extend(
        TurnContext,
        live=live,
        workspaces=ground.workspaces,
        choice=RepositoryChoice(shared, ground.directory, list_repositories=current.repositories),
        attachments=Attachments(shared.adapters),
        outgoing=OutgoingFiles(shared, uploads, link=addresses.file),
        surroundings=ContextFinder(
            shared, messages=settings.place_context, name_of=base.registry.title
        ),
        ledger=ledger,
        outbox=outbox,
        feed=feed,
        own_turns=OwnTurnLimits(settings.agent_turns_per_hour, settings.agent_turns_per_session),
        daily=DailyLimits.of(configuration),
        check_room=ground.room.check,
        verbosity=settings.verbosity,
        place_prompt=partial(operator_prompt, configuration, ground.directory.area_of),
        look=progress.look,
        availability=availability,
        estimate=read_prices(configuration.shared_dir).estimate,
    )
    engine = (
        EmbeddedTurnEngine(context, max_turns=settings.max_turns)
        if fleet is None
        else fleet.build_engine(context)
    )
    toolbox = Toolbox(
        list_tools(context, engine, current),
        base.registry,
        base.stores.sessions,
        base.stores.turns,
        base.metrics,
        running=engine.running,
    )
    endpoints = McpEndpoints(configuration.data_dir / "tools", toolbox, base.vault)

    # The way of a message to it.
    traces = Traces(
        ground.folders.root,
        configuration.data_dir / "gates",
        homes_root(configuration),
        uploads,
        saved=configuration.shared_dir / "kept",
        own=configuration.data_dir,
        base_homes=configuration.shared_dir / "homes",
        user_of=base.registry.user_of,
    )
    reach = Reach(shared, live, ground.workspaces, traces, ended=engine.ended)
    manager = SessionManager(
        shared,
        engine=engine,
        live=reach,
        outbox=outbox,
        feed=feed,
        directory=ground.directory,
    )
    roster = Roster(base.registry, base.registry.removed, availability.of, base.registry.title)
    dispatcher = Dispatcher(
        shared,
        manager,
        ledger,
        access=Access.of(settings),
        untagged=settings.untagged_replies,
        roster=roster,
    )
    intake = Intake(
        shared,
        dispatcher,
        proposals=Proposals(
            shared,
            ground.checkouts,
            ledger,
            outbox,
            feed,
            offer_seconds=settings.ask_hours * 3600,
            look=progress.look,
        ),
        renames=Renames(shared, ground.checkouts, ground.directory),
    )
    runtime = Runtime(
        clock=base.clock,
        vault=base.vault,
        database=base.database,
        stores=base.stores,
        signals=base.signals,
        metrics=base.metrics,
        agents=base.registry,
        admission=base.admission,
        files=base.files,
        outside=base.outside,
        adapters=present,
        hooks=shared.hooks,
        page=shared.page,
        availability=availability,
        roster=roster,
        feed=feed,
        outbox=outbox,
        ledger=ledger,
        live=live,
        engine=engine,
        reach=reach,
        manager=manager,
        dispatcher=dispatcher,
        intake=intake,
        listeners=Listeners(shared.adapters.values(), intake, base.clock),
        toolbox=toolbox,
        workspaces=ground.workspaces,
        checkouts=ground.checkouts,
        clones=ground.clones,
        search=ground.search,
        room=ground.room,
        picker=RepositoryPicker(
            ground.directory,
            base.stores.sessions,
            choose=manager.choose,
            list_repositories=current.repositories,
            reach=ground.checkouts.reach,
        ),
        progress=progress,
        forge=current,
        uploads=uploads,
        timeouts=timeouts,
        starts_agents=starts_agents,
        go_on=go_on,
        connect=connect,
        accept=accept,
    )
    return Machinery(runtime, launcher, endpoints, ground.warden)


def list_tools(
    context: TurnContext, engine: EmbeddedTurnEngine, forge: CurrentForge
) -> Iterator[Tool]:
    """List the tools with which an agent works for the people who asked it."""
    yield from PlaceTools(context, context.stores.tree).tools()
    yield from PeopleTools(engine).tools()
    yield from ProposalTools(context, forge).tools()


def _build_ground(base: Resources, shared: Base, forge: CurrentForge) -> Ground:
    configuration, now = base.configuration, base.stores.names.now
    settings, person = configuration.settings, configuration.surroundings
    directory = read_directory(configuration, find_area, find_repository)
    variables = variables_of(configuration, directory, now)
    disk = DiskSpace(configuration.data_dir, watermark=_in_bytes(settings.disk_free_mb))
    warden = Warden(disk)
    git = Git(person, configuration.bridge_id)
    mirrors = Mirrors(
        configuration.shared_dir / "mirrors",
        git,
        forge,
        person,
        disk=DiskSpace(configuration.shared_dir),
        shallow=fetched_as("shallow", configuration, directory, now),
        partial=fetched_as("partial", configuration, directory, now),
    )
    checkouts = GitCheckouts(
        configuration.data_dir / "gates",
        partial(isolate, base.registry, base.admission, warden),
        git,
        mirrors,
        tokens=forge,
        vault=base.vault,
        person=person,
        variables=variables,
        guard=forge.guard,
        unshared=unshared_files(),
    )
    folders = Folders(
        workspaces_root(configuration),
        configuration.shared_dir / "uploads",
        homes_root(configuration),
        base.registry,
    )
    root = folders.root
    clones = Clones(shared, root, checkouts, forge=forge, machine=identify(root))
    workspaces = RepoProvider(
        shared,
        folders,
        clones,
        checkouts,
        directory,
        forge=forge,
        variables=variables,
        name_of=base.registry.title,
    )
    return Ground(
        directory=directory,
        folders=folders,
        warden=warden,
        checkouts=checkouts,
        search=RepositorySearch(git, mirrors),
        clones=clones,
        workspaces=workspaces,
        room=DiskRoom(
            disk,
            base.clock,
            workspaces.unused.shed,
            warn_bytes=_in_bytes(settings.disk_warn_mb),
        ),
    )


def _in_bytes(mebibytes: int | None) -> int | None:
    return None if mebibytes is None else mebibytes * 2**20
