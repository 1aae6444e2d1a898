"""The kinds of value a setting can have: how each is written, read and checked.

Every check raises a refusal of ours, whose words hold nothing of the value.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_core import PydanticCustomError

from app.config.problems import refusal

Service = Literal["slack", "github", "linear", "web"]
SERVICES: tuple[Service, ...] = get_args(Service)


class Account(NamedTuple):
    """A person or bot as its platform knows it."""

    service: Service
    """Where the account lives."""
    id: str
    """The platform's id; on GitHub a person's login."""


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


def _services(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise refusal("names no service", f"Name some of {', '.join(SERVICES)}, or remove it.")
    if set(names) - set(SERVICES):
        raise refusal("names an unknown service", f"The services are {', '.join(SERVICES)}.")
    return tuple(service for service in SERVICES if service in names)


_PEOPLE = {
    "slack": (r"[UW][A-Z0-9]+", "slack:U024BE7LH"),
    "github": (r"[A-Za-z0-9][A-Za-z0-9-]*", "github:octocat"),
    "linear": (r"[A-Za-z0-9-]+", "linear:<user id>"),
}
_BOTS = {
    "slack": (r"[UBA][A-Z0-9]+", "slack:B024BE7LH"),
    # A login can be taken over by anybody who makes an App of that name; a number cannot.
    "github": (r"[0-9]+", "github:41898282"),
    "linear": (r"[A-Za-z0-9-]+", "linear:<app user id>"),
}


def _accounts(forms: Mapping[str, tuple[str, str]]) -> Callable[[object], object]:
    examples = ",".join(example for _, example in forms.values())

    def parse(text: object) -> object:
        entries = comma_list(text)
        if not isinstance(entries, tuple):
            return entries
        accounts = [_account(entry, forms) for entry in entries]
        if None in accounts:
            number = accounts.index(None) + 1
            raise refusal(f"entry {number} is not understood", f"Write a list such as {examples}.")
        return tuple(accounts)

    return parse


def _account(entry: object, forms: Mapping[str, tuple[str, str]]) -> Account | None:
    service, _, name = str(entry).partition(":")
    if service not in forms or not re.fullmatch(forms[service][0], name):
        return None
    return Account(service, name)  # type: ignore[arg-type]  # the keys of forms are services


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


def _api_folder(text: str) -> str:
    if not text.endswith("/api/"):
        raise refusal("does not end in /api/", "Write it as https://slack.com/api/.")
    return text


def _no_trailing_slash(text: str) -> str:
    if text.endswith("/"):
        raise refusal("ends in a slash", "Remove the slash at the end.")
    return text


def _host(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9.:_-]+", text) or text.startswith("http:"):
        raise refusal("is not a host name or address", "Write it as 127.0.0.1, without a port.")
    return text


# An address with a password in it would show that to every agent, so there is none such.
_REPOSITORY = re.compile(
    r"none|[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+|folder:(?:/|~/).*|"
    r"https?://[^\s@]+|ssh://(?:[\w.-]+@)?[^\s@]+|file:///\S+"
)
_REPOSITORY_REMEDY = (
    "Write owner/name, an address without a password (https://, ssh:// or file://), "
    "folder: and an absolute path, or none."
)


def is_repository(text: str) -> bool:
    """Tell whether a text names a repository or a folder, as settings do."""
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
            "has an entry without = or one name twice",
            'Write {"C1": "owner/name"} or C1=owner/name.',
        )
    return pairs


def _texts(text: object) -> object:
    return json_object(text) if isinstance(text, str) else text


def json_object(text: str) -> dict[str, Any]:
    """Read a JSON object in which no name stands twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise refusal("has the same name twice in one object", "Remove one of the two.")
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise refusal(f"is not valid JSON ({where})", "Check quotes, commas and braces.") from None
    except PydanticCustomError:
        raise
    except (RecursionError, ValueError):
        # Python also refuses numbers of thousands of digits.
        raise refusal("is nested too deeply or absurd", "Write it as a plain object.") from None
    if not isinstance(value, dict):
        raise refusal("is not a JSON object", 'Write it as {"name": ...}.')
    return value


def _repositories(pairs: Mapping[str, str]) -> Mapping[str, str]:
    if not all(map(is_repository, pairs.values())):
        raise refusal("has an entry that is not a repository", _REPOSITORY_REMEDY)
    return MappingProxyType(dict(pairs))


def _frozen(pairs: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(pairs))


def nothing() -> Mapping[str, Any]:
    """Return an empty map that stays empty."""
    return MappingProxyType({})


def at_least(length: int) -> AfterValidator:
    """Demand a secret of so many characters, none of them white space."""

    def check(secret: SecretStr) -> SecretStr:
        text = secret.get_secret_value()
        if re.search(r"\s", text) or not text.isascii():
            raise refusal("has white space or odd characters in it", "Write it without them.")
        if len(text) < length:
            raise refusal("is too short", f"Use at least {length} random characters.")
        return secret

    return AfterValidator(check)


def matching(pattern: str, problem: str, remedy: str) -> AfterValidator:
    """Demand a secret or text of a certain form."""

    def check(value: SecretStr | str) -> SecretStr | str:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if not re.fullmatch(pattern, text, re.DOTALL):
            raise refusal(problem, remedy)
        return value

    return AfterValidator(check)


def _lower(text: object) -> object:
    return text.strip().lower() if isinstance(text, str) else text


Services = Annotated[tuple[str, ...], BeforeValidator(comma_list), AfterValidator(_services)]
People = Annotated[tuple[Account, ...], BeforeValidator(_accounts(_PEOPLE))]
Bots = Annotated[tuple[Account, ...], BeforeValidator(_accounts(_BOTS))]
Address = Annotated[str, AfterValidator(_address)]
FolderAddress = Annotated[Address, AfterValidator(_no_trailing_slash)]
ApiFolder = Annotated[Address, AfterValidator(_api_folder)]
Host = Annotated[str, AfterValidator(_host)]
Repository = Annotated[str, AfterValidator(_repository)]
Repositories = Annotated[Mapping[str, str], BeforeValidator(_pairs), AfterValidator(_repositories)]
Prompts = Annotated[Mapping[str, str], BeforeValidator(_texts), AfterValidator(_frozen)]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(_lower)
]
LogFormat = Annotated[Literal["console", "json"], BeforeValidator(_lower)]
