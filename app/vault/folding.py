"""Folds text to its letters and digits, so that a secret is found however it is spaced or marked.

Case, separators, zero-width characters and Markdown marks are dropped. Where each letter comes from
can be told, so that only the secret is masked.
"""

from __future__ import annotations

import re
import string
import unicodedata

_LETTERS = string.ascii_lowercase + string.digits
_ASCII = bytes(range(128)).lower() + bytes(128)
_DROPPED = bytes(code for code in range(256) if not chr(code).isalnum() or code > 127)

# What a renderer takes away together with its letters, so that its neighbours meet: link targets,
# tags, entities, and the escape sequences of terminals. At the end of a text it may be unfinished.
_HIDDEN = re.compile(
    r"\]\([^()\s]{0,2000}(?:\)|\Z)"
    r"|\]\[[^\[\]\n]{0,200}(?:\]|\Z)"
    r"|</?[a-zA-Z!][^<>]{0,1000}(?:>|\Z)"
    r"|&[a-zA-Z]{2,30}(?:;|\Z)"
    r"|\x1b\[[0-9;?]*(?:[@-~]|\Z)"
    r"|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\|\Z)"
)
# Each with a character of it that is rarer: one character is found many times faster than two.
_MAY_HIDE = (("<", "<"), ("&", "&"), ("\x1b", "\x1b"), ("(", "]("), ("[", "]["))


class _Table(dict[int, str | None]):
    """Folds one character: to a small letter or digit that looks like it, or to nothing."""

    def __missing__(self, code: int) -> str | None:
        plain = unicodedata.normalize("NFKC", chr(code)).lower()
        folded = self[code] = plain if len(plain) == 1 and plain in _LETTERS else None
        return folded


_TABLE = _Table()

# Where all characters are that look like a letter or digit of ASCII and are none.
_ALIKE = re.compile(
    "[\u00aa-\u00ba\u02b0-\u02e3\u1d2c-\u1dbb\u2070-\u209c\u2102-\u217f\u2460-\u24ea"
    "\u2c7c\u2c7d\ua7f1-\ua7f4\uff10-\uff5a\U000107a5\U0001ccd6-\U0001ccf9\U0001d400-\U0001d7ff"
    "\U0001f12b-\U0001f149\U0001fbf0-\U0001fbf9\u017f\u212a]"
)


def fold(text: str) -> bytes:
    """Return the letters and digits of a text, in small letters."""
    if not text.isascii() and _ALIKE.search(text):
        return text.translate(_TABLE).encode()
    return text.encode(errors="replace").translate(_ASCII, _DROPPED)


def visible(text: str) -> str | None:
    """Return the text with what renderers take away blanked out; None if there is nothing of it."""
    for character, mark in _MAY_HIDE:
        if character in text and mark in text:
            break
    else:
        return None
    seen = _HIDDEN.sub(lambda found: "\0" * len(found[0]), text)
    return None if seen == text else seen


def positions(text: str) -> list[int]:
    """Return where in the text each of its folded letters comes from."""
    return [at for at, character in enumerate(text) if _TABLE[ord(character)] is not None]


def position_from_end(text: str, letters: int) -> int:
    """Return where in the text its last folded letters begin, given how many they are."""
    for at in range(len(text) - 1, -1, -1):
        letters -= _TABLE[ord(text[at])] is not None
        if letters == 0:
            return at
    return 0
