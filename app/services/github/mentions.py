"""Finds the agents that a comment speaks to: @logins outside code, quotes and HTML; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from app.markdown.hidden import words

BOT = "[bot]"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who an agent is on GitHub."""

    agent: str
    login: str
    """As its comments are signed: `my-app[bot]`."""
    bot_id: int | None = None
    """The number of its bot, once it is known."""

    @property
    def slug(self) -> str:
        """What people type after the @."""
        return self.login.removesuffix(BOT)

    @property
    def address(self) -> str:
        """The address that stands in its commits."""
        number = f"{self.bot_id}+" if self.bot_id is not None else ""
        return f"{number}{self.login}@users.noreply.github.com"


@dataclass(frozen=True)
class Identities:
    """All our agents on GitHub, as far as they are known."""

    known: tuple[Identity, ...] = ()

    @classmethod
    def of(cls, known: Iterable[Identity]) -> Identities:
        """Collect some."""
        return cls(tuple(known))

    def agent(self, *, bot_id: int, login: str, is_bot: bool) -> str | None:
        """Tell which of our agents an account is; nobody but a bot can have its login."""
        for each in self.known:
            if bot_id == each.bot_id or (is_bot and login.casefold() == each.login.casefold()):
                return each.agent
        return None

    def mentioned(self, text: str) -> tuple[str, ...]:
        """List the agents that a text mentions, in order, each once."""
        if "@" not in text:
            return ()
        found = (self._agents[each[1].casefold()] for each in self._pattern.finditer(words(text)))
        return tuple(dict.fromkeys(found))

    def after(self, text: str) -> str:
        """Return what is said after the mentions that a text begins with."""
        rest = text.strip()
        while found := self._pattern.match(rest):
            rest = rest[found.end() :].lstrip(" ,:\n\t")
        return rest

    @cached_property
    def _agents(self) -> dict[str, str]:
        return {each.slug.casefold(): each.agent for each in self.known}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self._agents, key=len, reverse=True)
        choice = "|".join(map(re.escape, longest)) or r"(?!)"
        return re.compile(rf"(?<![\w@./:-])@({choice})(?:\[bot\])?(?![\w/-])", re.IGNORECASE)
