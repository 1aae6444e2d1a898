"""Shows source code: nothing in it hidden, its lines highlighted, as code blocks of Markdown; pure.

A lexer is a set of regular expressions, and code comes from agents: long texts and long lines stay
plain, and only widespread languages have a lexer here.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import cache, lru_cache
from html import escape
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Protocol

from markdown_it.token import Token

if TYPE_CHECKING:
    from collections.abc import Iterable

HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
"""Characters that show nothing, or that reorder others."""
_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
)

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
PATCH: Final = "udiff"
SPANS: Final = {"lang", "add", "del", "hunk", *CLASSES.values()}
"""The classes that a code block may have inside."""
COPY: Final = '<button type="button" class="copy" data-copy="">Copy</button>'

_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,30}")
_LINES: Final = (("+++", "hunk"), ("---", "hunk"), ("@@", "hunk"), ("+", "add"), ("-", "del"))


def show(text: str) -> str:
    """Write one line so that nothing in it hides or reorders anything."""
    if text.isascii() and text.isprintable():
        return text
    end = "␍" if text.endswith("\r") else ""
    return HIDDEN.sub(lambda found: f"\\u{{{ord(found[0]):X}}}", text.removesuffix("\r")) + end


def visible(text: str) -> str:
    """Remove colours and make characters visible that hide or reorder others."""
    text = text.replace("\r\n", "\n")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return HIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def language_of(path: str) -> str:
    """Return the language of a file by its name, or nothing."""
    name = PurePosixPath(path).name.lower()
    suffix = name.rpartition(".")[2]
    return _LANGUAGES.get(name) or _LANGUAGES.get(suffix, "") if name else ""


def lines(code: str, language: str) -> list[str]:
    """Return each line as HTML; escaped and plain where the language or the size says so."""
    lexer = _LANGUAGES.get(language.lower(), language)
    plain = code.split("\n")
    if (
        lexer not in _LEXERS
        or len(code) > CHARACTERS
        or any(len(line) > LINE_CHARACTERS for line in plain)
    ):
        return [escape(line) for line in plain]
    return list(_highlight(code, lexer))


@lru_cache(CACHED)
def _highlight(code: str, lexer: str) -> tuple[str, ...]:
    made: list[list[str]] = [[]]
    for _, kind, value in _lexer(lexer).get_tokens_unprocessed(f"{code}\n"):
        name = _class_of(kind)
        for number, part in enumerate(value.split("\n")):
            if number:
                made.append([])
            if part:
                shown = escape(part)
                made[-1].append(f'<span class="{name}">{shown}</span>' if name else shown)
    return tuple("".join(line) for line in made[:-1])


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


def render_fence(_self: object, tokens: Sequence[Token], index: int, *_: Any) -> str:
    """Render one code block: a label, a copy button, highlighted lines.

    One that is not closed stays plain: it may still be growing, and would be read again and again.
    """
    token = tokens[index]
    found = _LANGUAGE.match(token.info.strip())
    language = found[0] if found else ""
    label = f'<span class="lang">{escape(language)}</span>' if language else ""
    code, kind = visible(token.content).removesuffix("\n"), ""
    if not _is_closed(token):
        made = escape(code)
    elif language.lower() in {"diff", "patch"}:
        made, kind = "\n".join(map(_patch, code.split("\n"))), f' class="{PATCH}"'
    else:
        made = "\n".join(lines(code, language))
    return f'<div class="code">{label}{COPY}<pre{kind}><code>{made}\n</code></pre></div>\n'


def _is_closed(token: Token) -> bool:
    """Return whether a block has ended; one that is only indented has no mark of its end."""
    if token.type != "fence" or token.map is None:
        return True
    lines = len(token.content.removesuffix("\n").split("\n")) if token.content else 0
    return token.map[1] - token.map[0] == lines + 2


def _patch(line: str) -> str:
    kind = next((kind for mark, kind in _LINES if line.startswith(mark)), "")
    return f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line)
