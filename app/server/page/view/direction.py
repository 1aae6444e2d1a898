"""Gives each block of a Markdown text its direction, by its first letter; pure.

The attribute `dir=auto` would not do: a list or a quotation does not look into children that have
a direction themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from unicodedata import bidirectional

from markdown_it.rules_core import StateCore
from markdown_it.token import Token

_RIGHT_TO_LEFT: Final = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)


def direct(state: StateCore) -> None:
    """Mark the blocks whose direction differs from that of the block around them."""
    if state.src.isascii() or not _RIGHT_TO_LEFT.search(state.src):
        return
    around = ["ltr"]
    for index, token in enumerate(state.tokens):
        if token.nesting == 1:
            own = next(_letters(state.tokens, index), around[-1])
            if own != around[-1] and not token.hidden:
                token.attrs["dir"] = own
            around.append(around[-1] if token.hidden else own)
        elif token.nesting == -1:
            around.pop()


def _letters(tokens: list[Token], index: int) -> Iterator[str]:
    """Yield the direction of each letter in a block, but not in its code."""
    for token in tokens[index + 1 :]:
        if token.level <= tokens[index].level:
            return
        for child in token.children or ():
            for letter in child.content if child.type == "text" else "":
                kind = bidirectional(letter)
                if kind in {"R", "AL"}:
                    yield "rtl"
                elif kind == "L":
                    yield "ltr"
