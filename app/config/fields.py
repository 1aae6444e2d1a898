"""Defines the value types of settings: how each is written, parsed and checked.

Every check raises our own refusal, which never contains the value.
"""

from __future__ import annotations

import ipaddress
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_core import PydanticCustomError

from app.config.sources import refusal

PAGE = "web"
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::")  # noqa: S104 - read, not bound
"""Listen addresses that a browser on this machine reaches by any name in `.localhost`."""
"""The bridge's own page: the one service that is always there."""
PEM = r"\s*-----BEGIN [A-Z ]*PRIVATE KEY-----\s.+\s-----END [A-Z ]*PRIVATE KEY-----\s*"
SHORTEST_WEBHOOK_SECRET = 16
"""Anyone who guesses it can send events that every agent trusts."""


class Account(NamedTuple):
    """A person's or bot's account on a platform."""

    service: str
    """The platform."""
    id: str
    """The platform's id, or a login where people know only the login."""


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach a server bound to the host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def comma_list(text: object) -> object:
    """Split a comma list; leave everything else to the type."""
    if not isinstance(text, str):
        return text
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _accounts(text: object) -> object:
    entries = comma_list(text)
    if not isinstance(entries, tuple):
        return entries
    halves = (str(entry).partition(":") for entry in entries)
    return tuple(Account(service, name) for service, _, name in halves)


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or re.search(r"\s", text):
        raise refusal("is not an http or https address", "Write it as https://host/path.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise refusal("has more than a host and a path", "Write it as https://host/path.")
    return text


def _proxy_address(text: str) -> str:
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise refusal("is not the address of an HTTP proxy", "Write it as http://host:port.")
    return parts.geturl()


def _refuse_plain_http(text: str) -> str:
    """Refuse plain HTTP to another machine: anyone on the way could read tokens and messages."""
    if is_plain_and_remote(text):
        raise refusal("uses plain http to another machine", "Write it as https://.")
    return text


def is_plain_and_remote(address: str) -> bool:
    """Tell whether anyone on the way to an address can read what is sent there."""
    parts = urlsplit(address)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


# An address with a password would show it to every agent, so none is accepted.
_REPOSITORY = re.compile(
    r"none|[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+|folder:(?:/|~/).*|"
    r"https?://[^\s@]+|ssh://(?:[\w.-]+@)?[^\s@]+|file:///\S+"
)
_REPOSITORY_REMEDY = (
    "Write owner/name, an address without a password (https://, ssh:// or file://), "
    "folder: and an absolute path, or none."
)


def is_repository(text: str) -> bool:
    """Tell whether a text names a repository or a folder in the form that settings use."""
    return bool(_REPOSITORY.fullmatch(text)) and not text.endswith(("/.", "/.."))


def _repository(text: str) -> str:
    if not is_repository(text):
        raise refusal("is not a repository", _REPOSITORY_REMEDY)
    return text


def _pairs(text: object) -> object:
    """Read a map, written as a JSON object or as a comma list of name=value."""
    if not isinstance(text, str):
        return text
    if text.lstrip().startswith("{"):
        return json_object(text)
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    halves = [entry.partition("=") for entry in entries]
    pairs = {name.strip(): value.strip() for name, sign, value in halves if sign}
    if len(pairs) != len(entries):
        raise refusal(
            "has an entry without = or a duplicate name",
            'Write {"C1": "owner/name"} or C1=owner/name.',
        )
    return pairs


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object and refuse duplicate names."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise refusal("has a duplicate name in an object", "Remove one of the two.")
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise refusal(f"is not valid JSON ({where})", "Check quotes, commas and braces.") from None
    except PydanticCustomError:
        raise
    except (RecursionError, ValueError):
        # Python also refuses numbers with thousands of digits.
        raise refusal("is nested too deeply", "Write it as a plain object.") from None
    if not isinstance(value, dict):
        raise refusal("is not a JSON object", 'Write it as {"name": ...}.')
    return value


def _repositories(pairs: Mapping[str, str]) -> Mapping[str, str]:
    if not all(map(is_repository, pairs.values())):
        raise refusal("has an entry that is not a repository", _REPOSITORY_REMEDY)
    return MappingProxyType(dict(pairs))


def text_list(value: object) -> object:
    """Return a list of strings as a tuple."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(value, tuple):
        return value
    raise refusal("is not a list of strings", 'Write it as ["one", "two"].')


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _variables(names: Iterable[str]) -> None:
    names = list(names)
    if not all(_VARIABLE.fullmatch(name) for name in names):
        raise refusal("is not a variable name", "Write names such as OPENAI_API_KEY.")
    if "HOME" in names:
        raise refusal("names HOME", "Use the key home instead.")


def _passthrough(names: tuple[str, ...]) -> tuple[str, ...]:
    _variables(names)
    return names


def _environment(table: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    _variables(table)
    if any("\0" in value.get_secret_value() for value in table.values()):
        raise refusal("has a value with a null character", "Remove it.")
    return MappingProxyType(dict(table))


def nothing() -> Mapping[str, Any]:
    """Return an empty map that stays empty."""
    return MappingProxyType({})


def at_least(length: int) -> AfterValidator:
    """Require a secret of at least this many ASCII characters, without whitespace."""

    def check(secret: SecretStr) -> SecretStr:
        text = secret.get_secret_value()
        if re.search(r"\s", text) or not text.isascii():
            raise refusal("has whitespace or non-ASCII characters", "Remove them.")
        return _strong(secret, length)

    return AfterValidator(check)


def strong(length: int) -> AfterValidator:
    """Require a secret of at least this many characters that is hard to guess."""
    return AfterValidator(lambda secret: _strong(secret, length))


def _strong(secret: SecretStr, length: int) -> SecretStr:
    text = secret.get_secret_value()
    if len(text) < length:
        raise refusal("is too short", f"Use at least {length} random characters.")
    if is_guessable(text):
        raise refusal("is easy to guess", f"Use at least {length} random characters.")
    return secret


# Sixteen random hex digits have fewer kinds of characters once in some thousand times.
_FEWEST_KINDS = 6
_STOCK_WORDS = re.compile(
    r"change.?me|password|passw0rd|letmein|qwerty|placeholder|example|your[-_]", re.IGNORECASE
)


def is_guessable(secret: str) -> bool:
    """Tell whether a secret looks typed: few characters, a keyboard row, a stock word."""
    steps = [ord(after) - ord(before) for before, after in pairwise(secret)]
    in_a_row = sum(abs(step) <= 1 for step in steps)
    return (
        len(set(secret)) < _FEWEST_KINDS
        or in_a_row * 3 > len(steps) * 2
        or _STOCK_WORDS.search(secret) is not None
    )


def matching(pattern: str, problem: str, remedy: str) -> AfterValidator:
    """Require a secret or text that matches a pattern."""

    def check(value: SecretStr | str) -> SecretStr | str:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if not re.fullmatch(pattern, text, re.DOTALL):
            raise refusal(problem, remedy)
        return value

    return AfterValidator(check)


LONGEST_EMOJI: Final = 8
"""The longest that is accepted: a family of four has seven."""

_SELECTOR: Final = "\N{VARIATION SELECTOR-16}"
_JOINER: Final = "\N{ZERO WIDTH JOINER}"
_SKINS: Final = "\U0001f3fb-\U0001f3ff"
_TAGS: Final = "\U000e0020-\U000e007f"
_FLAG: Final = "[\U0001f1e6-\U0001f1ff]{2}"
_SYMBOL: Final = f"[^\0-\x7f{_SELECTOR}{_JOINER}{_SKINS}{_TAGS}]"
_ONE: Final = f"{_SYMBOL}[{_SELECTOR}{_SKINS}]?"
_EMOJI: Final = re.compile(f"{_FLAG}|{_ONE}[{_TAGS}]*(?:{_JOINER}{_ONE})*")


def is_emoji(text: str) -> bool:
    """Tell whether a text is one symbol with its modifiers, several that are joined, or a flag."""
    return (
        len(text) <= LONGEST_EMOJI
        and _EMOJI.fullmatch(text) is not None
        # Emoji that are newer than this interpreter have no category yet.
        and all(
            "\U0001f000" <= character < "\U0001fb00" or unicodedata.category(character) == "So"
            for character in re.findall(_SYMBOL, text)
        )
    )


def _emoji(text: str) -> str:
    if not is_emoji(text):
        raise refusal("is not one emoji", 'Write one, such as "\N{FOX FACE}".')
    return text


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise refusal("is not a time zone", "Write it like Europe/Berlin.") from None


def _networks(names: tuple[str, ...]) -> tuple[str, ...]:
    for number, name in enumerate(names, start=1):
        try:
            ipaddress.ip_network(name)
        except ValueError:
            raise refusal(
                f"entry {number} is not an address or a network",
                "Write a list such as 127.0.0.1,10.0.0.0/8.",
            ) from None
    return names


def _lower(text: object) -> object:
    return text.strip().lower() if isinstance(text, str) else text


Words = Annotated[tuple[str, ...], BeforeValidator(comma_list)]
Accounts = Annotated[tuple[Account, ...], BeforeValidator(_accounts)]
Address = Annotated[str, AfterValidator(_address)]
PlatformAddress = Annotated[Address, AfterValidator(_refuse_plain_http)]
FolderAddress = Annotated[
    PlatformAddress, matching(r".*[^/]", "ends in a slash", "Remove the slash at the end.")
]
ProxyAddress = Annotated[str, AfterValidator(_proxy_address)]
Host = Annotated[
    str,
    matching(
        r"(?!http:)[A-Za-z0-9.:_-]+",
        "is not a host name or address",
        "Write it as 127.0.0.1, without a port.",
    ),
]
Networks = Annotated[tuple[str, ...], BeforeValidator(comma_list), AfterValidator(_networks)]
Zone = Annotated[str, AfterValidator(_zone)]
Repository = Annotated[str, AfterValidator(_repository)]
Repositories = Annotated[Mapping[str, str], BeforeValidator(_pairs), AfterValidator(_repositories)]
Prompts = Annotated[
    Mapping[str, str],
    BeforeValidator(lambda text: json_object(text) if isinstance(text, str) else text),
    AfterValidator(lambda pairs: MappingProxyType(dict(pairs))),
]
Variables = Annotated[tuple[str, ...], BeforeValidator(text_list), AfterValidator(_passthrough)]
Environment = Annotated[Mapping[str, SecretStr], AfterValidator(_environment)]
Emoji = Annotated[str, AfterValidator(_emoji)]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(_lower)
]
LogFormat = Annotated[Literal["console", "json"], BeforeValidator(_lower)]
BridgeRole = Annotated[Literal["all", "front", "worker"], BeforeValidator(_lower)]
Token = matching(r"\S+", "contains whitespace", "Copy it again without the space.")
WebhookSecret = Annotated[
    SecretStr,
    matching(r"\S(.*\S)?", "begins or ends with whitespace", "Copy it again without the space."),
    strong(SHORTEST_WEBHOOK_SECRET),
]
