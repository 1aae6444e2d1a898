"""Names the moments of the pipe at which features may speak; the pipe asks a list and knows none.

A feature overrides the moments that it needs: each has a default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.model.inbound import Delivery, Heard
from app.model.keys import PlaceKey


class Hook:
    """What a feature may do in the pipe."""

    command_names: tuple[str, ...] = ()
    """The first words of its commands in chats."""
    ask_kind = ""
    """The kind of asks whose answers it waits for."""

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

    def notices(self, place: PlaceKey | None, agents: Iterable[str]) -> Sequence[str]:
        """Say what people must know on every page, or in one place with its agents."""
        return ()

    def on_answered(self) -> None:
        """Look for answers to its asks: one was given, or may have been given elsewhere."""


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
