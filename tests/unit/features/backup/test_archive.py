"""Archives: every byte is checked, nothing is followed, and what changes meanwhile does no harm."""

from __future__ import annotations

import os
import socket
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.errors import BackupUnusable
from app.features.backup import archive
from app.features.backup.archive import HOLE_BYTES, ArchiveContents, packing
from app.features.backup.stream import PIECE_BYTES, Secret
from app.features.backup.unpacking import check, unpack

KEY = Secret("secret key", "a long and random key of the tests")


def contents() -> ArchiveContents:
    return ArchiveContents(1.0, "0.1.0", "sqlite", "0008", "mark")


def pack(tree: Path, target: Path, secret: Secret = KEY) -> ArchiveContents:
    with packing(target, secret, contents()) as packer:
        packer.add_tree("data", tree, lambda path: path == "cache")
    return packer.contents


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "cache").mkdir()
    (root / "cache" / "left-out").touch()
    (root / "deep" / "program").write_bytes(b"#!/bin/sh\n")
    (root / "deep" / "program").chmod(0o700)
    (root / "deep" / "er" / "large").write_bytes(os.urandom(PIECE_BYTES + 17))
    (root / "empty").touch()
    (root / "outside").symlink_to("/etc")
    (root / "dangling").symlink_to("nowhere")
    (root / "deep" / "er").chmod(0o500)
    return root


def test_a_tree_comes_back_as_it_was_and_links_are_not_followed(tree: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tree / "socket"))
        packed = pack(tree, tmp_path / "archive")

    into = tmp_path / "into"
    into.mkdir()
    unpacked = unpack(tmp_path / "archive", KEY, into)

    back = into / "data"
    assert unpacked == packed == check(tmp_path / "archive", KEY)
    assert sorted(each.name for each in back.iterdir()) == ["dangling", "deep", "empty", "outside"]
    assert (back / "outside").readlink() == Path("/etc")
    assert (back / "deep" / "program").stat().st_mode & 0o777 == 0o700
    assert (back / "deep" / "er").stat().st_mode & 0o777 == 0o500
    large = Path("deep") / "er" / "large"
    assert (back / large).read_bytes() == (tree / large).read_bytes()


def test_an_archive_is_written_once_and_leaves_nothing_if_it_fails(
    tree: Path, tmp_path: Path
) -> None:
    target = tmp_path / "archive"
    pack(tree, target)
    with pytest.raises(BackupUnusable, match="already"):
        pack(tree, target)
    other = tmp_path / "other"
    with pytest.raises(RuntimeError), packing(other, KEY, contents()):
        raise RuntimeError
    assert sorted(each.name for each in tmp_path.iterdir()) == ["archive", "tree"]


@pytest.mark.long
def test_a_passphrase_opens_what_it_sealed_and_nothing_else_does(
    tree: Path, tmp_path: Path
) -> None:
    words = Secret("passphrase", "correct horse battery")
    pack(tree, tmp_path / "archive", words)

    assert check(tmp_path / "archive", words).files
    for wrong in (Secret("passphrase", "correct horse"), Secret("secret key", words.value)):
        with pytest.raises(BackupUnusable, match="not the one"):
            check(tmp_path / "archive", wrong)
    assert b"program" not in (tmp_path / "archive").read_bytes()


@pytest.mark.long
@given(at=some.floats(0, 1, exclude_max=True), cut=some.booleans())
def test_an_archive_that_was_changed_or_cut_anywhere_is_refused(
    tmp_path_factory: pytest.TempPathFactory, at: float, cut: bool
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    (folder / "tree").mkdir()
    (folder / "tree" / "file").write_bytes(b"content")
    pack(folder / "tree", folder / "archive")
    data = bytearray((folder / "archive").read_bytes())
    place = int(at * len(data))
    data[place:] = b"" if cut else bytes([data[place] ^ 1]) + data[place + 1 :]
    (folder / "archive").write_bytes(data)

    with pytest.raises(BackupUnusable):
        check(folder / "archive", KEY)


def test_pieces_cannot_be_left_out_at_the_end(tree: Path, tmp_path: Path) -> None:
    pack(tree, tmp_path / "archive")
    data = (tmp_path / "archive").read_bytes()
    header = data.index(b"\n") + 1
    (tmp_path / "archive").write_bytes(data[: header + PIECE_BYTES + 16])

    with pytest.raises(BackupUnusable, match="not the one"):
        check(tmp_path / "archive", KEY)


def test_a_name_that_leads_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    for name in ("../out", "/out"):
        target = tmp_path / f"archive-{len(name)}"
        with packing(target, KEY, contents()) as packer:
            packer.add_bytes(name, b"x")
        with pytest.raises(BackupUnusable, match="holds the name"):
            unpack(target, KEY, tmp_path / "into")
    assert not (tmp_path / "out").exists()


def test_holes_are_neither_packed_nor_unpacked(tmp_path: Path) -> None:
    tree, into, target = tmp_path / "tree", tmp_path / "into", tmp_path / "archive"
    tree.mkdir()
    into.mkdir()
    for number in range(3):
        with (tree / f"holes-{number}").open("wb") as file:
            file.write(b"begin")
            file.seek(512 * HOLE_BYTES)
            file.write(b"middle")
            file.truncate(1024 * HOLE_BYTES)
    (tree / "nothing-else").touch()
    os.truncate(tree / "nothing-else", 1024 * HOLE_BYTES)

    pack(tree, target)
    unpack(target, KEY, into)

    assert target.stat().st_size < HOLE_BYTES
    for each in tree.iterdir():
        back = into / "data" / each.name
        assert back.stat().st_size == each.stat().st_size
        assert back.stat().st_blocks <= each.stat().st_blocks + 16
    with (into / "data" / "holes-1").open("rb") as file:
        assert file.read(8) == b"begin\0\0\0"
        file.seek(512 * HOLE_BYTES - 2)
        assert file.read(10) == b"\0\0middle\0\0"


def test_a_name_that_is_too_long_is_told_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "NAME_BYTES", 64)
    tree, into = tmp_path / "tree", tmp_path / "into"
    tree.mkdir()
    into.mkdir()
    (tree / "plain").touch()
    (tree / "/".join("d" * 64)).mkdir(parents=True)

    packed = pack(tree, tmp_path / "archive")
    unpack(tmp_path / "archive", KEY, into)

    assert [len(each) for each in packed.missing] == [66]
    assert list(packed.files) == ["data/plain"]
    assert (into / "data" / "plain").exists()


def test_a_newer_format_and_other_files_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b'{"format": "agent-bridge backup", "version": 2, "salt": "00"}\n')
    with pytest.raises(BackupUnusable, match="version 2"):
        check(file, KEY)
    with tarfile.open(file, "w:gz"):
        pass
    with pytest.raises(BackupUnusable, match="not a backup"):
        check(file, KEY)


def test_a_file_that_becomes_shorter_while_it_is_read_is_filled_up(tmp_path: Path) -> None:
    file, target = tmp_path / "log", tmp_path / "archive"
    file.write_bytes(b"12345678")
    with packing(target, KEY, contents()) as packer, file.open("rb") as opened:
        found = os.fstat(opened.fileno())
        os.truncate(file, 3)
        packer.add_open("log", opened, found)
    (tmp_path / "into").mkdir()
    unpack(target, KEY, tmp_path / "into")

    assert (tmp_path / "into" / "log").read_bytes() == b"123\0\0\0\0\0"
