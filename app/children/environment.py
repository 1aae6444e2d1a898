"""Builds what a child gets of this machine: its variables, and the folders it must see to run.

A variable that is not listed here is never passed on, however harmless it looks. Of folders a
command sees its own, its interpreter's and its packages', never more: `~/.local/bin` brings
`~/.local/lib` along, not `~/.local/share`, where other programs keep their logins.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from app.config.network import AUTHORITIES

MARKER: Final = "AGENT_BRIDGE_PROCESS"
"""Inherited by every descendant: it identifies a process that left its group."""

_PLAIN: Final = frozenset({"PATH", "LANG", "TZ", "TERM", "USER", "LOGNAME", "SHELL"})
CERTIFICATES: Final = frozenset({*AUTHORITIES, "SSL_CERT_DIR"})
_PROXY_NAMES: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
PROXIES: Final = _PROXY_NAMES | {name.lower() for name in _PROXY_NAMES}
_ALLOWED: Final = _PLAIN | CERTIFICATES | PROXIES

# They point into the user's HOME, so they are right only for an agent with that HOME.
_FOLDERS: Final = frozenset(
    {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"}
)
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


def agent_environment(
    base: Mapping[str, str], *, home: Path, own: Mapping[str, str], marker: str
) -> dict[str, str]:
    """Return a child's whole environment; `own` wins, but not over HOME and the marker.

    TMPDIR is left out: inside the sandbox `/tmp` is the agent's own, and any other folder is
    read-only or missing.
    """
    lives_with_person = base.get("HOME") == str(home)
    allowed = _ALLOWED | _FOLDERS if lives_with_person else _ALLOWED
    chosen = {
        name: value for name, value in base.items() if name in allowed or name.startswith("LC_")
    }
    return chosen | dict(own) | {"HOME": str(home), MARKER: marker}


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
