"""Adds footnotes to a Markdown parser: `[^1]` in a text, and `[^1]: words` below it; pure.

A footnote is shown where it is written. A number is a footnote by itself, since its words may be in
a later piece of the text; a name only with its words, since `[^a-z]` is mostly something else.
"""

from __future__ import annotations

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.rules_inline import StateInline

CLASS: Final = "footnote"
"""The class of a paragraph with the words of a footnote."""

_LABEL: Final = r"\[\^([^\]\[\s^]{1,40})\]"
_REFERENCE: Final = re.compile(_LABEL)
_DEFINITION: Final = re.compile(_LABEL + r":[ \t]+(?=\S)")


def add_to(parser: MarkdownIt) -> None:
    """Add the two rules."""
    parser.block.ruler.before("reference", "footnote", _define, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("link", "footnote", _refer)


def _define(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    found = _DEFINITION.match(state.src, state.bMarks[start] + state.tShift[start])
    if found is None or silent:
        return found is not None
    paragraph(state, start, end, silent)
    opened, words, _ = state.tokens[-3:]
    opened.attrs["class"] = CLASS
    words.content = _DEFINITION.sub(r"[^\1] ", words.content, count=1)
    state.env.setdefault("footnotes", set()).add(found[1])
    return True


def _refer(state: StateInline, silent: bool) -> bool:
    found = _REFERENCE.match(state.src, state.pos)
    if found is None:
        return False
    label = found[1]
    if not label.isdecimal() and label not in state.env.get("footnotes", ()):
        return False
    if not silent:
        state.push("sup_open", "sup", 1)
        state.push("text", "", 0).content = label
        state.push("sup_close", "sup", -1)
    state.pos = found.end()
    return True
