"""Takes a secret out of files below some folders: content, names, attributes; follows no link.

What is overwritten keeps its length, so that a file of any format stays as readable as it was. In
a repository of git, branches stay branches: what is written over their names is part of a name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from app.children.tree import Tree, read_attributes
from app.descent import FOLDER, Descent, Found, walk
from app.model.erasure import Sweeping
from app.vault.octets import CROSS, PIECE_BYTES, Known, cross_out, find_spans, is_in

_OBJECTS: Final = "objects"
_HEAD: Final = "HEAD"
_INDEX: Final = "index"
_PACKED_REFS: Final = "packed-refs"
_SORTED: Final = b"sorted"


class Sweeps:
    """The files below several folders. Every method reads or writes files."""

    def __init__(self, roots: Collection[Path], but: Collection[str]) -> None:
        """Sweep folders; names that begin with one of `but` at their top are left out."""
        apart = [
            each
            for each in dict.fromkeys(roots)
            if not any(each != other and each.is_relative_to(other) for other in roots)
        ]
        self._sweeps = {root: Sweep(root, but) for root in apart}

    def find(self, vault: Known) -> Sweeping:
        """List the files and folders that hold what is looked for."""
        found = [each.find(vault) for each in self._sweeps.values()]
        return Sweeping(
            [path for each in found for path in each.held],
            [path for each in found for path in each.objects],
            [path for each in found for path in each.unread],
        )

    def clean(self, vault: Known, held: Collection[Path]) -> list[Path]:
        """Overwrite it in files, and rename or remove what has it in its name.

        Returns what could not be changed.
        """
        return [
            path
            for root, sweep in self._sweeps.items()
            for path in sweep.clean(vault, [each for each in held if each.is_relative_to(root)])
        ]


class Sweep:
    """The files below one folder."""

    def __init__(self, root: Path, but: Collection[str]) -> None:
        """Sweep a folder; names that begin with one of `but` at its top are left out."""
        self._root = root
        self._but = tuple(but)
        self._tree = Tree(root)

    def find(self, vault: Known) -> Sweeping:
        """List the files and folders that hold a secret."""
        found = Sweeping()

        def enter(each: Found) -> bool:
            if self._is_apart(each):
                return False
            is_objects = each.name == _OBJECTS and _exists(_HEAD, each.folder)
            if is_objects:
                found.objects.append(self._root / each.path)
            return not is_objects

        def unread(path: PurePosixPath) -> None:
            found.unread.append(self._root / path)

        for each in walk(self._root, enter=enter, unread=unread, folders_last=True):
            try:
                if not self._is_apart(each) and (vault.contains(each.name) or _holds(each, vault)):
                    found.held.append(self._root / each.path)
            except FileNotFoundError:
                continue  # a live agent removes its own files
            except OSError:
                unread(each.path)
        found.unread[:] = dict.fromkeys(found.unread)
        return found

    def clean(self, vault: Known, held: Collection[Path]) -> list[Path]:
        """Overwrite a secret in files, and rename or remove what has it in its name.

        Returns what could not be changed.
        """
        left = []
        for each in held:
            try:
                self._clean(PurePosixPath(each.relative_to(self._root)), vault)
            except FileNotFoundError:
                continue
            except OSError:
                left.append(each)
        return left

    def _clean(self, path: PurePosixPath, vault: Known) -> None:
        entry = self._tree.entry(path)
        if entry is None:
            return
        if entry.is_link:
            self._tree.remove(path)
            return
        if entry.is_file:
            self._overwrite(path, vault)
        if entry.is_file or entry.is_folder:
            self._tree.strip(path, partial(_is_mark, vault))
        if vault.contains(path.name):
            named = cross_out if self._is_of_git(path) else _redact
            self._rename(path, named(vault, path.name))

    def _overwrite(self, path: PurePosixPath, vault: Known) -> None:
        with self._tree.open(path) as content:
            spans = list(find_spans(vault, iter(partial(content.read, PIECE_BYTES), b"")))
            content.seek(0)
            traits = content.readline(PIECE_BYTES) if path.name == _PACKED_REFS else b""
        if not spans:
            return
        if not self._is_of_git(path):
            self._tree.overwrite(path, spans)
        elif path.name == _INDEX:
            self._tree.remove(path)  # it has a checksum, and git can write it again
        else:
            # Crossed out names are in no order.
            at = traits.find(_SORTED)
            ordered = [(at, at + len(_SORTED))] if at >= 0 else []
            self._tree.overwrite(path, [*spans, *ordered], CROSS)

    def _is_of_git(self, path: PurePosixPath) -> bool:
        """Tell whether git reads a file, rather than people: one of a repository itself."""
        with suppress(OSError), Descent(self._root) as way:
            for name in path.parts:
                if _exists(_HEAD, way.folder) and _exists(f"{_OBJECTS}/.", way.folder):
                    return True
                way.enter(name)
        return False

    def _rename(self, path: PurePosixPath, name: str) -> None:
        for number in range(1, 1000):
            try:
                self._tree.rename(path, name if number == 1 else f"{number}-{name}")
            except FileExistsError:
                continue
            return

    def _is_apart(self, each: Found) -> bool:
        return each.depth == 0 and each.name.startswith(self._but)


def _holds(each: Found, vault: Known) -> bool:
    status = each.stat()
    if stat.S_ISLNK(status.st_mode):
        return vault.contains(os.readlink(each.name, dir_fd=each.folder))
    if stat.S_ISREG(status.st_mode):
        with each.open() as content:
            pieces = iter(partial(content.read, PIECE_BYTES), b"")
            return is_in(vault, pieces) or _marked(content.fileno(), vault)
    if stat.S_ISDIR(status.st_mode):
        folder = os.open(each.name, FOLDER, dir_fd=each.folder)
        try:
            return _marked(folder, vault)
        finally:
            os.close(folder)
    return False


def _marked(file: int, vault: Known) -> bool:
    """Tell whether an extended attribute holds it."""
    return any(_is_mark(vault, *each) for each in read_attributes(file).items())


def _is_mark(vault: Known, name: str, value: bytes) -> bool:
    return vault.contains(name) or is_in(vault, [value])


def _exists(path: str, folder: int) -> bool:
    try:
        os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _redact(vault: Known, name: str) -> str:
    return vault.redact(name)
