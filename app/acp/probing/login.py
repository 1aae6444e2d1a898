"""Lists the login methods an agent offers, and runs those that go over ACP.

Nothing that is typed or shown here is kept: the agent stores its credentials itself, in its own
HOME.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from acp import PROTOCOL_VERSION

from app.acp.handshake import CAPABILITIES, CLIENT, Handshake
from app.acp.json_values import Json, mapping, objects, string
from app.acp.peer import AgentPeer
from app.acp.probing.visit import Visits
from app.model.ports import AgentListener
from app.tasks import Tasks

LOGIN_SECONDS = 15 * 60.0  # a person opens a browser, looks for a password, types a code
LOOK_SECONDS = 0.2  # at once for a person, nothing for a machine

# Makes agents offer a login that runs in a terminal.
_ABLE = {**CAPABILITIES, "auth": {"terminal": True}, "_meta": {"terminal-auth": True}}


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
                    environment=_variables(offered),
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


def _variables(offered: Json) -> dict[str, str]:
    given = mapping(offered.get("env"))
    return {name: value for name, value in given.items() if isinstance(value, str)}


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
