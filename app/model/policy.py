"""Decides what an agent may do without asking: rules in order, denials above all.

Pure. A rule that allows must fit everything that a call claims; one that asks or denies must fit
only one of it. What a denial closes no other rule opens, in any order, and what a denial only
might close is asked. A rule that allows and names no path applies to the workspace. What no rule
fits is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from posixpath import normpath
from typing import Final, Literal

from app.model.calls import LONGEST, Call, commands, mentions, plain

Decision = Literal["allow", "ask", "deny"]

READING: Final = ("read", "search", "think")
"""Reading; not `fetch`, whose address can carry any data out."""
CHANGING: Final = ("edit", "delete", "move")
ABOUT_FILES: Final = {"read", "search", *CHANGING}
"""The kinds that a path applies to; what a command touches is not known beforehand."""
WITHOUT_FILES: Final = {"think", "fetch", "switch_mode"}


@dataclass(frozen=True, slots=True)
class Rule:
    """A decision about some calls; an empty matcher fits every call."""

    decision: Decision
    kind: tuple[str, ...] = ()
    title: tuple[str, ...] = ()
    """Globs on the title. It is the agent's own words: it narrows a rule, it never is one."""
    path: tuple[str, ...] = ()
    command: tuple[str, ...] = ()

    def __str__(self) -> str:
        matchers = [f"{name} {', '.join(globs)}" for name, globs in self._matchers() if globs]
        return " ".join([self.decision, "; ".join(matchers) or "everything"])

    def _matchers(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        return (
            ("kind", self.kind),
            ("title", self.title),
            ("path", self.path),
            ("command", self.command),
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one agent, in the operator's order."""

    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision and its rule; no rule if none fits."""

    decision: Decision
    rule: Rule | None = None


PRESETS: Final = {
    "read-only": Policy(
        (Rule("allow", kind=READING), Rule("deny", kind=(*CHANGING, "execute"))),
    ),
    "careful": Policy((Rule("allow", kind=READING),)),
    "trusted": Policy((Rule("allow", kind=(*READING, *CHANGING, "execute", "fetch")),)),
}


class _Fit(IntEnum):
    NO = 0
    MAYBE = 1
    YES = 2


def decide(policy: Policy, call: Call) -> Verdict:
    """Decide on one call."""
    doubt: Rule | None = None
    for rule in policy.rules:
        if rule.decision == "deny":
            fit = _closes(rule, call)
            if fit is _Fit.YES:
                return Verdict("deny", rule)
            doubt = doubt or (rule if fit is _Fit.MAYBE else None)
    for rule in policy.rules:
        if rule.decision == "ask" and _closes(rule, call):
            return Verdict("ask", rule)
        if rule.decision == "allow" and _opens(rule, call):
            return Verdict("ask", doubt) if doubt else Verdict("allow", rule)
    return Verdict("ask", doubt)


def _opens(rule: Rule, call: Call) -> bool:
    """Tell whether a rule that allows fits a call in every reading."""
    if rule.title and not rule.kind:
        return False
    if (rule.path or rule.command) and call.unclear:
        return False
    return (
        (not rule.kind or _all(call.kinds, lambda kind: kind in rule.kind))
        and (not rule.title or _all(call.titles, lambda title: _text_fits(rule.title, title)))
        and (_opens_paths(rule.path, call) if rule.path else stays_inside(call))
        and (not rule.command or _opens_commands(rule.command, call))
    )


def stays_inside(call: Call) -> bool:
    """Tell whether a call claims to touch no file outside the workspace."""
    if not ABOUT_FILES & set(call.kinds):
        return True
    placed = [locate(path, call.roots) for path in call.paths]
    return not call.unclear and all(each is not None and each[0] is not None for each in placed)


def _opens_paths(globs: Sequence[str], call: Call) -> bool:
    def fits(path: str) -> bool:
        placed = locate(path, call.roots)
        return placed is not None and any(_path_fits(glob, *placed) for glob in globs)

    return _all(call.kinds, lambda kind: kind in ABOUT_FILES) and _all(call.paths, fits)


def _opens_commands(globs: Sequence[str], call: Call) -> bool:
    def fits(command: str) -> bool:
        words = plain(command)
        return words is not None and _text_fits(globs, words)

    return call.kinds == ("execute",) and _all(call.commands, fits)


def _closes(rule: Rule, call: Call) -> _Fit:
    """Tell whether a rule that asks or denies fits a call in any reading."""
    fits = [_Fit.YES]
    if rule.kind:
        known = any(kind in rule.kind for kind in call.kinds)
        fits.append(_Fit.YES if known else _Fit.NO if call.kinds else _Fit.MAYBE)
    if rule.title:
        known = any(_text_fits(rule.title, title, loose=True) for title in call.titles)
        fits.append(_Fit.YES if known else _Fit.NO if call.titles else _Fit.MAYBE)
    if rule.path:
        fits.append(_closes_paths(rule.path, call))
    if rule.command:
        fits.append(_closes_commands(rule.command, call))
    return min(fits)


def _closes_paths(globs: Sequence[str], call: Call) -> _Fit:
    placed = [locate(path, call.roots) for path in call.paths]
    if any(_path_fits(glob, *each, loose=True) for each in placed if each for glob in globs):
        return _Fit.YES
    if call.unclear or None in placed:
        return _Fit.MAYBE
    if call.commands:
        return _Fit.MAYBE if _mentions_path(globs, call) else _Fit.NO
    pathless = call.kinds and set(call.kinds) <= WITHOUT_FILES
    return _Fit.NO if call.paths or pathless else _Fit.MAYBE


def _mentions_path(globs: Sequence[str], call: Call) -> bool:
    if any(plain(command) is None for command in call.commands):
        return True
    words = (word for command in call.commands for word in command.replace("=", " ").split())
    placed = (locate(word.strip("'\""), call.roots) for word in words)
    return any(
        each is None or any(_path_fits(glob, *each, loose=True) for glob in globs)
        for each in placed
    )


def _closes_commands(globs: Sequence[str], call: Call) -> _Fit:
    def fits(text: str) -> bool:
        return _text_fits(globs, text, loose=True)

    for command in call.commands:
        if fits(command) or any(map(fits, commands(command))):
            return _Fit.YES
    tricky = any(plain(command) is None for command in call.commands)
    if call.unclear or tricky or any(fits(t) for c in call.commands for t in mentions(c)):
        return _Fit.MAYBE
    hidden = not call.commands and (not call.kinds or "execute" in call.kinds)
    return _Fit.MAYBE if hidden else _Fit.NO


def locate(path: str, roots: Sequence[str]) -> tuple[str | None, str] | None:
    """Locate a path: in the workspace, if it is there, and on the machine; None if unknown.

    Nothing is looked up: what only the machine could resolve (`..`, `~`, a variable) is unknown.
    """
    path, is_address = path.removeprefix("file://"), path.startswith("file://")
    parts = path.split("/")
    if not path.strip() or not path.isprintable() or ".." in parts or path[0] == "~":
        return None
    if "://" in path or "$" in path or "\\" in path or len(path) > LONGEST:
        return None
    if is_address and "%" in path:
        return None
    home = roots[0] if roots else "/workspace"
    absolute = normpath(path if path.startswith("/") else f"{home}/{path}")
    for root in roots or (home,):
        if absolute == root:
            return "", absolute
        if absolute.startswith(root.rstrip("/") + "/"):
            return absolute[len(root.rstrip("/")) + 1 :], absolute
    return None, absolute


def _path_fits(glob: str, inside: str | None, absolute: str, *, loose: bool = False) -> bool:
    glob = glob.removeprefix("./")
    if glob.endswith("/"):
        glob += "**"
    if glob.startswith("/"):
        return _matches(glob, absolute, loose=loose)
    if "/" not in glob:
        glob = f"**/{glob}"
        if loose and inside is None:
            inside = absolute.lstrip("/")
    if inside is None:
        return False
    if loose and glob.endswith("/**") and _matches(glob.removesuffix("/**"), inside, loose=True):
        return True
    return _matches(glob, inside, loose=loose)


def _matches(glob: str, path: str, *, loose: bool) -> bool:
    pattern = _pattern(glob, by_parts=True, any_case=loose)
    return pattern.fullmatch(path) is not None


def _text_fits(globs: Sequence[str], text: str, *, loose: bool = False) -> bool:
    """Match a text; with `loose`, a glob also fits a text with more words after it."""
    if len(text) > LONGEST:
        return loose and _text_fits(globs, text[:LONGEST], loose=True)
    patterns = [_pattern(glob, by_parts=False, any_case=loose) for glob in globs]
    if loose:
        patterns += [_pattern(f"{glob} *", by_parts=False, any_case=True) for glob in globs]
    return any(pattern.fullmatch(text) for pattern in patterns)


@lru_cache(maxsize=1024)
def _pattern(glob: str, *, by_parts: bool, any_case: bool) -> re.Pattern[str]:
    """Compile a glob: `*` and `?`, and for paths `**`; everything else is literal."""
    pieces = {
        "**/": "(?:.*/)?" if by_parts else ".*/",
        "**": ".*",
        "*": "[^/]*" if by_parts else ".*",
        "?": "[^/]" if by_parts else ".",
    }
    found = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    pattern = "".join(pieces.get(piece) or re.escape(piece) for piece in found)
    return re.compile(pattern, re.DOTALL | (re.IGNORECASE if any_case else 0))


def _all(values: Sequence[str], fits: Callable[[str], bool]) -> bool:
    return bool(values) and all(fits(value) for value in values)
