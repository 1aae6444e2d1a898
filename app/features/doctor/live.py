"""`doctor --live`: plays a service's steps on the real platform, and shows what differs.

Everything that a step made is removed at the end, also when the check is interrupted.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final

from app.clock import Clock, SystemClock
from app.config import Configuration
from app.errors import BridgeError, Conflict, NotFound
from app.services import registered_services
from app.services.common.live import LiveStep, LiveVerdict, Seen, Undo
from app.services.service import LiveRequest
from app.terminal.framing import count, one_line, show_table
from app.terminal.screen import Margin, margin, wait_readable
from app.terminal.stored import make_context
from app.vault import Vault

Confirm = Callable[[str], Awaitable[bool]]
"""Asks whether to go on."""

STEP_SECONDS: Final = 90.0
"""Time limit of a step that takes seconds."""
SPARE: Final = 1.5
"""How much longer than announced a step of minutes may take."""
SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that interrupt the check as Ctrl-C does."""


@dataclass(frozen=True, slots=True)
class Played:
    """One step that was played."""

    step: LiveStep
    seen: Seen


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the operator wants to be played."""

    service: str
    agent: str
    place: str
    only: Sequence[str] = ()
    """The names of the steps; empty for all."""


def check_live(configuration: Configuration, vault: Vault, chosen: Chosen, *, yes: bool) -> bool:
    """Play the steps and show the table; returns whether all is as assumed.

    Raises:
        NotFound: there is no such service, agent or step.
        BridgeError: the platform cannot be opened.
        KeyboardInterrupt: the check was interrupted; what it made is removed.
    """
    aside = margin(sys.stderr, quiet=False)
    check = LiveCheck(configuration, vault, chosen, aside, SystemClock())
    try:
        return asyncio.run(_until_signal(check, agree if yes else partial(confirm, aside)))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _until_signal(check: LiveCheck, confirmed: Confirm) -> bool:
    """Run the check; a signal cancels it, so that it still removes what it made."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "this is a coroutine"
    for each in SIGNALS:
        loop.add_signal_handler(each, task.cancel)
    return await check.run(confirmed)


async def agree(_words: str) -> bool:
    """Agree without being asked."""
    return True


async def confirm(aside: Margin, words: str) -> bool:
    """Ask the person at the terminal, so that Ctrl-C ends the question at once.

    Raises:
        Conflict: there is no terminal.
    """
    if not sys.stdin.isatty():
        raise Conflict(f"{words} Add --yes to do that without being asked.")
    aside.prompt(f"{words} [y/N] ")
    await wait_readable(sys.stdin)
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


class LiveCheck:
    """One run of the steps of a service."""

    def __init__(
        self,
        configuration: Configuration,
        vault: Vault,
        chosen: Chosen,
        aside: Margin,
        clock: Clock,
    ) -> None:
        self._configuration = configuration
        self._vault = vault
        self._chosen = chosen
        self._margin = aside
        self._clock = clock
        self.played: list[Played] = []
        self.left: list[str] = []
        """What could not be removed, and why."""

    async def run(self, confirmed: Confirm) -> bool:
        """Play the steps, remove what they made, and show what was seen."""
        undo = Undo(self._clock)
        request = LiveRequest(
            context=make_context(self._configuration, self._vault),
            agent=self._configuration.find(self._chosen.agent).id,
            place=self._chosen.place,
            clock=self._clock,
            undo=undo,
            progress=self._status,
        )
        try:
            async with self._open(request) as steps:
                steps = choose(steps, self._chosen.only)
                if not await confirmed(self._announce(steps)):
                    return False
                try:
                    for number, step in enumerate(steps, start=1):
                        await self._play(step, f"{number} of {len(steps)}, {step.name}")
                finally:
                    self._status("removing what was made; Ctrl-C again leaves it there")
                    self.left = await undo.run()
        finally:
            self._show()
        as_assumed = {LiveVerdict.AS_ASSUMED, LiveVerdict.LOOK}
        return not self.left and all(each.seen.verdict in as_assumed for each in self.played)

    def _open(self, request: LiveRequest) -> AbstractAsyncContextManager[Sequence[LiveStep]]:
        chosen = self._chosen
        known = {each.name: each.live for each in registered_services()}
        live = known.get(chosen.service)
        if live is None:
            raise NotFound("service with a live check called", chosen.service)
        return live(request)

    def _announce(self, steps: Sequence[LiveStep]) -> str:
        long = _duration(sum(step.minutes for step in steps))
        number = count(len(steps), "step")
        return self._clean(
            f"This writes to {self._chosen.place} on {self._chosen.service} as "
            f"{self._chosen.agent} ({number}{long}) and removes it again. Continue?"
        )

    async def _play(self, step: LiveStep, words: str) -> None:
        self._margin.still()
        self._margin.line(self._clean(f"{words}{_duration(step.minutes)} ..."))
        limit = max(step.minutes * 60 * SPARE, STEP_SECONDS)
        try:
            async with asyncio.timeout(limit):
                seen = await step.run()
        except TimeoutError:
            seen = Seen(f"it did not end within {limit:g} seconds", LiveVerdict.NOT_SEEN)
        except BridgeError as error:
            seen = Seen(str(error), LiveVerdict.NOT_SEEN)
        except Exception as error:  # noqa: BLE001 - a platform may answer in a new shape
            seen = Seen(f"unexpected answer, {type(error).__name__}: {error}", LiveVerdict.NOT_SEEN)
        self.played.append(Played(step, seen))
        self._margin.still()
        self._margin.line(self._clean(f"  {seen.verdict}: {seen.words}"))

    def _status(self, words: str) -> None:
        self._margin.status(self._clean(words))

    def _show(self) -> None:
        self._margin.still()
        rows = [
            [each.step.name, each.seen.verdict, each.step.assumes, each.seen.words]
            for each in self.played
        ]
        if rows:
            header = ("step", "verdict", "assumed", "seen")
            show_table(header, [[self._clean(cell) for cell in row] for row in rows])
        for each in self.left:
            self._margin.line(self._clean(f"Left behind, remove it by hand: {each}"))

    def _clean(self, text: str) -> str:
        return self._vault.redact(one_line(text))


def _duration(minutes: float) -> str:
    return f", about {count(minutes, 'minute')}" if minutes else ""


def choose(steps: Sequence[LiveStep], only: Sequence[str]) -> Sequence[LiveStep]:
    """Choose steps by name.

    Raises:
        NotFound: there is no such step.
    """
    names = [step.name for step in steps]
    for name in only:
        if name not in names:
            raise NotFound(f"step (known are {', '.join(names)}) called", name)
    return [step for step in steps if not only or step.name in only]
