"""Names the moments of the pipe at which features may speak; the pipe asks a list and knows none.

A feature overrides the moments that it needs: each has a default.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.model.inbound import Delivery, Heard
from app.model.keys import PlaceKey, SessionKey
from app.model.ports import AgentSession
from app.model.posts import DelegatedLine
from app.model.types import Message, Session, Turn, TurnState

Wait = Callable[[], Awaitable[object]]
"""Waits until something happens."""


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What a feature adds to the prompt of a turn."""

    own: tuple[tuple[str, str], ...] = ()
    """Words of the agent itself, each with its origin, which begins with "your own"."""
    notes: tuple[str, ...] = ()
    """Lines by the bridge."""
    data: tuple[tuple[str, str], ...] = ()
    """Words of others that belong to these notes, each with its origin."""
    on_sent: Callable[[], Awaitable[None]] | None = None
    """Is called once the prompt is committed."""


class Hook:
    """What a feature may do in the pipe."""

    command_names: tuple[str, ...] = ()
    """The first words of its commands in chats."""
    command_help = ""
    """What `help` says about them."""
    ask_kind = ""
    """The kind of asks whose answers it waits for."""
    own_word_tools: tuple[str, ...] = ()
    """Its tools that bring an agent nothing but what that agent wrote itself."""

    def read_command(self, line: str, agents: Mapping[str, str]) -> object | None:
        """Read a message as one of its commands; None if it is words for an agent.

        `agents` are the ids of agents by what people call them, in lower case.
        """

    async def obey(self, command: object, heard: Heard, agents: Sequence[str]) -> str:
        """Carry out a command that it has read; returns what to say."""
        raise NotImplementedError

    async def stop(self, place: PlaceKey) -> bool:
        """Stop what people in a place had it do; False if there is nothing."""
        return False

    def parse(self, delivery: Delivery) -> Heard | None:
        """Read a delivery that it has stored itself; None if it is another one.

        Raises:
            DeliveryUnreadable: this bridge did not write it.
        """

    async def on_decided(self, heard: Heard) -> None:
        """Take note of a message that became part of no turn, once that is stored."""

    def notices(self, place: PlaceKey | None, agents: Iterable[str]) -> Sequence[str]:
        """Say what people must know on every page, or in one place with its agents."""
        return ()

    def on_answered(self) -> None:
        """Look for answers to its asks: one was given, or may have been given elsewhere."""

    async def system_parts(self, surface: SessionKey, turn: int) -> Mapping[str, str]:
        """Return parts of the system prompt of an agent in a conversation, as of a turn.

        `HEADINGS` (`app/core/turns/prompt.py`) names them; two texts of a part are joined.
        """
        return {}

    async def prompt_parts(
        self, session: Session, turn: Turn, messages: Sequence[Message], *, begins: bool
    ) -> PromptParts:
        """Add to the prompt of a turn; `begins` says that its conversation begins with it."""
        return PromptParts()

    async def after_turn(
        self, session: Session, turn: Turn, agent: AgentSession, hurried: Wait
    ) -> None:
        """Use the agent after a turn that is done, until `hurried` returns: the next one waits."""

    async def on_end(self, session: Session, turn: Turn, state: TurnState) -> None:
        """Take note of a turn that has ended, once that is stored."""

    def post_lines(self, turn: int) -> Sequence[DelegatedLine]:
        """List what the post of a turn shows of work that others do for it."""
        return ()

    async def voice_of(self, session: Session) -> str:
        """Return the agent that shows the asks of a session itself elsewhere; empty if none."""
        return ""

    async def forget_agent(self, agent: str) -> None:
        """Delete what it keeps of an agent that was removed; safe to repeat."""


@dataclass(frozen=True, slots=True)
class FeatureCommand:
    """A command of a feature."""

    name: str
    hook: Hook
    what: object


class Hooks:
    """The features of one bridge, as the pipe asks them."""

    def __init__(self, *hooks: Hook) -> None:
        self._all = list(hooks)

    def add(self, hooks: Iterable[Hook]) -> None:
        """Ask these too from now on."""
        self._all.extend(hooks)

    @property
    def command_names(self) -> set[str]:
        """The first words of all commands."""
        return {name for each in self._all for name in each.command_names}

    @property
    def command_help(self) -> str:
        """What `help` says about all of them."""
        return "\n".join(each.command_help for each in self._all if each.command_help)

    def read_command(self, line: str, agents: Mapping[str, str]) -> FeatureCommand | None:
        """Read a message as a command of a feature; None if it is none."""
        for each in self._all:
            if (what := each.read_command(line, agents)) is not None:
                return FeatureCommand(line.split(maxsplit=1)[0].lower(), each, what)
        return None

    async def stop(self, place: PlaceKey) -> bool:
        """Stop what people in a place had features do; False if there is nothing."""
        return any([await each.stop(place) for each in self._all])

    def parse(self, delivery: Delivery) -> Heard | None:
        """Read a delivery that a feature has stored itself; None if it is another one.

        Raises:
            DeliveryUnreadable: this bridge did not write it.
        """
        found = (each.parse(delivery) for each in self._all)
        return next((heard for heard in found if heard is not None), None)

    def notices(self, place: PlaceKey | None, agents: Iterable[str]) -> list[str]:
        """Say what people must know on every page, or in one place with its agents."""
        asked = list(agents)
        return [words for each in self._all for words in each.notices(place, asked)]

    def on_answered(self, kind: str | None = None) -> None:
        """Have features look for answers to asks of their kind; None: of every kind."""
        for each in self._all:
            if each.ask_kind and kind in {None, each.ask_kind}:
                each.on_answered()

    @property
    def own_word_tools(self) -> tuple[str, ...]:
        """The tools that bring an agent nothing but what it wrote itself."""
        return tuple(name for each in self._all for name in each.own_word_tools)

    async def system_parts(self, surface: SessionKey, turn: int) -> Mapping[str, str]:
        """Gather the parts of an agent's system prompt."""
        found: dict[str, str] = {}
        for each in self._all:
            for name, text in (await each.system_parts(surface, turn)).items():
                found[name] = "\n\n".join(filter(None, (found.get(name), text)))
        return found

    async def prompt_parts(
        self, session: Session, turn: Turn, messages: Sequence[Message], *, begins: bool
    ) -> Sequence[PromptParts]:
        """Gather what features add to the prompt of a turn."""
        return [
            await each.prompt_parts(session, turn, messages, begins=begins) for each in self._all
        ]

    async def after_turn(
        self, session: Session, turn: Turn, agent: AgentSession, hurried: Wait
    ) -> None:
        """Let features use the agent after a turn that is done."""
        for each in self._all:
            await each.after_turn(session, turn, agent, hurried)

    async def on_decided(self, heard: Heard) -> None:
        """Let features take note of a message that became part of no turn."""
        for each in self._all:
            await each.on_decided(heard)

    async def on_end(self, session: Session, turn: Turn, state: TurnState) -> None:
        """Let features take note of a turn that has ended."""
        for each in self._all:
            await each.on_end(session, turn, state)

    def post_lines(self, turn: int) -> tuple[DelegatedLine, ...]:
        """List what the post of a turn shows of work that others do for it."""
        return tuple(line for each in self._all for line in each.post_lines(turn))

    async def voice_of(self, session: Session) -> str:
        """Return the agent that shows the asks of a session itself elsewhere; empty if none."""
        found = [await each.voice_of(session) for each in self._all]
        return next(filter(None, found), "")

    async def forget_agent(self, agent: str) -> None:
        """Have features delete what they keep of an agent that was removed."""
        for each in self._all:
            await each.forget_agent(agent)
