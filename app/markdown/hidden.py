"""Strips what people do not see: comments, invisible characters, alternative texts; pure.

What is visible stays as it is, to the letter. What is code stays too: there everything is seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from markdown_it import MarkdownIt

from app.markdown.inline import ProseReader

LANGUAGE_CHARACTERS = 30
"""What a fence may call its language; the rest of that line is never shown."""

_SELECTORS = "\ufe0e\ufe0f"
_JOINERS = "\u200c\u200d"
_FILLERS = "\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800"
"""Drawn as nothing, although Unicode does not call them format characters."""

INVISIBLE = re.compile(
    "[{}]".format(
        "".join(
            chr(code)
            for code in (*range(0x20), *range(0x7F, 0x3000), *range(0xFE00, 0x10000), 0x3164)
            if chr(code) not in "\n\t"
            and (unicodedata.category(chr(code)) in {"Cf", "Cc"} or chr(code) in _FILLERS)
        )
        + "\ufe00-\ufe0f\U000110bd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
        + "\U000e0000-\U000e0fff"
    )
)
"""All that is drawn as nothing."""
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f")
"""The flag of a region, which people do see although it is written with tags."""
_INFO = re.compile(r"(?P<fence>(?:`{3,}|~{3,})[ \t]*)(?P<language>[^\s`]*)(?P<rest>[^\n]*)")
_UNFINISHED = re.compile(r"<!--.*|<\?.*", re.DOTALL)

Kind = Literal["prose", "code", "html", "definition"]

_KINDS: dict[str, Kind] = {
    "fence": "code",
    "code_block": "code",
    "html_block": "html",
    "inline": "prose",
}


@dataclass(frozen=True, slots=True)
class Visible:
    """What people see of a text, and how many pieces they do not."""

    text: str
    hidden: int

    @property
    def remark(self) -> str:
        """One line about what was taken out, if anything was."""
        if not self.hidden:
            return ""
        pieces = "piece" if self.hidden == 1 else "pieces"
        return f"[{self.hidden} {pieces} of hidden text removed]"


def strip(text: str) -> Visible:
    """Remove from a text what its readers do not see."""
    counter = _Counter()
    parts = list(segments(counter.without_invisible(normal(text))))
    counter.defined = any(part.kind == "definition" for part in parts)
    shown = [counter.shown(part) for part in parts]
    return Visible("\n".join(piece for piece in shown if piece is not None), counter.pieces)


def words(text: str) -> str:
    """Return what a person says in their own words: no code, no quotes, no HTML."""
    return "\n\n".join(
        "".join(ProseReader(segment.text, INVISIBLE).plain)
        for segment in segments(normal(text))
        if segment.kind == "prose" and not segment.quoted
    )


class _Counter:
    """Strips one text and counts."""

    def __init__(self) -> None:
        self.pieces = 0
        self.defined = False

    def without_invisible(self, text: str) -> str:
        """Take out characters that are drawn as nothing; a run of them is one piece."""
        kept: list[str] = []
        inside = False
        flags = {at for flag in _FLAG.finditer(text) for at in range(*flag.span())}
        for index, character in enumerate(text):
            if is_invisible(character) and index not in flags and not _belongs(text, index):
                self.pieces += not inside
                inside = True
            else:
                kept.append(character)
                inside = False
        return "".join(kept)

    def shown(self, segment: Segment) -> str | None:
        """Return what is seen of some lines; None if nothing of them is."""
        match segment.kind:
            case "definition":
                self.pieces += 1
                return None
            case "code":
                return self._code(segment.text)
            case "html":
                return self._drop(_UNFINISHED, self._prose(segment.text))
            case _:
                return self._prose(segment.text)

    def _code(self, text: str) -> str:
        """Keep code, but not what follows the language of a fence."""
        first, newline, rest = text.partition("\n")
        info = _INFO.search(first)
        if info is None or first[: info.start()].strip(" >-*+.)0123456789"):
            return text
        language = info["language"][:LANGUAGE_CHARACTERS]
        if language == info["language"] and not info["rest"].strip():
            return text
        self.pieces += 1
        return first[: info.start()] + info["fence"] + language + newline + rest

    def _prose(self, text: str) -> str:
        read = ProseReader(text, INVISIBLE, defined=self.defined)
        self.pieces += read.hidden
        return read.seen

    def _drop(self, pattern: re.Pattern[str], text: str) -> str:
        dropped, count = pattern.subn("", text)
        self.pieces += count
        return dropped


def is_invisible(character: str) -> bool:
    """Tell whether a character is drawn as nothing."""
    return INVISIBLE.fullmatch(character) is not None


def _belongs(text: str, index: int) -> bool:
    """Tell whether an invisible character shapes its neighbours, as in emoji or Persian."""
    before = text[index - 1] if index else " "
    after = text[index + 1] if index + 1 < len(text) else " "
    if text[index] in _SELECTORS:
        return _is_picture(before) or before in "#*0123456789"
    if text[index] in _JOINERS:
        shaped = before in _SELECTORS or _is_picture(before) or _is_joined(before)
        return shaped and (_is_picture(after) or _is_joined(after))
    return False


def _is_picture(character: str) -> bool:
    return character >= "\u00a9" and unicodedata.category(character) in {"So", "Sk", "Sm"}


def _is_joined(character: str) -> bool:
    """Tell whether a letter is of a script that joins its letters."""
    return "\u0600" <= character <= "\u0fff" and unicodedata.category(character)[0] in "LM"


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
    known = [*environment.get("references", {}).values(), *environment.get("duplicate_refs", ())]
    for reference in known:
        for line in range(*reference["map"]):
            looks[line] = ("definition", -1, looks[line][2])
    begin = 0
    for line in range(1, len(lines) + 1):
        if line == len(lines) or looks[line] != looks[begin]:
            kind, _, quoted = looks[begin]
            yield Segment(kind, tuple(lines[begin:line]), quoted)
            begin = line


@cache
def _parser() -> MarkdownIt:
    """Read blocks only: what is inside a line is looked at here."""
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
