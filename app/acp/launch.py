"""Holds how each agent's process is started, and starts it.

It does not import the SDK, which takes 0.9 s: a bridge reads this before its port listens.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr

from app.acp.card import card_path
from app.agents.agent import Agent
from app.agents.checks import Admission, explain_command
from app.agents.isolation import Isolation
from app.agents.registry import Registry
from app.children.environment import PROXIES
from app.children.homes import SessionHomes, give
from app.children.layout import Confinement
from app.children.limits import ResourceLimits
from app.children.network.access import SessionHosts
from app.children.network.link import NetworkLink, NetworkPlan, PortHandover
from app.children.process import Child
from app.children.sandbox import Plain, Sandbox
from app.children.spawn import ChildCommand, spawn
from app.children.stop import spawn_linked
from app.config import AgentConfig, Configuration
from app.config.remote import AGENT_TOKEN, parse_remote
from app.errors import AgentNotStarted
from app.model.agents import ToolExposure
from app.model.types import Session
from app.model.workspaces import Workspace, attachment_folder, folder_name

if TYPE_CHECKING:
    from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

    from app.acp.offers import Value

    McpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

OUTGOING: Final = "AGENT_BRIDGE_OUTGOING"
"""Names the folder for files that people get, to the agent and the programs it runs."""


@dataclass(frozen=True, slots=True)
class ToolServers:
    """The server of the bridge's tools, in each form."""

    stdio: McpServerStdio
    http: HttpMcpServer | None = None
    """None: the agent does not reach the bridge's port."""


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """Where an agent on another machine is, and what it wants to see."""

    url: str
    token: SecretStr | None = None
    setting: str = AGENT_TOKEN
    """What its token is called in the settings."""
    folder: str = ""
    """Where it works there; empty leaves that to its relay."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables that name the bridge's own proxy."""
    installation: str = ""
    """Tells the sessions of this installation from those of others on the same relay."""

    @property
    def host(self) -> str:
        """The machine."""
        remote = parse_remote(self.url)
        return remote.host if remote is not None else ""


async def _allow_start() -> None:
    """Let it start."""


@dataclass(frozen=True, slots=True)
class AgentLaunch:
    """One agent as the launcher needs it."""

    name: str
    """Its id."""
    argv: tuple[str, ...]
    home: Path
    """The HOME of its processes; with `homes`, the template for the homes of sessions."""
    environment: Callable[[str], Mapping[str, str]]
    """Makes the whole environment of its process, which must contain the given marker."""
    sandbox: Sandbox = field(default_factory=Plain)
    confinement: Confinement | None = None
    """What it may see and write; home and workspace are filled in. None: it is not confined."""
    display_name: str = ""
    """What people call it."""
    limits: ResourceLimits | None = None
    """What one session may use; None: it is not watched."""
    homes: SessionHomes | None = None
    """Makes a home for each session; None: all sessions share one."""
    home_readonly: tuple[Path, ...] = ()
    """Paths in its home that it must not change."""
    mode: str | None = None
    model: str | None = None
    options: Mapping[str, Value] = field(default_factory=dict)
    auth: str | None = None
    """The id of the login method, for agents that need one over ACP."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Sent as `_meta` with new, load and resume."""
    mcp_servers: tuple[McpServer, ...] = ()
    tool_exposure: ToolExposure = "tools"
    """How it gets the bridge's tools."""
    tools: ToolServers | None = None
    """The server of the bridge's tools, for one process."""
    install: str = "Check its command in AGENTS_JSON."
    """What to do when its command is missing."""
    card: Path | None = None
    """The path of its card, which lists what it offers but cannot do."""
    trailing_slash: bool = False
    """Whether the path of its folder is sent with a slash at the end."""
    obeys: tuple[str, ...] = ()
    """Files that it would obey without asking: a workspace that holds one is refused."""
    admit: Callable[[], Awaitable[None]] = _allow_start
    """Raises AgentNotStarted if it may not start."""
    network: NetworkPlan | None = None
    """Its own network, if it has one."""
    remote: RemoteAddress | None = None
    """Where it runs, if that is another machine; then nothing is started here."""
    settle_seconds_before_load: float = 0.0
    """How long a conversation must have been idle before it is restored."""

    @property
    def uses_port(self) -> bool:
        """Whether it may call the bridge's tools at its port; from a sandbox it uses a socket."""
        is_apart = self.confinement is not None and not isinstance(self.sandbox, Plain)
        return not is_apart and self.tool_exposure != "skills"


def launch_of(agent: Agent, configuration: Configuration, admission: Admission) -> AgentLaunch:
    """Return an agent's launch settings: from its entry, else from its known program.

    `admission` decides whether it may start.
    """
    config, program, isolation = agent.config, agent.program, agent.isolation
    assert isolation is not None, "agents that are started have a isolation"
    return AgentLaunch(
        name=agent.id,
        argv=config.argv,
        display_name=agent.display_name,
        home=isolation.home,
        homes=isolation.homes,
        environment=isolation.environment,
        sandbox=isolation.sandbox,
        confinement=isolation.confinement,
        limits=None if config.url else isolation.limits,
        network=isolation.network,
        # An agent's initial mode is never trusted to ask.
        mode=agent.mode,
        model=config.model,
        options=config.options,
        auth=config.auth,
        meta=program.session_meta if program else {},
        trailing_slash=program.trailing_slash if program else False,
        obeys=program.obeys if program else (),
        install=(
            f"Install it: {program.install}" if program else explain_command(configuration, config)
        ),
        admit=partial(admission.admit, agent.id),
        tool_exposure=agent.tool_exposure,
        card=card_path(configuration.shared_dir, agent.id),
        remote=_remote(config, configuration),
        settle_seconds_before_load=program.quirks.load_after_seconds if program else 0,
    )


def _remote(config: AgentConfig, configuration: Configuration) -> RemoteAddress | None:
    if not config.url:
        return None
    return RemoteAddress(
        config.url,
        configuration.model_keys(config.id).get(AGENT_TOKEN),
        setting=config.setting(AGENT_TOKEN),
        folder=config.remote_folder,
        environment={
            name: value for name, value in configuration.surroundings.items() if name in PROXIES
        },
        installation=configuration.installation_id,
    )


def launches(
    configuration: Configuration, isolations: Mapping[str, Isolation]
) -> dict[str, AgentLaunch]:
    """Return the launch settings of agents that run outside a bridge."""
    registry = Registry(configuration, isolations=isolations)
    admission = Admission(registry)
    return {agent: launch_of(registry[agent], configuration, admission) for agent in isolations}


class CurrentLaunches(Mapping[str, AgentLaunch]):
    """The launch settings of each agent, as they are whenever one looks."""

    def __init__(self, registry: Registry, admission: Admission) -> None:
        self._registry = registry
        self._admission = admission

    def __getitem__(self, agent: str) -> AgentLaunch:
        registry = self._registry
        return launch_of(registry[agent], registry.configuration, self._admission)

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry)

    def __len__(self) -> int:
        return len(self._registry)


async def start(
    launch: AgentLaunch,
    workspace: Workspace,
    marker: str,
    hosts: SessionHosts | None = None,
) -> Child:
    """Start an agent's process in a workspace.

    `hosts` are the hosts that its session tried to connect to; new ones are added.

    Raises:
        AgentNotStarted: its command is missing or cannot be run, or its workspace is not safe.
    """
    await launch.admit()
    own = {**launch.environment(marker), "HOME": str(launch.home)}
    environment = {**workspace.variables, **own}
    if workspace.outgoing is not None:
        environment[OUTGOING] = str(workspace.outgoing)
    prepared = partial(prepare, launch, workspace, environment.get("PATH", ""))
    if launch.network is None:
        command = await asyncio.to_thread(prepared)
        return await spawn(command, name=launch.name, env=environment, cwd=workspace.folder)
    return await spawn_linked(
        prepared,
        partial(NetworkLink, launch.network, launch.name, hosts),
        name=launch.name,
        env=environment,
        cwd=workspace.folder,
    )


def make_workspace(launch: AgentLaunch, folder: Path) -> Workspace:
    """Make a workspace outside of any conversation, with a folder for attachments next to it."""
    attachments = attachment_folder(folder)
    for made in (folder, attachments):
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        give(made, launch.confinement.user if launch.confinement else None)
    return Workspace(folder, visible=(attachments,))


async def open_home(launch: AgentLaunch, session: Session) -> AgentLaunch:
    """Use the session's own home, if each session has one.

    Raises:
        AgentNotStarted: the home cannot be created.
    """
    if launch.homes is None:
        return launch
    name, conversation = folder_name(session), session.acp_session_id
    try:
        home = await asyncio.to_thread(launch.homes.open, name, conversation)
    except OSError as error:
        raise AgentNotStarted(
            launch.name,
            f"a home for this session cannot be created ({error})",
            "Check the disk and the permissions of DATA_DIR.",
        ) from error
    return replace(launch, home=home.path, home_readonly=home.readonly)


def prepare(
    launch: AgentLaunch, workspace: Workspace, path: str, handover: PortHandover | None = None
) -> ChildCommand:
    """Check the command and the workspace, and build the sandboxed command line.

    Raises:
        AgentNotStarted: the command is missing, or the workspace is not safe.
    """
    command = launch.argv[0]
    if shutil.which(command, path=path) is None:
        raise AgentNotStarted(launch.name, f"the command {command!r} was not found", launch.install)
    for name in launch.obeys:
        if os.path.lexists(workspace.folder / name):
            raise AgentNotStarted(
                launch.name,
                f"the checkout contains {name}, which it would obey without asking",
                "Use another agent, or remove that file from the checkout.",
            )
    launch.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if launch.confinement is None:
        return ChildCommand(launch.argv)
    writable = () if workspace.outgoing is None else (workspace.outgoing,)
    user = launch.confinement.user
    if user is not None:
        # A folder in place keeps its owner, and the agent works there as that user.
        user = workspace.folder.stat().st_uid
        for own in (launch.home, *writable):
            give(own, user, always=user != launch.confinement.user)
    confinement = replace(
        launch.confinement,
        user=user or None,
        home=launch.home,
        workspace=workspace.folder,
        visible=(*launch.confinement.visible, *workspace.visible),
        writable=(*launch.confinement.writable, *writable),
        readonly=(*launch.confinement.readonly, *workspace.readonly, *launch.home_readonly),
        handover=handover,
    )
    return launch.sandbox.wrap(launch.argv, confinement)
