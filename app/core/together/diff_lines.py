"""Reads from a diff which lines of which files a reviewer can comment on; pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from app.model.reviews import Finding

_HUNK = re.compile(r"@@ -[0-9,]+ \+(?P<first>[0-9]+)(?:,(?P<count>[0-9]+))? @@")
_FILE = "+++ b/"
_QUOTED = '+++ "b/'
Shown = Mapping[str, Sequence[range]]
"""The lines that a diff shows of each file, as they are after the change."""


def read_lines(diff: str) -> Shown:
    """List the lines that a diff shows, by file; a file name with odd characters is left out."""
    shown: defaultdict[str, list[range]] = defaultdict(list)
    path, left = "", 0
    for line in diff.split("\n"):
        if left > 0 and line[:1] in {" ", "+", ""}:
            left -= 1  # a line of the new side, which may look like anything
        elif left > 0 and line.startswith("-"):
            continue
        elif line.startswith(_FILE):
            path = line.removeprefix(_FILE).rstrip("\t\r")
        elif line.startswith(("+++ /dev/null", _QUOTED)):
            path = ""
        elif path and (hunk := _HUNK.match(line)) is not None:
            left = int(hunk["count"] or 1)
            shown[path].append(range(int(hunk["first"]), int(hunk["first"]) + left))
    return shown


def find_outside(findings: Sequence[Finding], shown: Shown) -> Sequence[Finding]:
    """List the findings about lines that a diff does not show."""
    return [
        each for each in findings if not any(each.line in hunk for hunk in shown.get(each.path, ()))
    ]
