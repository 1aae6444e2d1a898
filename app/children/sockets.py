"""Finds the unix sockets of this machine's daemons, so that a sandbox can hide them.

A read-only file system does not keep a process from connecting to a socket that it shows. The
kernel lists the sockets that were bound in this machine's network. Those that a container bound in
a shared folder are not among them: a bounded search looks where servers keep their data.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LISTED: Final = Path("/proc/net/unix")
_PATH_FIELD: Final = 7
_MOUNTS: Final = Path("/proc/self/mounts")
_ROOTS: Final = ("/var", "/srv", "/opt")
"""What is below /run, /tmp and people's homes is hidden in any case."""
_REMOTE: Final = ("nfs", "cifs", "smb", "fuse", "9p", "autofs", "ceph")
"""File systems that may not answer: a search there could wait for ever."""
_ENTRIES: Final = 20_000
"""Files and folders that are looked at, those with short paths first: some 50 ms."""
_FRESH_SECONDS: Final = 300.0
"""How long the result of a search is used; what the kernel lists is read every time."""


class DaemonSockets:
    """The sockets that are bound to a path now."""

    def __init__(self) -> None:
        self._searched: frozenset[str] = frozenset()
        self._search_at = 0.0

    def find(self) -> frozenset[Path]:
        """Return the paths of all sockets that are known; reads the disk."""
        now = time.monotonic()
        if now >= self._search_at:
            self._searched = frozenset(_search())
            self._search_at = now + _FRESH_SECONDS
        return frozenset(Path(path) for path in {*self._searched, *_listed()} if _is_socket(path))


def _listed() -> Iterator[str]:
    try:
        lines = _LISTED.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return  # there is no /proc
    for line in lines:
        fields = line.split(maxsplit=_PATH_FIELD)
        if len(fields) > _PATH_FIELD and fields[_PATH_FIELD].startswith("/"):
            yield fields[_PATH_FIELD]


def _search() -> Iterator[str]:
    """Look for sockets, those near the root first."""
    remote = set(_remote_mounts())
    waiting = deque(_ROOTS)
    left = _ENTRIES
    while waiting and left > 0:
        folder = waiting.popleft()
        if folder in remote:
            continue
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                        yield entry.path
        except OSError:
            continue  # it was removed meanwhile, or the bridge cannot read it


def _remote_mounts() -> Iterator[str]:
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        _device, folder, kind, *_ = line.split()
        if kind.startswith(_REMOTE):
            yield folder


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False  # it is gone, or neither the bridge nor its children can reach it
