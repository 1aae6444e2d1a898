"""An agent plants a way out of DATA_DIR in a backup, for the person who restores it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, cast

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from app.errors import BackupUnusable
from app.features.backup.archive import LIST, ArchiveContents
from app.features.backup.stream import SealedWriter, Secret
from app.features.backup.unpacking import check, unpack
from tests.support.bridge import SECONDS
from tests.support.ordinary import USERS, Running, Server, agents, laid_out

FOUND = find_bubblewrap(os.environ["PATH"])
needs_bubblewrap = pytest.mark.skipif(
    isinstance(FOUND, Unavailable), reason=f"{FOUND}: an agent cannot be confined"
)
KEY = Secret("secret key", "a long and random key of the tests")
PLANTED = "authorized_keys"
PAIRS = 400
SPARSE_BYTES = 64 * 1024 * 1024
"""Far less than the files that an agent claims to have."""
SWAP = f"""
import ctypes, os, pathlib, sys
exchange = ctypes.CDLL(None).renameat2
for at in range({PAIRS}):
    os.mkdir(f"d{{at}}")
    pathlib.Path(f"d{{at}}", "{PLANTED}").write_text("planted")
    os.symlink(sys.argv[1], f"l{{at}}")
os.mkdir("stable")
for at in range(50):
    pathlib.Path("stable", str(at)).write_bytes(os.urandom(4096) * at)
pathlib.Path("ready").touch()
while not os.path.exists("stop"):
    for at in range({PAIRS}):
        exchange(-100, f"d{{at}}".encode(), -100, f"l{{at}}".encode(), 2)
"""

FOLDER, LINK, FILE = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.REGTYPE
CRAFTED: dict[str, list[tuple[bytes, str]]] = {
    "a link, then a folder of its name": [(LINK, "data/d"), (FOLDER, "data/d"), (FILE, "data/d/x")],
    "a folder, then a link of its name": [(FOLDER, "data/d"), (LINK, "data/d"), (FILE, "data/d/x")],
    "a file below a link": [(LINK, "data/d"), (FILE, "data/d/x")],
    "a file below a file": [(FILE, "data/d"), (FILE, "data/d/x")],
    "a file twice": [(FILE, "data/x"), (FILE, "data/x")],
    "a folder twice": [(FOLDER, "data/d"), (FOLDER, "data/d")],
    "a name in two forms": [(FILE, "data/x"), (FILE, "data/./x")],
    "a file below no folder": [(FILE, "data/d/x")],
    "an absolute name": [(FILE, "{outside}/x")],
    "a name that leads out": [(FILE, "data/../../outside/x")],
    "a link at the top": [(LINK, "secrets")],
    "a hard link": [(tarfile.LNKTYPE, "data/x")],
    "a device": [(tarfile.CHRTYPE, "data/x")],
    "a pipe": [(tarfile.FIFOTYPE, "data/x")],
}


def craft(target: Path, members: list[tuple[bytes, str]], leads_to: Path) -> None:
    """Seal an archive with members that the packer would not write."""
    contents = ArchiveContents(1.0, "0.1.0", "sqlite", "0008", "mark")
    with target.open("wb") as file:
        sealed = SealedWriter(file, KEY)
        with tarfile.open(fileobj=cast("IO[bytes]", sealed), mode="w|gz") as tar:
            for kind, name in [(FOLDER, "data"), *members]:
                member = tarfile.TarInfo(name.format(outside=leads_to))
                member.type, member.linkname, member.mode = kind, str(leads_to), 0o700
                data = b"planted" if kind == FILE else b""
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
                contents.files |= {member.name: hashlib.sha256(data).hexdigest()} if data else {}
            listed = json.dumps(asdict(contents)).encode()
            member = tarfile.TarInfo(LIST)
            member.size = len(listed)
            tar.addfile(member, io.BytesIO(listed))
        sealed.finish()


@pytest.mark.parametrize("members", CRAFTED.values(), ids=CRAFTED.keys())
def test_a_crafted_archive_is_refused_before_anything_is_written(
    tmp_path: Path, members: list[tuple[bytes, str]]
) -> None:
    into, outside, archive = (tmp_path / name for name in ("into", "outside", "archive"))
    into.mkdir()
    outside.mkdir()
    craft(archive, members, outside)

    with pytest.raises(BackupUnusable):
        check(archive, KEY)
    with pytest.raises(BackupUnusable):
        unpack(archive, KEY, into)

    assert list(into.iterdir()) == []
    assert list(outside.iterdir()) == []


def test_an_archive_of_the_first_release_is_unpacked(tmp_path: Path) -> None:
    """Its files came before its folders, and links to folders among them."""
    archive = tmp_path / "archive"
    members = [(FILE, "data/z"), (LINK, "data/a"), (FOLDER, "data/d"), (FILE, "data/d/x")]
    craft(archive, members, tmp_path)
    (tmp_path / "into").mkdir()

    unpack(archive, KEY, tmp_path / "into")

    data = tmp_path / "into" / "data"
    assert (data / "d" / "x").read_bytes() == (data / "z").read_bytes() == b"planted"
    assert (data / "a").readlink() == tmp_path


@pytest.fixture(params=USERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with laid_out(request.param) as server:
        yield server


def start_swapping(server: Server, bridge: Running, victim: Path) -> Path:
    """Have the agent exchange folders and links until a file `stop` is there."""
    script = server.own(_write(server.checkout / "swap.py", SWAP))
    python = server.checkout / ".venv" / "bin" / "python"
    words = {"agent": "demo", "text": f"run {python} {script} {victim}"}
    begun = bridge.http.post("/api/v1/sessions", json=words)
    assert begun.status_code == 201, begun.text
    workspace = server.data_dir / "workspaces" / f"{begun.json()['id']}-demo"
    deadline = time.monotonic() + SECONDS
    while not (workspace / "ready").exists():
        assert time.monotonic() < deadline, bridge.log.read_text(errors="replace")[-4000:]
        time.sleep(0.05)
    return workspace


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@needs_bubblewrap
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "seconds", [pytest.param(0, marks=pytest.mark.long), pytest.param(60, marks=pytest.mark.slow)]
)
def test_a_backup_of_folders_and_links_that_are_exchanged_is_restored_and_leads_nowhere(
    server: Server, seconds: int
) -> None:
    victim = server.home / ".ssh"
    victim.mkdir()
    server.own(victim)
    deadline = time.monotonic() + seconds
    with server.serving(AGENTS_JSON=agents(demo=server.demo(mode="free"))) as bridge:
        workspace = start_swapping(server, bridge, victim)
        backups = [server.home / "0.backup"]
        server.succeed("backup", str(backups[0]))
        while time.monotonic() < deadline:
            backups.append(server.home / f"{len(backups)}.backup")
            server.succeed("backup", str(backups[-1]))
        (workspace / "stop").touch()

    for backup in backups:
        assert "can be restored" in server.succeed("backup", "--check", str(backup))
        restored = server.folder / backup.stem
        server.succeed("restore", str(backup), DATA_DIR=str(restored))
        again = restored / workspace.relative_to(server.data_dir)
        for number in range(50):
            stable = Path("stable") / str(number)
            assert (again / stable).read_bytes() == (workspace / stable).read_bytes()
        assert any(again.glob("[dl]*"))
    assert list(victim.iterdir()) == []


@needs_bubblewrap
@pytest.mark.long
def test_files_that_are_nothing_but_holes_fill_neither_a_backup_nor_a_disk(server: Server) -> None:
    """Three large files that take no disk."""
    with server.serving(AGENTS_JSON=agents(demo=server.demo(mode="free"))) as bridge:
        answer = bridge.ask("run truncate --size 256M a b c && echo end >> a")
        assert "status 0" in answer, answer
        server.succeed("backup", str(server.home / "holes.backup"))
    restored = server.folder / "restored"

    server.succeed("restore", str(server.home / "holes.backup"), DATA_DIR=str(restored))

    assert (server.home / "holes.backup").stat().st_size < SPARSE_BYTES
    files = [path for name in "abc" for path in restored.glob(f"workspaces/*/{name}")]
    assert [path.stat().st_size >= 2**28 for path in files] == [True] * 3
    assert sum(path.stat().st_blocks * 512 for path in files) < SPARSE_BYTES
