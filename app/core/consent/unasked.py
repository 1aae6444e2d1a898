"""Finds calls that an agent made without asking, although the rules leave them to people; pure.

Agents read without asking, and they may. What counts is what changes files or runs commands, and
what an operator's rule names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Final

from app.model.calls import LONGEST, Call
from app.model.policy import CHANGING, Policy, Rule, decide

ACTING: Final = frozenset({*CHANGING, "execute"})
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
_TO_NOWHERE: Final = re.compile(r"(?<!\S)[12&]?>{1,2}\s*/dev/null(?!\S)|(?<!\S)2>&1(?!\S)")
_MEANING: Final = frozenset("$`<>(){}\\")
"""Characters that make a shell do more than run plain words."""
_BETWEEN: Final = frozenset({"|", "||", "&&", ";"})
_SEPARATING: Final = frozenset(";|&")
_PROGRAMS: Final = frozenset(
    (
        *("basename", "cat", "cd", "cmp", "column", "comm", "cut", "date", "df", "diff", "dirname"),
        *("du", "echo", "egrep", "false", "fgrep", "file", "find", "git", "grep", "head"),
        *("hostname", "id", "jq", "less", "ls", "md5sum", "nl", "od", "printf", "pwd", "readlink"),
        *("realpath", "rg", "sed", "sha256sum", "sleep", "sort", "stat", "strings", "tail", "test"),
        *("tr", "tree", "true", "type", "uname", "uniq", "wc", "which", "whoami"),
    )
)
_GIT: Final = frozenset(
    (
        *("blame", "branch", "cat-file", "describe", "diff", "grep", "log", "ls-files", "ls-tree"),
        *("merge-base", "remote", "rev-list", "rev-parse", "shortlog", "show", "status", "tag"),
    )
)
_GIT_LISTS: Final = frozenset({"branch", "remote", "tag"})
"""They only list when given nothing but options."""


def needed_asking(policy: Policy, call: Call, *, confines_commands: bool = False) -> bool:
    """Tell whether people should have been asked about a call that was made.

    `confines_commands`: the agent runs commands in its own sandbox that lets them change
    nothing, and asks before one leaves it.
    """
    verdict = decide(policy, call)
    if verdict.decision == "allow":
        return False
    # What a denial only might mean is asked, but is no accusation.
    rule = verdict.rule if verdict.rule and verdict.rule.decision == verdict.decision else None
    if rule is not None and _is_particular(rule):
        return True
    acting = ACTING & set(call.kinds)
    if acting == {"execute"}:
        return not confines_commands and not (call.commands and all(map(only_reads, call.commands)))
    return bool(acting) or rule is not None


def _is_particular(rule: Rule) -> bool:
    return bool(rule.title or rule.path or rule.command)


def only_reads(command: str) -> bool:
    """Tell whether a command line surely changes nothing and starts no other program."""
    line = _TO_NOWHERE.sub(" ", command)
    if len(command) > LONGEST or _MEANING & set(_QUOTED.sub("q", line)):
        return False
    lexer = shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=";|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return False
    parts: list[list[str]] = [[]]
    for word in words:
        if word in _BETWEEN:
            parts.append([])
        elif set(word) <= _SEPARATING:
            return False
        else:
            parts[-1].append(word)
    return all(map(_is_reading, parts))


def _is_reading(words: Sequence[str]) -> bool:
    if not words:
        return True
    name, arguments = words[0], words[1:]
    return name in _PROGRAMS and _LOOKS.get(name, _always)(arguments)


def _always(_arguments: Sequence[str]) -> bool:
    return True


def _find(arguments: Sequence[str]) -> bool:
    return not any(
        word.startswith(("-exec", "-ok", "-delete", "-fprint", "-fls")) for word in arguments
    )


def _git(arguments: Sequence[str]) -> bool:
    words = list(arguments)
    while words and words[0] in {"--no-pager", "-P"}:
        del words[0]
    if not words or words[0] not in _GIT:
        return False
    risky = ("--output", "--ext-diff", "--textconv", "-O", "--open-files")
    if any(word.startswith(risky) for word in words):
        return False
    return words[0] not in _GIT_LISTS or all(
        word.startswith("-") and word[:2] not in {"-d", "-D", "-m", "-M", "-c", "-C", "-f"}
        for word in words[1:]
    )


def _sed(arguments: Sequence[str]) -> bool:
    """Allow only printing of lines: other sed scripts write and execute."""
    return (
        len(arguments) >= 2
        and arguments[0] == "-n"
        and bool(re.fullmatch(r"[0-9,$]+p", arguments[1]))
        and not any(word.startswith("-") for word in arguments[2:])
    )


def _sort(arguments: Sequence[str]) -> bool:
    return not any(word.startswith(("-o", "--o", "--compress", "-T", "-S")) for word in arguments)


def _rg(arguments: Sequence[str]) -> bool:
    return not any(
        word.startswith(("--pre", "--hostname-bin", "-z", "--search-zip")) for word in arguments
    )


def _few(arguments: Sequence[str]) -> bool:
    """Allow at most one file: a second one would be written."""
    return sum(not word.startswith("-") for word in arguments) <= 1


_LOOKS: Final[dict[str, Callable[[Sequence[str]], bool]]] = {
    "find": _find,
    "git": _git,
    "sed": _sed,
    "sort": _sort,
    "rg": _rg,
    "uniq": _few,
    "tree": lambda arguments: not any(word.startswith("-o") for word in arguments),
    "less": lambda arguments: not any(word[:2].lower() in {"-o", "--"} for word in arguments),
    "date": lambda arguments: not any(word.startswith(("-s", "--s")) for word in arguments),
    "hostname": lambda arguments: not arguments,
}
