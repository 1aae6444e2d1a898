"""Names places, messages, comments and agents on GitHub, and finds mentions; pure.

A mention is an @login outside code, quotes and HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from app.errors import NotFound
from app.markdown.hidden import words
from app.model.keys import PlaceKey
from app.model.types import Speaker
from app.services.github.payloads import GitHubAccount

SERVICE = "github"

Kind = Literal["issue", "comment", "review", "review-comment", "label", "seen"]
"""`seen` means a reaction, where nothing else of ours can be seen yet."""

_SPOT = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+):(?P<number>[0-9]{1,12})", re.ASCII)
_LINK = re.compile(r"/(?P<repository>[\w.-]+/[\w.-]+)/pull/(?P<number>[0-9]{1,12})$", re.ASCII)
_NAME = re.compile(
    r"(?P<kind>issue|comment|review|review-comment|label|seen)-(?P<id>[0-9]{1,20})(@(?P<at>.*))?"
)


@dataclass(frozen=True, slots=True)
class Spot:
    """An issue or a pull request: GitHub numbers both together."""

    repository: str
    number: int

    def __str__(self) -> str:
        return f"{self.repository}:{self.number}"

    @property
    def place(self) -> PlaceKey:
        """The place that it is."""
        return PlaceKey(SERVICE, str(self))

    @property
    def owner(self) -> str:
        """Whose repository it is in."""
        return self.repository.partition("/")[0]

    @classmethod
    def linked(cls, link: str) -> Spot | None:
        """Parse the address of a pull request; None if it is not one."""
        found = _LINK.search(link)
        return cls(found["repository"], int(found["number"])) if found is not None else None

    @classmethod
    def parse(cls, text: str) -> Spot:
        """Parse the name of a place, or the middle of a session key.

        Raises:
            NotFound: it names no issue.
        """
        found = _SPOT.fullmatch(text)
        if found is None:
            raise NotFound("issue", text)
        return cls(found["repository"], int(found["number"]))


@dataclass(frozen=True, slots=True)
class Name:
    """A message or another thing on GitHub: the same for every App that receives it."""

    kind: Kind
    id: int
    at: str = ""
    """Distinguishes an edit, or one of several labels, from what was there before."""

    def __str__(self) -> str:
        return f"{self.kind}-{self.id}{f'@{self.at}' if self.at else ''}"

    def is_same(self, other: Name) -> bool:
        """Tell whether two names mean the same thing, before or after an edit."""
        return (self.kind, self.id) == (other.kind, other.id)

    @classmethod
    def parse(cls, text: str) -> Name | None:
        """Parse a name; None if it is not one of ours."""
        found = _NAME.fullmatch(text)
        if found is None:
            return None
        kind: Kind = found["kind"]  # type: ignore[assignment]  # the pattern lists the kinds
        return cls(kind, int(found["id"]), found["at"] or "")


BOT = "[bot]"


@dataclass(frozen=True, slots=True)
class GitHubIdentity:
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
        """The e-mail address in its commits."""
        number = f"{self.bot_id}+" if self.bot_id is not None else ""
        return f"{number}{self.login}@users.noreply.github.com"


@dataclass(frozen=True)
class Identities:
    """All our agents on GitHub, as far as they are known."""

    known: tuple[GitHubIdentity, ...] = ()

    @classmethod
    def of(cls, known: Iterable[GitHubIdentity]) -> Identities:
        """Collect some."""
        return cls(tuple(known))

    def agent(self, account: GitHubAccount | None) -> str | None:
        """Return which of our agents an account is; only a bot can have its login."""
        if account is None:
            return None
        for each in self.known:
            is_login = account.login.casefold() == each.login.casefold()
            if account.id == each.bot_id or (account.is_bot and is_login):
                return each.agent
        return None

    def speaker(self, account: GitHubAccount) -> Speaker:
        """Name an account: people by login, bots by number, our own by agent."""
        agent = self.agent(account)
        if agent is not None:
            return Speaker(str(account.id), agent, "agent")
        if account.is_bot:
            return Speaker(str(account.id), account.login, "bot")
        return Speaker(account.login, account.login, number=str(account.id))

    def is_app(self, slug: str, agent: str | None = None) -> bool:
        """Tell whether an App is one of ours, or that of one agent."""
        owner = self._agents.get(slug.casefold())
        return owner is not None and agent in {None, owner}

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
        # The first of a slug counts: those that are here come before those that were.
        return {each.slug.casefold(): each.agent for each in reversed(self.known)}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self._agents, key=len, reverse=True)
        choice = "|".join(map(re.escape, longest)) or r"(?!)"
        return re.compile(rf"(?<![\w@./:-])@({choice})(?:\[bot\])?(?![\w/-])", re.IGNORECASE)
