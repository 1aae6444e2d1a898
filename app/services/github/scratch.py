"""Pushes to a scratch branch with git, as the bridge does, for `doctor --live`.

The branch has no history, so nothing is fetched; the token is in the environment of git alone.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from app.children.command import Command
from app.children.environment import MARKER
from app.children.proc_table import new_marker
from app.children.process import Child, spawn
from app.children.stop import StopSteps, stop
from app.errors import AgentNotStarted, GitFailed

GIT_SECONDS: Final = 60.0
"""Time limit of one command: a push of two files."""
CHUNK_BYTES: Final = 65536
STEPS: Final = StopSteps(close=0.5, terminate=1.0, kill=2.0)
"""Git has nothing to save when it ends."""
PASSED_ON: Final = (
    *("PATH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("GIT_SSL_CAINFO", "SSL_CERT_DIR"),
)
WHO: Final = "Agent Bridge"
EMAIL: Final = "agent-bridge@localhost"


class Scratch:
    """One branch of a repository, made in a folder of its own."""

    def __init__(
        self, folder: Path, url: str, branch: str, surroundings: Mapping[str, str], *, bridge: str
    ) -> None:
        """Work in an empty folder; `bridge` names the bridge in the markers of processes."""
        self._folder = folder
        self._url = url
        self._bridge = bridge
        self._surroundings = surroundings
        self.branch = branch

    async def commit(self, path: str, text: str) -> str:
        """Commit a file; returns the commit.

        Raises:
            GitFailed: git cannot do it.
        """
        if not (self._folder / ".git").exists():
            await self._run("init", "--quiet", f"--initial-branch={self.branch}")
        await asyncio.to_thread(self._write, path, text)
        await self._run("add", "--", path)
        await self._run("commit", "--quiet", "--message", f"Try {path}")
        return (await self._run("rev-parse", "HEAD")).strip()

    async def push(self, token: str) -> None:
        """Push the branch.

        Raises:
            GitFailed: GitHub refuses it, or git cannot do it.
        """
        await self._run("push", "--quiet", self._url, f"HEAD:refs/heads/{self.branch}", token=token)

    async def delete(self, token: str) -> None:
        """Delete the branch on GitHub.

        Raises:
            GitFailed: GitHub refuses it, or git cannot do it.
        """
        reference = f"refs/heads/{self.branch}"
        await self._run("push", "--quiet", "--delete", self._url, reference, token=token)

    def _write(self, path: str, text: str) -> None:
        file = self._folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    async def _run(self, *arguments: str, token: str = "") -> str:
        name = f"git {arguments[0]}"
        try:
            async with asyncio.timeout(GIT_SECONDS):
                return await self._answer(name, Command(("git", *arguments)), token)
        except AgentNotStarted as error:
            raise GitFailed(name, str(error)) from error
        except TimeoutError:
            raise GitFailed(name, f"timed out after {GIT_SECONDS:g} s") from None

    async def _answer(self, name: str, command: Command, token: str) -> str:
        child = await spawn(command, name="git", env=self._environment(token), cwd=self._folder)
        try:
            child.close_input()
            written = bytearray()
            while data := await child.stdout.read(CHUNK_BYTES):
                written += data
            if await child.wait() != 0:
                raise GitFailed(name, child.last_words())
            return written.decode(errors="replace")
        finally:
            await _clean_up(child)

    def _environment(self, token: str) -> dict[str, str]:
        given = self._surroundings
        return {
            **{each: given[each] for each in PASSED_ON if each in given},
            "LC_ALL": "C",
            "HOME": str(self._folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            **{f"GIT_{role}_NAME": WHO for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": EMAIL for role in ("AUTHOR", "COMMITTER")},
            **self._credential(token),
            MARKER: new_marker(self._bridge),
        }

    def _credential(self, token: str) -> dict[str, str]:
        if not token:
            return {}
        parts = urlsplit(self._url)
        basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        return {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
        }


async def _clean_up(child: Child) -> None:
    if child.status is None:
        await stop(child, steps=STEPS)
    else:
        child.close()
