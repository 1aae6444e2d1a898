"""What a permission request says it is about: kinds, titles, paths and commands; pure.

All of it is the agent's claim. Whatever can be read in two ways is kept in both: a rule that allows
must fit all of them, one that forbids only one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.core.updates import ToolUpdate

_NAMES = ("sh", "bash", "zsh", "dash", "ash", "ksh")
SHELLS = {f"{folder}{name}" for folder in ("", "/bin/", "/usr/bin/") for name in _NAMES}
"""Only those of the machine: what a checkout calls `./bash` is a program like any other."""
DEPTH = 6
"""How deep a path is looked for in a tool's input; the deepest that was seen is three."""
PATHS = 200
"""Paths of one call that are looked at; one with more cannot be judged by its paths."""

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
    """What kind of call it is said to be; none: nobody said."""
    titles: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    unclear: bool = False
    """Whether something in it that could be a path or a command cannot be read."""
    roots: tuple[str, ...] = ()
    """The workspace that relative paths begin at, by all its names."""


def call_of(*claims: ToolUpdate | None, roots: tuple[str, ...] = ()) -> Call:
    """Gather what was said about a call: when it was announced, and when it was asked for."""
    said = [claim for claim in claims if claim is not None]
    found = [fact for claim in said for fact in _facts(claim)]
    commands = _each(text for what, text in found if what == "command")
    paths = _each(text for what, text in found if what == "path")
    kinds = _each(claim.kind for claim in said if claim.kind)
    return Call(
        # Whatever carries a command is one, whatever else it says it is.
        kinds=_each((*kinds, "execute")) if commands else kinds,
        titles=_each(claim.title for claim in said if claim.title),
        paths=paths[:PATHS],
        commands=commands,
        unclear=len(paths) > PATHS or any(what == "unclear" for what, _ in found),
        roots=roots,
    )


def subject(call: Call) -> str:
    """Say exactly what a call would run or touch; in the workspace, as it is named there."""
    return "\n".join(call.commands or _each(_short(path, call.roots) for path in call.paths))


def _short(path: str, roots: tuple[str, ...]) -> str:
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
            yield from (_command([*_listed(inner), *_listed(more)]) for more in arguments if more)
        elif folded == "changes" and isinstance(inner, Mapping):
            yield from (("path", str(path)) for path in inner)
        elif _PATH_NAMES.fullmatch(folded):
            yield from _named(inner)
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


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _named(value: Any) -> Iterator[tuple[str, str]]:
    for item in _listed(value):
        if isinstance(item, str):
            yield "path", item
        elif item is not None and not isinstance(item, Mapping | bool):
            yield "unclear", ""


def _each(texts: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
