"""Stops a child in bounded steps: close its input, TERM its group, KILL it, sweep the rest.

A stop that has begun is finished even if its caller is cancelled; the cancellation is raised after
that. What the commands of a child left running is ended apart, while the child goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.children.network.link import HandoverFailed, NetworkLink, PortHandover
from app.children.proc_table import (
    ProcessEntry,
    ProcTable,
    Sweep,
    kill_leftovers,
    read_proc_table,
    read_tree,
    signal_exactly,
)
from app.children.process import Child, Step, StopReport
from app.children.spawn import ChildCommand, spawn
from app.errors import AgentNotStarted
from app.tasks import Tasks

_LAST_SECONDS: Final = 0.2
"""When the event loop is closing nothing can wait, and a killed process needs no longer."""
_BACKGROUND_SECONDS: Final = 2.0
"""A killed process is gone in milliseconds; what takes longer breeds faster than it is killed."""
_PAUSE_SECONDS: Final = 0.002
"""Between two looks: about what the kernel needs to end a process."""
_LOOKS: Final = 2
"""So many looks in a row must find nothing: one may miss a process while others end."""


@dataclass(frozen=True, slots=True)
class StopSteps:
    """How many seconds each step may take."""

    close: float = 2.0
    """Agents that exit when their input closes are gone within a second."""
    terminate: float = 2.0
    """Enough to write a history to disk."""
    kill: float = 2.0
    """A kill takes milliseconds; this bounds a process that hangs in the kernel."""


_USUAL: Final = StopSteps()
_AT_ONCE: Final = StopSteps(close=0.1, terminate=0.5, kill=2.0)
"""For a process that never got ready."""
_RETRIES: Final = 2
"""A daemon's socket goes away once; each try takes some 10 ms."""
_LAST_WORDS: Final = 500
"""Characters: the end of a traceback, and still one line."""


async def stop(child: Child, *, steps: StopSteps = _USUAL) -> StopReport:
    """Stop a child and all its descendants; a second call waits for the first.

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
        # The event loop is closing: kill without waiting.
        _kill_group(child)
        kill_leftovers([child.identity], seconds=_LAST_SECONDS)
        child.close()
    if cancelled is not None:
        raise cancelled
    return ending.result()


async def spawn_linked(
    wrap: Callable[[PortHandover | None], ChildCommand],
    connect: Callable[[], NetworkLink],
    *,
    name: str,
    env: Mapping[str, str],
    cwd: Path,
) -> Child:
    """Start a process in its own network, which a link connects to the outside.

    A sandbox whose hidden paths went away while it started is built again.

    Raises:
        AgentNotStarted: as `spawn` does, or the process did not hand over its ports.
    """
    retries = 0
    while True:
        link = connect()
        try:
            command = await asyncio.to_thread(wrap, link.handover)
            child = await spawn(command, name=name, env=env, cwd=cwd)
        except BaseException:
            await link.close()
            raise
        child.link = link
        try:
            await link.serve()
        except BaseException as error:
            await stop(child, steps=_AT_ONCE)
            if not isinstance(error, HandoverFailed):
                raise
            if command.guard is not None and command.guard.is_outdated and retries < _RETRIES:
                retries += 1
                continue
            words = " ".join(child.last_words(_LAST_WORDS).split())
            raise AgentNotStarted(
                name,
                f"its network could not be set up: {error}{f' ({words})' if words else ''}",
                "Check that agents can read the bridge's Python; "
                "`agent-bridge doctor` tests their isolation.",
            ) from error
        return child


@contextlib.asynccontextmanager
async def running(
    command: ChildCommand,
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
    child = await spawn(command, name=name, env=env, cwd=cwd)
    try:
        yield child
    finally:
        await stop(child, steps=steps)


async def _end(child: Child, steps: StopSteps) -> StopReport:
    child.discard_output()
    try:
        step = await _stop_in_steps(child, steps)
        _kill_group(child)
        sweep = await asyncio.to_thread(kill_leftovers, [child.identity], seconds=steps.kill)
        if step != "stuck":
            await child.wait()
    finally:
        child.close()
        if child.link is not None:
            await child.link.close()
    return StopReport(step, child.status, swept=sweep.killed, remaining=sweep.remaining)


async def _stop_in_steps(child: Child, steps: StopSteps) -> Step:
    if child.status is not None:
        return "exited"
    child.close_input()
    if await _ends_within(child, steps.close):
        return "closed"
    await _terminate(child)
    if await _ends_within(child, steps.terminate):
        return "terminated"
    _kill(child)
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
    # Bubblewrap dies of TERM and the kernel then kills what is inside, and a reaper is needed to
    # the end: signal only the agent.
    for entry in (await asyncio.to_thread(read_proc_table)).values():
        if entry.group == child.group and entry.pid != child.pid:
            signal_exactly(entry, signal.SIGTERM)


def _kill(child: Child) -> None:
    if child.has_reaper and child.status is None:
        # It also finds processes that left the group and dropped their marker.
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGUSR1)
    else:
        _kill_group(child)


def _kill_group(child: Child) -> None:
    # Once the leader is collected its number may be another's, and the sweep does the rest;
    # where there is no /proc to sweep, the group is all that is known.
    if child.status is None or not sys.platform.startswith("linux"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.group, signal.SIGKILL)


def end_background(child: Child, *, before: int, seconds: float = _BACKGROUND_SECONDS) -> Sweep:
    """Kill all descendants of a child but its own processes; blocking, so call it in a thread.

    `before` is when its work began, in clock ticks since boot: what is younger is not its own.
    """
    killed: dict[int, str] = {}
    deadline = time.monotonic() + seconds
    clean = 0
    while True:
        tree = read_tree(child.pid)
        own = _own(tree, child, before)
        others = [entry for pid, entry in tree.items() if pid not in own and entry.alive]
        for entry in others:
            if signal_exactly(entry, signal.SIGKILL):
                killed[entry.pid] = entry.name
        clean = 0 if others else clean + 1
        if clean == _LOOKS or time.monotonic() > deadline:
            return Sweep(
                killed=tuple(f"{name} ({pid})" for pid, name in sorted(killed.items())),
                remaining=tuple(sorted(entry.pid for entry in others)),
            )
        if others:
            time.sleep(_PAUSE_SECONDS)


def _own(tree: ProcTable, child: Child, before: int) -> set[int]:
    """Find the processes around the program, the program, and those that it keeps."""
    children: dict[int, list[ProcessEntry]] = {}
    for entry in tree.values():
        children.setdefault(entry.parent, []).append(entry)
    own = {child.pid}
    program = tree.get(child.pid)
    for _ in range(child.layers):
        # Orphans become children of the innermost one; the program is older than any of them.
        below = [] if program is None else children.get(program.pid, [])
        program = min(below, key=lambda entry: (entry.ticks, entry.pid), default=None)
        own |= set() if program is None else {program.pid}
    if program is None:
        return own
    waiting = [program.pid]
    while waiting:
        kept = [
            entry.pid
            for entry in children.get(waiting.pop(), [])
            if entry.session == program.session and entry.ticks <= before
        ]
        own.update(kept)
        waiting += kept
    return own
