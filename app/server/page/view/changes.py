"""Parses what `git diff` writes into files and numbered lines; pure.

The text comes from a clone that an agent wrote: what does not look like a diff is kept as it is, so
no line is ever lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.model.text import Line

LARGE_LINES = 400
"""Lines of a file that are shown without a click: a reader has the overview of about so many."""
_GENERATED = re.compile(
    r"(?:^|/)(?:(?:package-lock|npm-shrinkwrap|composer-lock)\.json|pnpm-lock\.yaml|go\.sum"
    r"|[^/]*\.(?:lock|lockb|min\.js|min\.css|map|snap)|[^/]*(?:_pb2(?:_grpc)?\.pyi?|\.pb\.go)"
    r"|node_modules/.*|dist/.*|vendor/.*)$"
)
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
_ESCAPED = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')
_LETTERS = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))
_BINARY = ("Binary files ", "GIT binary patch")
_MODES = {"120000": "symbolic link", "160000": "submodule"}

Status = Literal["changed", "added", "deleted", "renamed", "copied"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """What changed in one file."""

    head: tuple[str, ...]
    """What git says about the file, word for word."""
    body: tuple[str, ...]
    """Its hunks, word for word."""
    path: str
    added: int = 0
    removed: int = 0
    old_path: str = ""
    """Its name before, if that was another."""
    status: Status = "changed"
    what: str = ""
    """What it is, if not a plain file."""
    binary: bool = False
    listed: bool = False
    """Whether only its counts are known."""

    @property
    def generated(self) -> bool:
        """Whether it was written by a tool, by its name."""
        return _GENERATED.search(self.path) is not None

    @property
    def large(self) -> bool:
        """Whether it is too long to be shown without a click."""
        return len(self.body) > LARGE_LINES

    @property
    def open(self) -> bool:
        """Whether its lines are shown without a click."""
        return bool(self.body) and not (self.large or self.generated or self.binary)

    @property
    def folder(self) -> str:
        """The folder of the file, with a slash at its end."""
        return self.path[: len(self.path) - len(self.name)]

    @property
    def name(self) -> str:
        """The name of the file in its folder."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A whole diff."""

    lead: tuple[str, ...]
    """What is not about a file."""
    files: tuple[FileChange, ...]


def parse(text: str) -> Parsed:
    """Split a diff into its files."""
    lead: list[str] = []
    files: list[_Reading] = []
    for line in text.removesuffix("\n").split("\n") if text else ():
        if files and files[-1].takes(line):
            continue
        if line.startswith("diff --"):
            files.append(_Reading([line]))
        elif files:
            files[-1].add(line)
        else:
            lead.append(line)
    return Parsed(tuple(lead), tuple(file.close() for file in files))


def parse_stat(stat: str) -> tuple[FileChange, ...]:
    """Read what `git diff --numstat -z` writes: counts and names alone."""
    words = iter(stat.split("\0"))
    found: list[FileChange] = []
    for word in words:
        added, _, rest = word.partition("\t")
        removed, tab, path = rest.partition("\t")
        if not tab:
            continue
        old = "" if path else next(words, "")
        found.append(
            FileChange(
                head=(),
                body=(),
                path=path or next(words, ""),
                added=_number(added),
                removed=_number(removed),
                old_path=old,
                status="renamed" if old else "changed",
                binary=added == "-",
                listed=True,
            )
        )
    return tuple(found)


def lines_of(file: FileChange) -> Iterator[Line]:
    """Return the lines of a change with their numbers."""
    old = new = 0
    for text in file.body:
        if found := _HUNK.match(text):
            old, new = int(found[1]), int(found[3])
            yield Line("gap", text, old, new)
            continue
        match text[:1]:
            case "+":
                yield Line("add", text[1:], 0, new)
                new += 1
            case "-":
                yield Line("del", text[1:], old, 0)
                old += 1
            case " " | "":
                yield Line("same", text[1:], old, new)
                old, new = old + 1, new + 1
            case _:
                yield Line("note", text)


def place_of(line: Line) -> str:
    """Name the place of a hunk: the function or heading that git found, else nothing."""
    found = _HUNK.match(line.text)
    return found[5].strip() if found else ""


@dataclass(slots=True)
class _Reading:
    """A file that is being read: in a hunk, its counts say which lines belong to it."""

    head: list[str]
    body: list[str] | None = None
    added: int = 0
    removed: int = 0
    old: int = 0
    new: int = 0

    def takes(self, line: str) -> bool:
        """Take a line that belongs to the hunk that is being read."""
        if self.body is None or not (self.old > 0 or self.new > 0):
            return False
        match line[:1]:
            case "+":
                self.added += 1
                self.new -= 1
            case "-":
                self.removed += 1
                self.old -= 1
            case " " | "":
                self.old -= 1
                self.new -= 1
            case "\\":
                pass
            case _:
                self.old = self.new = 0
                return False
        self.body.append(line)
        return True

    def add(self, line: str) -> None:
        """Add a line between hunks."""
        if found := _HUNK.match(line):
            self.old, self.new = int(found[2] or 1), int(found[4] or 1)
            self.body = self.body or []
        (self.head if self.body is None else self.body).append(line)

    def close(self) -> FileChange:
        """Tell what was read."""
        old, new = _paths(self.head)
        facts = {line.partition(" mode ")[0]: line for line in self.head if " mode " in line}
        status: Status = "changed"
        if "new file" in facts:
            status = "added"
        elif "deleted file" in facts:
            status = "deleted"
        elif any(line.startswith("rename from ") for line in self.head):
            status = "renamed"
        elif any(line.startswith("copy from ") for line in self.head):
            status = "copied"
        modes = {mode for line in self.head for mode in _MODES if line.endswith(f" {mode}")}
        return FileChange(
            head=tuple(self.head),
            body=tuple(self.body or ()),
            path=new or old,
            added=self.added,
            removed=self.removed,
            old_path=old if old != new and status in {"renamed", "copied"} else "",
            status=status,
            what=_MODES[min(modes)] if modes else "",
            binary=any(line.startswith(_BINARY) for line in self.head),
        )


def _paths(head: Sequence[str]) -> tuple[str, str]:
    """Find the names of a file before and after."""
    old = new = ""
    for line in head[1:]:
        for start in ("rename from ", "copy from ", "--- a/", '--- "a/'):
            if line.startswith(start):
                old = _unquote(line, start)
        for start in ("rename to ", "copy to ", "+++ b/", '+++ "b/'):
            if line.startswith(start):
                new = _unquote(line, start)
    if old or new:
        return old, new
    return _paths_of_command(head[0])


def _paths_of_command(line: str) -> tuple[str, str]:
    """Read `diff --git a/NAME b/NAME`, in which both names are equal unless others tell them."""
    rest = line.partition(" ")[2].partition(" ")[2]
    if rest.startswith('"a/') and (half := rest.find('" "b/')) > 0:
        return _unquote(rest[: half + 1], '"a/'), _unquote(rest[half + 2 :], '"b/')
    half = len(rest) // 2
    name = rest[2:half]
    if rest == f"a/{name} b/{name}":
        return name, name
    return rest, rest


def _unquote(line: str, start: str) -> str:
    """Read a name as git writes it: in quotes if it has unusual characters."""
    name = line[len(start) :].removesuffix("\t")
    if not start.endswith(('"a/', '"b/')):
        if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
            return name
        name = name[1:]
    raw = name.removesuffix('"').encode()
    plain = _ESCAPED.sub(
        lambda found: bytes([_LETTERS.get(found[1][0], 0) or int(found[1], 8) % 256]), raw
    )
    return plain.decode(errors="replace")


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else 0
