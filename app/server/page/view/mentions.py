"""Finds the agents that a message mentions: @names outside code; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from app.server.page.view import markdown


@dataclass(frozen=True)
class Names:
    """The names of agents that may follow an @; no two agents share one."""

    spoken: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, agents: Iterable[tuple[str, str, str]]) -> Names:
        """Take ids, names and titles; a title that could mean two agents means none."""
        listed = list(agents)
        names = {name.casefold(): agent for agent, name, _ in listed}
        titles = Counter(title.casefold() for _, _, title in listed)
        for agent, _, title in listed:
            if titles[title.casefold()] == 1 and title.strip():
                names.setdefault(title.casefold(), agent)
        return cls(tuple(names.items()))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Match a mention: the longest name first, never part of a word or an address."""
        longest = sorted((spoken for spoken, _ in self.spoken), key=len, reverse=True)
        choice = "|".join(map(re.escape, longest)) or r"(?!)"
        return re.compile(rf"(?<![\w@./:-])@({choice})(?![\w-])", re.IGNORECASE)

    def mentioned(self, text: str) -> tuple[str, ...]:
        """List the agents that a message mentions, in order, each once."""
        agents = dict(self.spoken)
        words = markdown.prose(text)
        found = (agents.get(each[1].casefold()) for each in self.pattern.finditer(words))
        return tuple(dict.fromkeys(name for name in found if name is not None))

    def after(self, text: str) -> str:
        """Return a message without the mentions that it begins with."""
        rest = text.strip()
        while found := self.pattern.match(rest):
            rest = rest[found.end() :].lstrip(" ,:\n\t")
        return rest
