"""Runs git and other commands on a clone in the isolation of its agent.

A clone belongs to its agent, with everything that its configuration, hooks and filters may do. So
the bridge never runs git there itself; the output from inside is untrusted, limited and checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from app.agents.agent import Agent
from app.agents.checks import Admission
from app.children.homes import Home, give
from app.children.layout import Confinement
from app.children.limits import ResourceLimits
from app.children.network.access import Witness
from app.children.network.link import NetworkLink, NetworkPlan
from app.children.proc_table import new_marker
from app.children.process import Child
from app.children.sandbox import Sandbox
from app.children.spawn import spawn
from app.children.stop import StopSteps, spawn_linked, stop
from app.children.warden import Ward, Warden
from app.errors import AgentError, AgentNotStarted, GitFailed
from app.repos.git import as_environment, clean_up

CLONE_SECONDS: Final = 600.0
"""How long git may take in a clone: the checkout of a very large repository."""
OUTPUT_BYTES: Final = 8 * 1024 * 1024
"""The longest output that is read from inside: more than the status of fifty thousand files."""
_CHUNK_BYTES: Final = 65536
_STEPS: Final = StopSteps(close=0.5, terminate=1.0, kill=2.0)

# For the agent's own sake, not for the bridge's: a hook that hangs must not hold up its work.
_QUIET: Final = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "commit.gpgSign": "false",
    "push.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
    "protocol.allow": "never",
    "protocol.file.allow": "always",
    "credential.helper": "",
    # A session's home is its agent's: what it ignores there, people must still see.
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "status.showUntrackedFiles": "normal",
    # All cores write files, where there are many.
    "checkout.workers": "0",
    "checkout.thresholdForParallelism": "1000",
}
_ALONE: Final = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_NO_REPLACE_OBJECTS": "1"}
"""Keeps git from obeying what the agent has written into its home, or has put in place of objects.
"""

_NOT_BUILT: Final = "bwrap: Can't "
"""A daemon's socket that the sandbox hides can go away while it is built; the next one omits it."""


@dataclass(frozen=True, slots=True)
class SandboxedGit:
    """How one agent is confined, without its keys."""

    sandbox: Sandbox
    confinement: Confinement
    environment: Callable[[str], Mapping[str, str]]
    """Makes the environment of a process, given the marker that it must hold."""
    home: Callable[[str], Home]
    """Gives the home of a session, by its name."""
    admit: Callable[[], Awaitable[None]] | None = None
    """Raises AgentNotStarted if nothing may start in this isolation."""
    network: NetworkPlan | None = None
    """What its agent can connect to, if it has its own network."""
    limits: ResourceLimits | None = None
    """What its agent may use."""
    warden: Warden | None = None
    """Sees to it that these limits are kept."""

    def as_owner_of(self, folder: Path) -> SandboxedGit:
        """Return the same isolation for the owner of a folder, as the agent works there."""
        if self.confinement.user is None:
            return self
        user = folder.stat().st_uid or None
        return replace(self, confinement=replace(self.confinement, user=user))


def isolate(
    agents: Mapping[str, Agent], admission: Admission, warden: Warden, agent: str
) -> SandboxedGit | None:
    """Return an agent's isolation for git, without its keys; None if there is no such agent."""
    isolation = agents[agent].isolation if agent in agents else None
    if isolation is None:
        return None
    return SandboxedGit(
        isolation.sandbox,
        isolation.confinement,
        replace(isolation, own={}).environment,
        isolation.home_of,
        partial(admission.admit, agent),
        isolation.network,
        isolation.limits,
        warden,
    )


@dataclass(frozen=True, slots=True)
class Inside:
    """One workspace, entered in its agent's isolation."""

    isolation: SandboxedGit
    workspace: Path
    home: str
    """The name of its session's home."""
    visible: tuple[Path, ...]
    """What else can be read inside: the mirror, the agent remote."""
    bridge: str
    settings: Mapping[str, str] = field(default_factory=dict)
    reads: Path | None = None
    """A person's folder in which commands start, and which they only read."""

    async def git(
        self,
        *arguments: str,
        seconds: float = CLONE_SECONDS,
        limit: int = OUTPUT_BYTES,
        more: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run git in the workspace and return what it wrote.

        Raises:
            GitFailed: it ended with an error, wrote too much or took too long.
        """
        status, written, words = await self.run(
            "git", *arguments, seconds=seconds, limit=limit, name=f"git {arguments[0]}", more=more
        )
        if status != 0:
            raise GitFailed(f"git {arguments[0]}", words)
        return written

    async def run(
        self,
        *argv: str,
        seconds: float,
        limit: int,
        name: str = "",
        more: Mapping[str, str] | None = None,
        witness: Witness | None = None,
    ) -> tuple[int, bytes, str]:
        """Run a command in the workspace; returns its status, output and last error output.

        `more` adds variables and never replaces those that it has anyway. With a witness, which is
        told what was refused, it works for the agent: with its network, and with the settings for
        git in its home.

        Raises:
            GitFailed: it could not run, wrote too much or took too long.
        """
        once = partial(self._run_once, argv, seconds, limit, name or argv[0], more or {}, witness)
        status, written, words = await once()
        if status != 0 and words.startswith(_NOT_BUILT) and not written:
            status, written, words = await once()
        return status, written, words

    async def _run_once(
        self,
        argv: Sequence[str],
        seconds: float,
        limit: int,
        name: str,
        more: Mapping[str, str],
        witness: Witness | None,
    ) -> tuple[int, bytes, str]:
        isolation = self.isolation
        home = await asyncio.to_thread(isolation.home, self.home)
        environment = {
            **more,
            **isolation.environment(new_marker(self.bridge)),
            "HOME": str(home.path),
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
            **({} if witness else _ALONE),
            **as_environment(_QUIET | dict(self.settings)),
        }
        confinement = replace(
            isolation.confinement,
            home=home.path,
            workspace=self.workspace,
            cwd=self.reads,
            readonly=(*isolation.confinement.readonly, *home.readonly),
            visible=(*isolation.confinement.visible, *self.visible),
        )
        if self.reads is None:
            await asyncio.to_thread(give, self.workspace, confinement.user)
        try:
            if isolation.admit is not None:
                await isolation.admit()
            child = await self._spawn(argv, confinement, name, environment, witness)
        except AgentNotStarted as error:
            raise GitFailed(name, str(error)) from error
        try:
            async with self._bound(child, name, seconds, home.path):
                child.close_input()
                written = bytearray()
                while data := await child.stdout.read(_CHUNK_BYTES):
                    if len(written) + len(data) > limit:
                        raise GitFailed(name, f"wrote more than {limit} bytes")
                    written += data
                return await child.wait(), bytes(written), child.last_words()
        finally:
            # No process outlives the first one of a sandbox; without a sandbox it may.
            alone = child.guarded and child.link is None
            await (clean_up(child) if alone else stop(child, steps=_STEPS))

    @asynccontextmanager
    async def _bound(
        self, child: Child, name: str, seconds: float, home: Path
    ) -> AsyncIterator[None]:
        """Limit the time of a command, and what it uses to what its agent may."""
        isolation, stopped = self.isolation, list[AgentError]()
        try:
            async with asyncio.timeout(seconds) as time:

                def halt(reason: AgentError) -> None:
                    stopped.append(reason)
                    time.reschedule(0)

                if isolation.warden is None or isolation.limits is None:
                    yield
                else:
                    folders = (self.workspace, home)
                    ward = Ward(name, child.pid, isolation.limits, folders, halt)
                    with isolation.warden.watching(ward):
                        yield
        except TimeoutError:
            words = str(stopped[0]) if stopped else f"timed out after {seconds:g} s"
            raise GitFailed(name, words) from None

    async def _spawn(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        name: str,
        environment: Mapping[str, str],
        witness: Witness | None,
    ) -> Child:
        wrap, cwd = self.isolation.sandbox.wrap, self.reads or self.workspace
        if self.isolation.network is None or witness is None:
            command = await asyncio.to_thread(wrap, argv, confinement)
            return await spawn(command, name=name, env=environment, cwd=cwd)
        network = self.isolation.network

        def connect() -> NetworkLink:
            link = NetworkLink(network, name)
            link.tell(witness)
            return link

        return await spawn_linked(
            lambda handover: wrap(argv, replace(confinement, handover=handover)),
            connect,
            name=name,
            env=environment,
            cwd=cwd,
        )
