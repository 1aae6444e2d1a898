"""Describes the files of a workspace for the page: folders, and one file with its lines; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from markupsafe import Markup

from app.model.text import HEAD_BYTES, picture_type, size_words
from app.server.page.view import diffs, highlight

SHOWN_BYTES = 512 * 1024
"""What is shown of a file: more than people read. The rest is downloaded."""
_PROBED_BYTES = 8 * 1024
"""Where a zero byte tells that a file is not text, as git does it."""


_UNSAFE = re.compile(rb"[^A-Za-z0-9._~/-]")


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
class Opened:
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
    opened: Opened | None = None
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
    return diffs.show(_text(path.name).replace("\n", "\\u{A}"))


def in_order(entries: Iterable[Listed]) -> tuple[Listed, ...]:
    """Sort a folder: folders first, then by name."""
    return tuple(sorted(entries, key=lambda each: (not each.folder, each.name.casefold())))


def open_file(path: PurePosixPath, content: bytes, *, size: int, cut: bool) -> Opened:
    """Prepare the beginning of a file."""
    name, address, words = name_of(path), address_of(path), size_words(size)
    shown = diffs.show(_text(str(path)))
    if picture_type(content[:HEAD_BYTES]):
        return Opened(name, address, words, shown, picture=True)
    if b"\0" in content[:_PROBED_BYTES]:
        return Opened(name, address, words, shown, binary=True)
    text = content.decode(errors="replace").removesuffix("\n")
    code = "\n".join(diffs.show(line) for line in text.split("\n"))
    lines = highlight.lines(code, highlight.language_of(path.name)) if text else []
    made = tuple(Markup(line) for line in lines)  # noqa: S704 - escaped there
    return Opened(name, address, words, shown, made, cut=cut)


def count_words(count: int, *, more: bool) -> str:
    """Say how many files a folder has."""
    if more:
        return f"{count} or more files are"
    return "1 file is" if count == 1 else f"{count} files are"


def _text(name: str) -> str:
    """Replace what is no text in a name."""
    return name.encode(errors="surrogateescape").decode(errors="replace")
