r"""Makes characters visible that hide or reorder others, so that no two texts look alike; pure.

A character that shows nothing, or that moves its neighbours, is written as `\u{HEX}`. A backslash
that itself begins such a sequence is written as `\u{5C}`, so every text is shown in one way only
and `conceal` gives back exactly the text that was shown.
"""

from __future__ import annotations

import re
from functools import lru_cache
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
