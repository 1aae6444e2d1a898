"""Describes a workspace for the page: what changed in it, its folders and files; pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from markupsafe import Markup

from app.model.text import HEAD_BYTES, picture_type, size_words
from app.model.workspaces import Diff, Scope, WorkspaceView
from app.server.page.view import changes, diffs, highlight
from app.server.page.view.changes import FileChange

SHORT_COMMIT = 12
"""Digits of a commit id: enough to find it in any repository."""
FIRST_LINES = 250
"""Lines of changes that come with the page: several screens. The others follow as one scrolls."""
LINES_AT_ONCE = 1_500
"""Lines of one file that are shown at once; the next ones are one click away."""
TITLES: Mapping[Scope, str] = {
    "uncommitted": "Uncommitted",
    "committed": "Committed, not pushed",
    "pushed": "Pushed",
}
NAMED = 5
"""Names in one sentence: enough to know what is meant."""
HIDES = (
    "{source} is new or changed since the agent began, and hides {what} from git: {names}. "
    "Look at them under Files."
)
NOT_APPLIED = "{source} may come from the agent, so its ignore rules are not applied here."
REPOSITORIES = (
    "Git repositories inside: {names}. Git shows none of their files, and runs the programs that "
    "they name when you use it inside them: look at their config and hooks first."
)
NOT_SEARCHED = "The folder is too large to find every git repository in it."
_NUMBER = re.compile(r"/(\d{1,12})/?$")
SHOWN_BYTES = 512 * 1024
"""What is shown of a file: more than people read. The rest is downloaded."""
_PROBED_BYTES = 8 * 1024
"""Where a zero byte tells that a file is not text, as git does it."""
_UNSAFE = re.compile(rb"[^A-Za-z0-9._~/-]")


@dataclass(frozen=True, slots=True)
class ChangeHunk:
    """Some lines of a file's change."""

    blocks: tuple[diffs.Block, ...]
    after: int = 0
    """Where the next piece begins; 0 if this is the last one."""
    left: int = 0
    """Lines that follow."""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A changed file in the list."""

    number: int
    change: FileChange
    piece: ChangeHunk | None = None
    """Its first lines, if they come with the page."""
    settings_of: str = ""
    """The agent program whose own settings it is, if so."""


@dataclass(frozen=True, slots=True)
class ChangePart:
    """Changes that got equally far."""

    title: str
    files: tuple[ShownFile, ...]
    lead: tuple[str, ...] = ()
    """What git says besides."""
    problem: str = ""
    listed: bool = False
    """Whether there is too much to show, so only names and counts are known."""
    warnings: tuple[str, ...] = ()
    """What may keep a reader from seeing everything, or be dangerous to use."""


@dataclass(frozen=True, slots=True)
class WorkspaceChanges:
    """All changes of a workspace."""

    parts: tuple[ChangePart, ...]
    digest: str

    @property
    def files(self) -> tuple[FileChange, ...]:
        """All changed files in order."""
        return tuple(file.change for part in self.parts for file in part.files)

    @property
    def added(self) -> int:
        """The number of lines that were added."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """The number of lines that were removed."""
        return sum(file.removed for file in self.files)


@dataclass(frozen=True, slots=True)
class WorkspacePage:
    """A workspace as the page shows it."""

    session: int
    title: str
    agent: str
    """The name of its agent for people."""
    thread: str
    """The path of the thread it belongs to."""
    view: WorkspaceView
    assets: Mapping[str, str]

    @property
    def path(self) -> str:
        """The path of its page."""
        return f"/workspace/{self.session}"

    @property
    def sent(self) -> str:
        """The commit that was pushed last, abbreviated."""
        return self.view.sent[:SHORT_COMMIT]

    @property
    def pull(self) -> str:
        """The number of its pull request, with a sign before it."""
        found = _NUMBER.search(self.view.link)
        return f" #{found[1]}" if found else ""


def read(
    found: Sequence[Diff], settings_of: Callable[[str], str] = lambda _path: ""
) -> WorkspaceChanges:
    """Parse what git wrote, and prepare the lines that come with the page.

    `settings_of` names the agent program whose own settings a file is.
    """
    parts: list[ChangePart] = []
    count, room = 0, FIRST_LINES
    for diff in found:
        parsed = changes.parse(diff.text)
        listed = changes.parse_stat(diff.stat)
        files: list[ShownFile] = []
        for change in parsed.files or listed:
            comes = change.open and room > 0
            files.append(
                ShownFile(count, change, piece(change) if comes else None, settings_of(change.path))
            )
            room -= len(change.body) if comes else 0
            count += 1
        parts.append(
            ChangePart(
                TITLES[diff.scope],
                tuple(files),
                parsed.lead,
                diff.problem,
                bool(listed),
                tuple(_warnings(diff)),
            )
        )
    said = "\0".join(each for diff in found for each in (diff.scope, diff.text, diff.stat))
    return WorkspaceChanges(tuple(parts), hashlib.sha256(said.encode()).hexdigest()[:16])


def _warnings(diff: Diff) -> Iterator[str]:
    """Say what git alone does not show."""
    for rule in diff.hidden:
        words = HIDES if rule.is_applied else NOT_APPLIED
        what = f"{rule.count} " + ("entry" if rule.count == 1 else "entries")
        yield words.format(source=rule.source, what=what, names=some(rule.names, rule.count))
    if diff.repositories:
        yield REPOSITORIES.format(names=some(diff.repositories, len(diff.repositories)))
    if diff.is_partial:
        yield NOT_SEARCHED


def some(names: Sequence[str], count: int) -> str:
    """Name the first few of many."""
    more = f" and {count - NAMED} more" if count > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def piece(change: FileChange, after: int = 0) -> ChangeHunk:
    """Prepare some lines of a file's change, from the one with this number."""
    lines = list(islice(changes.lines_of(change), after, after + LINES_AT_ONCE))
    left = max(0, len(change.body) - after - len(lines))
    rows = diffs.rows(lines, highlight.language_of(change.path))
    return ChangeHunk(
        tuple(diffs.blocks(rows)),
        after + len(lines) if left else 0,
        left,
    )


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of a folder."""

    name: str
    address: str
    """Relative to the folder of all files."""
    size: str = ""
    folder: bool = False
    link: bool = False
    current: bool = False

    @property
    def plain(self) -> bool:
        """Whether it can be read: a link or a socket cannot."""
        return bool(self.size)


@dataclass(frozen=True, slots=True)
class Crumb:
    """One folder on the way to a file."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class FilePage:
    """A file as the page shows it."""

    name: str
    address: str
    size: str
    path: str
    lines: tuple[Markup, ...] = ()
    binary: bool = False
    picture: bool = False
    cut: bool = False
    """Whether only its beginning is shown."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with what is in it, and the file that is open."""

    crumbs: tuple[Crumb, ...]
    entries: tuple[Listed, ...]
    more: bool = False
    """Whether it has more entries than are listed."""
    opened: FilePage | None = None
    count: str = ""
    """How many files a scratch folder has, in words."""


def address_of(path: PurePosixPath) -> str:
    """Write a path for use in an address; every byte of it comes back."""
    raw = str(path).encode(errors="surrogateescape") if path.parts else b""
    return _UNSAFE.sub(lambda byte: b"%%%02X" % byte[0][0], raw).decode()


def crumbs_of(path: PurePosixPath) -> tuple[Crumb, ...]:
    """List the folders on the way to a path, and itself."""
    steps = [*reversed(path.parents[:-1]), path] if path.parts else []
    return tuple(Crumb(name_of(step), address_of(step)) for step in steps)


def name_of(path: PurePosixPath) -> str:
    """Write a file's name for people: it may be no text at all."""
    return highlight.show(_text(path.name).replace("\n", "\\u{A}"))


def in_order(entries: Iterable[Listed]) -> tuple[Listed, ...]:
    """Sort a folder: folders first, then by name."""
    return tuple(sorted(entries, key=lambda each: (not each.folder, each.name.casefold())))


def open_file(path: PurePosixPath, content: bytes, *, size: int, cut: bool) -> FilePage:
    """Prepare the beginning of a file."""
    name, address, words = name_of(path), address_of(path), size_words(size)
    shown = highlight.show(_text(str(path)))
    if picture_type(content[:HEAD_BYTES]):
        return FilePage(name, address, words, shown, picture=True)
    if b"\0" in content[:_PROBED_BYTES]:
        return FilePage(name, address, words, shown, binary=True)
    text = content.decode(errors="replace").removesuffix("\n")
    code = "\n".join(highlight.show(line) for line in text.split("\n"))
    lines = highlight.lines(code, highlight.language_of(path.name)) if text else []
    made = tuple(Markup(line) for line in lines)  # noqa: S704 - escaped there
    return FilePage(name, address, words, shown, made, cut=cut)


def count_words(count: int, *, more: bool) -> str:
    """Say how many files a folder has."""
    if more:
        return f"{count} or more files are"
    return "1 file is" if count == 1 else f"{count} files are"


def _text(name: str) -> str:
    """Replace what is no text in a name."""
    return name.encode(errors="surrogateescape").decode(errors="replace")
