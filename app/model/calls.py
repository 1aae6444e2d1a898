"""Reads what a permission request is about: kinds, titles, paths and commands; pure.

All of it is the agent's claim. What can be read in two ways is kept in both: a rule that allows
must fit all of them, one that forbids only one.

A rule that allows a command by its words must be sure that a shell sees the same words. A line
with a character that means something to some shell, quoted or not, is therefore not understood.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import basename
from typing import Any

from app.model import wording
from app.model.updates import FileDiff, ToolUpdate

_NAMES = ("sh", "bash", "zsh", "dash", "ash", "ksh")
SHELLS = {f"{folder}{name}" for folder in ("", "/bin/", "/usr/bin/") for name in _NAMES}
"""Only the machine's shells: `./bash` in a checkout is a program like any other."""
DEPTH = 6
"""How deep paths are searched in a tool's input; the deepest seen is three."""
PATHS = 200
"""Paths of one call that are read; a call with more cannot be judged by its paths."""
TOOL_CHARACTERS = 256 * 1024
"""What a row keeps of one tool's input, of its output and of each file it changed."""
DIFF_CHARACTERS = 2 * TOOL_CHARACTERS
"""What a row keeps of all files that a call changed: a search for secrets in it takes a moment."""
DIFFS = 500
"""Files that one call can be shown to change."""

_PATH_NAMES = re.compile(
    r".*paths?|.*file|files|.*filename|.*folder|.*director(y|ies)|dir|source|destination",
    re.IGNORECASE,
)
_COMMAND_NAMES = {"command", "cmd", "script", "commandline"}
_ARGUMENT_NAMES = {"args", "arguments", "argv"}
_LINE = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call, as far as rules can tell calls apart."""

    kinds: tuple[str, ...] = ()
    """The kinds that the agent claims; empty if it claims none."""
    titles: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    unclear: bool = False
    """Whether something in it that could be a path or a command cannot be read."""
    roots: tuple[str, ...] = ()
    """The folders that an agent may work in, first the one that relative paths begin at."""
    home: tuple[str, ...] = ()
    """The workspace alone, by all its names."""


def call_of(*claims: ToolUpdate | None, roots: tuple[str, ...] = ()) -> Call:
    """Combine what the agent said about a call: in its announcement and in its request."""
    said = [claim for claim in claims if claim is not None]
    found = [fact for claim in said for fact in _facts(claim)]
    commands = _each(text for what, text in found if what == "command")
    paths = _each(text for what, text in found if what == "path")
    kinds = _each(claim.kind for claim in said if claim.kind)
    return Call(
        # A call that carries a command is a command, also if it claims another kind.
        kinds=_each((*kinds, "execute")) if commands else kinds,
        titles=_each(claim.title for claim in said if claim.title),
        paths=paths[:PATHS],
        commands=commands,
        unclear=len(paths) > PATHS or any(what == "unclear" for what, _ in found),
        roots=roots,
    )


def subject(call: Call) -> str:
    """Say exactly what a call would run or touch; workspace files by their relative path."""
    return "\n".join(call.commands or _each(short_path(path, call.roots) for path in call.paths))


def short_path(path: str, roots: tuple[str, ...]) -> str:
    """Name a file by its path in the workspace."""
    for root in roots:
        inside = path.removeprefix(f"{root.rstrip('/')}/")
        if inside != path and ".." not in inside.split("/"):
            return inside or path
    return path


def _facts(claim: ToolUpdate) -> Iterator[tuple[str, str]]:
    for location in claim.locations or ():
        yield "path", _LINE.sub("", location)
    for diff in claim.diffs or ():
        yield "path", diff.path
    if isinstance(claim.input, str) and claim.kind == "execute":
        yield "command", claim.input
    else:
        yield from _inside(claim.input, DEPTH)


def _inside(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _inside(item, depth - 1)
    if not isinstance(value, Mapping):
        return
    if depth <= 0:
        yield "unclear", ""
        return
    arguments = [
        inner
        for name, inner in value.items()
        if str(name).lower() in _ARGUMENT_NAMES and isinstance(inner, list | str)
    ]
    for name, inner in value.items():
        folded = str(name).lower()
        if folded in _COMMAND_NAMES:
            yield _command(inner)
            yield from (_command([*_as_list(inner), *_as_list(more)]) for more in arguments if more)
        elif folded == "changes" and isinstance(inner, Mapping):
            yield from (("path", str(path)) for path in inner)
        elif _PATH_NAMES.fullmatch(folded):
            yield from _list_paths(inner)
            yield from _inside(inner, depth - 1)
        else:
            yield from _inside(inner, depth - 1)


def _command(value: Any) -> tuple[str, str]:
    if isinstance(value, str) and value.strip():
        return "command", value
    if not isinstance(value, list) or not value or not all(isinstance(w, str) for w in value):
        return "unclear", ""
    if len(value) == 3 and value[0] in SHELLS and value[1] in {"-c", "-lc"}:
        return "command", value[2]
    return "command", " ".join(value)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _list_paths(value: Any) -> Iterator[tuple[str, str]]:
    for item in _as_list(value):
        if isinstance(item, str):
            yield "path", item
        elif item is not None and not isinstance(item, Mapping | bool):
            yield "unclear", ""


def _each(texts: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


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


def merge_tool(known: ToolUpdate | None, update: ToolUpdate) -> ToolUpdate:
    """Merge an update into what was known, no larger than a row may be."""
    update = replace(
        update,
        input=limit_size(update.input),
        output=None if update.output is None else _cut(update.output, TOOL_CHARACTERS),
        diffs=None if update.diffs is None else _shorten(update.diffs),
    )
    if known is None:
        return update
    changes = {
        name: value for name in ToolUpdate.__slots__ if (value := getattr(update, name)) is not None
    }
    return replace(known, **changes)


def _shorten(diffs: Sequence[FileDiff]) -> tuple[FileDiff, ...]:
    """Keep the changes of files up to what a row keeps of all of them."""
    kept: list[FileDiff] = []
    room = DIFF_CHARACTERS
    for diff in diffs[:DIFFS]:
        old = None if diff.old is None else _cut(diff.old, min(room // 2, TOOL_CHARACTERS))
        new = _cut(diff.new, min(room // 2, TOOL_CHARACTERS))
        room -= len(old or "") + len(new)
        kept.append(replace(diff, old=old, new=new))
    more = [FileDiff(wording.CUT_OFF, None, "")] if len(diffs) > DIFFS else []
    return (*kept, *more)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} {wording.CUT_OFF}"


def limit_size(value: Any) -> Any:
    """Keep a JSON value as it is unless it is too large for a row."""
    text = str(value)
    return value if len(text) <= TOOL_CHARACTERS else _cut(text, TOOL_CHARACTERS)
