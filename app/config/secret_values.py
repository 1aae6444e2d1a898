"""Finds secrets among the values of variables whose names do not say that they hold one.

Pure. What is registered as a secret is redacted everywhere: words, paths, numbers, model names and
plain addresses must not be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

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


def find_secrets(name: str, value: str) -> Iterator[str]:
    """Yield what of a variable's value is a secret."""
    if _ADDRESS.match(value):
        yield from _find_in_address(value)
    elif len(value) >= SHORTEST and (_tells(name, value) or _is_random(value)):
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


def _tells(name: str, value: str) -> bool:
    """Tell whether a name tells of a secret, and the value is no path."""
    return not _NAMES.isdisjoint(name.upper().split("_")) and not value.startswith(("/", "~", "./"))


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
