"""Values of reviews, panels and races: the commands, the verdicts, the lines of a diff; pure.

Words that name no agent of this bridge are no command: "review this" is for the agent itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.model.proposals import ReviewFinding, Subject, Verdict

Act = Literal["review", "panel", "race"]
MOST_AGENTS = 8
"""Agents that one command may name: more answers than people read."""

_REVIEW = re.compile(r"review\s+@?(\S[^\n:]*)", re.IGNORECASE)
_SEVERAL = re.compile(r"(panel|race)\s+(\S[^\n:]*):\s*(\S.*)", re.IGNORECASE | re.DOTALL)
_BETWEEN = re.compile(r"\s*(?:,\s*(?:and\s+)?|\s+and\s+|\s|$)\s*@?", re.IGNORECASE)
_HUNK = re.compile(r"@@ -[0-9,]+ \+(?P<first>[0-9]+)(?:,(?P<count>[0-9]+))? @@")
_FILE = "+++ b/"
_QUOTED = '+++ "b/'
Shown = Mapping[str, Sequence[range]]
"""The lines that a diff shows of each file, as they are after the change."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants several agents to do."""

    act: Act
    agents: tuple[str, ...]
    """Their ids, in the order in which they were named."""
    words: str = ""
    """The question or the task."""


@dataclass(frozen=True, slots=True)
class NewReview:
    """A review that an agent gives."""

    session: int
    turn: int
    verdict: Verdict
    body: str
    findings: tuple[ReviewFinding, ...] = ()
    subject: Subject | None = None
    """None: something that the bridge has no diff of."""


@dataclass(frozen=True, slots=True)
class Review:
    """A review as it is stored."""

    id: int
    session: int
    turn: int
    verdict: Verdict
    body: str
    findings: tuple[ReviewFinding, ...]
    author: int | None
    repository: str
    branch: str
    commit: str
    link: str
    """Where it can be read on its platform; empty if it is not there."""
    state: Literal["given", "sent"]


@dataclass(frozen=True, slots=True)
class Picked:
    """What people were asked about a group, and what they said."""

    state: str
    """`open` until it is answered, withdrawn or too late."""
    answer: str


def read_wish(line: str, called: Mapping[str, str]) -> Wish | None:
    """Read a message; None if it is words for an agent. `called` are ids by name, in lower case."""
    if (review := _REVIEW.fullmatch(line)) is not None:
        agents = _read_agents(review[1], called)
        return Wish("review", agents) if len(agents) == 1 else None
    several = _SEVERAL.fullmatch(line)
    agents = () if several is None else _read_agents(several[2], called)
    if several is None or not 2 <= len(agents) <= MOST_AGENTS:
        return None
    act: Act = "panel" if several[1].lower() == "panel" else "race"
    return Wish(act, agents, several[3].rstrip())


def _read_agents(text: str, called: Mapping[str, str]) -> tuple[str, ...]:
    """Read names one after another, the longest first; nothing if there are other words."""
    found: list[str] = []
    rest = text.removeprefix("@").rstrip()
    while rest:
        for name in sorted(called, key=len, reverse=True):
            after = _BETWEEN.match(rest[len(name) :])
            if rest[: len(name)].casefold() == name and after is not None:
                found.append(called[name])
                rest = rest[len(name) + after.end() :]
                break
        else:
            return ()
    return tuple(dict.fromkeys(found))


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


def find_outside(findings: Sequence[ReviewFinding], shown: Shown) -> Sequence[ReviewFinding]:
    """List the findings about lines that a diff does not show."""
    return [
        each for each in findings if not any(each.line in hunk for hunk in shown.get(each.path, ()))
    ]
