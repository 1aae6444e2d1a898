"""Reaches what members hold of sessions, wherever that is: turns, processes and folders.

Each member answers for itself; the one that asks begins with what it holds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import asdict

from app.children.kept_files import Traces
from app.core.base import Base
from app.core.repo_provider import RepoProvider
from app.core.turns.agents import LiveAgents
from app.errors import AgentError
from app.model.agents import Choices
from app.model.types import Session
from app.model.workspaces import Unshipped
from app.signals import Facts, Topic

logger = logging.getLogger(__name__)

CONFIGURE_SECONDS = 20.0
"""How long an agent may take to change its mode or its model."""
END_SECONDS = 30.0
"""How long a turn may take to stop, and a process to end."""
FILES_SECONDS = 120.0
"""How long it may take to look through folders, or to remove them."""


class Reach:
    """The turns, processes and folders of sessions, at all members."""

    def __init__(
        self,
        base: Base,
        live: LiveAgents,
        workspaces: RepoProvider,
        traces: Traces,
        *,
        ended: Callable[[int], Awaitable[None]],
    ) -> None:
        """Reach them; `ended` waits until no turn of a session runs here."""
        self._live = live
        self._sessions = base.stores.sessions
        self._workspaces = workspaces
        self._traces = traces
        self._signals = signals = base.signals
        self._ended = ended
        signals.answer(Topic.CONFIGURE, self._answer_configure)
        signals.answer(Topic.END, self._answer_end)
        signals.answer(Topic.SUBAGENT, self._answer_subagent)
        signals.answer(Topic.HOLDINGS, self._answer_holdings)
        signals.answer(Topic.HOME, self._answer_home)
        signals.answer(Topic.REMOVE, self._answer_remove)

    def choices(self, session: Session) -> Choices:
        """Return what a session's agent offers, or what the agent offered when it last started."""
        return self._live.choices(session)

    async def configure(
        self, session_id: int, *, mode: str | None = None, model: str | None = None
    ) -> None:
        """Set the mode or model of a running agent; others get them when they start.

        Raises:
            AgentError: it does not offer that.
        """
        await self._live.configure(session_id, mode=mode, model=model)
        try:
            answers = await self._signals.ask(
                Topic.CONFIGURE,
                seconds=CONFIGURE_SECONDS,
                session=session_id,
                mode=mode,
                model=model,
            )
        except TimeoutError:
            logger.warning("session %d: a member did not say if it was configured", session_id)
            return
        for answer in answers:
            if refused := answer.get("refused"):
                raise AgentError(refused)

    async def stop_subagent(self, session_id: int, key: str) -> bool:
        """Stop one sub-agent of a session; False if it cannot be stopped alone, or is over.

        Raises:
            AgentError: its agent is gone.
            TimeoutError: the member that runs it did not say.
        """
        if await self._live.stop_subagent(session_id, key):
            return True
        answers = await self._signals.ask(
            Topic.SUBAGENT, seconds=CONFIGURE_SECONDS, session=session_id, key=key
        )
        return any(answer.get("stopped") for answer in answers)

    async def end(self, session_id: int) -> None:
        """End a session's process, if it has one."""
        await self._live.end(session_id)
        try:
            await self._signals.ask(Topic.END, seconds=END_SECONDS, session=session_id, rest=False)
        except TimeoutError:
            logger.warning("session %d: a member did not say if its process ended", session_id)

    async def rest(self, session_id: int) -> None:
        """Wait until no turn of a stopped session runs, and end its process.

        Raises:
            TimeoutError: that takes too long.
        """
        async with asyncio.timeout(END_SECONDS):
            await self._ended(session_id)
        await self._live.end(session_id)
        await self._signals.ask(Topic.END, seconds=END_SECONDS, session=session_id, rest=True)

    async def measure(self, sessions: Sequence[int]) -> tuple[int, list[Unshipped]]:
        """Tell how many bytes sessions take, and which of their work is nowhere else.

        Raises:
            TimeoutError: a member did not say.
        """
        size, unshipped = await self._measure(sessions, shared=True)
        for answer in await self._signals.ask(
            Topic.HOLDINGS, seconds=FILES_SECONDS, sessions=sessions
        ):
            size += answer["bytes"]
            unshipped += [Unshipped(**each) for each in answer["unshipped"]]
        # A clone that all share is named by each.
        return size, list(dict.fromkeys(unshipped))

    async def remove(
        self, sessions: Sequence[int], conversations: Sequence[str], *, said: bool = False
    ) -> set[str]:
        """Remove the folders of sessions, or only what was `said`; returns copied uploads.

        Raises:
            OSError: something cannot be removed.
            TimeoutError: a member did not say that it did.
        """
        copied = await self.remove_here(sessions, conversations, said=said)
        for answer in await self._signals.ask(
            Topic.REMOVE,
            seconds=FILES_SECONDS,
            sessions=sessions,
            conversations=conversations,
            said=said,
        ):
            if problem := answer.get("problem"):
                raise OSError(problem)
            copied |= set(answer["copied"])
        return copied

    async def remove_uploads(self, folders: Collection[str]) -> None:
        """Remove uploads, which all members share.

        Raises:
            OSError: one cannot be removed.
        """
        await asyncio.to_thread(self._traces.remove_uploads, folders)

    async def copy_home(self, agent: str, origin: int, new: int) -> bool:
        """Copy a session's home for another one; False if there is none to copy.

        Raises:
            OSError: it cannot be copied.
        """
        which = {"agent": agent, "origin": origin, "new": new}
        if self._signals.find_server(origin) is not None:
            try:
                asked = await self._signals.ask(Topic.HOME, seconds=FILES_SECONDS, **which)
            except TimeoutError:
                logger.warning("session %d: its member did not say if it was copied", origin)
                asked = ()
            if any(answer.get("copied") for answer in asked):
                return True
        return await asyncio.to_thread(self._traces.copy_home, agent, origin, new)

    async def _measure(
        self, sessions: Sequence[int], *, shared: bool
    ) -> tuple[int, list[Unshipped]]:
        known = [self._sessions.session(each) for each in sessions]
        unshipped = [
            work
            for each in known
            if each is not None
            for work in await self._workspaces.unshipped(each)
        ]
        return await asyncio.to_thread(self._traces.measure, sessions, shared=shared), unshipped

    async def remove_here(
        self, sessions: Sequence[int], conversations: Sequence[str], *, said: bool
    ) -> set[str]:
        """Remove the folders of sessions on this machine, or only what was `said`.

        Raises:
            OSError: something cannot be removed.
        """
        copied = await asyncio.to_thread(self._traces.find_uploads, sessions)
        remove = self._traces.remove_said if said else self._traces.remove
        await asyncio.to_thread(remove, sessions, conversations)
        return copied

    async def _answer_configure(self, facts: Facts) -> Facts:
        try:
            await self._live.configure(facts["session"], mode=facts["mode"], model=facts["model"])
        except AgentError as error:
            return {"refused": str(error)}
        return {}

    async def _answer_subagent(self, facts: Facts) -> Facts:
        try:
            return {"stopped": await self._live.stop_subagent(facts["session"], facts["key"])}
        except AgentError:
            return {"stopped": False}

    async def _answer_end(self, facts: Facts) -> Facts:
        if facts["rest"]:
            await self._ended(facts["session"])
        await self._live.end(facts["session"])
        return {}

    async def _answer_home(self, facts: Facts) -> Facts:
        """Copy a home, if this member has it."""
        agent, origin, new = facts["agent"], facts["origin"], facts["new"]
        if self._signals.find_server(origin) is not None:
            return {}
        try:
            copied = await asyncio.to_thread(self._traces.copy_home, agent, origin, new)
        except OSError as error:
            logger.warning("could not copy the home of session %d: %s", origin, error)
            return {}
        return {"copied": copied}

    async def _answer_holdings(self, facts: Facts) -> Facts:
        # The one that asks counts what all share.
        size, unshipped = await self._measure(facts["sessions"], shared=False)
        return {"bytes": size, "unshipped": [asdict(each) for each in unshipped]}

    async def _answer_remove(self, facts: Facts) -> Facts:
        try:
            copied = await self.remove_here(
                facts["sessions"], facts["conversations"], said=facts["said"]
            )
        except OSError as error:
            return {"problem": str(error)}
        return {"copied": sorted(copied)}
