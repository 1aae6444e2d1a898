"""The end of a child, in bounded steps: close its input, TERM its group, KILL it, sweep the rest.

A stop that has begun is finished, whatever happens to its caller; only then is the caller told
that it was cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.children.census import signal_exactly, take_census
from app.children.leftovers import kill_leftovers
from app.children.process import Child, Step, StopReport, spawn
from app.core.tasks import Tasks

_LAST_SECONDS: Final = 0.2
"""When the event loop itself is closing nothing can wait, and a killed process needs no longer."""


@dataclass(frozen=True, slots=True)
class StopSteps:
    """How many seconds each step may take."""

    close: float = 2.0
    """Agents that heed the end of their input are gone within a second."""
    terminate: float = 2.0
    """Enough to write a history to disk."""
    kill: float = 2.0
    """Death by signal takes milliseconds; this bounds a process that hangs in the kernel."""


_USUAL: Final = StopSteps()


async def stop(child: Child, *, steps: StopSteps = _USUAL) -> StopReport:
    """End a child and all that came from it; a second call waits for the first.

    Takes at most the sum of the steps, and `kill` once more for the sweep.
    """
    if child.ending is None or child.ending.cancelled():
        child.ending = Tasks(child.name).start(_end(child, steps), name="stop")
    ending = child.ending
    cancelled: asyncio.CancelledError | None = None
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError as error:
            cancelled = error
    if ending.cancelled():
        _kill_now(child)
    if cancelled is not None:
        raise cancelled
    return ending.result()


@contextlib.asynccontextmanager
async def running(
    argv: Sequence[str],
    *,
    name: str,
    env: Mapping[str, str],
    cwd: Path,
    steps: StopSteps = _USUAL,
) -> AsyncIterator[Child]:
    """Start a child and stop it at the end of the block.

    Raises:
        AgentNotStarted: as `spawn` does.
    """
    child = await spawn(argv, name=name, env=env, cwd=cwd)
    try:
        yield child
    finally:
        await stop(child, steps=steps)


async def _end(child: Child, steps: StopSteps) -> StopReport:
    child.discard_output()
    try:
        step = await _persuade(child, steps)
        _kill_group(child)
        sweep = await asyncio.to_thread(kill_leftovers, [child.identity], seconds=steps.kill)
        if step != "stuck":
            await child.wait()
    finally:
        child.close()
    return StopReport(step, child.status, swept=sweep.killed, remaining=sweep.remaining)


def _kill_now(child: Child) -> None:
    """Do without waiting what a closing event loop leaves no time for."""
    _kill_group(child)
    kill_leftovers([child.identity], seconds=_LAST_SECONDS)
    child.close()


async def _persuade(child: Child, steps: StopSteps) -> Step:
    if child.status is not None:
        return "exited"
    child.close_input()
    if await _ends_within(child, steps.close):
        return "closed"
    await _terminate(child)
    if await _ends_within(child, steps.terminate):
        return "terminated"
    _kill_group(child)
    return "killed" if await _ends_within(child, steps.kill) else "stuck"


async def _ends_within(child: Child, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await child.exited()
    except TimeoutError:
        return False
    return True


async def _terminate(child: Child) -> None:
    if not child.guarded:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.group, signal.SIGTERM)
        return
    # bubblewrap dies of TERM and the kernel then kills what is inside: spare it, ask the agent.
    for entry in (await asyncio.to_thread(take_census)).values():
        if entry.group == child.group and entry.pid != child.pid:
            signal_exactly(entry, signal.SIGTERM)


def _kill_group(child: Child) -> None:
    # Once the leader is collected its number may be another's, and the sweep does the rest;
    # where there is no /proc to sweep, the group is all that is known.
    if child.status is None or not sys.platform.startswith("linux"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.group, signal.SIGKILL)
