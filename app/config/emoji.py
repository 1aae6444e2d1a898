"""Tells whether a text is one emoji; pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

CHARACTERS: Final = 8
"""The longest that is accepted: a family of four has seven."""

_SELECTOR: Final = "\N{VARIATION SELECTOR-16}"
_JOINER: Final = "\N{ZERO WIDTH JOINER}"
_SKINS: Final = "\U0001f3fb-\U0001f3ff"
_TAGS: Final = "\U000e0020-\U000e007f"
_FLAG: Final = "[\U0001f1e6-\U0001f1ff]{2}"
_SYMBOL: Final = f"[^\0-\x7f{_SELECTOR}{_JOINER}{_SKINS}{_TAGS}]"
_ONE: Final = f"{_SYMBOL}[{_SELECTOR}{_SKINS}]?"
_EMOJI: Final = re.compile(f"{_FLAG}|{_ONE}[{_TAGS}]*(?:{_JOINER}{_ONE})*")


def is_emoji(text: str) -> bool:
    """Tell whether a text is one symbol with its modifiers, several that are joined, or a flag."""
    return (
        len(text) <= CHARACTERS
        and _EMOJI.fullmatch(text) is not None
        and all(map(_is_symbol, re.findall(_SYMBOL, text)))
    )


def _is_symbol(character: str) -> bool:
    # Emoji that are newer than this interpreter have no category yet.
    return "\U0001f000" <= character < "\U0001fb00" or unicodedata.category(character) == "So"
