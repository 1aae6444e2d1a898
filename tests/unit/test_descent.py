"""Ways through folders: any depth, few descriptors, and nothing outside is ever reached."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from app.descent import OPEN, Descent, discard, remove, walk
from tests.support.deep import BELOW_PATHS, LEVELS, dug


def opened() -> int:
    """Count the descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - one call


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "b" / "c").mkdir(parents=True)
    (root / "b" / "c" / "file").touch()
    (root / "a").touch()
    (root / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    return root


def test_everything_is_listed_by_name_and_no_link_is_followed(root: Path) -> None:
    before = [str(found.path) for found in walk(root)]
    after = [str(found.path) for found in walk(root, folders_last=True)]
    some = [str(found.path) for found in walk(root, enter=lambda found: found.name != "c")]

    assert before == ["a", "b", "b/c", "b/c/file", "out"]
    assert after == ["a", "b/c/file", "b/c", "b", "out"]
    assert some == ["a", "b", "b/c", "out"]
    assert list(walk(root / "none")) == []


@pytest.mark.parametrize("levels", [LEVELS, BELOW_PATHS])
def test_any_depth_is_walked_and_removed_with_few_descriptors(tmp_path: Path, levels: int) -> None:
    with dug(tmp_path, levels):
        before = opened()
        walked = walk(tmp_path, folders_last=True)

        last = next(walked)
        assert (last.name, len(last.path.parts)) == ("found", levels + 1)
        assert opened() - before <= OPEN + 1
        assert sum(1 for _ in walked) == levels
        remove(tmp_path / "d")
        assert list(tmp_path.iterdir()) == []
        assert opened() == before


def test_folders_that_are_moved_meanwhile_are_told_and_lead_nowhere_else(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("root", "else", "where"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    (root / "/".join("d" * 3 * OPEN)).mkdir(parents=True)
    (root / "/".join("d" * 3 * OPEN) / "found").touch()
    (root / "d" / "e").touch()
    (root / "/".join("d" * 12) / "never").touch()
    unread: list[PurePosixPath] = []
    seen: list[str] = []
    for found in walk(root, unread=unread.append):
        seen.append(found.name)
        if found.name == "found":
            # The way back from the last folder leads to `else`, the way down to `where`.
            (root / "/".join("d" * 20)).rename(tmp_path / "else" / "d")
            (root / "/".join("d" * 10)).rename(tmp_path / "where" / "d")

    assert unread == [PurePosixPath("/".join("d" * 10))]
    assert seen[-3:] == ["found", "e", "root"]
    assert {"never", "else", "where"}.isdisjoint(seen)


def test_what_is_listed_as_a_folder_and_becomes_a_link_is_not_entered(root: Path) -> None:
    unread: list[PurePosixPath] = []
    seen: list[str] = []
    for found in walk(root, unread=unread.append):
        seen.append(str(found.path))
        if found.name == "a":
            (root / "b").rename(root / "z")
            (root / "b").symlink_to(root.parent / "outside")

    assert seen == ["a", "b", "out"]
    assert unread == [PurePosixPath("b")]


def test_what_cannot_be_removed_does_not_stop_the_rest(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = os.unlink

    def refuse(name: str, *, dir_fd: int | None = None) -> None:
        if name == "file":
            raise PermissionError(1, "Operation not permitted")
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(PermissionError, match="b/c/file"):
        remove(root)
    assert [str(found.path) for found in walk(root)] == ["b", "b/c", "b/c/file"]
    discard(root)
    assert (root.parent / "outside" / "file").exists()


def test_a_link_is_removed_and_not_what_it_leads_to(root: Path) -> None:
    remove(root / "out")
    remove(root / "out")
    assert (root.parent / "outside" / "file").exists()


def test_a_way_is_gone_from_folder_to_folder(root: Path) -> None:
    with Descent(root) as way:
        way.go(["b", "c"])
        assert os.listdir(way.folder) == ["file"]  # noqa: PTH208 - a descriptor
        way.go([])
        with pytest.raises(NotADirectoryError):
            way.go(["out"])
        assert way.names == []
