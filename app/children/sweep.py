"""Takes a secret out of all files below some folders: content, names and links; follows no link.

What is overwritten keeps its length, so that a file of any format stays as readable as it was. In
a repository of git, branches stay branches: what is written over their names is part of a name.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from app.children.tree import Entry, Tree
from app.core.erasure.types import Sweeping
from app.vault.octets import CROSS, PIECE_BYTES, Known, cross_out, find_spans, is_in

_HERE: Final = PurePosixPath()
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
        for path, entry in self._walk(_HERE, found):
            try:
                if vault.contains(path.name) or self._holds(path, entry, vault):
                    found.held.append(self._root / path)
            except FileNotFoundError:
                continue  # a live agent removes its own files
            except OSError:
                found.unread.append(self._root / path)
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
        for folder in path.parents:
            head, objects = (self._tree.entry(folder / name) for name in (_HEAD, _OBJECTS))
            if head is not None and objects is not None and objects.is_folder:
                return True
        return False

    def _rename(self, path: PurePosixPath, name: str) -> None:
        for number in range(1, 1000):
            try:
                self._tree.rename(path, name if number == 1 else f"{number}-{name}")
            except FileExistsError:
                continue
            return

    def _holds(self, path: PurePosixPath, entry: Entry, vault: Known) -> bool:
        if entry.is_link:
            return vault.contains(self._tree.link(path))
        if not entry.is_file:
            return False
        with self._tree.open(path) as content:
            return is_in(vault, iter(partial(content.read, PIECE_BYTES), b""))

    def _walk(
        self, folder: PurePosixPath, found: Sweeping
    ) -> Iterator[tuple[PurePosixPath, Entry]]:
        """Yield everything below a folder, what is in a folder before the folder itself."""
        try:
            entries = self._tree.entries(folder, sys.maxsize)
        except FileNotFoundError:
            return
        except OSError:
            found.unread.append(self._root / folder)
            return
        names = {each.name for each in entries}
        for each in sorted(entries, key=lambda entry: entry.name):
            path = folder / each.name
            if folder == _HERE and each.name.startswith(self._but):
                continue
            if each.is_folder and each.name == _OBJECTS and _HEAD in names:
                found.objects.append(self._root / path)
            elif each.is_folder:
                yield from self._walk(path, found)
            yield path, each


def _redact(vault: Known, name: str) -> str:
    return vault.redact(name)
