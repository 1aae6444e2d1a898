"""Runs an agent outside of any conversation: greets it, lists its login methods and logs it in.

No visit leaves a process behind, however it ends. A greeting opens a conversation and says nothing
in it, so that no model is called. Nothing that is typed or shown at a login is kept: the agent
stores its credentials itself, in its own HOME.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from acp import PROTOCOL_VERSION

from app.acp.handshake import CAPABILITIES, CLIENT, Handshake
from app.acp.json_values import Json, mapping, objects, string
from app.acp.launch import AgentLaunch, make_workspace
from app.acp.peer import AgentPeer, AgentTimeouts
from app.acp.reach import reach
from app.children.proc_table import new_marker
from app.descent import discard
from app.errors import AgentLoginNeeded
from app.model.agents import Choices
from app.model.ports import AgentListener, Counters
from app.model.updates import AskRequest, BridgeUpdate
from app.model.workspaces import attachment_folder
from app.tasks import Tasks

LOGIN_SECONDS = 15 * 60.0  # a person opens a browser, looks for a password, types a code
LOOK_SECONDS = 0.2  # at once for a person, nothing for a machine

# Makes agents offer a login that runs in a terminal.
_ABLE = {**CAPABILITIES, "auth": {"terminal": True}, "_meta": {"terminal-auth": True}}


@dataclass(frozen=True, slots=True)
class Visits:
    """Runs visits to one agent."""

    launch: AgentLaunch
    workspace: Path
    counters: Counters
    bridge: str
    """Names the bridge in the markers of processes, so that it finds what a crash left behind."""
    timeouts: AgentTimeouts = AgentTimeouts()  # noqa: RUF009 - frozen

    @asynccontextmanager
    async def begin(self, listener: AgentListener) -> AsyncIterator[AgentPeer]:
        """Start the agent, and end it afterwards.

        Raises:
            AgentNotStarted: its command is missing or cannot be run.
        """
        tasks = Tasks("visit")
        workspace = await asyncio.to_thread(make_workspace, self.launch, self.workspace)
        child = await reach(self.launch, workspace, new_marker(self.bridge))
        peer = AgentPeer(
            self.launch.name,
            child,
            listener,
            counters=self.counters,
            tasks=tasks,
            forget=_forget_nothing,
        )
        try:
            yield peer
        finally:
            await peer.close()
            await tasks.close()


async def _forget_nothing() -> None:
    """Do nothing: a visit is not recorded."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """How an agent answered."""

    title: str
    version: str
    """As the agent reported them; empty if it did not."""
    logged_in: bool | None
    """Whether it opens a conversation; None if that was not tried."""
    choices: Choices = Choices()  # noqa: RUF009 - frozen
    """What it offers in a conversation."""


class Deaf:
    """Listens to an agent that is asked nothing."""

    async def on_update(self, update: BridgeUpdate) -> None:
        """Ignore what it says."""

    async def on_ask(self, _request: AskRequest) -> str | None:
        """Refuse: no one is asked."""
        return None


async def greet(visits: Visits, *, authenticate: bool = False) -> Greeting:
    """Start an agent, introduce ourselves and open a conversation.

    An agent with a login method over ACP is logged in by it only with `authenticate`, since it may
    open a browser; without that, no conversation is opened with such an agent.

    Raises:
        AgentError: it did not answer, or not as it should.
    """
    try:
        async with visits.begin(Deaf()) as peer:
            handshake = Handshake(peer, visits.launch, visits.workspace, visits.timeouts)
            info = (await handshake.introduce()).agent_info
            logged_in, choices = None, None
            if authenticate or visits.launch.auth is None:
                choices = await _open_conversation(handshake)
                logged_in = choices is not None
    finally:
        await asyncio.to_thread(_clear, visits)
    title, version = (info.title or info.name, info.version) if info is not None else ("", "")
    return Greeting(title, version, logged_in, choices or Choices())


async def _open_conversation(handshake: Handshake) -> Choices | None:
    """Open a conversation; returns what is offered there, None if a login is needed first."""
    try:
        await handshake.authenticate()
        return (await handshake.new()).offers.choices
    except AgentLoginNeeded:
        return None


def _clear(visits: Visits) -> None:
    for folder in (visits.workspace, attachment_folder(visits.workspace)):
        discard(folder)


@dataclass(frozen=True, slots=True)
class Method:
    """One way to log in."""

    id: str
    name: str
    description: str = ""
    command: tuple[str, ...] | None = None
    """What to run in a terminal; None: the agent does it when it is asked over ACP."""
    environment: Json = field(default_factory=dict)
    """Variables that this command needs."""


async def methods(visits: Visits, listener: AgentListener) -> list[Method]:
    """Ask an agent how people can log in.

    Raises:
        AgentError: it could not be asked.
    """
    async with visits.begin(listener) as peer:
        words = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": _ABLE,
            "clientInfo": CLIENT,
        }
        async with peer.step("initialize", visits.timeouts.initialize):
            answer = await peer.transport.request("initialize", words)
    return methods_of(answer, visits.launch.argv)


def methods_of(answer: object, argv: Sequence[str]) -> list[Method]:
    """Read the ways to log in out of an agent's answer to `initialize`."""
    found = []
    for offered in objects(mapping(answer).get("authMethods")):
        method_id = string(offered.get("id"))
        if method_id:
            found.append(
                Method(
                    id=method_id,
                    name=string(offered.get("name")) or method_id,
                    description=string(offered.get("description")) or "",
                    command=_command(offered, argv),
                    environment={
                        name: value
                        for name, value in mapping(offered.get("env")).items()
                        if isinstance(value, str)
                    },
                )
            )
    return found


async def log_in(
    visits: Visits, listener: AgentListener, method: Method, told: Callable[[str], None]
) -> None:
    """Let the agent log in; it asks the listener for what it needs from a person.

    Some write the address to open to stderr: each line of it goes to `told`.

    Raises:
        AgentError: the login failed.
    """
    tasks = Tasks("login")
    async with visits.begin(listener) as peer:
        await Handshake(peer, visits.launch, visits.workspace, visits.timeouts).introduce()
        peer.audience.listen(listener)
        tasks.start(_relay_stderr(peer, told), name="stderr")
        try:
            async with peer.step("authenticate", LOGIN_SECONDS):
                await peer.connection.authenticate(method_id=method.id)
        finally:
            await tasks.close()


async def _relay_stderr(peer: AgentPeer, told: Callable[[str], None]) -> None:
    """Pass on what an agent wrote to stderr whenever it pauses."""
    told_so_far = before = peer.last_words()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = peer.last_words()
        if now == before != told_so_far:
            told(now.removeprefix(told_so_far).strip())
            told_so_far = now
        before = now


def _command(offered: Json, argv: Sequence[str]) -> tuple[str, ...] | None:
    """Find the command of a login in a terminal: a whole one, or arguments for the agent."""
    whole = mapping(mapping(offered.get("_meta")).get("terminal-auth"))
    program = string(whole.get("command"))
    if program:
        return (program, *_texts(whole.get("args")))
    if offered.get("type") == "terminal":
        return (*argv, *_texts(offered.get("args")))
    return None


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
