"""How many files a commit has is known before anything walks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import GitFailed
from app.repos.git import Git
from app.repos.trees import find_excess
from tests.support.git_server import git
from tests.support.tree_bomb import nest

WHO = "author A <a@example.com> 1 +0000\ncommitter A <a@example.com> 1 +0000"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "--bare")
    return tmp_path


def commit(repository: Path, *levels: int) -> str:
    """Commit folders that hold one folder so many times each, above one file."""
    tree = nest(repository, levels)
    text = f"tree {tree}\n{WHO}\n\nx\n"
    return git(repository, "hash-object", "-w", "-t", "commit", "--stdin", given=text)


async def excess(repository: Path, *commits: str, most: int) -> str:
    return await find_excess(
        Git({"PATH": "/usr/bin:/bin"}, "tests"), repository, commits, most=most
    )


async def test_every_file_and_folder_counts_wherever_it_is(repository: Path) -> None:
    # Three folders of two folders of one file: 3 + 6 + 6.
    made = commit(repository, 3, 2)

    assert await excess(repository, made, most=15) == ""
    assert "has more than 14 files and folders" in await excess(repository, made, most=14)


async def test_ten_billion_files_in_a_dozen_objects_are_counted(repository: Path) -> None:
    bomb = commit(repository, *[10] * 10)

    said = await excess(repository, bomb, most=1_000_000)

    assert said.startswith(f"Commit {bomb[:12]} has more than 1,000,000 files and folders.")


async def test_each_commit_is_counted_by_itself(repository: Path) -> None:
    small, large = commit(repository, 3), commit(repository, 9)

    assert await excess(repository, small, large, small, most=18) == ""
    assert f"Commit {large[:12]}" in await excess(repository, small, large, small, most=17)


async def test_folders_that_are_too_deep_for_any_path_are_refused(repository: Path) -> None:
    deep = commit(repository, *[1] * 300)

    said = await excess(repository, deep, most=1_000_000)

    assert "more than 256 folders within each other" in said


async def test_different_folders_are_not_read_without_end(repository: Path) -> None:
    commits = [commit(repository, number) for number in range(1, 6)]

    assert "different folders" in await excess(repository, *commits, most=5)


async def test_a_commit_that_is_missing_is_said(repository: Path) -> None:
    with pytest.raises(GitFailed, match="missing"):
        await excess(repository, "0123456789" * 4, most=5)
