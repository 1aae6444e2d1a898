"""Looks for a word in every byte of a folder: names, content, the pages and the log of a store.

Also where bytes do not show it: in what a store keeps sealed, and in the objects of git.
"""

from __future__ import annotations

import base64
import os
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from app.config.process import Sealer
from tests.support import postgres
from tests.support.bridge import SECRET_KEY

LOGS = (".log", "log.txt")
"""What a bridge logs is not part of its data."""


def find(folder: Path, *words: str, but: tuple[str, ...] = ()) -> list[str]:
    """List the files and folders below a folder that hold a word, in their name or content."""
    sought = [word.encode() for word in words]
    found = []
    for path in sorted(_walk(folder)):
        inside = path.relative_to(folder)
        if inside.parts[0] in but or path.name.endswith(LOGS):
            continue
        seen = path.name.encode()
        with suppress(FileNotFoundError):
            if path.is_symlink():
                seen += bytes(path.readlink())
            elif path.is_file():
                seen += path.read_bytes()
        if any(word in seen for word in sought):
            found.append(str(inside))
    return found


def _walk(folder: Path) -> Iterator[Path]:
    """Yield all that is below a folder, while a bridge may be removing some of it."""
    for here, folders, files in os.walk(folder):
        yield from (Path(here) / name for name in (*folders, *files))


def find_every_form(data_dir: Path, word: str) -> list[str]:
    """List what holds a word as it is, encoded, sealed or compressed."""
    found = find(data_dir, *forms(word), but=("reserve",))
    return sorted({*found, *find_sealed(data_dir, word), *find_objects(data_dir, word)})


def find_within(thing: object, word: str, where: str = "") -> list[str]:
    """List where in values, at any depth, a word is written as it is or encoded."""
    sought, seen = forms(word), set[int]()

    def find_in(part: object, at: str) -> Iterator[str]:
        text = part.decode("latin-1") if isinstance(part, bytes) else part
        if isinstance(text, str):
            yield from [at] * any(form in text for form in sought)
        elif id(part) not in seen:
            seen.add(id(part))
            for name, inner in _parts(part):
                yield from find_in(inner, at + name)

    return list(find_in(thing, where))


def _parts(thing: object) -> list[tuple[str, object]]:
    if isinstance(thing, Mapping):
        return [(f"[{key!r:.40}]", each) for key, value in thing.items() for each in (key, value)]
    if is_dataclass(thing):
        return [(f".{each.name}", getattr(thing, each.name)) for each in fields(thing)]
    if isinstance(thing, Sequence | Set):
        return [(f"[{at}]", part) for at, part in enumerate(thing)]
    return []


def forms(word: str) -> list[str]:
    """Write a word in usual encodings."""
    octets = word.encode()
    encoded = base64.b64encode(octets).decode().rstrip("="), octets.hex()
    return [word, word.upper(), word.lower(), *encoded]


def find_sealed(data_dir: Path, word: str) -> list[str]:
    """List the rows of a store that hold a word, sealed; purges do, and do not count."""
    if not (postgres.is_wanted() or (data_dir / "bridge.db").exists()):
        return []
    sealer = Sealer(SecretStr(SECRET_KEY))
    found = []
    for number, body in _read(data_dir, "select seq, body from delivery"):
        opened = sealer.open_bytes("store", bytes(body).removeprefix(b"sealed\0"))
        found += [f"delivery {number}"] * (word.encode() in (opened or b""))
    for name, value in _read(data_dir, "select name, value from sealed"):
        opened_text = sealer.open("store", value.removeprefix("sealed:")) or ""
        found += [f"sealed {name}"] * (word in opened_text and "purged:" not in name)
    return found


def _read(data_dir: Path, query: str) -> list[tuple[Any, ...]]:
    if postgres.is_wanted():
        return postgres.server().run(data_dir, query)
    with closing(sqlite3.connect(data_dir / "bridge.db")) as store:
        return store.execute(query).fetchall()


def find_objects(data_dir: Path, word: str) -> list[str]:
    """List the repositories that hold a word in any object, needed or not."""
    listed = ["cat-file", "--batch-all-objects", "--batch", "--unordered"]
    found = []
    for head in data_dir.rglob("HEAD"):
        if (head.parent / "objects").is_dir():
            command = ["git", "-c", "safe.directory=*", f"--git-dir={head.parent}", *listed]
            read = subprocess.run(command, capture_output=True, check=False)
            found += [str(head.parent.relative_to(data_dir))] * (word.encode() in read.stdout)
    return found
