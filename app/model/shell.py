"""Splits command lines where that is safe: plain words that every shell reads alike; pure.

A rule that allows a command by its words must be sure that a shell sees the same words. A line
with a character that means something to some shell, quoted or not, is therefore not understood.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from posixpath import basename

LONGEST = 4_000
"""Length of a command that is parsed; rules for longer ones are not expected."""

_SIGNS = frozenset(";&|<>$`(){}[]*?~!#\\^")
_BREAKS = re.compile(r"[;&|<>$`(){}\s]*[;&|<>$`(){}\n\r]+[;&|<>$`(){}\s]*")
_QUOTES = str.maketrans("", "", "'\"\\")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)


def plain(command: str) -> str | None:
    """Write a command of plain words in one form; None if a shell might see more in it."""
    if len(command) > LONGEST or not command.isprintable() or _SIGNS & set(command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not words or not words[0] or "=" in words[0]:
        return None
    return shlex.join(words)


def commands(command: str) -> Iterator[str]:
    """List the commands that a line surely runs, without what precedes their names."""
    for words in _parts(command):
        first = next((at for at, word in enumerate(words) if not _ASSIGNMENT.match(word)), None)
        if first is not None:
            yield from _list_spellings(words[first:])


def mentions(command: str) -> Iterator[str]:
    """List what a line might run through another program: its rest from each word on."""
    for words in _parts(command):
        for at in range(len(words)):
            yield from _list_spellings(words[at:])


def _parts(command: str) -> Iterator[list[str]]:
    for part in _BREAKS.split(command[:LONGEST].translate(_QUOTES)):
        if words := part.split():
            yield words


def _list_spellings(words: list[str]) -> Iterator[str]:
    yield " ".join(words)
    if "/" in words[0]:
        yield " ".join([basename(words[0]), *words[1:]])
