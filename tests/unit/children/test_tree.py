"""Files below a folder that somebody hostile fills: nothing outside is ever reached."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from app.children.tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "file").write_text("inside")
    (root / "out").symlink_to(tmp_path)
    (root / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "pipe")
    (tmp_path / "secret").write_text("outside")
    return Tree(root)


@pytest.mark.parametrize(
    "path", ["../secret", "deep/../../secret", "/etc/passwd", "out/secret", "link", "pipe", "deep"]
)
def test_only_plain_files_below_the_folder_are_read(tree: Tree, path: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the trick
        tree.read(PurePosixPath(path))


@pytest.mark.parametrize("path", ["..", "../root", "/", "out", "deep/file"])
def test_only_folders_below_the_folder_are_listed(tree: Tree, path: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the trick
        tree.entries(PurePosixPath(path), 10)


def test_a_folder_is_listed_up_to_a_limit(tree: Tree) -> None:
    found = {entry.name: entry for entry in tree.entries(PurePosixPath(), 10)}

    assert sorted(found) == ["deep", "link", "out", "pipe"]
    assert (found["deep"].is_folder, found["out"].is_folder, found["out"].is_link) == (
        True,
        False,
        True,
    )
    assert not found["pipe"].is_file
    assert len(tree.entries(PurePosixPath(), 2)) == 2
    assert tree.read(PurePosixPath("deep/file"), 3) == b"ins"
