"""Finds a text in all files that the bridge keeps, and writes over it in plain files.

Content, names, links and extended attributes are looked at; no link is followed. What is
overwritten keeps its length, so that a file of any format stays as readable as it was. The objects
of git are compressed, so they are only named.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from app.children.tree import Tree, read_attributes
from app.descent import FOLDER, Found, walk
from app.vault.octets import PIECE_BYTES, Known, find_spans, is_in


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """What a search of files came across."""

    held: list[Path] = field(default_factory=list)
    """What holds the text, in its content or its name; a folder after what is in it."""
    repositories: list[Path] = field(default_factory=list)
    """Folders of git whose objects were not looked at."""
    unread: list[Path] = field(default_factory=list)
    """What could not be read."""


class KeptFiles:
    """The files of one machine, and those that all machines share. Every method reads or writes."""

    def __init__(self, own: Path, shared: Path, but: Collection[str]) -> None:
        """Look into two folders; names that begin with one of `but` at their top are left out."""
        self._own = own
        self._shared = shared
        self._but = tuple(but)

    def find(self, known: Known, *, shared: bool = True) -> FoundFiles:
        """List the files and folders that hold what is looked for."""
        found = FoundFiles()
        for root in dict.fromkeys((self._own, self._shared) if shared else (self._own,)):
            self._find(root, known, found)
        found.unread[:] = dict.fromkeys(found.unread)
        return found

    def _find(self, root: Path, known: Known, found: FoundFiles) -> None:
        def enter(each: Found) -> bool:
            if self._is_apart(each):
                return False
            is_objects = each.name == "objects" and _has_head(each.folder)
            if is_objects:
                found.repositories.append((root / each.path).parent)
            return not is_objects

        def unread(path: PurePosixPath) -> None:
            found.unread.append(root / path)

        for each in walk(root, enter=enter, unread=unread, folders_last=True):
            try:
                if not self._is_apart(each) and (known.contains(each.name) or _holds(each, known)):
                    found.held.append(root / each.path)
            except FileNotFoundError:
                continue  # a live agent removes its own files
            except OSError:
                unread(each.path)

    def clean(self, known: Known, held: Collection[Path]) -> list[Path]:
        """Overwrite it in files, and rename or remove what has it in its name.

        Returns what could not be changed.
        """
        left = []
        for each in held:
            root = self._own if each.is_relative_to(self._own) else self._shared
            try:
                _clean(Tree(root), PurePosixPath(each.relative_to(root)), known)
            except FileNotFoundError:
                continue
            except OSError:
                left.append(each)
        return left

    def _is_apart(self, each: Found) -> bool:
        return each.depth == 0 and each.name.startswith(self._but)


def _clean(tree: Tree, path: PurePosixPath, known: Known) -> None:
    entry = tree.entry(path)
    if entry is None:
        return
    if entry.is_link:
        tree.remove(path)
        return
    if entry.is_file:
        with tree.open(path) as content:
            spans = list(find_spans(known, iter(partial(content.read, PIECE_BYTES), b"")))
        if spans:
            tree.overwrite(path, spans)
    if entry.is_file or entry.is_folder:
        tree.strip(path, partial(_is_mark, known))
    if known.contains(path.name):
        name = known.redact(path.name)
        for number in range(1, 1000):
            try:
                tree.rename(path, name if number == 1 else f"{number}-{name}")
            except FileExistsError:
                continue
            return


def _holds(each: Found, known: Known) -> bool:
    status = each.stat()
    if stat.S_ISLNK(status.st_mode):
        return known.contains(os.readlink(each.name, dir_fd=each.folder))
    if stat.S_ISREG(status.st_mode):
        with each.open() as content:
            pieces = iter(partial(content.read, PIECE_BYTES), b"")
            return is_in(known, pieces) or _is_marked(content.fileno(), known)
    if stat.S_ISDIR(status.st_mode):
        folder = os.open(each.name, FOLDER, dir_fd=each.folder)
        try:
            return _is_marked(folder, known)
        finally:
            os.close(folder)
    return False


def _is_marked(file: int, known: Known) -> bool:
    """Tell whether an extended attribute holds it."""
    return any(_is_mark(known, *each) for each in read_attributes(file).items())


def _is_mark(known: Known, name: str, value: bytes) -> bool:
    return known.contains(name) or is_in(known, [value])


def _has_head(folder: int) -> bool:
    try:
        os.stat("HEAD", dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True
