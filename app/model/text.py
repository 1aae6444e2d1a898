r"""Texts that people can trust: hidden characters, refused ones, file names, amounts, diffs; pure.

`reveal` writes a character that shows nothing, or that moves its neighbours, as `\u{HEX}`. A
backslash that itself begins such a sequence is written as `\u{5C}`, so every text is shown in one
way only and `conceal` gives back exactly the text that was shown.

`clean_text` replaces what some database or encoding refuses by U+FFFD, so that what it kept apart
stays apart: a known secret cannot be put together by leaving something out after it was looked for.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import groupby
from mimetypes import MimeTypes
from typing import Any, Final, Literal
from unicodedata import bidirectional, category

_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn", "Zl", "Zp", "Zs"})
"""Controls, formats, combining marks and spaces; the plain space is looked at on its own."""
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
"""Letters and digits that reverse the order of the text between them."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\U0001d159")
"""Letters and symbols that are drawn as nothing."""
_ESCAPE = re.compile(r"\\u\{([0-9A-F]+)\}")
_EDGE = re.compile(r"\A[ \t\n]|[ \t\n]\Z|[ \t](?=\n)")


def reveal(text: str, *, lines: bool = False, tabs: bool = False, ascii_only: bool = False) -> str:
    r"""Write a text so that what people see is exactly what it is.

    With `lines` it may have several of them, with `tabs` it keeps those; with `ascii_only` every
    other letter is written as its number, as in host names that imitate others.
    """
    shown = _EDGE.sub(lambda found: _escape(found[0]), text.replace("\\u{", "\\u{5C}u{"))
    if shown.isascii() and shown.replace("\n", "").isprintable():
        return shown if lines else shown.replace("\n", _escape("\n"))
    kept = ("\n" if lines else "") + ("\t" if tabs else "")
    return "".join(
        character
        if character in kept or not (_hides(character) or (ascii_only and not character.isascii()))
        else _escape(character)
        for character in shown
    )


def conceal(shown: str) -> str:
    """Give back the text that `reveal` has shown."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), shown)


def reveal_line(text: str) -> str:
    """Put a title onto one line and reveal it."""
    return reveal(" ".join(text.split()))


@lru_cache(4096)
def _hides(character: str) -> bool:
    return character != " " and (
        category(character) in _INVISIBLE
        or bidirectional(character) in _RIGHT_TO_LEFT
        or character in _BLANK
    )


def _escape(character: str) -> str:
    return f"\\u{{{ord(character):X}}}"


REPLACEMENT = "\ufffd"


def clean_text(text: str) -> str:
    """Return a text that every database and encoding takes."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: Any) -> Any:
    """Return a JSON value with clean texts, and without numbers that JSON has no word for."""
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {clean_json(key): clean_json(item) for key, item in value.items()}
        case list() | tuple():
            return [clean_json(item) for item in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


NAME_CHARACTERS: Final = 100
NAME_BYTES: Final = 200
"""Length of a name that fits on any disk, with room for a prefix and a suffix."""
ENDING_CHARACTERS: Final = 10
HEAD_BYTES: Final = 16
"""How much of a file tells whether it is a picture."""
UNKNOWN: Final = "application/octet-stream"

_PICTURES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
_UNUSABLE: Final = re.compile(r"[^\w.()+@ -]+")
_TYPES: Final = MimeTypes()
"""Python's own table: a machine's additions would make the same file differ."""


def safe_name(name: str) -> str:
    """Make a file name that is only a name, and still tells what it is."""
    plain = unicodedata.normalize("NFC", name.replace("\\", "/").rpartition("/")[2])
    plain = _UNUSABLE.sub("_", plain).strip(". ")
    stem, dot, ending = plain.rpartition(".")
    if dot and len(plain) > NAME_CHARACTERS:
        plain = f"{stem[: NAME_CHARACTERS - 12]}.{ending[:ENDING_CHARACTERS]}"
    return _within_bytes(plain[:NAME_CHARACTERS]).strip(". ") or "file"


def _within_bytes(name: str) -> str:
    """Cut a name before its ending: disks count bytes, and letters may take four."""
    if len(name.encode()) <= NAME_BYTES:
        return name
    stem, dot, tail = name.rpartition(".")
    stem, tail = (stem, f".{tail}") if dot and len(tail) <= ENDING_CHARACTERS else (name, "")
    room = NAME_BYTES - len(tail.encode())
    return stem.encode()[:room].decode(errors="ignore") + tail


def picture_type(head: bytes) -> str | None:
    """Tell by its first bytes which kind of picture a file is; None if it is none."""
    return next((name for pattern, name in _PICTURES if pattern.match(head)), None)


def media_type(name: str, head: bytes) -> str:
    """Tell what a file is: a picture by its bytes alone, everything else by its name."""
    named = _TYPES.guess_type(name)[0] or UNKNOWN
    return picture_type(head) or (UNKNOWN if named.startswith("image/") else named)


def ending(kind: str) -> str:
    """Tell the usual file name ending of a media type, if known."""
    return _TYPES.guess_extension(kind) or ""


def size_words(size: int) -> str:
    """Say how large something is."""
    if size < 1024:
        return "1 byte" if size == 1 else f"{size} bytes"
    return f"{size / 1024:.1f} KiB" if size < 1024**2 else f"{size / 1024**2:.1f} MiB"


MINUTE = 60
HOUR = 60 * MINUTE


def money(cost: float | None, currency: str | None, *, estimated: bool = False) -> str:
    """Format a cost; nothing for zero, less than a cent as such, an estimate with a tilde."""
    if not cost:
        return ""
    amount, less = (f"{cost:.2f}", "~" * estimated) if cost >= 0.01 else ("0.01", "<")
    return f"{less}${amount}" if currency in {None, "", "USD"} else f"{less}{amount} {currency}"


def moment(text: str | None) -> float | None:
    """Read a time as platforms write it, in seconds since 1970; None if there is none."""
    return datetime.fromisoformat(text).timestamp() if text else None


def duration(seconds: float) -> str:
    """Format a duration."""
    whole = int(seconds)
    if whole < MINUTE:
        return f"{whole}s"
    minutes, rest = divmod(whole, MINUTE)
    if whole < HOUR:
        return f"{minutes}m {rest}s" if rest else f"{minutes}m"
    return f"{minutes // 60}h {minutes % 60}m"


def count(number: int, one: str, several: str = "") -> str:
    """Format a number of things."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


CONTEXT_LINES = 3
"""Unchanged lines around a change, as in most diff tools."""
COMPARED = 1_000_000
"""Pairs of lines up to which two texts are compared: some tenths of a second of work."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a change, with its number before and after; 0 where it has none."""

    kind: Literal["same", "add", "del", "gap", "note"]
    text: str
    old: int = 0
    new: int = 0


_GAP = Line("gap", "⋯")


def compare(old: str | None, new: str | None) -> list[Line]:
    """List the lines that changed, with those around them."""
    return _compare_lines(_lines(old), _lines(new))


def _lines(text: str | None) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _compare_lines(old: list[str], new: list[str]) -> list[Line]:
    """Compare what is between the equal beginnings and the equal ends of two texts."""
    first = _common(old, new)
    last = _common(old[first:][::-1], new[first:][::-1])
    middle_old, middle_new = old[first : len(old) - last], new[first : len(new) - last]
    lines = [Line("same", text) for text in old[:first]]
    lines += _middle(middle_old, middle_new)
    lines += [Line("same", text) for text in old[len(old) - last :]]
    return _near_changes(list(_number(lines)))


def _number(lines: list[Line]) -> Iterator[Line]:
    old = new = 0
    for line in lines:
        old, new = old + (line.kind != "add"), new + (line.kind != "del")
        yield Line(line.kind, line.text, old * (line.kind != "add"), new * (line.kind != "del"))


def _common(one: list[str], other: list[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _middle(old: list[str], new: list[str]) -> list[Line]:
    if len(old) * len(new) > COMPARED:
        return [Line("del", text) for text in old] + [Line("add", text) for text in new]
    lines: list[Line] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            lines += [Line("same", text) for text in old[a:b]]
        else:
            lines += [Line("del", text) for text in old[a:b]]
            lines += [Line("add", text) for text in new[c:d]]
    return lines


def _near_changes(lines: list[Line]) -> list[Line]:
    """Leave out lines far from any change."""
    runs = [(same, list(run)) for same, run in groupby(lines, lambda line: line.kind == "same")]
    kept: list[Line] = []
    for number, (same, run) in enumerate(runs):
        after = run[:CONTEXT_LINES] if number else []
        before = run[-CONTEXT_LINES:] if number < len(runs) - 1 else []
        if not same or (after and before and len(run) <= 2 * CONTEXT_LINES):
            kept += run
        else:
            kept += [*after, *([_GAP] if after and before else []), *before]
    return kept
