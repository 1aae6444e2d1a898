"""Filters what a program shows on the user's terminal: text, colours and the cursor, no more.

A terminal answers some sequences as if the user had typed, sets the clipboard, or keeps a mode: a
hostile program would type into the shell that comes after it. What is not listed here is dropped.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

LONGEST_SEQUENCE: Final = 8192
"""Characters of a sequence whose end has not come yet: longer than the address of any log-in."""
_STRING: Final = r"\x1b[\]PX^_](?:(?!\x07|\x1b\\).)*"
_TOKEN: Final = re.compile(
    r"(?P<keep>"
    r"\x1b\[[0-9;:]*[A-HJ-MPSTX@`dfmr]"  # cursor, erasing, scrolling, colours
    r"|\x1b\[\?(?:7|25|1049|2004|2026)[hl]"  # line wrap, cursor, second screen, pastes, updates
    r"|\x1b[78M]|\x1b\([0B])"  # saved cursor, line up, lines of boxes
    rf"|\x1b\[[0-?]*[ -/]*[@-~]|{_STRING}(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|\x1b"
    r"|[\x00-\x06\x0b\x0c\x0e-\x1f\x7f-\x9f]",
    re.DOTALL,
)
_UNFINISHED: Final = re.compile(rf"(?:\x1b\[[0-?]*[ -/]*|{_STRING}|\x1b[ -/]*)\Z", re.DOTALL)


class Screen:
    """Filters a stream of output."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""
        """The beginning of a sequence whose end has not come yet."""

    def filter(self, output: bytes) -> bytes:
        """Return what may be shown of the next piece."""
        text = self._held + self._decode(output)
        unfinished = _UNFINISHED.search(text)
        end = len(text) if unfinished is None else unfinished.start()
        self._held = text[end:] if len(text) - end <= LONGEST_SEQUENCE else ""
        return _TOKEN.sub(lambda each: each["keep"] or "", text[:end]).encode()
