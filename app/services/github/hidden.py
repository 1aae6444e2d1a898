"""Strips what people do not see: comments, invisible characters, alternative texts; pure.

What is visible stays as it is, to the letter. What is code stays too: there everything is seen.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from app.services.github.prose import CODE_SPAN, COMMENT, TAG, Segment, normal, segments

LANGUAGE_CHARACTERS = 30
"""What a fence may call its language; the rest of that line is never shown."""

_SELECTORS = "\ufe0e\ufe0f"
_JOINERS = "\u200c\u200d"
_FILLERS = "\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800"
"""Drawn as nothing, although Unicode does not call them format characters."""
_NAMED = (
    "ZeroWidthSpace|zwj|zwnj|lrm|rlm|shy|NoBreak|ic|it|af|"
    "ApplyFunction|InvisibleComma|InvisibleTimes"
)
_SILENT = r"script|style|template|noscript|iframe|object|noembed|noframes|svg|math"

_IN_PROSE = re.compile(
    rf"""
      {CODE_SPAN}
    | (?P<comment> {COMMENT} | <\?.*?\?> | <![A-Z\[].*?> )
    | (?P<silent> <(?P<name>{_SILENT})\b[^>]*> .*? </(?P=name)\s*> )
    | (?P<tag> {TAG} )
    | !\[ (?P<alt> [^\[\]]+ ) \] (?= [(\[] )
    | (?P<empty> (?<!!)\[\s*\] \( [^()\n]* \) )
    | \]\( \s*(?P<address>[^\s()]*) (?P<title> \s+ (?:"[^"]*"|'[^']*'|\([^()]*\)) \s* ) \)
    | (?P<entity> &\#(?:[0-9]{{1,7}}|[xX][0-9a-fA-F]{{1,6}}); | &(?:{_NAMED}); )
    """,
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    r"""([A-Za-z_:][-\w:.]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""", re.DOTALL
)
_INFO = re.compile(r"(?P<fence>(?:`{3,}|~{3,})[ \t]*)(?P<language>[^\s`]*)(?P<rest>[^\n]*)")
_UNFINISHED = re.compile(r"<!--.*|<\?.*", re.DOTALL)
_SHOWN = {"href", "src"}


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
    """Take out of a text of GitHub whatever its readers do not see."""
    counter = _Counter()
    plain = counter.without_invisible(normal(text))
    shown = [counter.shown(segment) for segment in segments(plain)]
    return Visible("\n".join(piece for piece in shown if piece is not None), counter.pieces)


class _Counter:
    """Strips one text and counts."""

    def __init__(self) -> None:
        self.pieces = 0

    def without_invisible(self, text: str) -> str:
        """Take out characters that are drawn as nothing; a run of them is one piece."""
        kept: list[str] = []
        inside = False
        for index, character in enumerate(text):
            if is_invisible(character) and not _belongs(text, index):
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
        """Keep code, but not what stands behind the language of a fence."""
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
        return _IN_PROSE.sub(self._replaced, text)

    def _drop(self, pattern: re.Pattern[str], text: str) -> str:
        dropped, count = pattern.subn("", text)
        self.pieces += count
        return dropped

    def _replaced(self, found: re.Match[str]) -> str:
        kept = found[0]
        if found["comment"] or found["silent"] or found["empty"]:
            kept = ""
        elif found["tag"]:
            kept = _bare(found["tag"])
        elif found["alt"]:
            kept = "![]"
        elif found["title"]:
            kept = f"]({found['address']})"
        elif found["entity"]:
            kept = _entity(found["entity"])
        self.pieces += kept != found[0]
        return kept


def is_invisible(character: str) -> bool:
    """Tell whether a character is drawn as nothing."""
    if character < "\x7f":
        return character < " " and character not in "\n\t"
    code = ord(character)
    return (
        unicodedata.category(character) in {"Cf", "Cc"}
        or character in _FILLERS
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0000 <= code <= 0xE0FFF
    )


def _belongs(text: str, index: int) -> bool:
    """Tell whether an invisible character shapes what stands beside it, as in emoji or Persian."""
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


def _bare(tag: str) -> str:
    """Leave of a tag its name and where it leads."""
    if tag.startswith("</"):
        return tag
    name = re.match(r"<([A-Za-z0-9-]+)", tag)
    assert name is not None, "the pattern of a tag begins with its name"
    inner = tag[name.end() :].rstrip(">").rstrip("/")
    given = _ATTRIBUTE.findall(inner)
    if all(key.lower() in _SHOWN for key, _ in given):
        return tag
    kept = "".join(f" {key}={value}" for key, value in given if key.lower() in _SHOWN and value)
    return f"<{name[1]}{kept}>"


def _entity(entity: str) -> str:
    """Keep an entity that is drawn as something."""
    if not entity.startswith("&#"):
        return ""
    digits = entity[2:-1]
    code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
    drawn = code < 0x110000 and not 0xD800 <= code < 0xE000 and not is_invisible(chr(code))
    return entity if drawn else ""
