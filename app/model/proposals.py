"""Proposals of changes: names of branches, pull requests, what checks and reviewers say; pure.

Names that come from people, titles or remotes never reach git unchecked: what is not a plain branch
name is not a branch.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from app.model.keys import PlaceKey, SessionKey
from app.model.types import Message
from app.model.workspaces import HEADS, Judged, Repository

SLUG_CHARACTERS = 40
"""Part of a title: about seven words, so that branch names stay readable in lists."""

_BRANCH = re.compile(r"(?!-)[^\x00-\x20\x7f~^:?*\[\\]{1,200}")


def branch_name(session: SessionKey, place: PlaceKey, title: str) -> str:
    """Name the new branch of a session: `agent/<name>/<place>-<slug>`."""
    where = slug(f"{place.service} {place.name}", SLUG_CHARACTERS)
    what = slug(title, SLUG_CHARACTERS)
    return f"{own_branches(session.agent)}{where}{'-' if what else ''}{what}"


def own_branches(agent: str) -> str:
    """Return the prefix of an agent's new branches."""
    return f"agent/{agent}/"


def branch_ref(branch: str) -> str:
    """Write the full ref name of a branch."""
    return f"{HEADS}{branch}"


def slug(text: str, limit: int) -> str:
    """Turn any text into a part of a branch name."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    return "-".join(words)[:limit].strip("-")


def is_branch(name: str) -> bool:
    """Tell whether a name may be a branch, by the rules of git and a little stricter."""
    return bool(
        _BRANCH.fullmatch(name)
        and not name.startswith(("/", "refs/"))
        and not name.endswith(("/", ".", ".lock"))
        and not any(odd in name for odd in ("..", "//", "@{", "/.", ".lock/"))
        and not name.startswith(".")
        and name not in {"@", "HEAD"}
    )


Verdict = Literal["approve", "request_changes", "comment"]
VERDICTS: Final[tuple[Verdict, ...]] = ("approve", "request_changes", "comment")


@dataclass(frozen=True, slots=True)
class ReviewFinding:
    """What a reviewer says about one line of a file, as it is after the change."""

    path: str
    line: int
    body: str

    def __str__(self) -> str:
        return f"`{self.path}:{self.line}`: {self.body}"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> ReviewFinding:
        """Read a finding as it is stored or sent."""
        return cls(str(data["path"]), int(data["line"]), str(data["body"]))

    def data(self) -> dict[str, Any]:
        """Write it as it is stored or sent."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is reviewed."""

    repository: Repository
    branch: str
    base: str
    """The branch that it is proposed for; empty for the default branch."""
    commit: str
    author: int | None = None
    """The session whose work it is, if it is an agent's."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A review for the platform that hosts the repository."""

    repository: Repository
    agent: str
    branch: str
    commit: str
    verdict: Verdict
    body: str
    findings: tuple[ReviewFinding, ...]
    mark: str
    """Names it: one that was submitted before is found by it."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The content of a pull request; it is found again by its repository and head."""

    repository: Repository
    agent: str
    session: int
    head: str
    base: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """Changes that a session has proposed, as they are stored."""

    session: int
    repository: Repository
    branch: str
    base: str
    link: str
    tries: int = 0
    """How often a fix was asked for since the checks last passed."""
    outcome: str = ""
    """`merged` or `closed`; empty while they are open."""


@dataclass(frozen=True, slots=True)
class Checked:
    """How the checks of what is proposed ended."""

    commit: str
    link: str
    failed: tuple[str, ...] = ()
    """The names of those that did not pass."""
    excerpt: str = ""
    """What these say, as far as it is short."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What one reviewer says about an open proposal."""

    by: str
    verdict: str
    text: str


@dataclass(frozen=True, slots=True)
class Examined:
    """All that others say about an open proposal."""

    commit: str
    link: str
    judged: Judged
    failed: tuple[str, ...] = ()
    """The names of the checks that did not pass."""
    running: tuple[str, ...] = ()
    """The names of those that have not ended."""
    excerpt: str = ""
    """What the failed ones say, as far as it is short."""
    remarks: tuple[Remark, ...] = ()
    """The last reviews, oldest first."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a turn was about, for shipping its result."""

    title: str
    messages: Sequence[Message]
    link: str = ""
    continued: bool = False
    """Whether an earlier attempt may have shipped it already."""
    body: str = ""
    """What the agent itself says about it."""
