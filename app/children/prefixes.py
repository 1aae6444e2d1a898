"""Finds what a command must see to run: its folders, its interpreter, its packages.

Never more than that: `~/.local/bin` brings `~/.local/lib` along, not `~/.local/share`, where
other programs keep their logins.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_MAX_STEPS: Final = 10
"""Links and interpreters followed from one command: script, env, shim, venv, base; then doubled."""
_SHEBANG_BYTES: Final = 256
"""Linux reads no more of a script's first line (BINPRM_BUF_SIZE)."""
_NEXT_TO_BIN: Final = ("lib", "lib64", "libexec", "include")
# A folder with one of these is a separate installation: venv, conda, pyenv and similar.
_WHOLE: Final = ("pyvenv.cfg", "conda-meta", "shims")
_PROJECT: Final = ("package.json", "pyproject.toml")
# Only a program brings its folder along: an argument may as well be `~/.ssh/id_ed25519`.
_SCRIPTS: Final = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".jar"})


def visible_prefixes(argv: Sequence[str], *, path: str) -> tuple[Path, ...]:
    """Return what `argv` needs when run with this PATH, missing folders too; reads the disk."""
    found: dict[Path, None] = {}
    for folder in path.split(":"):
        if folder.startswith("/"):
            found |= dict.fromkeys(_installation(Path(folder)))
    if argv and (command := shutil.which(argv[0], path=path)):
        found |= dict.fromkeys(_program(Path(command), path))
    for word in argv[1:]:
        if word.startswith("/") and _exists(Path(word)):
            found |= dict.fromkeys(_project(Path(word)))
    return tuple(found)


def _program(command: Path, path: str) -> Iterator[Path]:
    """Follow a command along its links, and then its interpreter in the same way."""
    current: Path | None = command.absolute()
    for _ in range(_MAX_STEPS):
        if current is None:
            return
        yield current
        yield from _package(current)
        current = _link_target(current) or _interpreter(current, path)


def _package(file: Path) -> Iterator[Path]:
    parts = file.parts
    if "node_modules" in parts:
        # The outermost one: packages depend on their siblings.
        yield Path(*parts[: parts.index("node_modules") + 1])
    yield from _installation(file.parent)


def _installation(folder: Path) -> Iterator[Path]:
    yield folder
    if folder.name not in ("bin", "sbin", "shims"):
        return
    prefix = folder.parent
    if any(_exists(prefix / name) for name in _WHOLE):
        yield prefix
    yield from (prefix / name for name in _NEXT_TO_BIN)
    yield from _editable(prefix)


def _editable(environment: Path) -> Iterator[Path]:
    """Yield the checkouts that a virtual environment points to instead of holding a copy."""
    if not _exists(environment / "pyvenv.cfg"):
        return
    for file in environment.glob("lib/python*/site-packages/*.pth"):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("/"):
                yield Path(line)


def _project(argument: Path) -> Iterator[Path]:
    """Yield the program that an interpreter runs, with the project it belongs to."""
    yield argument
    if argument.suffix in _SCRIPTS:
        yield argument.parent
        for folder in argument.parents:
            if any(_exists(folder / name) for name in _PROJECT):
                yield folder
                return


def _link_target(file: Path) -> Path | None:
    try:
        target = file.readlink()
    except OSError:
        return None
    return Path(os.path.normpath(os.path.realpath(file.parent) / target))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False  # not accessible to the bridge, so not to its children either


def _interpreter(script: Path, path: str) -> Path | None:
    try:
        with script.open("rb") as file:
            line = file.readline(_SHEBANG_BYTES)
    except OSError:
        return None
    words = line[2:].decode(errors="replace").split() if line.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        named = next((word for word in words[1:] if not word.startswith("-")), "")
        found = shutil.which(named, path=path)
        return Path(found) if found else None
    return Path(words[0]) if words else None
