"""Reads the keys of an agent's entry from words of the command line, and from JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from app.errors import BridgeError

TEXTS: Final = ("env", "credentials")
"""Tables whose values are text, also if they look like JSON."""


class NotAnEntry(BridgeError):
    """What was typed or read cannot be part of an entry; never repeats it: it may be a secret."""


def parse_assignments(words: Iterable[str]) -> dict[str, Any]:
    """Return what `key=value` words set; a dot leads into a table, a value is JSON or else text.

    Raises:
        NotAnEntry: a word has no key or no value.
    """
    table: dict[str, Any] = {}
    for word in words:
        key, mark, value = word.partition("=")
        if not mark:
            raise NotAnEntry("a setting has no value. Write key=value, such as model=opus.")
        is_text = key.partition(".")[0] in TEXTS and "." in key
        _put(table, key, value if is_text else _read_json(value))
    return table


def parse_removals(words: Iterable[str]) -> dict[str, Any]:
    """Return the change that removes some keys.

    Raises:
        NotAnEntry: a word is not a key.
    """
    table: dict[str, Any] = {}
    for word in words:
        if "=" in word:
            raise NotAnEntry("a key to remove has a value. Write the key alone, such as env.NAME.")
        _put(table, word, None)
    return table


def read_object(text: str) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        NotAnEntry: it is something else.
    """
    found = _read_json(text)
    if not isinstance(found, dict):
        raise NotAnEntry('this is not a JSON object. Write it as {"key": "value"}.')
    return found


def _put(table: dict[str, Any], key: str, value: object) -> None:
    *folders, last = key.split(".")
    if not all((*folders, last)):
        raise NotAnEntry("a key is empty. Write key=value, such as model=opus.")
    for folder in folders:
        table = table.setdefault(folder, {})
        if not isinstance(table, dict):
            raise NotAnEntry("a key is given twice, as a value and as a table. Remove one.")
    table[last] = value


def _read_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
