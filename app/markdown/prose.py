"""Takes Markdown apart by what people see of it: prose, code, HTML, definitions, quotes; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from markdown_it import MarkdownIt

Kind = Literal["prose", "code", "html", "definition"]

_KINDS: dict[str, Kind] = {
    "fence": "code",
    "code_block": "code",
    "html_block": "html",
    "inline": "prose",
}


@dataclass(frozen=True, slots=True)
class Segment:
    """Some lines that are shown in one way."""

    kind: Kind
    lines: tuple[str, ...]
    quoted: bool = False

    @property
    def text(self) -> str:
        """Its lines as one text."""
        return "\n".join(self.lines)


def normal(text: str) -> str:
    """Give a text the line ends that Markdown counts by."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def segments(text: str) -> Iterator[Segment]:
    """Take a normal text apart; together the lines of the segments are its lines."""
    lines = text.split("\n")
    looks: list[tuple[Kind, int, bool]] = [("prose", 0, False)] * len(lines)
    environment: dict[str, Any] = {}
    for number, token in enumerate(_parser().parse(text, environment), 1):
        for line in range(*token.map) if token.map else ():
            kind, block, quoted = looks[line]
            if token.type == "blockquote_open":
                looks[line] = (kind, block, True)
            elif token.type in _KINDS:
                looks[line] = (_KINDS[token.type], number, quoted)
    for line in _definitions(environment):
        looks[line] = ("definition", -1, looks[line][2])
    begin = 0
    for line in range(1, len(lines) + 1):
        if line == len(lines) or looks[line] != looks[begin]:
            kind, _, quoted = looks[begin]
            yield Segment(kind, tuple(lines[begin:line]), quoted)
            begin = line


def _definitions(environment: dict[str, Any]) -> Iterator[int]:
    known = [*environment.get("references", {}).values(), *environment.get("duplicate_refs", ())]
    for reference in known:
        yield from range(*reference["map"])


@cache
def _parser() -> MarkdownIt:
    """Read blocks only: what is inside a line is looked at here."""
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
