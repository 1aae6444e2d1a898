"""Knows every valid setting name and refuses the others, and tells which variables hold secrets.

A misspelt name would be ignored without a word, so it is refused wherever it can be told from other
programs' names: everything in `.env`, and in the environment names of our own form. What counts as
a secret is redacted everywhere: words, paths, numbers, model names and plain addresses must not be.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from app.config.agents import AgentConfig
from app.config.remote import AGENT_TOKEN
from app.config.roster import ConfiguredAgents, KnownAgent
from app.config.services import KnownService
from app.config.settings import RepositoryEntry, Settings
from app.config.sources import FILE, Sources, did_you_mean
from app.errors import ConfigurationError

_OWN_PREFIX = "BRIDGE_"
_SUFFIX = re.compile(r"[A-Z][A-Z0-9_]{0,30}")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)

_REMOVED = dict.fromkeys(
    (
        "SHARED_BUCKET",
        "S3_ENDPOINT_URL",
        "S3_REGION",
        "S3_ACCESS_KEY_ID",
        "S3_SECRET_ACCESS_KEY",
    ),
    "Remove it, and set SHARED_DIR to a folder on a network file system that all machines mount: "
    "what agents work on is there.",
)
"""Settings that are gone, each with what to do."""

# Another program may use our prefix; only a name clearly meant for us is refused.
_MISSPELT = 0.85


SHORTEST: Final = 12
"""Characters: what is shorter may be a word of ordinary text."""
_NAMES: Final = frozenset(
    {"AUTH", "CREDENTIAL", "CREDENTIALS", "JWT", "PASS", "PASSPHRASE", "PASSWD", "PAT", "PWD"}
)
"""Parts of names that tell of a secret, whatever it looks like."""
_ADDRESS: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_APART: Final = re.compile(r"[^A-Za-z0-9]+")
_MIXED: Final = 10
"""Letters and digits of a part that has both: versions, sizes and model names have fewer."""
_LETTERS_PER_HUMP: Final = 4
"""In random letters; words in camel case have longer humps."""


def is_secret(variable: str) -> bool:
    """Tell whether a variable's name says that it holds a secret."""
    return bool(_SECRET.search(variable))


def find_secrets(name: str, value: str) -> Iterator[str]:
    """Yield what of a variable's value is a secret."""
    if _ADDRESS.match(value):
        yield from _find_in_address(value)
    elif len(value) >= SHORTEST:
        named = not _NAMES.isdisjoint(name.upper().split("_"))
        if _is_random(value) or (named and not value.startswith(("/", "~", "./"))):
            yield value


def _find_in_address(address: str) -> Iterator[str]:
    """Yield the password of an address, and what else of it is not a word."""
    try:
        parts = urlsplit(address)
    except ValueError:
        yield address
        return
    if parts.password:
        yield from (parts.password, unquote(parts.password))
    keys = [parts.username or "", *parts.path.split("/"), parts.fragment]
    keys += [value for _, value in parse_qsl(parts.query)]
    yield from (each for each in keys if len(each) >= SHORTEST and _is_random(each))


def _is_random(value: str) -> bool:
    """Tell whether a part of a value is what no person would say: letters mixed with digits."""
    if value.startswith(("/", "~/", "./", "../")):
        return False
    return any(map(_is_random_part, _APART.split(value)))


def _is_random_part(part: str) -> bool:
    if part.isdigit() or len(part) < _MIXED:
        return False
    if part.isalpha():
        humps = sum(low.islower() and high.isupper() for low, high in pairwise(part))
        return len(part) >= SHORTEST and humps * _LETTERS_PER_HUMP > len(part)
    # A word or a date with a number at its end is a name: `production2`, `release20260101`.
    return re.fullmatch(r"[A-Za-z]?[a-z]+\d+|[A-Z]+\d+|v?\d+[a-z]+", part) is None


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a valid name means."""

    setting: str
    agent: str | None = None
    file: bool = False


class Names:
    """The valid names of one configuration."""

    def __init__(
        self,
        roster: ConfiguredAgents,
        known: Iterable[KnownAgent],
        entries: Mapping[str, RepositoryEntry],
        services: Iterable[KnownService],
    ) -> None:
        services = tuple(services)
        kinds = [kind for each in services for kind in (each.settings, each.credentials)]
        self._credentials = [
            name for each in services for name in each.credentials.names().values()
        ]
        self._plain = [
            *Settings.names().values(),
            *(name for each in services for name in each.settings.names().values()),
        ]
        self._secret = Settings.secret_names().union(*(kind.secret_names() for kind in kinds))
        self._platforms = tuple(f"{each.name}_".upper() for each in services)
        self._agents = roster.agents
        self._repositories = entries
        self._known = {agent.name: agent for agent in known}
        self._meanings: dict[str, _Meaning] = {}
        self.variables = frozenset(
            variable for agent in self._known.values() for variable in agent.env
        ).union(
            *(self.variables_of(agent) for agent in roster.agents.values()),
            *(entry.env_passthrough for entry in entries.values()),
        )
        self._fill()

    def variables_of(self, agent: AgentConfig) -> tuple[str, ...]:
        """Return the variables that an agent may receive."""
        if agent.url:  # its program and the key of its model are elsewhere
            return (AGENT_TOKEN,)
        known = self._known.get(agent.driver or "")
        return tuple(dict.fromkeys((*(known.env if known else ()), *agent.env_passthrough)))

    def secrets(self) -> tuple[str, ...]:
        """Return the names under which the environment may hold a secret."""
        return tuple(
            name
            for name, meaning in self._meanings.items()
            if not meaning.file and (meaning.setting in self._secret or is_secret(meaning.setting))
        )

    def secrets_of_any_agent(self, sources: Sources) -> tuple[str, ...]:
        """Return the same, with what may belong to an agent that is not known yet."""
        given = (*sources.environ, *sources.dotenv)
        return tuple(dict.fromkeys((*self.secrets(), *filter(self._has_suffix, given))))

    def check(self, sources: Sources, *, agents_known: bool = True) -> None:
        """Refuse names that have no effect; before all agents are known, take any suffix.

        Raises:
            ConfigurationError: for the first such name.
        """
        self._check_passthrough()
        # In the environment, other programs may use the names of S3.
        for name in (*sources.dotenv, *({"SHARED_BUCKET"} & sources.environ.keys())):
            known = name.removesuffix(FILE)
            if known in _REMOVED and name not in self._meanings:
                raise ConfigurationError(known, "is no longer a setting", _REMOVED[known])
        unknown = [
            name
            for name in sources.dotenv
            if name not in self._meanings and (agents_known or not self._has_suffix(name))
        ]
        # Plain names first: a misspelt AGENTS_JSON makes every suffix unknown.
        for name in sorted(unknown, key=lambda name: "__" in name):
            raise self._unknown_name(name, sources.lines)
        for name in sources.environ:
            waits = not agents_known and self._has_suffix(name)
            if name not in self._meanings and self._is_ours(name) and not waits:
                raise self._unknown_name(name, {})

    def _fill(self) -> None:
        for name in self._plain:
            self._add(name, _Meaning(name), secret=name in self._secret)
        for name in self._credentials:
            secret = name in self._secret
            self._add(name, _Meaning(name), secret=secret)
            for agent in self._agents.values():
                self._add(f"{name}__{agent.suffix}", _Meaning(name, agent.name), secret=secret)
        for name in sorted(self.variables):
            self._add(name, _Meaning(name), secret=is_secret(name))
        for agent in self._agents.values():
            for name in self.variables_of(agent):
                meaning = _Meaning(name, agent.name)
                self._add(f"{name}__{agent.suffix}", meaning, secret=is_secret(name))

    def _add(self, name: str, meaning: _Meaning, *, secret: bool) -> None:
        former = self._meanings.setdefault(name, meaning)
        if former != meaning:
            raise ConfigurationError(
                "AGENTS_JSON",
                f"{name} is ambiguous: it would belong to two agents or mean two things",
                "Rename one of the agents so that every suffix is unique.",
            )
        if secret:
            filed = _Meaning(meaning.setting, meaning.agent, file=True)
            self._add(name + FILE, filed, secret=False)

    def _check_passthrough(self) -> None:
        for agent in self._agents.values():
            taken = self._secret.intersection(agent.env_passthrough)
            if taken:
                raise ConfigurationError(
                    "AGENTS_JSON",
                    f"agent {agent.name!r}: env_passthrough names {min(taken)}",
                    "Remove it: no agent gets the bridge's own credentials.",
                )
        for number, entry in enumerate(self._repositories.values(), start=1):
            if taken := self._secret.intersection(entry.env_passthrough):
                raise ConfigurationError(
                    "REPOSITORIES_JSON",
                    f"repository {number}: env_passthrough names {min(taken)}",
                    "Remove it: no agent gets the bridge's own credentials.",
                )

    def _has_suffix(self, name: str) -> bool:
        """Tell whether a name would be a setting of some agent."""
        base, mark, suffix = name.removesuffix(FILE).partition("__")
        return bool(mark and _SUFFIX.fullmatch(suffix)) and base in self._suffixable()

    def _is_ours(self, name: str) -> bool:
        base, mark, _ = name.partition("__")
        if mark:
            return base in self._suffixable() or base.startswith(self._platforms)
        return name.startswith(_OWN_PREFIX) and bool(
            difflib.get_close_matches(name, self._plain, n=1, cutoff=_MISSPELT)
        )

    def _suffixable(self) -> frozenset[str]:
        return self.variables.union(self._credentials)

    def _unknown_name(self, name: str, lines: Mapping[str, int]) -> ConfigurationError:
        base, mark, suffix = name.partition("__")
        if mark and base in self._suffixable():
            return self._unknown_suffix(name, base, suffix)
        otherwise = "Remove it; .env.example lists every setting."
        remedy = did_you_mean(name.upper(), self._meanings, otherwise)
        if base in self._plain:
            remedy = f"Write {base}: it cannot be set per agent."
        elif name.endswith(FILE) and name.removesuffix(FILE) in self._meanings:
            remedy = f"Write {name.removesuffix(FILE)}: only secrets can come from files."
        if re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            return ConfigurationError(name, "is not a setting", remedy)
        # Do not repeat what does not look like a name: it may be a pasted secret.
        return ConfigurationError(".env", f"line {lines[name]} is not a setting", remedy)

    def _unknown_suffix(self, name: str, base: str, suffix: str) -> ConfigurationError:
        owner = next((one for one in self._agents.values() if one.suffix == suffix), None)
        if owner is not None:
            return ConfigurationError(
                name,
                f"is for agent {owner.name!r}, which does not take {base}",
                f"Add {base} to its env_passthrough, or remove the setting.",
            )
        there = ", ".join(f"{base}__{agent.suffix}" for agent in self._agents.values())
        return ConfigurationError(
            name, "belongs to an agent that does not exist", f"Valid names are {there}."
        )
