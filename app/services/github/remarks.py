"""Reads line comments from an agent's answer, to make a pull request review of them; pure.

Nothing that an agent wrote is lost: a comment that fits no line of the diff goes into the text of
the review, because GitHub refuses a whole review for one such comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent, indent

HOW = (
    "to comment on its lines, add a ```review block to your answer and start each comment on a new "
    "line with `path:line: text` or `path:first-last: text`"
)
"""Tells an agent how to review a pull request that it did not open."""

_FENCE = re.compile(r"(?P<margin>[ \t]*)(?P<bar>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)")
_REMARK = re.compile(
    r"(?:[-*] )?`?(?P<path>[^\s`:][^`:]*):(?P<first>[0-9]{1,7})(?:-(?P<last>[0-9]{1,7}))?`?:"
    r"[ \t]*(?P<words>.*)"
)
_HUNK = re.compile(r"^@@ -[0-9,]+ \+(?P<first>[0-9]+)(?:,(?P<count>[0-9]+))? @@", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Remark:
    """What an agent says about some lines of a file, as they are after the change."""

    path: str
    first: int
    last: int
    words: str

    def __str__(self) -> str:
        lines = f"{self.first}-{self.last}" if self.first != self.last else f"{self.last}"
        return f"- `{self.path}:{lines}`: {indent(self.words, '  ').strip()}"


def read(answer: str) -> tuple[str, tuple[Remark, ...]]:
    """Take the blocks of comments out of an answer; returns what is left, and the comments."""
    kept: list[str] = []
    remarks: list[tuple[re.Match[str], list[str]]] = []
    for line, is_review, is_code in _lines(answer):
        begins = None if is_code else _REMARK.fullmatch(line)
        if not is_review:
            kept.append(line)
        elif begins is not None:
            remarks.append((begins, []))
        elif remarks:
            remarks[-1][1].append(line)
        else:
            kept.append(line)
    return "\n".join(kept).strip(), tuple(_remark(*each) for each in remarks)


def sort(
    remarks: Sequence[Remark], patches: Mapping[str, str]
) -> tuple[Sequence[Remark], Sequence[Remark]]:
    """Separate the comments that fit lines of a diff from all others."""
    shown = {path: tuple(_hunks(patch)) for path, patch in patches.items()}
    fitting = [
        each
        for each in remarks
        if each.words
        and any(each.first in hunk and each.last in hunk for hunk in shown.get(each.path, ()))
    ]
    return fitting, [each for each in remarks if each not in fitting]


def _lines(answer: str) -> Iterator[tuple[str, bool, bool]]:
    """Read an answer line by line; tells whether each is in a review, and whether it is code.

    The fences that open and close a review are left out. Inside it another one, such as a
    suggestion, is opened by its own words or by its margin.
    """
    opened = nested = ""
    is_review = False
    for line in answer.split("\n"):
        fence = _FENCE.fullmatch(line)
        bar, info = (fence["bar"], fence["info"].strip()) if fence is not None else ("", "")
        closes = bool(bar) and not info
        if nested:
            yield line, True, True
            nested = "" if closes and bar.startswith(nested) else nested
        elif is_review and fence is not None and (info or fence["margin"]):
            nested = bar
            yield line, True, True
        elif opened:
            ends = closes and bar.startswith(opened)
            if not (is_review and ends):
                yield line, is_review, not is_review
            opened, is_review = ("", False) if ends else (opened, is_review)
        else:
            opened, is_review = bar, info == "review"
            if not is_review:
                yield line, False, bool(bar)


def _remark(begins: re.Match[str], more: Sequence[str]) -> Remark:
    lines = sorted((int(begins["first"]), int(begins["last"] or begins["first"])))
    words = "\n".join((begins["words"], dedent("\n".join(more)))).strip()
    return Remark(begins["path"].removeprefix("./"), lines[0], lines[1], words)


def _hunks(patch: str) -> Iterator[range]:
    """List the lines that a diff shows of the new side of a file, piece by piece."""
    for found in _HUNK.finditer(patch):
        first = int(found["first"])
        yield range(first, first + int(found["count"] or 1))
