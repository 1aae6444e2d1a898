"""Git in an agent's own shoes: whatever touches a clone runs in the isolation of its agent.

A clone belongs to its agent, with all that its configuration, hooks and filters may do. So the
bridge never runs git there itself; what comes back from inside is data, short and checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from app.children.census import new_marker
from app.children.layout import Confinement
from app.children.process import spawn
from app.children.sandbox import Sandbox
from app.children.stop import StopSteps, stop
from app.errors import AgentNotStarted, GitFailed
from app.repos.git import as_environment, ended

CLONE_SECONDS: Final = 600.0
"""What git may take in a clone: the checkout of a very large repository."""
OUTPUT_BYTES: Final = 8 * 1024 * 1024
"""What is read of an answer from inside: more than the status of fifty thousand files."""
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
    # All cores write files, where there are many.
    "checkout.workers": "0",
    "checkout.thresholdForParallelism": "1000",
}


@dataclass(frozen=True, slots=True)
class Shoes:
    """How one agent is confined, without its keys."""

    sandbox: Sandbox
    confinement: Confinement
    environment: Callable[[str], Mapping[str, str]]
    """Makes the environment of a process, given the marker that it must hold."""


@dataclass(frozen=True, slots=True)
class Inside:
    """One workspace, entered in its agent's shoes."""

    shoes: Shoes
    workspace: Path
    visible: tuple[Path, ...]
    """What else can be read from there: the mirror, the door of the gate."""
    bridge: str
    settings: Mapping[str, str] = field(default_factory=dict)

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
    ) -> tuple[int, bytes, str]:
        """Run a command in the workspace: its status, what it wrote, its last complaint.

        It gets further variables, never in the place of those that it has anyway.

        Raises:
            GitFailed: it could not run, wrote too much or took too long.
        """
        name = name or argv[0]
        shoes = self.shoes
        environment = {
            **(more or {}),
            **shoes.environment(new_marker(self.bridge)),
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
            **as_environment(_QUIET | dict(self.settings)),
        }
        confinement = replace(
            shoes.confinement,
            workspace=self.workspace,
            visible=(*shoes.confinement.visible, *self.visible),
        )
        wrapped = await asyncio.to_thread(shoes.sandbox.wrap, argv, confinement)
        try:
            child = await spawn(wrapped, name=name, env=environment, cwd=self.workspace)
        except AgentNotStarted as error:
            raise GitFailed(name, str(error)) from error
        try:
            async with asyncio.timeout(seconds):
                child.close_input()
                written = bytearray()
                while data := await child.stdout.read(_CHUNK_BYTES):
                    written += data
                    if len(written) > limit:
                        raise GitFailed(name, f"it wrote more than {limit} bytes")
                status = await child.wait()
                return status, bytes(written), child.last_words()
        except TimeoutError:
            raise GitFailed(name, f"no end within {seconds:g} s") from None
        finally:
            # Nobody outlives the first process of a sandbox; without one they may.
            await (ended(child) if child.guarded else stop(child, steps=_STEPS))
