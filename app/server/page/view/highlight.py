"""Highlights source code: each line as HTML with a few class names; pure.

A lexer is a set of regular expressions, and code comes from agents: long texts and long lines stay
plain, and only widespread languages have a lexer here.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache, lru_cache
from html import escape
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

CHARACTERS: Final = 60_000
"""The longest text that is highlighted: some 1,500 lines, about 100 ms."""
LINE_CHARACTERS: Final = 2_000
"""The longest line that is highlighted: people do not write longer ones, minifiers do."""
CACHED: Final = 200
"""Texts whose lines are cached: what the open pages show."""

_LANGUAGES: Final = {
    "bash": "bash",
    "sh": "bash",
    "shell": "bash",
    "zsh": "bash",
    "console": "console",
    "c": "c",
    "h": "c",
    "cpp": "cpp",
    "cc": "cpp",
    "hpp": "cpp",
    "c++": "cpp",
    "cs": "csharp",
    "css": "css",
    "diff": "diff",
    "patch": "diff",
    "dockerfile": "docker",
    "go": "go",
    "html": "html",
    "ini": "ini",
    "cfg": "ini",
    "toml": "toml",
    "java": "java",
    "js": "javascript",
    "jsx": "jsx",
    "mjs": "javascript",
    "javascript": "javascript",
    "json": "json",
    "kt": "kotlin",
    "kotlin": "kotlin",
    "lua": "lua",
    "makefile": "make",
    "md": "markdown",
    "markdown": "markdown",
    "php": "php",
    "py": "python",
    "python": "python",
    "pyi": "python",
    "pycon": "pycon",
    "rb": "ruby",
    "ruby": "ruby",
    "rs": "rust",
    "rust": "rust",
    "scala": "scala",
    "sql": "sql",
    "swift": "swift",
    "ts": "typescript",
    "typescript": "typescript",
    "tsx": "tsx",
    "vue": "html",
    "xml": "xml",
    "svg": "xml",
    "yaml": "yaml",
    "yml": "yaml",
    "graphql": "graphql",
}
"""The lexer of each name that people write after a fence, and of each suffix of a file."""

_LEXERS: Final = frozenset(_LANGUAGES.values())

CLASSES: Final = {
    "Comment": "hl-c",
    "Keyword": "hl-k",
    "Literal.String": "hl-s",
    "Literal.Number": "hl-n",
    "Name.Function": "hl-f",
    "Name.Class": "hl-f",
    "Name.Decorator": "hl-f",
    "Name.Tag": "hl-k",
    "Name.Attribute": "hl-f",
    "Name.Builtin": "hl-b",
    "Generic.Inserted": "hl-add",
    "Generic.Deleted": "hl-del",
    "Generic.Subheading": "hl-b",
    "Generic.Prompt": "hl-c",
}
"""The class of a kind of token, which its sub-kinds share."""


def language_of(path: str) -> str:
    """Return the language of a file by its name, or nothing."""
    name = PurePosixPath(path).name.lower()
    suffix = name.rpartition(".")[2]
    return _LANGUAGES.get(name) or _LANGUAGES.get(suffix, "") if name else ""


def lines(code: str, language: str) -> list[str]:
    """Return each line as HTML; escaped and plain where the language or the size says so."""
    lexer = _LANGUAGES.get(language.lower(), language)
    if lexer not in _LEXERS or len(code) > CHARACTERS:
        return _plain(code)
    if any(len(line) > LINE_CHARACTERS for line in code.split("\n")):
        return _plain(code)
    return list(_highlight(code, lexer))


def _plain(code: str) -> list[str]:
    return [escape(line) for line in code.split("\n")]


@lru_cache(CACHED)
def _highlight(code: str, lexer: str) -> tuple[str, ...]:
    made: list[list[str]] = [[]]
    for _, kind, value in _lexer(lexer).get_tokens_unprocessed(f"{code}\n"):
        name = _class_of(kind)
        for number, part in enumerate(value.split("\n")):
            if number:
                made.append([])
            if part:
                made[-1].append(_span(name, escape(part)))
    return tuple("".join(line) for line in made[:-1])


def _span(name: str, words: str) -> str:
    return f'<span class="{name}">{words}</span>' if name else words


class _Lexer(Protocol):
    def get_tokens_unprocessed(self, text: str, /) -> Iterable[tuple[int, _Kind, str]]: ...


class _Kind(Hashable, Protocol):
    def split(self) -> list[_Kind]: ...


@cache
def _lexer(name: str) -> _Lexer:
    # Imported late: the lexers take a while, and many pages show no code.
    from pygments.lexers import (  # type: ignore[import-untyped]  # it has no types  # noqa: PLC0415
        get_lexer_by_name,
    )

    found: _Lexer = get_lexer_by_name(name)
    return found


@cache
def _class_of(kind: _Kind) -> str:
    names = (str(each).removeprefix("Token.") for each in reversed(kind.split()))
    return next((CLASSES[name] for name in names if name in CLASSES), "")
