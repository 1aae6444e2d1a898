"""`ask`: sends one prompt to one agent, through the running bridge or an embedded one.

It ends with status 0 only if the turn was completed; any failure is one line.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from pydantic import ValidationError
from typer import Argument, Option

from app.cli.answers import Allow, KeyboardAnswers, Responder, RuleAnswers
from app.cli.conversation import AgentUnknown, Conversation, Remote, Way
from app.config import Configuration
from app.errors import BridgeError, Conflict
from app.model.types import TurnState
from app.model.workspaces import FOLDER, NONE
from app.server.agent_shapes import AgentOut
from app.server.shapes import TEXT_CHARACTERS, NewSession
from app.terminal.api import connect
from app.terminal.framing import commands, examples, read_configuration
from app.terminal.screen import Screen, margin

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BY_SIGNAL: Final = 128
"""As shells do: 128 plus the signal, 130 for Ctrl-C."""

COMMANDS = commands()


class TurnNotDone(BridgeError):
    """The turn ended without being completed."""


class NothingAsked(BridgeError):
    """Only an agent was named."""

    def __init__(self, name: str) -> None:
        super().__init__(f"nothing is asked. Write `agent-bridge ask {name} WORDS`.")


class _Agent(NamedTuple):
    name: str
    default: bool


@COMMANDS.command(
    epilog=examples(
        'ask claude "why does test_login fail?"',
        'ask "why does test_login fail?"',
        'ask claude --here "fix the failing test"',
        'ask claude --thread login "now fix it"',
        "ask claude - < prompt.md > answer.md",
    )
)
def ask(
    agent: Annotated[
        str | None,
        Argument(
            metavar="AGENT", help="The name of the agent, see `agents list`; else the default."
        ),
    ] = None,
    prompt: Annotated[
        str | None, Argument(metavar="WORDS", help="The prompt; - reads it from stdin.")
    ] = None,
    *,
    thread: Annotated[
        str | None, Option(help="The conversation to continue, or a name for a new one.")
    ] = None,
    here: Annotated[
        bool, Option("--here", help="Work in the git work tree, or the folder, you are in.")
    ] = False,
    repo: Annotated[
        str | None, Option(metavar="OWNER/NAME", help="Work in a clone of a repository.")
    ] = None,
    folder: Annotated[
        Path | None, Option(metavar="PATH", help="Work in a folder of this machine.")
    ] = None,
    scratch: Annotated[bool, Option("--scratch", help="Work in an empty folder.")] = False,
    allow: Annotated[
        Allow | None,
        Option(
            help="How to answer when the agent asks for permission: once allows every request, "
            "reject none. By default the person at the terminal is asked; without a terminal, and "
            "with --quiet, every request is rejected."
        ),
    ] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Show only the answer.")] = False,
) -> None:
    """Ask an agent something and follow what it does.

    The answer goes to stdout, everything else to stderr. The status is 0 only if the agent
    completed its turn. Works with a running bridge and without one. Ctrl-C stops the agent.

    A new conversation that is started inside a git work tree can work there: you are asked once
    for each work tree. Without a terminal, say --here.
    """
    if sum((here, repo is not None, folder is not None, scratch)) > 1:
        raise typer.BadParameter("--here, --repo, --folder and --scratch exclude each other.")
    if prompt is None:
        agent, prompt = None, agent
    if prompt is None:
        raise typer.BadParameter("WORDS are missing: say what to ask.")
    words = sys.stdin.read() if prompt == "-" else prompt
    configuration = read_configuration()
    chosen = Where(choose_named(repository=repo, folder=folder, here=here, scratch=scratch))
    at_terminal = not quiet and sys.stdin.isatty() and sys.stderr.isatty()
    if chosen.repository is None and thread is None:
        chosen = choose_usual(configuration.data_dir, _confirm if at_terminal else None)
    new = _new_session(agent or "", words, thread, chosen.repository)
    screen = Screen(
        sys.stdout,
        margin(sys.stderr, quiet=quiet),
        one_terminal=sys.stdout.isatty() and sys.stderr.isatty(),
        uploads=configuration.shared_dir / "uploads",
    )
    responder: Responder = RuleAnswers(screen, allow)
    if allow is None and at_terminal:
        responder = KeyboardAnswers(screen, sys.stdin.fileno())
    asking = PromptRun(configuration, screen, responder, chosen.hint)
    raise typer.Exit(asking.run(new))


def _confirm(question: str) -> bool:
    """Ask the person at the terminal once; Enter means yes."""
    return typer.confirm(f"{question} This is remembered.", default=True, err=True)


def _new_session(agent: str, text: str, thread: str | None, repository: str | None) -> NewSession:
    """Check a prompt by the rules of the API; breaking them is a usage error."""
    try:
        return NewSession(agent=agent, text=text, thread=thread, repository=repository)
    except ValidationError as error:
        kind = error.errors(include_url=False, include_input=False)[0]["type"]
    match kind:
        case "string_too_short":
            raise typer.BadParameter("the prompt is empty.")
        case "string_too_long":
            raise typer.BadParameter(
                f"the prompt is too long (at most {TEXT_CHARACTERS} characters)."
            )
        case _:
            raise typer.BadParameter("a thread name has only letters, digits, '.', '_' and '-'.")


class PromptRun:
    """One prompt at the terminal; a first signal stops its turn, a second one quits at once."""

    def __init__(
        self, configuration: Configuration, screen: Screen, responder: Responder, hint: str
    ) -> None:
        """Prepare to ask; `hint` is shown with where the agent works."""
        self._configuration = configuration
        self._screen = screen
        self._responder = responder
        self._hint = hint
        self._main: asyncio.Task[object] | None = None
        self._conversation: Conversation | None = None
        self._signal = 0
        """The first signal that came, 0 if none did."""

    def run(self, new: NewSession) -> int:
        """Ask an agent something; returns the exit status.

        Raises:
            BridgeError: there was no answer, for the reason it names.
        """
        dotenv = self._configuration.dotenv
        if dotenv is not None and dotenv.parent == Path.cwd():
            self._screen.line(f"Settings from {dotenv}", "dim")
        try:
            with asyncio.Runner() as runner:
                return runner.run(self._ask(new))
        except asyncio.CancelledError:
            return BY_SIGNAL + self._signal
        except BrokenPipeError:
            # The reader is gone; the interpreter must not try to flush the answer either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        finally:
            self._screen.end()

    async def _ask(self, new: NewSession) -> int:
        self._listen()
        screen, since = self._screen, time.monotonic()
        screen.status(f"{new.agent or 'the default agent'} is starting")
        async with _way_to(self._configuration, new) as (way, addressed):
            conversation = Conversation(way, screen, self._responder, self._hint)
            self._conversation = conversation
            begun, turn = await conversation.run(addressed)
            done = turn.state == TurnState.DONE
            screen.end(notice=done or bool(self._signal))
            if done:
                took = f"{begun.agent}: done in {time.monotonic() - since:.1f} s"
                parts = (took, screen.usage(), f"go on with --thread {begun.thread}")
                screen.line(" · ".join(filter(None, parts)), "dim")
        if self._signal:
            return BY_SIGNAL + self._signal
        if conversation.unanswered and not done:
            raise TurnNotDone(
                f"{conversation.unanswered} No one could answer, so it was stopped. "
                "Run `ask` in a terminal."
            )
        if not done:
            raise TurnNotDone(turn.error or "the turn was stopped before it was done")
        return 0

    def _listen(self) -> None:
        """Take the signals from now on."""
        self._main = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            # Started with nohup or in the background: the signal is to stay ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._take, number)

    def _take(self, number: int) -> None:
        first, self._signal = not self._signal, self._signal or number
        if first and self._conversation is not None:
            self._conversation.stop()
            self._screen.line("Stopping. Press Ctrl-C again to quit.", "yellow")
        elif self._main is not None:
            self._main.cancel()


@asynccontextmanager
async def _way_to(
    configuration: Configuration, new: NewSession
) -> AsyncIterator[tuple[Way, NewSession]]:
    """Connect to the running bridge, or embed one; the prompt then names its agent."""
    async with connect(configuration) as bridge:
        if bridge is not None:
            way = Remote(bridge)
            yield way, new if new.agent else _address(new, await way.agents())
            return
    from app.terminal.stored import read_registry  # noqa: PLC0415 - 0.5 s that a running bridge saves

    registry = await asyncio.to_thread(read_registry, configuration)
    if not new.agent:
        new = _address(
            new, [_Agent(each.name, each is registry.default) for each in registry.values()]
        )
    if not any(each.name == new.agent for each in registry.values()):
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


WORK_TREES: Final = "work-trees.json"
"""The file in DATA_DIR with what the person answered for each work tree."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where to work, as the API takes it; None leaves it to the settings."""

    repository: str | None = None
    hint: str = ""
    """How to choose otherwise, if that was decided without a person."""


def choose_named(
    *, repository: str | None, folder: Path | None, here: bool, scratch: bool
) -> str | None:
    """Return where the options say to work; None if they say nothing.

    Raises:
        Conflict: there is no such folder, or it is not the person's.
    """
    if here:
        folder = work_tree(Path.cwd()) or Path.cwd()
    if folder is not None:
        return f"{FOLDER}{_own(folder)}"
    return NONE if scratch else repository


def choose_usual(data_dir: Path, confirm: Callable[[str], bool] | None) -> Where:
    """Decide for a person who named nothing; `confirm` asks them, if they can be asked."""
    tree = work_tree(Path.cwd())
    if tree is None or tree == Path.home():
        return Where()
    answers = _read_answers(data_dir / WORK_TREES)
    known = answers.get(str(tree))
    if known is None and confirm is not None:
        known = confirm(f"Work in {tree}?")
        _write_answers(data_dir / WORK_TREES, {**answers, str(tree): known})
    if known is None:
        return Where(hint=f"to work in {tree}, add --here")
    return Where(f"{FOLDER}{tree}" if known else None)


def work_tree(folder: Path) -> Path | None:
    """Find the git work tree that a folder belongs to."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _own(folder: Path) -> Path:
    path = folder.expanduser().resolve()
    if not path.is_dir():
        raise Conflict(f"there is no folder {str(path)!r}")
    if os.geteuid() not in {0, path.stat().st_uid}:
        raise Conflict(f"{str(path)!r} belongs to another user; choose a folder of yours")
    return path


def _read_answers(path: Path) -> dict[str, bool]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {tree: answer for tree, answer in pairs if isinstance(answer, bool)}


def _write_answers(path: Path, answers: dict[str, bool]) -> None:
    # An answer that cannot be kept is asked for again.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(answers, indent=2))
        fresh.replace(path)
