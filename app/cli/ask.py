"""`ask`: sends one prompt to one agent, through the running bridge or an embedded one.

It ends with status 0 only if the turn was completed; any failure is one line.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from app.cli.asking import Allow
from app.cli.asking.answers import Person, Responder, Rule
from app.cli.asking.conversation import AgentUnknown, Conversation, Way
from app.cli.asking.screen import Screen, margin
from app.cli.running import is_running
from app.config import Configuration
from app.errors import BridgeError
from app.model.types import TurnState
from app.server.agent_shapes import AgentOut
from app.server.shapes import NewSession, SessionTurn, TurnOut

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BY_SIGNAL: Final = 128
"""As shells do: 128 plus the signal, 130 for Ctrl-C."""


class TurnNotDone(BridgeError):
    """The turn ended without being completed."""


class NothingAsked(BridgeError):
    """Only an agent was named."""

    def __init__(self, name: str) -> None:
        super().__init__(f"nothing is asked. Write `agent-bridge ask {name} WORDS`.")


class _Agent(NamedTuple):
    name: str
    default: bool


class Interrupts:
    """Handles Ctrl-C and other signals: the first stops the turn, a second one quits at once."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._main: asyncio.Task[object] | None = None
        self.conversation: Conversation | None = None
        self.number = 0
        """The first signal that came, 0 if none did."""

    def listen(self) -> None:
        """Take the signals from now on."""
        self._main = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            # Started with nohup or in the background: the signal is to stay ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._take, number)

    def _take(self, number: int) -> None:
        first, self.number = not self.number, self.number or number
        if first and self.conversation is not None:
            self.conversation.stop()
            self._screen.line("Stopping. Press Ctrl-C again to quit.", "yellow")
        elif self._main is not None:
            self._main.cancel()


def ask(
    configuration: Configuration,
    new: NewSession,
    *,
    allow: Allow | None,
    quiet: bool,
    hint: str = "",
) -> int:
    """Ask an agent something; returns the exit status. `hint` is shown with where it works.

    Raises:
        BridgeError: there was no answer, for the reason it names.
    """
    one_terminal = sys.stdout.isatty() and sys.stderr.isatty()
    screen = Screen(
        sys.stdout,
        margin(sys.stderr, quiet=quiet),
        one_terminal=one_terminal,
        uploads=configuration.shared_dir / "uploads",
    )
    dotenv = configuration.dotenv
    if dotenv is not None and dotenv.parent == Path.cwd():
        screen.line(f"Settings from {dotenv}", "dim")
    interrupts = Interrupts(screen)
    try:
        with asyncio.Runner() as runner:
            return runner.run(
                _ask(configuration, new, screen, _responder(screen, allow, quiet), interrupts, hint)
            )
    except asyncio.CancelledError:
        return BY_SIGNAL + interrupts.number
    except BrokenPipeError:
        # The reader is gone; the interpreter must not try to flush the answer either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        screen.end()


async def _ask(
    configuration: Configuration,
    new: NewSession,
    screen: Screen,
    responder: Responder,
    interrupts: Interrupts,
    hint: str,
) -> int:
    interrupts.listen()
    since = time.monotonic()
    screen.status(f"{new.agent or 'the default agent'} is starting")
    async with _way_to(configuration, new) as (way, new):
        conversation = interrupts.conversation = Conversation(way, screen, responder, hint)
        begun, turn = await conversation.run(new)
        done = turn.state == TurnState.DONE
        screen.end(notice=done or bool(interrupts.number))
        if done:
            screen.line(_summary(begun, screen, time.monotonic() - since), "dim")
    if interrupts.number:
        return BY_SIGNAL + interrupts.number
    if not done:
        raise TurnNotDone(_why_not(turn, conversation.unanswered))
    return 0


@asynccontextmanager
async def _way_to(
    configuration: Configuration, new: NewSession
) -> AsyncIterator[tuple[Way, NewSession]]:
    """Connect to the running bridge, or embed one; the prompt then names its agent."""
    if is_running(configuration.data_dir):
        # 0.2 s that an embedded bridge does not need.
        from app.cli.client import connected  # noqa: PLC0415

        async with connected(configuration) as client:
            if client is not None:
                yield client, new if new.agent else _address(new, await client.agents())
                return
    from app.cli.stored import read_registry  # noqa: PLC0415 - 0.5 s that a running bridge saves

    registry = await asyncio.to_thread(read_registry, configuration)
    if not new.agent:
        new = _address(new, [_Agent(each.name, each is registry.default) for each in registry])
    if not any(each.name == new.agent for each in registry):
        raise AgentUnknown(new.agent)
    # 1.4 s that a running bridge saves.
    from app.cli.embedded import embedded  # noqa: PLC0415

    async with embedded(configuration, new.agent) as own:
        yield own, new


def _address(new: NewSession, agents: Iterable[_Agent | AgentOut]) -> NewSession:
    """Address a prompt without a name to the default agent.

    Raises:
        NothingAsked: the prompt is the name of an agent.
    """
    there = {each.name: each.default for each in agents}
    if new.text in there:
        raise NothingAsked(new.text)
    return new.model_copy(update={"agent": next(name for name in there if there[name])})


def _responder(screen: Screen, allow: Allow | None, quiet: bool) -> Responder:
    """Choose who answers: the person at the terminal, or else the rule."""
    if allow is None and not quiet and sys.stdin.isatty() and sys.stderr.isatty():
        return Person(screen, sys.stdin.fileno())
    return Rule(screen, allow)


def _summary(begun: SessionTurn, screen: Screen, seconds: float) -> str:
    parts = (
        f"{begun.agent}: done in {seconds:.1f} s",
        screen.usage(),
        f"go on with --thread {begun.thread}",
    )
    return " · ".join(filter(None, parts))


def _why_not(turn: TurnOut, unanswered: str) -> str:
    if unanswered:
        return f"{unanswered} No one could answer, so it was stopped. Run `ask` in a terminal."
    return turn.error or "the turn was stopped before it was done"
