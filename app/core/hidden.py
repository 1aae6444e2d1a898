"""Takes out of other people's text what nobody sees when they read it; pure.

An instruction that hides in a comment, in an image's description or in invisible letters is meant
for an agent alone. What people see is left as it is.
"""

from __future__ import annotations

import re
from typing import Final

_TEXT: Final = re.compile(
    r"<!--.*?(?:-->|\Z)"
    # A link definition that leads nowhere: Markdown's way to write what is never shown.
    r"|^[ ]{0,3}\[[^\]\n]*\]:[ ]*(?:#|<>)(?:[ ]+(?:\"[^\n]*\"|'[^\n]*'|\([^\n]*\)))?[ ]*$",
    re.DOTALL | re.MULTILINE,
)
_DESCRIPTION: Final = re.compile(r"(?<=!\[)[^\]]*[^\]\s][^\]]*(?=\])")
_TAG: Final = re.compile(r"<[a-zA-Z][^<>]*>")
_ATTRIBUTE: Final = re.compile(
    r"\s+(?:alt|title|aria-label)\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]+)", re.IGNORECASE
)
_FLAG: Final = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f"
"""The flag of a region, which people do see although it is written with tags."""
_UNSEEN: Final = re.compile(
    f"({_FLAG})|"
    "(?:[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
    # These join letters of some scripts and parts of an emoji; elsewhere nobody sees them.
    "|(?<![\u0600-\u1fff])\u200c|(?<![\u0600-\u1fff\u2190-\u32ff\ufe0f\U0001f000-\U0001faff])\u200d"
    "|(?<![0-9#*\u00a9\u00ae\u2000-\u32ff\U0001f000-\U0001faff])[\ufe00-\ufe0f])+"
)


def visible(text: str) -> tuple[str, int]:
    """Return the text as people see it, and how many hidden parts were taken out."""
    removed = 0
    while (found := _look_once(text))[1]:  # what was taken out may have torn another one apart
        text, removed = found[0], removed + found[1]
    return text, removed


def _look_once(text: str) -> tuple[str, int]:
    text, texts = _TEXT.subn("", text)
    text, descriptions = _DESCRIPTION.subn("", text)
    attributes = sum(len(_ATTRIBUTE.findall(tag)) for tag in _TAG.findall(text))
    text = _TAG.sub(lambda tag: _ATTRIBUTE.sub("", tag[0]), text)
    unseen = sum(not flag for flag in _UNSEEN.findall(text))
    text = _UNSEEN.sub(lambda found: found[1] or "", text)
    return text, texts + descriptions + attributes + unseen
