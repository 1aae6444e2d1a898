"""The files of a hostile folder are packed without leaving it, and come back as they were."""

from __future__ import annotations

import os
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from app.children import packing
from app.children.packing import name_content, pack, unpack


def fill(folder: Path, outside: Path) -> None:
    """Make a folder with all that an agent may leave in it."""
    outside.mkdir()
    (outside / "secret").write_text("not mine")
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "tool").write_text("#!/bin/sh\n")
    (folder / "deep" / "er" / "tool").chmod(0o755)
    (folder / os.fsdecode(b"odd\n\xff")).write_bytes(b"\0\xff")
    (folder / "cache").mkdir()
    (folder / "cache" / "large").write_text("made again")
    (folder / "link").symlink_to(outside / "secret")
    (folder / "links").symlink_to(outside)
    os.mkfifo(folder / "pipe")


def test_packed_files_come_back_in_place_of_what_was_there(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "packed"
    fill(folder, tmp_path / "outside")
    before = name_content(folder, ("cache/",))
    pack(folder, file, ("cache/",))
    other = tmp_path / "other"
    other.mkdir()
    (other / "stale").write_text("old")
    (other / "deep").symlink_to(tmp_path / "outside")

    unpack(file, other, None)

    found = sorted(str(each.relative_to(other)) for each in other.rglob("*") if not each.is_dir())
    assert found == ["deep/er/tool", os.fsdecode(b"odd\n\xff")]
    assert name_content(other) == before
    assert (other / "deep" / "er" / "tool").stat().st_mode & 0o777 == 0o700
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["secret"]


def test_a_change_has_another_name_and_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert name_content(tmp_path / "missing") == name_content(tmp_path) == ""
    (tmp_path / "file").write_text("one")
    os.utime(tmp_path / "file", (1, 1))
    before = name_content(tmp_path)

    (tmp_path / "file").write_text("two")

    assert name_content(tmp_path) != before


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PACKED_BYTES", 10)
    (tmp_path / "file").write_text("eleven char")

    with pytest.raises(OSError, match="too much to be saved"):
        name_content(tmp_path)


def test_broken_and_hostile_packs_write_nothing_outside(tmp_path: Path) -> None:
    file, folder = tmp_path / "packed", tmp_path / "folder"
    with tarfile.open(file, "w:gz") as archive:
        member = tarfile.TarInfo("../escaped")
        member.size = 3
        archive.addfile(member, BytesIO(b"bad"))
    with pytest.raises(FileNotFoundError):
        unpack(file, folder, None)
    file.write_bytes(b"no archive")
    with pytest.raises(OSError, match="broken"):
        unpack(file, folder, None)

    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "packed"]
